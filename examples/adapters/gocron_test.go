package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	solotick "github.com/solotick/solotick/examples/adapters/gocron"
)

// skewed is a clock that is fast.
type skewed struct {
	clockwork.Clock
	by time.Duration
}

func (c skewed) Now() time.Time { return c.Clock.Now().Add(c.by) }

// careless never asks, and silent never finishes: the judge has to notice both.
type (
	careless struct{}
	silent   struct{ *solotick.Locker }
)

func (careless) Lock(context.Context, string) (gocron.Lock, error) { return careless{}, nil }
func (careless) Unlock(context.Context) error                      { return nil }

func (s silent) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	_, err := s.Locker.Lock(ctx, job)
	return careless{}, err
}

// gocronApp is the same small app as node-cron/app.mjs and apscheduler/app.py. It is this test's own binary. The fault
// is "careless" or "silent".
func gocronApp(fault, api, seconds, take, skew string, jobs ...string) error {
	takes, err := time.ParseDuration(take + "ms")
	if err != nil {
		return err
	}
	by, err := strconv.Atoi(skew)
	if err != nil {
		return err
	}
	clock := skewed{clockwork.NewRealClock(), time.Duration(by) * time.Millisecond}
	locker := solotick.New(api)
	options := append(locker.Options(), gocron.WithClock(clock), gocron.WithLocation(time.UTC))
	switch fault {
	case "careless":
		options = append(options, gocron.WithDistributedLocker(careless{}))
	case "silent":
		options = append(options, gocron.WithDistributedLocker(silent{locker}))
	}
	scheduler, err := gocron.NewScheduler(options...)
	if err != nil {
		return err
	}
	work := func(job string) error {
		claim, run := locker.Claimed(job), ""
		if claim == nil { // it is careless
			tick := clock.Now().UTC().Truncate(time.Second)
			claim, run = &solotick.Claim{Tick: tick, Context: context.Background()}, "none"
		} else {
			run = claim.Run
		}
		say := func(what string) {
			fmt.Println(what, job, claim.Tick.Format(time.RFC3339), run, claim.FencingToken)
		}
		wait := takes
		if strings.HasPrefix(job, "endless") {
			wait = 10 * time.Minute
		}
		say("begun")
		select {
		case <-time.After(wait):
		case <-claim.Context.Done():
			say("stopped")
			return claim.Context.Err()
		}
		if strings.HasPrefix(job, "fails") {
			return errors.New("disk full")
		}
		say("done")
		return nil
	}
	told := gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { fmt.Fprintln(os.Stderr, err) })
	for _, job := range jobs {
		if _, err := scheduler.NewJob(gocron.CronJob(seconds+" * * * * *", true), gocron.NewTask(work, job),
			gocron.WithName(job), gocron.WithEventListeners(told)); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	scheduler.Start()
	select {}
}
