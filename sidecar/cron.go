package sidecar

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
)

// cron wakes the jobs on their ticks. No other file knows gocron, nor the clock that gocron asks for. Its methods are
// called with Sidecar.swapping held, and it alone writes its fields.
//
// Jobs that come due at the same instants share a group. A group is one job of gocron, so a thousand jobs on one
// second need one timer and one wake. A reload moves jobs between groups and leaves all other timers alone.
type cron struct {
	wake      func(jobs ...string)
	log       *slog.Logger
	scheduler gocron.Scheduler  // nil before it starts
	groups    map[string]*group // by the instants that their jobs have in common
	in        map[string]*group // by job
}

// group is the jobs that come due at the same instants.
type group struct {
	key    string    // in cron.groups
	name   string    // of the first of its jobs
	series series    // that job's
	timer  uuid.UUID // gocron's name for it; uuid.Nil = it has none

	mu   sync.Mutex // jobs are read when the timer goes off
	jobs map[string]bool
}

// start wakes jobs from now on.
func (c *cron) start(clock *clock, jobs map[string]*job) error {
	cluster := gocronClock{clockwork.NewRealClock(), clock}
	of, err := gocron.NewScheduler(gocron.WithClock(cluster), gocron.WithLocation(time.UTC))
	if err != nil {
		return fmt.Errorf("making the scheduler: %w", err)
	}
	c.scheduler, c.groups, c.in = of, map[string]*group{}, map[string]*group{}
	for _, j := range jobs {
		c.retime(j)
	}
	of.Start()
	return nil
}

// stop ends the wakes.
func (c *cron) stop() {
	if err := c.scheduler.Shutdown(); err != nil {
		c.log.Warn("the scheduler did not stop cleanly", "err", err)
	}
}

// started tells whether start was called.
func (c *cron) started() bool { return c.scheduler != nil }

// retime wakes a job on the ticks that it has now.
func (c *cron) retime(j *job) {
	if c.scheduler == nil {
		return
	}
	sp := j.now()
	key := sp.instants()
	if g := c.in[j.name]; g != nil && g.key == key {
		return
	}
	c.leave(j.name)
	g := c.groups[key]
	if g == nil {
		g = &group{key: key, name: j.name, series: sp.series, jobs: map[string]bool{}}
		c.groups[key] = g
	}
	c.in[j.name] = g
	g.add(j.name)
	if g.timer == uuid.Nil {
		c.arm(g)
	}
}

// leave wakes a job no more. A timer that goes off at this moment calls wake all the same.
func (c *cron) leave(job string) {
	g := c.in[job]
	if g == nil {
		return
	}
	delete(c.in, job)
	if g.remove(job) > 0 {
		return
	}
	delete(c.groups, g.key)
	c.disarm(g)
}

// rearm arms all timers for the first instants from now on. gocron leaves an armed timer as it is.
func (c *cron) rearm() {
	for _, g := range c.groups {
		c.disarm(g)
		c.arm(g)
	}
}

func (c *cron) arm(g *group) {
	timer, err := c.scheduler.NewJob(gocron.CronJob("", false), gocron.NewTask(c.wakeAll, g), gocron.WithName(g.name),
		gocron.WithCronImplementation(crontab{&g.series}))
	if err == nil {
		g.timer = timer.ID()
		return
	}
	for _, name := range g.names() {
		c.log.Error("a job has no timer: its ticks are taken late, and of those a second apart only some",
			"job", name, "err", err)
	}
}

func (c *cron) disarm(g *group) {
	if g.timer == uuid.Nil {
		return
	}
	if err := c.scheduler.RemoveJob(g.timer); err != nil {
		c.log.Warn("a timer could not be removed", "job", g.name, "err", err)
	}
	g.timer = uuid.Nil
}

// wakeAll is called by gocron.
func (c *cron) wakeAll(g *group) {
	c.wake(g.names()...)
}

func (g *group) add(job string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.jobs[job] = true
}

// remove takes a job out and tells how many are left.
func (g *group) remove(job string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.jobs, job)
	return len(g.jobs)
}

func (g *group) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.AppendSeq(make([]string, 0, len(g.jobs)), maps.Keys(g.jobs))
}

// instants is a key for the instants at which a job comes due. If they depend on the job's name, by jitter or an H in
// its schedule, no other job has the same key.
func (sp *spec) instants() string {
	if sp.Jitter > 0 || sp.Schedule.ByName() {
		return sp.Fingerprint + " " + sp.Name
	}
	return sp.Fingerprint
}

// gocronClock is the cluster clock as gocron asks for one. It uses Now and AfterFunc; the rest is the machine's.
type gocronClock struct {
	clockwork.Clock
	cluster *clock
}

// Now implements clockwork.Clock.
func (c gocronClock) Now() time.Time { return c.cluster.Now() }

// AfterFunc implements clockwork.Clock.
func (c gocronClock) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	return gocronTimer{c.cluster.AfterFunc(d, f)}
}

type gocronTimer struct{ *timer }

// Chan implements clockwork.Timer as a timer of time.AfterFunc does.
func (gocronTimer) Chan() <-chan time.Time { return nil }

// crontab is a series as gocron asks for it.
type crontab struct{ *series }

// never tells gocron that there are no more ticks. gocron takes a zero Time for one that has passed, and would ask on
// for ever.
var never = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// Next implements gocron.Cron with the instants at which a timer wakes its jobs.
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
		// gocron takes two instants that read the same to the second for the two sides of the autumn change. It drops
		// the later one. So they have to read differently.
		next = next.In(time.FixedZone("", 3600))
		if last.Location() != time.UTC {
			next = next.UTC()
		}
	}
	return next
}

// IsValid implements gocron.Cron; the table was checked before.
func (crontab) IsValid(string, *time.Location, time.Time) error { return nil }
