package sim

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// redisStalls is the fault in which Redis runs nothing for some seconds, and then all that it was sent.
const redisStalls = "redis stalls"

// standstill is a Redis that was stopped (SIGSTOP). Its kernel still accepts connections, and takes what arrives: also
// over connections that their client closes meanwhile. When it goes on, it runs all that at once: of each connection in
// the order of arrival, the connections in the order that the dice say.
type standstill struct {
	mu     sync.Mutex
	stands bool
	held   []arrival
	taken  int
}

// arrival is what has arrived and was not read.
type arrival struct {
	link *link
	put  func()
}

// keep takes an arrival while Redis stands; false when it does not stand.
func (s *standstill) keep(l *link, put func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stands {
		s.taken++
		s.held = append(s.held, arrival{l, put})
	}
	return s.stands
}

func (s *standstill) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stands = true
}

// end lets Redis go on: each arrival at an instant of its own, or their order would be left to chance.
func (s *standstill) end(n *network) {
	s.mu.Lock()
	held := s.held
	s.stands, s.held = false, nil
	s.mu.Unlock()
	began := uint64(n.world.now())
	order := func(a arrival) uint64 { return n.dice.throw(forRelease, a.link.replica.key, a.link.id, began) }
	slices.SortStableFunc(held, func(a, b arrival) int { return cmp.Compare(order(a), order(b)) })
	last := time.Duration(0)
	for _, a := range held {
		last = n.arrive(0, last, a.put)
	}
}
