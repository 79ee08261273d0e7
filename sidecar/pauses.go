package sidecar

import (
	"context"

	"github.com/solotick/solotick/sidecar/service"
)

// For a job that is claimed, Redis enforces a pause: it refuses the claim. A job with the guarantee every-replica
// makes no claim, so the replica reads its pauses at each look. While Redis is away, the replica goes by those that
// it read last.

// readPauses reads the pauses of the jobs with the guarantee every-replica.
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
	standings, err := store.Standings(ctx, names)
	if err != nil { // the next look reads them
		return
	}
	for _, name := range names {
		jobs[name].setPauses(standings[name])
	}
}

// setPauses records which pauses a job has.
func (j *job) setPauses(standing service.Ledger) {
	var pauses []service.Pause
	for _, p := range []*service.Pause{standing.Paused, standing.PausedAll} {
		if p != nil {
			pauses = append(pauses, *p)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pauses = pauses
}

// isPaused tells whether a pause keeps this replica from firing a tick that is not claimed.
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
