package sidecar

import (
	"context"
	"errors"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/lock"
)

// Timers are jobs of one tick, made through the API and kept in Redis alone: a replica reads one when it is due, and
// keeps nothing of those that are not. What is kept of one that was fired goes with the end of its run.

// timersAtOnce bounds the timers that this replica is busy with, so that a flood of them drowns neither it nor the app.
// What is above is left to other replicas, or for later.
const timersAtOnce = 256

// maxStrange bounds how many members of another version, which this one cannot read, a look reads past.
const maxStrange = 1000

// nothingMore is a timer's schedule: it has no tick after the one that is due.
var nothingMore = func() *schedule.Schedule {
	s, err := schedule.Parse("@at 1970-01-01T00:00:00Z", schedule.Options{TimeZone: "UTC"})
	if err != nil {
		panic(err)
	}
	return s
}()

// newTimers makes the job that stands for all timers: their ledger in Redis and their series in the metrics.
func newTimers() *job {
	c := config.Job{Name: lock.TimerJobs, Fingerprint: lock.TimerJobs, Guarantee: config.AtMostOnce, ConcurrencyPolicy: config.Allow}
	sp := &spec{Job: c, label: lock.TimerJobs}
	sp.life, sp.end = context.WithCancel(context.Background())
	return &job{name: lock.TimerJobs, spec: sp}
}

func isTimer(job string) bool {
	_, ok := lock.TimerID(job)
	return ok
}

// timerOf reads a timer that is due from Redis, and makes a job of it.
func (s *Sidecar) timerOf(ctx context.Context, d lock.Due) (*job, error) {
	id, _ := lock.TimerID(d.Job)
	source, _, err := s.store.Timer(ctx, id)
	if err != nil {
		return nil, err
	}
	t, err := config.ParseTimer(id, source, d.Tick)
	if err != nil {
		return nil, err
	}
	t.Job.Schedule = nothingMore
	sp := s.newSpec(t.Job)
	sp.label = lock.TimerJobs
	known := s.timers.known(s.timers.now())
	return &job{name: d.Job, spec: sp, ticks: ticks{born: known.born, since: known.since, registered: known.registered}}, nil
}

// timersWanted is how many of the timers that are due a look reads, the oldest: as many as this replica can begin, behind
// those that it is busy with, or has put off, or cannot read, and that may all lie before them. One at least, by which it
// knows that it leaves something to others.
func (w *watcher) timersWanted() int64 {
	if w.deferred.leaves(lock.TimerJobs) {
		return 1
	}
	return w.timing.Load() + w.timersRoom() + w.strange + w.deferred.timers() + 1
}

// timersRoom is how many more timers this replica can begin now.
func (w *watcher) timersRoom() int64 {
	return max(min(timersAtOnce-w.timing.Load(), w.sidecar.admission.room()), 0)
}

// fireTimer starts a timer that is due, unless a fire here is busy with it already.
func (w *watcher) fireTimer(ctx context.Context, d lock.Due) {
	s, member := w.sidecar, d.Member()
	done, ok := w.deferred.begin(member)
	if !ok {
		return
	}
	place := s.admission.try(s.timers.now())
	if place == nil {
		done()
		w.spared.Store(true)
		return
	}
	if w.timing.Add(1) > timersAtOnce {
		w.timing.Add(-1)
		s.admission.leave(place)
		done()
		w.spared.Store(true)
		return
	}
	s.runs.Go(func() {
		defer w.spare()
		defer w.timing.Add(-1)
		defer done()
		j, err := s.timerOf(ctx, d)
		if err != nil {
			s.admission.leave(place)
			w.unread(ctx, d, err)
			return
		}
		wk := j.dueWake(j.now(), d, s.clock.Now())
		wk.place = place
		heard := w.deferred.heard()
		if why := s.fire(wk); why.reason == paused { // the pause is that of all timers
			w.deferred.leaveInPause(lock.TimerJobs, lock.TimerJobs, w.pauseOver(why), heard)
		}
	})
}

// unread deals with a timer that is due and cannot be read. That another replica has just fired it is no reason to say
// anything, and what only Redis' absence hides is looked at again.
func (w *watcher) unread(ctx context.Context, d lock.Due, err error) {
	var problems config.Problems
	switch {
	case errors.Is(err, lock.ErrNoTimer):
		if ours, _, err := w.sidecar.store.Drop(ctx, d, false); ours && err == nil {
			w.sidecar.log.Error("a timer that is due is dropped: what it was to do is not known any more", "job", d.Job)
		}
	case errors.As(err, &problems), errors.Is(err, lock.ErrBadTimer): // it may be another version's, which can read it
		w.deferred.leave(d.Member(), d.Job, time.Now().Add(pauseRetry))
		w.sidecar.log.Warn("a timer that is due cannot be read", "job", d.Job, "err", err)
	case ctx.Err() == nil:
		w.sidecar.log.Debug("a timer that is due was not read", "job", d.Job, "err", err)
	}
}
