package sidecar

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// rendezvous knows the other replicas, and by rendezvous hashing which one asks first for a tick. The others ask a moment later, and
// so find most ticks claimed: that spares Redis their scripts, and spreads the runs over the replicas. Nothing but load depends on
// who is first: replicas that disagree race as they would without it.
type rendezvous struct {
	replica string // this one
	store   *service.Store
	peers   atomic.Pointer[[]string] // the others that were seen lately and take ticks; nil = nobody was looked for

	looking chan struct{} // holds one element while allRefused looks who they are
	seen    time.Time     // when it last did
}

func newRendezvous(replica string, store *service.Store) *rendezvous {
	return &rendezvous{replica: replica, store: store, looking: make(chan struct{}, 1)}
}

// second tells whether another replica is to ask first for a tick: the one whose hash with it is the greatest.
func (v *rendezvous) yields(w *wake) bool {
	peers := v.peers.Load()
	if peers == nil || w.kind != kindSchedule {
		return false
	}
	own := weight(w, v.replica)
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
func (v *rendezvous) allIn(list []string) bool {
	others := v.peers.Load()
	return others == nil || !slices.ContainsFunc(*others, func(p string) bool { return !slices.Contains(list, p) })
}

// justSeen is how long allRefused takes those for all that it saw: a thousand jobs may be refused at one instant.
const peersFreshFor = 100 * time.Millisecond

// allRefused tells whether all replicas that take ticks, this one among them, are in a list. Before it says so, it looks for
// replicas that began since the others' heartbeats were last read.
func (v *rendezvous) allRefused(ctx context.Context, list []string) bool {
	if !v.allIn(list) {
		return false
	}
	v.looking <- struct{}{}
	defer func() { <-v.looking }()
	if time.Since(v.seen) >= peersFreshFor {
		v.look(ctx)
		v.seen = time.Now()
	}
	return v.allIn(list)
}

// beatEvery is how often a replica says in Redis what it is and how it fares. service.HeartbeatTimeout is three times that.
const beatEvery = 5 * time.Second

// seenLately is how old the last heartbeat of a replica may be that is taken to be there.
const peerTimeout = 2*beatEvery + time.Second

// look reads who else has sent a heartbeat lately. When Redis does not say, those seen last are the peers, and it is not ok.
func (v *rendezvous) look(ctx context.Context) (others []service.Replica, ok bool) {
	all, err := v.store.Replicas(ctx)
	now, ok := v.store.Now()
	if err != nil || !ok {
		return nil, false
	}
	var taking []string
	for _, r := range all {
		if r.Name == v.replica || now.Sub(r.Seen).Abs() >= peerTimeout { // what was said before Redis' clock was set is not lately
			continue
		}
		others = append(others, r)
		if r.Ready == "" {
			taking = append(taking, r.Name)
		}
	}
	v.peers.Store(&taking)
	return others, true
}

// patience is how long a tick that replicas have refused is left to another one that takes ticks: longer than those few
// need that can take it, shorter than a heartbeat tells of one that has died.
const patience = 5 * time.Second

// standsBack tells whether a tick that this replica could not start is left to others: to any that takes ticks, and has not
// refused it in this round. One that does not come for it in some time may not be able to.
func (v *rendezvous) leavesToOthers(d lock.Due) bool {
	switch {
	case d.Age >= patience:
		return false
	case slices.Contains(d.Refused, v.replica):
		return !v.allIn(d.Refused)
	case slices.Contains(d.Refused, lock.LastAsked+v.replica):
		return !v.allIn(append(slices.Clone(d.Refused), v.replica))
	}
	return false
}
