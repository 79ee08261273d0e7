package sim

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// network is what lies between the replicas and Redis: links whose messages take their time, one after the other.
type network struct {
	world *world
	dice  dice
	far   time.Duration // longest way of a message in good times

	mu sync.Mutex
	// instants at which something arrives: never two at once, or their order would be left to chance
	used  map[time.Duration]bool
	links map[*link]bool
}

// weather is how the network is around one replica, or around Redis.
type weather struct {
	refuse    bool    // no connection is accepted, and the old ones are cut
	blackhole bool    // nothing arrives, and nobody is told
	loss      float64 // of messages, the connection with them
	late      float64 // of messages that take up to slow
	slow      time.Duration
	until     time.Duration // end of the blackhole
}

func newNetwork(w *world, d dice, far time.Duration) *network {
	return &network{world: w, dice: d, far: far, used: map[time.Duration]bool{}, links: map[*link]bool{}}
}

// arrive calls f at an instant of its own, d from now and later than after.
func (n *network) arrive(d time.Duration, after time.Duration, f func()) time.Duration {
	now := n.world.now()
	n.mu.Lock()
	at := max(now+d, after+1)
	for n.used[at] {
		at++
	}
	n.used[at] = true
	n.mu.Unlock()
	time.AfterFunc(at-now, func() {
		n.mu.Lock()
		delete(n.used, at)
		n.mu.Unlock()
		f()
	})
	return at
}

// dial connects a replica with Redis: one way there and one back.
func (n *network) dial(ctx context.Context, r *replica) (net.Conn, error) {
	r.stall.wait()
	id := r.connects.Add(1)
	limit := time.NewTimer(early(500*time.Millisecond, n.dice.throw(forLimit, r.key, id)))
	defer limit.Stop()
	refused := func(text string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New(text)}
	}
	way := time.NewTimer(n.dice.between(n.far/10, n.far, forDelay, r.key, id))
	defer way.Stop()
	here, there := r.weather(), n.world.redis.weather()
	if here.blackhole || there.blackhole {
		way.Stop()
	}
	select {
	case <-way.C:
	case <-limit.C:
		return refused("i/o timeout")
	case <-ctx.Done():
		return refused(ctx.Err().Error())
	}
	if here.refuse || there.refuse || r.isDead() {
		return refused("connection refused")
	}
	l := newLink(n, r, id)
	n.mu.Lock()
	n.links[l] = true
	n.mu.Unlock()
	n.world.redis.serve(l.server)
	return l.client, nil
}

// early takes something off a time limit. The client waits for its context at the same time, and which of two that end
// at one instant is seen first would be left to chance.
func early(d time.Duration, by uint64) time.Duration {
	return d - time.Millisecond - time.Duration(by%uint64(time.Millisecond))
}

// cut ends the links of a replica, or all. Requests on their way still arrive, or do not, by the dice.
func (n *network) cut(r *replica) {
	for _, l := range n.linksOf(r) {
		l.reset()
	}
}

// sever ends all links, and what is on its way over them.
func (n *network) sever() {
	for _, l := range n.linksOf(nil) {
		l.sever()
	}
}

// linksOf are those of a replica, or all.
func (n *network) linksOf(r *replica) []*link {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*link
	for l := range n.links {
		if r == nil || l.replica == r {
			all = append(all, l)
		}
	}
	return all
}

func (n *network) forget(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.links, l)
}

// fate is how long a message takes, and what befalls it. It depends on what the message says and not on how many were
// sent before it.
func (n *network) fate(l *link, way int, about *call) (delay time.Duration, lost, hang bool) {
	keys := func(what uint64) []uint64 { return []uint64{what, l.replica.key, about.key} }
	delay = n.dice.between(n.far/10, n.far, keys(forDelay)...)
	here, there := l.replica.weather(), n.world.redis.weather()
	if here.blackhole || there.blackhole {
		// A message into the void is sent again when the void ends, or never.
		lost, wait := n.dice.chance(0.5, keys(forHeld)...), n.world.untilHealed(l.replica)
		if way == toServer && (lost || wait > rds.DefaultTimeout) { // the replica notices
			n.world.span(l.replica.place, n.world.now(), n.world.now(), unanswered)
		}
		if lost {
			return delay, true, true
		}
		return delay + wait, false, false
	}
	deaf := n.world.plan.DeafReaps
	if n.far >= 100*time.Millisecond { // every other new connection takes too long for its first question there
		deaf /= 2
	}
	if way == toClient && about.name == "settle" && about.args[argVerb] == "reap" &&
		n.dice.chance(deaf, keys(forDeaf)...) {
		return delay, true, n.dice.chance(0.5, keys(forHang)...)
	}
	loss, late, slow := max(here.loss, there.loss), max(here.late, there.late), max(here.slow, there.slow)
	if n.dice.chance(loss, keys(forFault)...) {
		return delay, true, n.dice.chance(0.5, keys(forHang)...)
	}
	if n.dice.chance(late, keys(forLate)...) {
		if n.dice.chance(0.5, keys(forSlow)...) {
			slow = 400 * time.Millisecond // in time for whoever waits for it
		}
		delay = n.dice.between(n.far, slow, keys(forHeld)...)
	}
	return delay, false, false
}

// dialer is how a replica's client connects.
func (n *network) dialer(r *replica) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return n.dial(ctx, r) }
}
