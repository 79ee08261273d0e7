package sidecar

import (
	"context"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

const (
	// strange is how long due ticks of jobs that this table lacks are left to replicas that may have them.
	strange = 24 * time.Hour
	// standBack is how long the replica that could not start a job leaves its tick to others.
	standBack = 2 * time.Second
	// pauseRetry is how long a due tick that met with a pause is left alone, unless somebody resumes the job.
	pauseRetry = time.Minute
	// spareEvery bounds how often a look is made because places have become free: many may in a short time.
	spareEvery = 50 * time.Millisecond
)

// takeDue fires what is due besides the table: ticks handed over, or set free by the end of the run before.
func (w *watcher) takeDue(ctx context.Context, runs []lock.Running, dues []lock.Due) {
	s := w.sidecar
	waiting := map[string]bool{} // jobs whose due ticks have to wait: for the present run, or for an older one
	for _, r := range runs {
		waiting[r.Job] = true
	}
	for _, d := range dues {
		j := s.job(d.Job)
		switch {
		case isTimer(d.Job):
			switch {
			case w.isPutOff(d.Member()), w.isPutOff(lock.TimerJobs):
			case w.standsBack(d):
				w.later.Store(d.Member(), time.Now().Add(standBack-d.Age)) // so that it hides none behind it
			default:
				w.fireTimer(ctx, d)
			}
		case j == nil:
			if d.Age > strange {
				w.discard(ctx, d, "no replica has the job")
			}
		case j.Guarantee == config.EveryReplica: // it was locked when the tick was handed on
			w.discard(ctx, d, "the job runs on every replica")
		case w.drop(ctx, j, d):
		case w.standsBack(d):
		case j.ConcurrencyPolicy != config.Allow && waiting[d.Job]:
		case w.isPutOff(d.Member()):
		default:
			waiting[d.Job] = true
			w.fire(j, d)
		}
	}
}

// standsBack tells whether a tick that this replica could not start is left to others for now.
func (w *watcher) standsBack(d lock.Due) bool {
	return d.Avoid == w.sidecar.replica && d.Age < standBack
}

// drop takes a tick that may not be fired any more out of the due set. It is counted by the replica that does so.
func (w *watcher) drop(ctx context.Context, j *job, d lock.Due) bool {
	s := w.sidecar
	wk := j.dueWake(d)
	r := s.gate(wk)
	if until := wk.worthUntil(); r == "" && !until.IsZero() && !s.clock.Now().Before(until) {
		r = superseded // a newer tick is due
	}
	if r == "" {
		return false
	}
	w.beside(wk.member, func() {
		if ours, err := s.store.Drop(ctx, wk.member); ours && err == nil {
			s.skipped(wk, r)
			if wk.kind != kindTakeover { // which was fired
				s.metrics.job(j.label).missed.Add(1)
			}
		}
	})
	return true
}

// discard takes a tick out of the due set that nobody will ever fire.
func (w *watcher) discard(ctx context.Context, d lock.Due, why string) {
	w.beside(d.Member(), func() {
		if ours, err := w.sidecar.store.Drop(ctx, d.Member()); ours && err == nil {
			w.sidecar.log.Warn("a due tick is dropped", "job", d.Job, "tick", stamp(d.Tick), "kind", d.Kind, "why", why)
		}
	})
}

// beside does something about a due member beside the looks, unless something is being done about it here: thousands that
// are too late, a round trip each, would hold up the one behind them that is not.
func (w *watcher) beside(member string, do func()) {
	if _, busy := w.busy.LoadOrStore(member, true); busy {
		return
	}
	w.sidecar.runs.Go(func() {
		defer w.busy.Delete(member)
		do()
	})
}

// isPutOff tells whether a due tick, or all timers, are left alone for now.
func (w *watcher) isPutOff(what string) bool {
	_, ok := w.later.Load(what)
	return ok
}

// fire starts a due tick, unless a fire here is busy with it already.
func (w *watcher) fire(j *job, d lock.Due) {
	s := w.sidecar
	wk := j.dueWake(d)
	if _, busy := w.busy.LoadOrStore(wk.member, true); busy {
		return
	}
	if wk.place = s.admission.try(j); wk.place == nil {
		w.leave(wk.member)
		return
	}
	release := s.metrics.hold(j.label)
	s.runs.Go(func() {
		defer release()
		defer w.busy.Delete(wk.member)
		resumed := w.resumed.Load()
		s.fire(wk)
		switch wk.refused {
		case paused:
			w.leaveAlone(wk.member, wk, resumed)
		case queued, overlap: // something is in its way that no look shows; its place is another's meanwhile
			w.later.Store(wk.member, time.Now().Add(lookEvery))
			w.spare()
		}
	})
}

// expire ends the time of what was put off until now.
func (w *watcher) expire(now time.Time) {
	w.later.Range(func(what, until any) bool {
		if !now.Before(until.(time.Time)) {
			w.later.Delete(what)
		}
		return true
	})
}

// pauseOver is until when what met with a pause is left alone.
func (w *watcher) pauseOver(wk *wake) time.Time {
	wait := pauseRetry
	if !wk.until.IsZero() {
		wait = min(wait, wk.until.Sub(w.sidecar.clock.Now()))
	}
	return time.Now().Add(wait)
}

// leaveAlone puts off what met with a pause, unless somebody has resumed something since it was asked for: the nudge of
// that came too early to find it put off.
func (w *watcher) leaveAlone(what string, wk *wake, resumed int64) {
	w.later.Store(what, w.pauseOver(wk))
	if w.resumed.Load() != resumed {
		w.later.Delete(what)
	}
}

// leave leaves what is due to other replicas, until there is a place for it here.
func (w *watcher) leave(member string) {
	w.busy.Delete(member)
	w.left.Store(true)
}

// spare is called when a place has become free.
func (w *watcher) spare() {
	if w.left.Swap(false) {
		time.AfterFunc(spareEvery, func() { w.nudge("") })
	}
}
