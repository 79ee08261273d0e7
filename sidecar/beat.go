package sidecar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// beatEvery is how often a replica says in Redis what it is and how it fares. lock.Silent is three times that.
const beatEvery = 5 * time.Second

// seenLately is how old the last heartbeat of a replica may be that is left to go first, and whose clock counts.
const seenLately = 2*beatEvery + time.Second

// heart sends the heartbeats, for those who look at the service from outside, and for the other replicas, which see by
// them who is there and whose clock is wrong.
type heart struct {
	sidecar *Sidecar

	mu    sync.Mutex
	skips map[string]lock.Skip // by job, the newest that was not for another replica's fire
}

// run sends heartbeats until ctx ends, and looks who else does. That the replica drains is told at once.
func (h *heart) run(ctx context.Context) {
	draining := h.sidecar.accepting.Done()
	for ctx.Err() == nil {
		wait := lookEvery
		if h.beat(ctx) == nil {
			h.look(ctx)
			wait = beatEvery
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-draining:
			draining = nil
		case <-ctx.Done():
		}
		t.Stop()
	}
}

func (h *heart) beat(ctx context.Context) error {
	s := h.sidecar
	offset, _ := s.clock.offset()
	r := lock.Replica{Name: s.replica, Version: s.version, Table: s.Table().Hash, Offset: offset, Skips: h.skipped()}
	if err := s.contends(); err != nil {
		r.Ready = err.Error()
	}
	if err := s.LastReload().Err; err != nil {
		r.Reload = lock.OneLine(truncate(inShort(err), maxDetail))
	}
	return s.store.Beat(ctx, r)
}

// look reads who else is there, and what their clocks say. When Redis does not tell, what was seen last holds.
func (h *heart) look(ctx context.Context) {
	s := h.sidecar
	all, err := s.store.Replicas(ctx)
	now, ok := s.store.Now()
	if err != nil || !ok {
		return
	}
	var taking []string
	var offsets []time.Duration
	for _, r := range all {
		if r.Name == s.replica || now.Sub(r.Seen).Abs() >= seenLately { // before a step of Redis' clock is not lately
			continue
		}
		offsets = append(offsets, r.Offset)
		if r.Ready == "" {
			taking = append(taking, r.Name)
		}
	}
	s.turn.peers.Store(&taking)
	s.clock.compare(offsets)
}

// inShort is an error; of a table with problems the first, and how many more there are.
func inShort(err error) string {
	var problems config.Problems
	if !errors.As(err, &problems) {
		return err.Error()
	}
	p := problems[0]
	p.File, p.Source, p.Hint = filepath.Base(p.File), "", ""
	switch n := len(problems) - 1; n {
	case 0:
		return p.String()
	case 1:
		return p.String() + ", and 1 more problem"
	default:
		return fmt.Sprintf("%s, and %d more problems", p, n)
	}
}

// leave takes the heartbeat away: the replica ends in order.
func (h *heart) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), lookEvery)
	defer cancel()
	_ = h.sidecar.store.Leave(ctx, h.sidecar.replica) // or it is taken for silent, and forgotten in a day
}

func (h *heart) note(w *wake, r reason) {
	if r == firedElsewhere || isTimer(w.job.Name) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skips[w.job.Name] = lock.Skip{Tick: w.tick, Reason: string(r), At: h.sidecar.clock.Now()}
}

// forget drops what is kept of a job that has left.
func (h *heart) forget(job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.skips, job)
}

func (h *heart) skipped() map[string]lock.Skip {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.skips)
}
