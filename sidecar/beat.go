package sidecar

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// beatEvery is how often a replica says in Redis what it is and how it fares. lock.Silent is three times that.
const beatEvery = 5 * time.Second

// heart sends the heartbeats, for those who look at the service from outside. Nothing here but load depends on them.
type heart struct {
	sidecar *Sidecar
	told    bool // what the other replicas see of Redis' clock, since it lies too far from ours
	beats   int
	twin    time.Time // when another process' heartbeat was last seen under this one's name; zero = never, or not lately

	mu    sync.Mutex
	skips map[string]lock.Skip  // by job, the newest that was not for another replica's fire
	ran   map[string]lock.Entry // by job that runs on every replica, its newest run here
}

// run sends heartbeats until ctx ends, and looks who else does: soon again at first, since replicas may have begun at the
// same moment. That the replica drains is told at once.
func (h *heart) run(ctx context.Context) {
	draining := h.sidecar.accepting.Done()
	for ctx.Err() == nil {
		wait := lookEvery
		if h.beat(ctx) == nil {
			h.look(ctx)
			if h.beats++; h.beats > 1 {
				wait = beatEvery
			}
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
	offset, ok := s.clock.offset()
	if !ok && s.clock.redis != nil {
		return errNoAnswer // whoever looks would take our clock to be right
	}
	r := lock.Replica{Name: s.replica, Version: s.version, Table: s.Table().Hash, Offset: offset, Skips: h.skipped(), Ran: h.results(),
		Process: s.process, Twin: h.hasTwin(ctx)}
	if err := s.contends(); err != nil {
		r.Ready = err.Error()
	}
	if err := s.LastReload().Err; err != nil {
		r.Reload = lock.OneLine(truncate(inShort(err), maxDetail))
	}
	return s.store.Beat(ctx, r)
}

// hasTwin tells whether another process sends heartbeats under this one's name, and says so once. What stands there before this
// process' first heartbeat may be of the one that was here before.
func (h *heart) hasTwin(ctx context.Context) bool {
	s := h.sidecar
	if s.process == "" || h.beats == 0 {
		return false
	}
	last, ok, err := s.store.BeatOf(ctx, s.replica)
	if err == nil && ok && last.Process != "" && last.Process != s.process {
		if h.twin.IsZero() {
			s.log.Warn("another process has the same name: give each its own name with --replica or POD_NAME", "replica", s.replica)
		}
		h.twin = time.Now()
	}
	if time.Since(h.twin) > lock.Silent {
		h.twin = time.Time{}
	}
	return !h.twin.IsZero()
}

// look reads who else is there. When Redis does not say, those seen last are it.
func (h *heart) look(ctx context.Context) {
	if others, ok := h.others(ctx); ok {
		h.sidecar.turn.see(others)
		h.compare(others)
	}
}

// others are the other replicas that sent a heartbeat lately. Not ok: Redis does not say.
func (h *heart) others(ctx context.Context) (others []lock.Replica, ok bool) {
	s := h.sidecar
	all, err := s.store.Replicas(ctx)
	now, ok := s.store.Now()
	if err != nil || !ok {
		return nil, false
	}
	for _, r := range all {
		if r.Name != s.replica && now.Sub(r.Seen).Abs() < seenLately { // what was said before Redis' clock was set is not lately
			others = append(others, r)
		}
	}
	return others, true
}

// compare says once, while Redis' clock and ours lie too far apart, how far those of the other replicas are off: that
// tells whose is wrong.
func (h *heart) compare(others []lock.Replica) {
	s := h.sidecar
	if !s.clock.wild() {
		h.told = false
		return
	}
	if h.told || len(others) == 0 {
		return
	}
	h.told = true
	offsets := make([]time.Duration, len(others))
	for i, r := range others {
		offsets[i] = r.Offset
	}
	slices.Sort(offsets)
	offset, _ := s.clock.offset()
	s.log.Warn("how far the other replicas see Redis' clock off tells whose is wrong", "median", offsets[len(offsets)/2].Round(time.Millisecond),
		"replicas", len(others), "offset", offset.Round(time.Millisecond))
}

// seenLately is how old the last heartbeat of a replica may be that is taken to be there.
const seenLately = 2*beatEvery + time.Second

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
	if r == firedElsewhere || isTimer(w.spec.Name) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skips[w.spec.Name] = lock.Skip{Tick: w.tick, Reason: string(r), At: h.sidecar.clock.Now()}
}

// forget drops what is kept of a job that has left.
func (h *heart) forget(job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.skips, job)
	delete(h.ran, job)
}

// result keeps how a job's newest run here ended, which runs on every replica: no ledger has it.
func (h *heart) result(e lock.Entry) {
	e.Detail = truncate(e.Detail, maxResult)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran[e.Job] = e
}

// maxResult bounds what a heartbeat tells of a failure: the history has more.
const maxResult = 200

// results are those of the jobs that run on every replica now.
func (h *heart) results() map[string]lock.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.ran, func(name string, _ lock.Entry) bool {
		sp := h.sidecar.spec(name)
		return sp == nil || sp.claims()
	})
	return maps.Clone(h.ran)
}

func (h *heart) skipped() map[string]lock.Skip {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.skips)
}
