package sidecar

import (
	"context"
	"log/slog"

	"github.com/solotick/solotick/sidecar/execute"
)

// firer takes wakes from their ticks to counted outcomes. It is immutable.
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

// launch fires a wake in a goroutine. Unless then is nil, it is called with the reason why the wake did not fire.
func (f *firer) launch(w *wake, then func(skip)) {
	release := f.record.metrics.hold(w.spec.label)
	f.fires.Go(func() {
		defer release()
		why := f.fireOf(w)(w)
		if then != nil {
			then(why)
		}
	})
}

// fire takes one wake from its tick to a counted outcome, and returns why it did not fire. Only fire and fireHere start
// jobs. The numbered steps are the life of a tick.
func (f *firer) fire(w *wake) skip {
	// 1. Wake. A wake asks a moment ahead of its tick. If it is early, it waits. If the replica drains meanwhile, the
	// wake ends here.
	defer w.releaseSlot(f.slots)
	if !f.clock.sleep(f.accepting, w.askAt()) {
		return f.record.skipped(w, skip{reason: draining})
	}

	var h *held
	for h == nil {
		// 2. Gate. These checks need no Redis. While the app is not ready, or no slot is free, the wake waits, and
		// other replicas may take the tick.
		if why := f.passGate(w); why.reason != "" {
			return f.record.skipped(w, why)
		}

		// 3. Acquire. One script claims the tick. If the job was changed meanwhile, or Redis' clock is behind, the wake
		// passes the gate again.
		var why skip
		if h, why = f.claimer.acquire(w); why.reason != "" {
			return f.record.skipped(w, why)
		}
	}

	// 4. Trust window. The lease may be trusted now, and is renewed until the run is settled.
	kept, stop := h.Keep(f.working)
	defer stop()

	// 5. Execute. The job starts on the tick, in a context that ends with the timeout, the lock, or the shutdown grace.
	end := f.runner.attempts(kept, w, h)

	// 6. Finish. One script records outcome and history, and ends the lease. If the job never began, the tick goes to
	// another replica.
	if end.outcome == notStarted && f.settler.handover(w, h, &end) {
		return f.record.skipped(w, skip{reason: startFailed,
			attrs: []slog.Attr{slog.String("err", end.result.Err.Error())}})
	}
	settled := f.settler.settle(w, h, &end)
	stop()
	w.releaseSlot(f.slots)

	// 7. Count. The recorder turns the outcome into one log line and one counter.
	var why skip
	if end.start.IsZero() {
		why = f.record.skipped(w, skip{reason: startFailed})
	}
	f.record.finished(w, h, &end, settled)

	// After the safety delay, release the lock. Nothing waits for that: the lock expires by itself, too.
	if delay := w.spec.safetyDelay(); delay > 0 {
		h.Release(delay)
	}
	return why
}

// giveUp ends a due tick that replicas could not start, and that is not worth firing any more: it has failed. It
// returns why its claim was refused.
func (f *firer) giveUp(ctx context.Context, w *wake, why reason) skip {
	l, a, err := f.claimer.store.Locks.Acquire(ctx, f.claimer.claim(w))
	if l == nil || err != nil {
		refusal := f.claimer.refused(w, a, err)
		f.record.skipped(w, refusal)
		return refusal
	}
	h := &held{Lease: l, run: l.Run(), token: l.Token, since: l.Since}
	end := ended{outcome: notStarted, attempt: w.attempt,
		result: execute.Result{Err: f.record.refusedWhy(ctx, &w.of), Code: -1}}
	settled := f.settler.settle(w, h, &end)
	f.record.skipped(w, skip{reason: why})
	f.record.finished(w, h, &end, settled)
	return skip{}
}

// gate tells why the table or a pause forbids the tick; "" if neither does.
func (f *firer) gate(w *wake) reason {
	switch sp := w.spec; {
	case sp.asks() && (w.asker == nil || w.asker.waits.Err() != nil):
		return unasked
	case w.asker != nil && (!sp.asks() || !sp.Schedule.IsLease() && !sp.Schedule.Next(w.tick.Add(-1)).Equal(w.tick)):
		return superseded
	case w.byHand():
	case sp.Suspend:
		return suspended
	case w.isPaused():
		return paused
	case !sp.Start.IsZero() && w.tick.Before(sp.Start), !sp.End.IsZero() && !w.tick.Before(sp.End):
		return outsideWindow
	case !w.deadline().IsZero() && sp.now(f.clock).After(w.deadline()):
		return tooLate
	}
	return ""
}

// passGate waits for a slot while the tick is worth firing and its job is in the table. After each change of the job,
// the wake goes on by the new spec. It returns why the wake may not contend.
func (f *firer) passGate(w *wake) skip {
	for {
		if !w.refresh() {
			return skip{reason: superseded}
		}
		if r := f.gate(w); r != "" {
			return skip{reason: r}
		}
		if w.slot == nil {
			w.slot = f.slots.ask(w.spec, w.deadline(), nil)
		}
		r := f.slots.missing(w.slot)
		if r == "" {
			return skip{}
		}
		if w.asksWithoutSlot() {
			if why := f.claimer.askWithoutSlot(w, r); why.reason != "" {
				return why
			}
			if !w.asked {
				w.releaseSlot(f.slots)
				continue
			}
		}
		ctx, stop := f.claimer.whileWorth(w)
		r = f.slots.await(ctx, w.slot) // until the app is ready, and a slot is free
		stop()
		switch {
		case r == "" && w.isPaused(): // a pause began while the tick waited
			return skip{reason: paused}
		case r == "":
			return skip{}
		case f.accepting.Err() != nil:
			return skip{reason: draining}
		case w.spec.life.Err() == nil && w.expired(f.clock), w.asker != nil && w.asker.waits.Err() != nil:
			return skip{reason: r}
		}
		w.releaseSlot(f.slots) // it asks by the new spec, or the clock was set back
	}
}
