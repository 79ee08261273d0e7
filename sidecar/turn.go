package sidecar

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/lock"
)

// turn decides which replica asks first for a tick. The others ask a moment later, and so find most ticks claimed: that
// spares Redis their scripts, and spreads the runs over the replicas. Nothing but load depends on it: replicas that see
// others than these race as they would without it.
type turn struct {
	sidecar *Sidecar
	peers   atomic.Pointer[[]string] // the others that were seen lately and take ticks

	looking chan struct{} // holds one element while allRefused looks who they are
	seen    time.Time     // when it last did
}

// stagger is how long after the first one the others ask. Both is before the tick.
const stagger = ahead / 2

// second tells whether another replica is to ask first for a tick: the one whose hash with it is the greatest.
func (t *turn) second(w *wake) bool {
	peers := t.peers.Load()
	if peers == nil || w.kind != kindSchedule {
		return false
	}
	own := weight(w, t.sidecar.replica)
	for _, p := range *peers {
		if weight(w, p) > own {
			return true
		}
	}
	return false
}

func weight(w *wake, replica string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(replica + " " + w.spec.Name + " " + strconv.FormatInt(w.tick.UnixMilli(), 36))) // never fails
	x := h.Sum64()
	x ^= x >> 33 // FNV's high bits know little of the last bytes
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// allIn tells whether all replicas that take ticks, this one among them, are in a list.
func (t *turn) allIn(list []string) bool {
	others := t.peers.Load()
	return others == nil || !slices.ContainsFunc(*others, func(p string) bool { return !slices.Contains(list, p) })
}

// justSeen is how long allRefused takes those for all that it saw: a thousand jobs may be refused at one instant.
const justSeen = 100 * time.Millisecond

// allRefused tells whether all replicas that take ticks, this one among them, are in a list. Before it says so, it looks for
// replicas that began since the others' heartbeats were last read.
func (t *turn) allRefused(ctx context.Context, list []string) bool {
	if !t.allIn(list) {
		return false
	}
	t.looking <- struct{}{}
	defer func() { <-t.looking }()
	if time.Since(t.seen) >= justSeen {
		if others, ok := t.sidecar.heart.others(ctx); ok {
			t.see(others)
		}
		t.seen = time.Now()
	}
	return t.allIn(list)
}

// see records who else is there.
func (t *turn) see(others []lock.Replica) {
	var taking []string
	for _, r := range others {
		if r.Ready == "" {
			taking = append(taking, r.Name)
		}
	}
	t.peers.Store(&taking)
}
