package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Timers are jobs of one tick. The API makes them, and Redis alone keeps them. A replica reads a timer when it is
// due, and forgets it with the end of its run. When a timer with a schedule is due, a replica first makes that time due
// as a timer of its own, and has the timer wait for its next time: see spring.

// timersAtOnce bounds the timers that this replica is busy with, so that a flood of them overwhelms neither it nor
// the app. It leaves further timers to other replicas, or for later.
const timersAtOnce = 256

// lookForTimers is how long the look for more of them waits: many may end in a short time.
const lookForTimers = 50 * time.Millisecond

// maxRead bounds the timers that a look reads for the free slots of all replicas: 4,096 are about 300 kB.
const maxRead = 16 * timersAtOnce

// maxUndecodable bounds how many members of another version, which this one cannot decode, a look reads past.
const maxUndecodable = 1000

// maxMissed bounds the counting of the missed times of a timer: a thousand may have missed a day of seconds, and the
// looker counts for two seconds then.
const maxMissed = 10_000

// noMoreTicks is a timer's schedule: it has no tick after the one that is due.
var noMoreTicks = func() *schedule.Schedule {
	s, err := schedule.Parse("@at 1970-01-01T00:00:00Z", schedule.Options{TimeZone: "UTC"})
	if err != nil {
		panic(err)
	}
	return s
}()

// timers fires the timers that are due.
type timers struct {
	job        *job // stands for all timers: it has no ticks of its own
	store      *service.Store
	clock      *clock
	log        *slog.Logger
	newSpec    func(*config.Job) *spec
	slots      *slots
	deferred   *deferred
	nudges     *nudges
	firer      *firer
	rendezvous *rendezvous

	firing atomic.Int64 // timers that a fire here is busy with; written by looks and fires

	// The looker's alone.
	undecodable int64 // members of another version, as the last look counted them
	failed      bool  // Redis did not answer: the look goes on with other things
}

// newTimerJob makes the job that stands for all timers: their ledger in Redis and their series in the metrics.
func newTimerJob() *job {
	c := &config.Job{Name: service.TimerJobs, Fingerprint: service.TimerJobs, Guarantee: config.AtMostOnce,
		ConcurrencyPolicy: config.Allow}
	sp := &spec{Job: c, label: service.TimerJobs}
	sp.life, sp.end = context.WithCancel(context.Background())
	return &job{name: service.TimerJobs, spec: sp}
}

// dueTimer is a timer that is due.
type dueTimer struct {
	service.Series
	timer *config.Timer
}

// read reads timers that are due from Redis. It deals with those that cannot be read.
func (t *timers) read(ctx context.Context, members []lock.Due) []dueTimer {
	all := make([]dueTimer, 0, len(members))
	for page := range slices.Chunk(members, service.MaxSprung) {
		read, err := t.store.Series(ctx, page)
		if err != nil {
			t.later(ctx, err)
			break
		}
		for _, r := range read {
			d, name := dueTimer{Series: r}, service.SeriesJob(r.Of.Job)
			if err = r.Err; err == nil {
				d.timer, err = config.ParseTimer(service.TimerID(name), r.Source, r.Of.Tick)
			}
			if err == nil && name == r.Of.Job && (d.timer.Repeats != nil) != (r.Of.Kind == lock.Series) {
				err = service.ErrNoTimer // it was set anew
			}
			if err != nil {
				t.explainUnread(ctx, r.Of, err)
			} else {
				all = append(all, d)
			}
		}
	}
	return all
}

// later leaves timers to the next look.
func (t *timers) later(ctx context.Context, err error) {
	t.failed = true
	if ctx.Err() == nil {
		t.log.Warn("due timers are left to the next look", "err", err)
		t.nudges.nudgeIn(lookEvery)
	}
}

// jobOf makes a job, of this name, of a timer that is due.
func (t *timers) jobOf(timer *config.Timer, name string) *job {
	timer.Job.Schedule = noMoreTicks
	sp := t.newSpec(&timer.Job)
	sp.label = service.TimerJobs
	known := t.job.known(t.job.inForce())
	own := ticks{born: known.born, since: known.since, registered: known.registered}
	return &job{name: name, spec: sp, ticks: own}
}

// room is how many timers this replica may fire besides those that it is busy with.
func (t *timers) room() int { return int(timersAtOnce - t.firing.Load()) }

// limit is how many due timers the next look reads, oldest first. It adds up what all replicas are busy with and have
// slots for, as if each were as busy as this one and twice as free, since those that have just looked are busier, and
// the timers that may sort before: those deferred, or undecodable. One more has the slot for which timers were in line,
// and another one is in line next.
func (t *timers) limit() int64 {
	if t.deferred.isDeferred(service.TimerJobs) {
		return 1
	}
	firing := t.firing.Load()
	free := max(min(int64(t.room()), t.slots.free()), 0)
	wanted := min((firing+2*free)*int64(t.rendezvous.taking()), maxRead)
	return wanted + t.undecodable + t.deferred.deferredTimers() + 2
}

// spring makes the newest times that have come of timers with schedules due, and has the timers wait for the next ones.
// It returns the times that it has made. Times that no replica has claimed before a newer one came are missed. A time
// that comes while the one before runs or is handed on is passed over. After an error the next look goes on.
func (t *timers) spring(ctx context.Context, due []dueTimer) (made []dueTimer) {
	for page := range slices.Chunk(due, service.MaxSprung) {
		all := make([]service.Spring, len(page))
		for i, d := range page {
			now := oldestOf(d.Of.Tick.Add(d.Of.Age), t.clock.Now()) // the first by Redis' clock, which may be wrong
			all[i] = springAt(d.Series, d.timer, now)
		}
		codes, err := t.store.Spring(ctx, all)
		if err != nil {
			t.later(ctx, err)
			break
		}
		for i, code := range codes {
			p := &all[i]
			if code == service.SprungGone { // another replica was faster
				t.nudges.nudgeIn(turn)
				continue
			}
			t.firer.record.sprung(p, code)
			if code == service.SprungDue || code == service.SprungReplaced {
				made = append(made, dueTimer{service.Series{Of: p.Due()}, page[i].timer})
			}
		}
	}
	return made
}

// springAt says how a timer with a schedule goes on that is due, at a time.
func springAt(r service.Series, timer *config.Timer, now time.Time) service.Spring {
	p := service.Spring{Series: r, Tick: r.Of.Tick, Next: timer.Next(r.Of.Tick)}
	if !p.Next.IsZero() && !p.Next.After(now) { // no replica was there
		ticks := series{schedule: timer.Repeats}
		p.Tick = newestOf(p.Tick, timer.Repeats.Last(now))
		p.Next = timer.Next(p.Tick)
		p.Missed = service.Entry{Job: r.Of.Job, Outcome: lock.Missed, Ended: now}
		p.Missed.Count, p.Missed.First, p.Missed.Tick = ticks.within(newestOf(r.Of.Tick, r.Newest), p.Tick, maxMissed)
		if p.Missed.Count == maxMissed {
			p.Missed.Tick = timer.Repeats.Last(p.Tick.Add(-1))
		}
		if r.Of.Tick.After(r.Newest) { // it was not made due; an older schedule may have had it
			p.Missed.Count++
			p.Missed.First, p.Missed.Tick = r.Of.Tick, newestOf(r.Of.Tick, p.Missed.Tick)
		}
	}
	p.Overlap = service.Entry{Job: r.Of.Job, Outcome: lock.Overlapped, Ended: now, Count: 1, First: p.Tick,
		Tick: p.Tick}
	return p
}

// fire starts a timer that is due, with the slot that its wake has, and calls done when it is over. Its wake is one of
// all timers.
func (t *timers) fire(w *wake, timer *config.Timer, done func()) {
	t.firing.Add(1)
	t.firer.fires.Go(func() {
		defer func() {
			done()
			switch t.firing.Add(-1) {
			case timersAtOnce - 1:
				t.nudges.nudgeWithin(lookForTimers)
			case timersAtOnce / 2: // a flood: it must not wait until this replica has none
				t.nudges.nudge()
			}
		}()
		w.job = t.jobOf(timer, w.of.Job)
		w.spec = w.job.inForce()
		resumptions := t.deferred.resumptionCount()
		if why := t.firer.fire(w); why.reason == paused { // the pause is that of all timers
			t.deferred.deferPaused(service.TimerJobs, service.TimerJobs, pauseOver(why, t.clock), resumptions)
		}
	})
}

// explainUnread deals with a due timer that could not be read. If another replica has just fired it, there is nothing
// to log. If Redis is away, the next look tries again.
func (t *timers) explainUnread(ctx context.Context, d lock.Due, err error) {
	var problems config.Problems
	job := service.SeriesJob(d.Job)
	switch {
	case errors.Is(err, service.ErrNoTimer):
		t.deferred.once(d.Member(), func() {
			if ours, _, err := t.store.Locks.Drop(ctx, d, ""); ours && err == nil {
				t.log.Error("a timer that is due is dropped: what it was to do is not known any more", "job", job)
			}
		})
	case errors.As(err, &problems), errors.Is(err, service.ErrBadTimer): // another version may be able to read it
		t.deferred.deferUntil(d.Member(), d.Job, time.Now().Add(pauseRetry))
		t.log.Warn("a timer that is due cannot be read", "job", job, "err", err)
	}
}
