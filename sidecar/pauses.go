package sidecar

import (
	"context"

	"github.com/solotick/solotick/sidecar/service"
)

// A pause of a job that is claimed is Redis' to keep: it refuses the claim. A job that runs on every replica asks nobody, so
// its pauses are read at each look. Such a replica goes by what it heard last while Redis is away, as it goes on firing.

// readHolds reads the pauses of the jobs that run on every replica.
func readPauses(ctx context.Context, store *service.Store, jobs roster) {
	var names []string
	for name, j := range jobs {
		if sp := j.now(); sp != nil && !sp.claims() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	states, err := store.States(ctx, names)
	if err != nil { // the next look reads them
		return
	}
	for _, name := range names {
		jobs[name].setPauses(states[name])
	}
}

// hold records which pauses a job has.
func (j *job) setPauses(state service.JobState) {
	var pauses []service.Pause
	for _, p := range []*service.Pause{state.Paused, state.PausedAll} {
		if p != nil {
			pauses = append(pauses, *p)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pauses = pauses
}

// heldBack tells whether a pause keeps this replica from firing the wake's tick without a claim.
func (w *wake) isPaused() bool {
	if w.spec.claims() {
		return false
	}
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	for _, p := range w.job.pauses {
		if p.Until.IsZero() || w.tick.Before(p.Until) {
			return true
		}
	}
	return false
}
