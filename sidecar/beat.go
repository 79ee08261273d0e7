package sidecar

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/solotick/solotick/lock"
)

// beatEvery is how often a replica says in Redis what it is and how it fares. lock.Silent is three times that.
const beatEvery = 5 * time.Second

// heart sends the heartbeats, for those who look at the service from outside. Nothing here depends on them.
type heart struct {
	sidecar *Sidecar
	last    time.Time // monotonic

	mu    sync.Mutex
	skips map[string]lock.Skip // by job, the newest that was not for another replica's fire
}

// beat sends a heartbeat when it is time for one.
func (h *heart) beat(ctx context.Context) {
	if !h.last.IsZero() && time.Since(h.last) < beatEvery {
		return
	}
	s := h.sidecar
	offset, _ := s.clock.offset()
	r := lock.Replica{Name: s.replica, Version: s.version, Table: s.tableHash, Offset: offset, Skips: h.skipped()}
	if err := s.Ready(); err != nil {
		r.Ready = err.Error()
	}
	if s.store.Beat(ctx, r) == nil {
		h.last = time.Now()
		s.turn.look(ctx)
	}
}

// leave takes the heartbeat away: the replica ends in order.
func (h *heart) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), lookEvery)
	defer cancel()
	_ = h.sidecar.store.Leave(ctx, h.sidecar.replica) // or it is taken for silent, and forgotten in a day
}

func (h *heart) note(w *wake, r reason) {
	if r == firedElsewhere {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skips[w.job.Name] = lock.Skip{Tick: w.tick, Reason: string(r), At: h.sidecar.clock.Now()}
}

func (h *heart) skipped() map[string]lock.Skip {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.skips)
}
