package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// Rerun has one replica run a tick of a job again, under its own idempotency key: it is a Backfill of one tick or, of
// the tick of a trigger, a trigger once more. id and the errors are as with Trigger.
func (s *Store) Rerun(ctx context.Context, job string, tick time.Time, id string) (lock.Due, error) {
	d := lock.Due{Tick: tick, Job: job, Kind: "backfill", Attempt: 1, Nonce: id}
	if rds.Millis(tick)%10 != 0 { // a trigger made it, and it is no tick of the schedule
		d.Kind = "manual"
	}
	_, err := s.ask(ctx, "rerunning", d, []time.Time{tick}, actText{What: "rerun", Tick: rds.Millis(tick)})
	return d, err
}

// asked returns the tick of the rerun that was asked for under an id within the last day; zero if there was none.
func (s *Store) asked(ctx context.Context, job, id string) (tick time.Time, err error) {
	reply, err := s.redis.Do(ctx, "get", s.redis.Keys.Memo(id))
	if err != nil && !errors.Is(err, redis.Nil) {
		return tick, fmt.Errorf("reading the request %s: %w", id, err)
	}
	memo, _ := reply.(string)
	_, member, _ := strings.Cut(memo, " ")
	if d, err := lock.ParseDue(member); err == nil && d.Job == job { // of a trigger there is no tick in it
		tick = d.Tick
	}
	return tick, nil
}

// Rerun has one replica run a tick again: the given one, or else the newest that failed. A request that is repeated
// with its id asks for nothing more, and is answered with the same tick; "" is a new id. With force the given one need
// not have failed.
func (o *Operator) Rerun(ctx context.Context, j config.Job, given Moment, force bool, id string) (lock.Due, error) {
	id, err := requestID(id)
	if err != nil {
		return lock.Due{}, err
	}
	var tick time.Time
	if given.IsZero() {
		if tick, err = o.Store.asked(ctx, j.Name, id); err != nil {
			return lock.Due{}, RefusalOf(err)
		}
	}
	if tick.IsZero() {
		if tick, err = o.TickToRerun(ctx, j, given, force); err != nil {
			return lock.Due{}, err
		}
	}
	return ask(ctx, o, func(ctx context.Context) (lock.Due, error) { return o.Store.Rerun(ctx, j.Name, tick, id) })
}

// searchedRuns is how many runs of a job are searched for the tick to be run again.
const searchedRuns = 5000

// TickToRerun returns the tick that a rerun is about: the given one, or else the newest that failed. Runs by hand do
// not count for that: they are no runs of the schedule.
func (o *Operator) TickToRerun(ctx context.Context, j config.Job, given Moment, force bool) (time.Time, error) {
	// An older failure may have been mended since, by a run that Redis does not have any more.
	history, err := o.Store.Search(ctx, Search{Jobs: []string{j.Name}, Limit: searchedRuns, whole: true})
	if err != nil {
		return time.Time{}, RefusalOf(err)
	}
	if given.IsZero() {
		return newestFailed(j.Name, history)
	}
	unfailed := func(said string) error {
		return refuse(NoFailure, "%s of job %q did not fail: %s", given, j.Name, said).
			hint("--force runs it all the same")
	}
	for _, e := range history {
		switch {
		case !e.Tick.Equal(given.Time), e.Outcome == HandedOver:
		case !e.Failed && !force:
			return time.Time{}, unfailed("the history has it as " + e.Outcome)
		default:
			return e.Tick, nil
		}
	}
	now, err := o.Now()
	switch {
	case err != nil:
		return time.Time{}, err
	case given.After(now):
		return time.Time{}, toCome(given, now).of(j.Name)
	case j.Schedule == nil:
		return time.Time{}, refuse(Partial,
			"the schedule of job %q is not known here, and its history has no run of %s", j.Name, given)
	case !j.Schedule.Last(given.Time).Equal(given.Time):
	case !force:
		return time.Time{}, unfailed("the history has no run of it")
	default:
		return given.UTC(), nil
	}
	around := "the ticks around it are"
	for _, t := range []time.Time{j.Schedule.Last(given.Time), j.Schedule.Next(given.Time)} {
		if !t.IsZero() {
			around += " " + t.Format(time.RFC3339)
		}
	}
	return time.Time{}, refuse(Invalid, "%s is no tick of job %q", given, j.Name).hint(around)
}

// newestFailed returns the newest tick whose last run by the schedule failed, and that no backfill has mended since.
// The history has its newest entry first.
func newestFailed(job string, history []Entry) (newest time.Time, err error) {
	seen := map[int64]bool{}
	for _, e := range history {
		if e.Kind == "manual" || e.Kind == "backfill" && e.Outcome != "succeeded" || e.Outcome == HandedOver ||
			seen[e.Tick.UnixMilli()] {
			continue
		}
		seen[e.Tick.UnixMilli()] = true
		if e.Failed && e.Tick.After(newest) {
			newest = e.Tick
		}
	}
	if newest.IsZero() {
		err = refuse(NoFailure, "the history has no failed tick of job %q", job).of(job)
	}
	return newest, err
}
