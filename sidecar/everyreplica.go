package sidecar

import (
	"context"
	"slices"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// fireOf is fire or fireHere. Neither changes for a wake, which goes on only while its job has the same ticks.
func (f *firer) fireOf(w *wake) func(*wake) skip {
	if w.spec.usesClaims() {
		return f.fire
	}
	return f.fireHere
}

// fireHere is fire for a job that every replica runs, without a claim of the tick and a lease of the run.
func (f *firer) fireHere(w *wake) skip {
	defer w.releaseSlot(f.slots)
	// A pause may be over when the tick comes due.
	if !f.clock.sleep(f.accepting, w.askAt()) || w.isPaused() && !f.clock.sleep(f.accepting, w.due) {
		return f.record.skipped(w, skip{reason: draining})
	}
	for began := false; !began; began = w.startUnclaimed() {
		if why := f.passGate(w); why.reason != "" {
			return f.record.skipped(w, why)
		}
	}
	h := &held{run: f.claimer.newRun(w)}
	end := f.runner.attempts(f.working, w, h)
	f.settler.writeDown(w, h, &end)
	w.releaseSlot(f.slots)
	var why skip
	if end.start.IsZero() {
		why = f.record.skipped(w, skip{reason: startFailed})
	}
	f.record.finished(w, h, &end, lock.Settled{Verdict: lock.OK})
	return why
}

// writeDown tells Redis how a run ended that had no lease. Without an answer, only this replica knows.
func (s *settler) writeDown(w *wake, h *held, end *ended) {
	ctx, cancel := s.afterwards(w)
	defer cancel()
	entry := s.record.entry(w, h, end)
	s.record.heartbeat.result(*entry)
	if err := s.store.AppendHistory(ctx, entry); err != nil {
		s.unrecorded(w, h, err)
	}
	s.nudges.runEnded(w.spec.Name)
}

// readPauses reads the pauses of the jobs with the guarantee every-replica. Redis enforces those of a job that is
// claimed: it refuses the claim. While Redis is away, the replica goes by those that it read last.
func readPauses(ctx context.Context, store *service.Store, jobs roster) (ok bool) {
	var names []string
	for name, j := range jobs {
		if sp := j.inForce(); sp != nil && !sp.usesClaims() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return true
	}
	standings, err := store.Standings(ctx, names)
	if err != nil { // the next look reads them
		return false
	}
	for _, name := range names {
		jobs[name].setPauses(standings[name])
	}
	return true
}

// isPaused reports whether a pause keeps this replica from firing a tick that is not claimed.
func (w *wake) isPaused() bool {
	if w.spec.usesClaims() {
		return false
	}
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	return slices.ContainsFunc(w.job.pauses[:], func(p *service.Pause) bool {
		return p != nil && (p.Until.IsZero() || w.tick.Before(p.Until))
	})
}
