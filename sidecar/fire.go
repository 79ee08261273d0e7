package sidecar

import (
	"context"
	"log/slog"
	"sync"
)

// firer takes wakes from their ticks to counted outcomes. Nothing of it changes once the replica is made.
type firer struct {
	*life
	clock      *clock
	slots      *slots
	rendezvous *rendezvous
	nudges     *nudges
	record     *recorder
	claimer    *claimer
	runner     *runner
	settler    *settler
}

// launch fires a wake beside all others; then, unless it is nil, is called with why it did not fire.
func (f *firer) launch(w *wake, then func(skip)) {
	release := f.record.metrics.hold(w.spec.label)
	f.runs.Go(func() {
		defer release()
		why := f.fire(w)
		if then != nil {
			then(why)
		}
	})
}

// fire takes one wake from its tick to a counted outcome, and returns why it did not fire. It is the only way in which a job is
// ever started. The steps are those of the life of a tick in the design.
func (f *firer) fire(w *wake) skip {
	// 1. Wake: a moment ahead of the tick, one replica before the others. An earlier one waits; the wake of a drained
	// replica ends here.
	releaseSlot := sync.OnceFunc(func() { f.releaseSlot(w) })
	defer releaseSlot()
	w.yields = f.rendezvous.yields(w)
	if !f.clock.sleep(f.accepting, w.askAt()) {
		return f.record.skipped(w, skip{reason: draining})
	}

	var h *held
	for h == nil {
		// 2. Gate: what needs no Redis. While the app is not ready, or no slot is free, the tick is left to other replicas.
		if why := f.passGate(w); why.reason != "" {
			return f.record.skipped(w, why)
		}

		// 3. Acquire. If the job was changed meanwhile, or Redis' clock is behind, the gate comes again.
		var why skip
		if h, why = f.claimer.acquire(w); why.reason != "" {
			return f.record.skipped(w, why)
		}
	}

	// 4. Trust window: a lease that comes back may be trusted now, and is kept until the run is settled.
	kept, stop := h.Keep(f.working)
	defer stop()

	// 5. Execute on the tick, in a context that ends at the timeout, the lost lock, or the end of the shutdown grace.
	end := f.runner.attempts(kept, w, h)

	// 6. Finish: outcome and history in one step with the end of the lease. A job that never began goes to another replica.
	if end.outcome == notStarted && f.settler.handover(w, h, &end) {
		return f.record.skipped(w, skip{reason: startFailed, attrs: []slog.Attr{slog.String("err", end.result.Err.Error())}})
	}
	counted := f.settler.settle(w, h, &end)
	stop()
	releaseSlot()
	f.nudges.slotFreed() // for what was due, too

	// 7. Count.
	var why skip
	if end.outcome == notStarted {
		why = f.record.skipped(w, skip{reason: startFailed})
	}
	f.record.finished(w, h, &end, counted)

	// Release after the safety delay, for which shutdown does not wait: the lock expires by itself.
	if delay := w.spec.safetyDelay(); delay > 0 && pause(f.accepting, delay) {
		f.settler.release(w, h)
	}
	return why
}

// gate refuses what is not to be fired at all.
func (f *firer) gate(w *wake) reason {
	sp, now := w.spec, f.clock.Now()
	if sp.claims() {
		now = f.clock.slower() // what Redis calls early is not too late after that
	}
	switch {
	case w.byHand():
	case sp.Suspend:
		return suspended
	case w.isPaused():
		return paused
	case !sp.Start.IsZero() && w.tick.Before(sp.Start), !sp.End.IsZero() && !w.tick.Before(sp.End):
		return outsideWindow
	case !w.deadline().IsZero() && now.After(w.deadline()):
		return tooLate
	}
	return ""
}

// enter waits for a slot while the tick is worth firing and its job is in the table. After each change of the job the wake goes on
// by the new spec. It returns why the wake may not contend.
func (f *firer) passGate(w *wake) skip {
	for {
		if !w.refresh() {
			return skip{reason: superseded}
		}
		if r := f.gate(w); r != "" {
			return skip{reason: r}
		}
		if w.slot == nil {
			w.slot = f.slots.tryAcquire(w.spec)
		}
		if w.slot != nil {
			return skip{}
		}
		if w.asksWithoutSlot() {
			if why := f.claimer.askWithoutSlot(w); why.reason != "" {
				return why
			}
		}
		r := f.awaitSlot(w)
		switch {
		case r == "" && w.isPaused(): // a pause began while the tick waited
			return skip{reason: paused}
		case r == "":
			return skip{}
		case f.accepting.Err() != nil:
			return skip{reason: draining}
		case w.spec.life.Err() == nil:
			return skip{reason: r}
		}
	}
}

// await waits for the app, or for a slot, and says what was missing to the end.
func (f *firer) awaitSlot(w *wake) (r reason) {
	ctx, cancel := context.WithCancel(f.accepting)
	defer cancel()
	defer context.AfterFunc(w.spec.life, cancel)()
	if until := w.worthUntil(); !until.IsZero() {
		defer f.clock.AfterFunc(until.Sub(f.clock.Now()), cancel).Stop()
	}
	w.slot, r = f.slots.acquire(ctx, w.spec)
	return r
}

// leave gives the wake's slot back, if it has one. What was due and is refused tells nobody: it would be asked for again at
// once, by turns with what it made room for.
func (f *firer) releaseSlot(w *wake) {
	if w.slot == nil {
		return
	}
	f.slots.release(w.slot)
	if w.member == "" {
		f.nudges.slotFreed()
	}
}
