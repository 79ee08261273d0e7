package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Timers are jobs of one tick. The API makes them, and Redis alone keeps them. A replica reads a timer when it is
// due, and forgets it with the end of its run.

// timersAtOnce bounds the timers that this replica is busy with, so that a flood of them overwhelms neither it nor
// the app. It leaves further timers to other replicas, or for later.
const timersAtOnce = 256

// lookForTimers is how long the look for more of them waits: many may end in a short time.
const lookForTimers = 50 * time.Millisecond

// maxRead bounds the timers that a look reads for the free slots of all replicas: 4,096 are about 300 kB.
const maxRead = 16 * timersAtOnce

// maxUndecodable bounds how many members of another version, which this one cannot decode, a look reads past.
const maxUndecodable = 1000

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

	firing      atomic.Int64 // timers that a fire here is busy with; written by looks and fires
	undecodable int64        // members of another version, as the last look counted them; the looker's alone
}

// newTimerJob makes the job that stands for all timers: their ledger in Redis and their series in the metrics.
func newTimerJob() *job {
	c := &config.Job{Name: service.TimerJobs, Fingerprint: service.TimerJobs, Guarantee: config.AtMostOnce,
		ConcurrencyPolicy: config.Allow}
	sp := &spec{Job: c, label: service.TimerJobs}
	sp.life, sp.end = context.WithCancel(context.Background())
	return &job{name: service.TimerJobs, spec: sp}
}

// read reads a timer that is due from Redis, and makes a job of it.
func (t *timers) read(ctx context.Context, d lock.Due) (*job, error) {
	id := service.TimerID(d.Job)
	source, _, err := t.store.Timer(ctx, id)
	if err != nil {
		return nil, err
	}
	timer, err := config.ParseTimer(id, source, d.Tick)
	if err != nil {
		return nil, err
	}
	timer.Job.Schedule = noMoreTicks
	sp := t.newSpec(&timer.Job)
	sp.label = service.TimerJobs
	known := t.job.known(t.job.inForce())
	own := ticks{born: known.born, since: known.since, registered: known.registered}
	return &job{name: d.Job, spec: sp, ticks: own}, nil
}

// limit is how many due timers the next look reads, oldest first. It adds up what all replicas are busy with and have
// slots for, as if each were as busy and as free as this one, and the timers that may sort before: those deferred, or
// undecodable. One more has the slot for which timers were in line, and another one is in line next.
func (t *timers) limit() int64 {
	if t.deferred.isDeferred(service.TimerJobs) {
		return 1
	}
	firing := t.firing.Load()
	free := max(min(timersAtOnce-firing, t.slots.free()), 0)
	wanted := min((firing+free)*int64(t.rendezvous.taking()), maxRead)
	return wanted + t.undecodable + t.deferred.deferredTimers() + 2
}

// fire starts a timer that is due, with the slot that its wake has, and calls done when it is over. Its wake is one of
// all timers.
func (t *timers) fire(ctx context.Context, w *wake, done func()) {
	t.firing.Add(1)
	t.firer.fires.Go(func() {
		defer func() {
			done()
			if t.firing.Add(-1) == timersAtOnce-1 {
				t.nudges.nudgeIn(lookForTimers)
			}
		}()
		j, err := t.read(ctx, w.of)
		if err != nil {
			w.releaseSlot(t.slots)
			t.explainUnread(ctx, w.of, err)
			return
		}
		w.job, w.spec = j, j.inForce()
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
	switch {
	case errors.Is(err, service.ErrNoTimer):
		if ours, _, err := t.store.Locks.Drop(ctx, d, ""); ours && err == nil {
			t.log.Error("a timer that is due is dropped: what it was to do is not known any more", "job", d.Job)
		}
	case errors.As(err, &problems), errors.Is(err, service.ErrBadTimer): // another version may be able to read it
		t.deferred.deferUntil(d.Member(), d.Job, time.Now().Add(pauseRetry))
		t.log.Warn("a timer that is due cannot be read", "job", d.Job, "err", err)
	case ctx.Err() == nil:
		t.log.Debug("a timer that is due was not read", "job", d.Job, "err", err)
	}
}
