package sidecar

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// cron wakes the jobs on their ticks. No other file calls gocron. Its methods are called with Sidecar.swapping held.
type cron struct {
	wake func(job string)
	log  *slog.Logger
	of   gocron.Scheduler // nil before it starts
}

// start wakes jobs from now on.
func (c *cron) start(clock *clock, jobs roster) error {
	of, err := gocron.NewScheduler(gocron.WithClock(clock), gocron.WithLocation(time.UTC))
	if err != nil {
		return fmt.Errorf("making the scheduler: %w", err)
	}
	c.of = of
	for _, j := range jobs {
		c.retime(j)
	}
	of.Start()
	return nil
}

// stop wakes nobody any more.
func (c *cron) stop() {
	if err := c.of.Shutdown(); err != nil {
		c.log.Warn("the scheduler did not stop cleanly", "err", err)
	}
}

// runs tells whether it has started.
func (c *cron) runs() bool { return c.of != nil }

// retime wakes a job on the ticks that it has now.
func (c *cron) retime(j *job) {
	if c.of == nil {
		return
	}
	c.disarm(j)
	series := j.now().series // by itself, so that a timer that is kept keeps no spec
	timer, err := c.of.NewJob(gocron.CronJob("", false), gocron.NewTask(c.wake, j.name), gocron.WithName(j.name),
		gocron.WithCronImplementation(crontab{&series}))
	if err != nil {
		c.log.Error("a job has no timer: its ticks are taken late, and of those a second apart only some", "job", j.name, "err", err)
		return
	}
	j.timer = timer.ID()
}

// disarm wakes a job no more. A timer that goes off at this moment calls wake all the same.
func (c *cron) disarm(j *job) {
	if c.of == nil || j.timer == uuid.Nil {
		return
	}
	if err := c.of.RemoveJob(j.timer); err != nil {
		c.log.Warn("a timer could not be removed", "job", j.name, "err", err)
	}
	j.timer = uuid.Nil
}

// crontab is a series as gocron asks for it.
type crontab struct{ *series }

// never stands for "no more ticks" towards gocron, which takes a zero Time for one that has passed and asks on for ever.
var never = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// Next implements gocron.Cron with the instants at which jobs are to be woken.
func (s crontab) Next(last time.Time) time.Time {
	if !last.Before(never) {
		return last.Add(time.Hour) // gocron also asks on while it knows the answer already
	}
	tick := s.after(last.Add(ahead))
	if tick.IsZero() {
		return never
	}
	next := s.due(tick).Add(-ahead)
	if next.Truncate(time.Second).Equal(last.Truncate(time.Second)) {
		// gocron takes two instants that read the same, to the second, for the two sides of the autumn change, and passes
		// over the later one. So they read differently.
		next = next.In(time.FixedZone("", 3600))
		if last.Location() != time.UTC {
			next = next.UTC()
		}
	}
	return next
}

// IsValid implements gocron.Cron; the table was checked before.
func (crontab) IsValid(string, *time.Location, time.Time) error { return nil }
