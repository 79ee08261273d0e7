package sidecar

import (
	"container/heap"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
)

// cron wakes the jobs on their ticks. No other file knows gocron, nor the clock that gocron asks for. Its methods are
// called with Sidecar.swapping held, except those that gocron calls.
//
// Jobs that come due at the same instants share a group. All groups share one job of gocron, which goes off at the next
// instant of any group: a job of gocron takes a kilobyte, and each of thousands of jobs may have instants of its own.
type cron struct {
	wake      func(upTo time.Time, jobs ...string)
	ahead     func() time.Duration // see agenda
	log       *slog.Logger
	scheduler gocron.Scheduler  // nil before it starts
	timer     uuid.UUID         // gocron's name for its job
	groups    map[string]*group // by the instants that their jobs have in common
	in        map[string]*group // by job

	agenda agenda
}

// group is the jobs that come due at the same instants.
type group struct {
	placed          // in the agenda, by when the jobs are woken next; guarded by the agenda
	key    string   // in cron.groups
	series series   // of one of its jobs
	jobs   []string // guarded by the agenda
}

// start wakes jobs from now on.
func (c *cron) start(clock *clock, jobs map[string]*job) error {
	cluster := gocronClock{clockwork.NewRealClock(), clock}
	of, err := gocron.NewScheduler(gocron.WithClock(cluster), gocron.WithLocation(time.UTC))
	if err != nil {
		return fmt.Errorf("making the scheduler: %w", err)
	}
	c.groups, c.in = map[string]*group{}, make(map[string]*group, len(jobs))
	c.agenda.now, c.agenda.ahead = clock.Now, c.ahead
	for _, j := range jobs {
		c.join(j)
	}
	c.scheduler = of
	of.Start()
	c.arm()
	return nil
}

// stop ends the wakes.
func (c *cron) stop() {
	if err := c.scheduler.Shutdown(); err != nil {
		c.log.Warn("the scheduler did not stop cleanly", "err", err)
	}
}

// started reports whether start was called.
func (c *cron) started() bool { return c.scheduler != nil }

// retime wakes a job on the ticks that it has now.
func (c *cron) retime(j *job) {
	if c.join(j) {
		c.disarm()
		c.arm()
	}
}

// join puts a job into the group of its instants. True if its next instant comes before the timer goes off.
func (c *cron) join(j *job) (earlier bool) {
	sp := j.inForce()
	key := sp.instants()
	if g := c.in[j.name]; g != nil && g.key == key {
		return false
	}
	c.leave(j.name)
	g := c.groups[key]
	if g == nil {
		g = &group{key: key, series: sp.series}
		c.groups[key] = g
		earlier = c.agenda.add(g)
	}
	c.in[j.name] = g
	c.agenda.join(g, j.name)
	return earlier
}

// leave wakes a job no more. A timer that goes off at this moment calls wake all the same.
func (c *cron) leave(job string) {
	g := c.in[job]
	if g == nil {
		return
	}
	delete(c.in, job)
	if c.agenda.leave(g, job) == 0 {
		delete(c.groups, g.key)
	}
}

// rearm arms the timer for the first instant from now on. gocron leaves an armed timer as it is.
func (c *cron) rearm() {
	c.disarm()
	c.agenda.reset()
	c.arm()
}

func (c *cron) arm() {
	timer, err := c.scheduler.NewJob(gocron.CronJob("", false), gocron.NewTask(c.wakeDue),
		gocron.WithCronImplementation(crontab{&c.agenda}))
	if err != nil {
		c.log.Error("no job has a timer: ticks are taken late, and of those a second apart only some", "err", err)
		return
	}
	c.timer = timer.ID()
	c.wakeDue() // those that came due meanwhile
}

func (c *cron) disarm() {
	if c.timer == uuid.Nil {
		return
	}
	if err := c.scheduler.RemoveJob(c.timer); err != nil {
		c.log.Warn("a timer could not be removed", "err", err)
	}
	c.timer = uuid.Nil
}

// wakeDue is called by gocron when the timer goes off, after it has asked for the next instant.
func (c *cron) wakeDue() {
	upTo, jobs := c.agenda.take()
	c.wake(upTo, jobs...)
}

// agenda is the groups by the instants at which they are woken. The timer uses it as well as cron.
type agenda struct {
	now   func() time.Time     // the cluster clock's
	ahead func() time.Duration // how long before they come due ticks are claimed

	mu     sync.Mutex
	groups byTime[*group]
	due    []*group  // their instants have come
	dueTo  time.Time // the instants of those are not after it; zero = there are none
	armed  time.Time // when the timer goes off; zero = it was not armed yet
}

// add puts a group on the agenda. True if it comes before the instant for which the timer is armed.
func (a *agenda) add(g *group) (earlier bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g.at = a.wakeAfter(g, a.now())
	heap.Push(&a.groups, g)
	return g.at.Before(a.armed)
}

// soonest is when the next group is woken.
func (a *agenda) soonest() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.groups) == 0 {
		return never
	}
	return a.groups[0].at
}

func (a *agenda) join(g *group, job string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	g.jobs = append(g.jobs, job)
}

// leave takes a job out of its group, and tells how many are left there. A group without any leaves the agenda.
func (a *agenda) leave(g *group, job string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	g.jobs = slices.DeleteFunc(g.jobs, func(name string) bool { return name == job })
	if len(g.jobs) == 0 {
		heap.Remove(&a.groups, g.index)
	}
	return len(g.jobs)
}

// reset finds the instants of all groups anew, from now on.
func (a *agenda) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for _, g := range a.groups {
		g.at = a.wakeAfter(g, now)
	}
	heap.Init(&a.groups)
}

// after notes which groups are due: the instants up to last have come, and those up to now. It returns the next
// instant, for which the timer is armed.
func (a *agenda) after(last time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	last = newestOf(last, a.now()) // gocron passes over instants before now
	for len(a.groups) > 0 && !a.groups[0].at.After(last) {
		g := a.groups[0]
		a.due, a.dueTo = append(a.due, g), newestOf(a.dueTo, last)
		g.at = a.wakeAfter(g, last)
		heap.Fix(&a.groups, 0)
	}
	a.armed = never
	if len(a.groups) > 0 {
		a.armed = a.groups[0].at
	}
	return a.armed
}

// take returns the jobs of the groups that are due, and up to when their ticks come due. That may be later than the
// clock says, if it was set back a little since the timer went off.
func (a *agenda) take() (upTo time.Time, jobs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.due {
		jobs = append(jobs, g.jobs...)
	}
	upTo = newestOf(a.dueTo, a.now()).Add(a.ahead())
	a.due, a.dueTo = nil, time.Time{}
	return upTo, jobs
}

// wakeAfter is the first instant after t at which a timer wakes a group.
func (a *agenda) wakeAfter(g *group, t time.Time) time.Time {
	ahead := a.ahead()
	tick := g.series.after(t.Add(ahead))
	if tick.IsZero() {
		return never
	}
	return g.series.due(tick).Add(-ahead)
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

// crontab is an agenda as gocron asks for it.
type crontab struct{ *agenda }

// never tells gocron that there are no more ticks. gocron takes a zero Time for one that has passed, and would ask on
// for ever.
var never = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)

// Next implements gocron.Cron with the instants at which the timer wakes jobs.
func (c crontab) Next(last time.Time) time.Time {
	if !last.Before(never) {
		return last.Add(time.Hour) // gocron also asks on while it knows the answer already
	}
	next := c.after(last)
	if next.Format(time.DateTime) == last.Format(time.DateTime) {
		// gocron takes two instants that read the same to the second for the two sides of the autumn change. It drops
		// the later one. So they have to read differently.
		next = next.In(time.FixedZone("", 3600))
	}
	return next
}

// IsValid implements gocron.Cron; the table was checked before.
func (crontab) IsValid(string, *time.Location, time.Time) error { return nil }
