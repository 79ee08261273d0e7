package sidecar

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// rendezvous knows the other replicas, which of them asks first for a tick, by rendezvous hashing, and which due tick
// is left to others. The others hear that it has claimed the tick, or ask a moment later. Redis runs fewer scripts, and
// the runs spread over the replicas. Only the load depends on it: replicas that disagree race for the tick as without
// it.
type rendezvous struct {
	replica string // this one
	store   *service.Store
	peers   atomic.Pointer[[]string] // the others that were seen lately and take ticks; nil = not read yet

	looking chan struct{} // holds one element while allRefused reads the heartbeats
	seen    time.Time     // when it last did
	unread  error         // why it could not
}

// first is the replica that asks first for the tick of a wake. second reports whether this replica asks second.
func (v *rendezvous) first(w *wake) (first string, second bool) {
	if w.kind != kindSchedule || !w.spec.hasFates() {
		return v.replica, false
	}
	return v.firstFor(w.spec.Name, w.tick)
}

// firstFor is the replica that asks first for a tick: the one with the greatest hash. second reports whether this
// replica has the second greatest.
func (v *rendezvous) firstFor(job string, tick time.Time) (first string, second bool) {
	peers := v.peers.Load()
	if peers == nil {
		return v.replica, false
	}
	own, greater := weight(job, tick, v.replica), 0
	first, most := v.replica, own
	for _, p := range *peers {
		x := weight(job, tick, p)
		if x > own {
			greater++
		}
		if x > most {
			first, most = p, x
		}
	}
	return first, greater == 1
}

// taking is how many replicas take ticks, this one among them.
func (v *rendezvous) taking() int {
	if peers := v.peers.Load(); peers != nil {
		return 1 + len(*peers)
	}
	return 1
}

func weight(job string, tick time.Time, replica string) uint64 {
	text := make([]byte, 0, 128)
	text = append(append(append(append(text, replica...), ' '), job...), ' ')
	text = strconv.AppendInt(text, tick.UnixMilli(), 36)
	h := fnv.New64a()
	_, _ = h.Write(text) // never fails
	x := h.Sum64()
	x ^= x >> 33 // FNV's high bits know little of the last bytes
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// allIn reports whether all replicas that take ticks, this one among them, are in a list.
func (v *rendezvous) allIn(list []string) bool {
	others := v.peers.Load()
	return others == nil || !slices.ContainsFunc(*others, func(p string) bool { return !slices.Contains(list, p) })
}

// peersFreshFor is how long allRefused relies on the peers that it read: a thousand jobs may be refused at one instant.
const peersFreshFor = 100 * time.Millisecond

// allRefused reports whether a list contains all replicas that take ticks, this one among them. Before it says yes, it
// reads the heartbeats again: replicas may have begun since. If it cannot, it says no.
func (v *rendezvous) allRefused(ctx context.Context, list []string) bool {
	if !v.allIn(list) {
		return false
	}
	v.looking <- struct{}{}
	defer func() { <-v.looking }()
	if time.Since(v.seen) >= peersFreshFor {
		_, _, v.unread = v.readPeers(ctx)
		v.seen = time.Now()
	}
	return v.unread == nil && v.allIn(list)
}

// peerTimeout is how old the last heartbeat of a replica may be if it counts as a peer.
const peerTimeout = 2*beat.Rest + time.Second

// readPeers reads which replicas have sent a heartbeat lately. After an error the peers stay as they are.
// process is the one that sent the newest under this replica's own name; "" = none is known.
func (v *rendezvous) readPeers(ctx context.Context) (others []service.Replica, process string, err error) {
	all, err := v.store.Heartbeats(ctx)
	if err != nil {
		return nil, "", err
	}
	now, _ := v.store.Now() // Redis has just answered
	var taking []string
	for _, r := range all {
		if r.Name == v.replica {
			process = r.Process
		}
		if r.Name == v.replica || now.Sub(r.Seen).Abs() >= peerTimeout { // in the future: Redis' clock was set back
			continue
		}
		others = append(others, r)
		if r.Ready == "" {
			taking = append(taking, r.Name)
		}
	}
	v.peers.Store(&taking)
	return others, process, nil
}

// patience is how long a replica leaves a tick that it has refused to its peers. They need less time to take it, and
// a dead one's last heartbeat counts for longer than that.
const patience = 5 * time.Second

// leavesToOthers reports whether a tick that this replica could not start is left to peers that have not refused it in
// this round. If none takes it within patience, they may not be able to.
func (v *rendezvous) leavesToOthers(ctx context.Context, d lock.Due) bool {
	asked := slices.Contains(d.Refused, v.replica) || slices.Contains(d.Refused, lock.LastAsked+v.replica)
	return d.Age < patience && asked && !v.allRefused(ctx, append(slices.Clone(d.Refused), v.replica))
}
