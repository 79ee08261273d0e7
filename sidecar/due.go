package sidecar

import (
	"context"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

const (
	// strange is how long due ticks of jobs that this table lacks are left to replicas that may have them.
	strange = 24 * time.Hour
	// patience is how long a tick that replicas have refused is left to another one that takes ticks: longer than those few
	// need that can take it, shorter than a heartbeat tells of one that has died.
	patience = 5 * time.Second
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
		sp := j.now()
		switch {
		case isTimer(d.Job):
			switch {
			case w.deferred.leaves(d.Member()), w.deferred.leaves(lock.TimerJobs), w.tooSoon(s.timers.dueWake(s.timers.now(), d, s.clock.Now())):
			case w.standsBack(d):
				w.deferred.leave(d.Member(), d.Job, time.Now().Add(lookEvery)) // so that it hides none behind it
			default:
				w.fireTimer(ctx, d)
			}
		case sp == nil || !sp.claims(): // here: another table may have it, and claim its ticks
			if d.Age > strange {
				w.discard(ctx, d, "no replica has the job, or each runs it by itself")
			}
		case w.takeOne(ctx, j.dueWake(sp, d, s.clock.Now()), waiting[d.Job]):
			waiting[d.Job] = true
		}
	}
}

// takeOne fires what is due, unless it has to wait or is dropped. waits tells that something of its job is in its way. True when
// whatever else is due of the job has to wait for it.
func (w *watcher) takeOne(ctx context.Context, wk *wake, waits bool) bool {
	switch {
	case w.ofBefore(ctx, wk):
	case w.drop(ctx, wk):
	case w.standsBack(wk.of):
	case wk.spec.ConcurrencyPolicy != config.Allow && waits:
	case w.deferred.leaves(wk.member), w.tooSoon(wk):
	default:
		w.fire(wk)
		return true
	}
	return false
}

// standsBack tells whether a tick that this replica could not start is left to others: to any that takes ticks, and has not
// refused it in this round. One that does not come for it in some time may not be able to.
func (w *watcher) standsBack(d lock.Due) bool {
	me, peers := w.sidecar.replica, w.sidecar.rendezvous
	switch {
	case d.Age >= patience:
		return false
	case slices.Contains(d.Refused, me):
		return !peers.allIn(d.Refused)
	case slices.Contains(d.Refused, lock.LastAsked+me):
		return !peers.allIn(append(slices.Clone(d.Refused), me))
	}
	return false
}

// ofBefore tells whether a tick is none of the job's any more: it waited when the job left the table, and the job is back.
// That is told by Redis, so until Redis has been asked nothing of the job is fired. What was cut short is run again, and so
// is what somebody asked for.
func (w *watcher) ofBefore(ctx context.Context, wk *wake) bool {
	back, ok := wk.job.cameBack()
	switch {
	case wk.byHand(), wk.kind == kindTakeover:
		return false
	case ok && !wk.tick.After(back):
		w.discard(ctx, wk.of, "its job had left the table")
		return true
	}
	return !ok
}

// tooSoon tells whether what is due by Redis' clock is not by the cluster clock, which may be another one: it is looked at
// again when it is. It would keep a slot until then.
func (w *watcher) tooSoon(wk *wake) bool {
	early := wk.awake().Sub(w.sidecar.clock.Now())
	if early <= 0 {
		return false
	}
	wait := min(early, lookEvery)
	w.deferred.leave(wk.member, wk.of.Job, time.Now().Add(wait))
	time.AfterFunc(wait, func() { w.nudge("") })
	return true
}

// drop takes a tick that may not be fired any more out of the due set. It is counted by the replica that does so.
func (w *watcher) drop(ctx context.Context, wk *wake) bool {
	s := w.sidecar
	r := s.gate(wk)
	if until := wk.worthUntil(); r == "" && !until.IsZero() && !s.clock.Now().Before(until) {
		r = superseded // a newer tick is due
	}
	if r == "" {
		return false
	}
	w.beside(wk.member, func() {
		ours, gaps, err := s.store.Drop(ctx, wk.of, wk.kind != kindTakeover) // which was fired
		if ours && err == nil {
			s.skipped(wk, skip{reason: r})
		}
		s.book(wk.spec, gaps)
	})
	return true
}

// discard takes a tick out of the due set that nobody will ever fire.
func (w *watcher) discard(ctx context.Context, d lock.Due, why string) {
	w.beside(d.Member(), func() {
		if ours, _, err := w.sidecar.store.Drop(ctx, d, false); ours && err == nil {
			w.sidecar.log.Warn("a due tick is dropped", "job", d.Job, "tick", stamp(d.Tick), "kind", d.Kind, "why", why)
		}
	})
}

// beside does something about a due member beside the looks, unless something is being done about it here: thousands that
// are too late, a round trip each, would hold up the one behind them that is not.
func (w *watcher) beside(member string, do func()) {
	done, ok := w.deferred.begin(member)
	if !ok {
		return
	}
	w.sidecar.runs.Go(func() {
		defer done()
		do()
	})
}

// fire starts a due tick, unless a fire here is busy with it already.
func (w *watcher) fire(wk *wake) {
	s := w.sidecar
	done, ok := w.deferred.begin(wk.member)
	if !ok {
		return
	}
	if wk.place = s.admission.try(wk.spec); wk.place == nil {
		done()
		w.spared.Store(true)
		return
	}
	release := s.metrics.hold(wk.spec.label)
	s.runs.Go(func() {
		defer release()
		defer done()
		heard := w.deferred.heard()
		switch why := s.fire(wk); why.reason {
		case paused:
			w.deferred.leaveInPause(wk.member, wk.of.Job, w.pauseOver(why), heard)
		case queued, overlap: // something is in its way that no look shows; its place is another's meanwhile
			w.deferred.leave(wk.member, wk.of.Job, time.Now().Add(lookEvery))
			w.spare()
		}
	})
}

// pauseOver is until when what met with a pause is left alone.
func (w *watcher) pauseOver(why skip) time.Time {
	wait := pauseRetry
	if !why.until.IsZero() {
		wait = min(wait, why.until.Sub(w.sidecar.clock.Now()))
	}
	return time.Now().Add(wait)
}

// spare is called when a place has become free.
func (w *watcher) spare() {
	if w.spared.Swap(false) {
		time.AfterFunc(spareEvery, func() { w.nudge("") })
	}
}
