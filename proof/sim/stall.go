package sim

import (
	"sync"
	"time"
)

// stall is what SIGSTOP does to a replica, as far as it can be done from outside: its clocks stand, what it writes and
// reads stands still, and when it wakes it is later all at once. Its timers go on, but find a clock that has not moved,
// as after a suspended machine.
type stall struct {
	mu     sync.Mutex
	awake  chan struct{} // nil: it runs
	frozen time.Duration // what its clocks show, since the world began
	looks  time.Duration // how often they were looked at
	holds  int           // stalls that lie over each other
}

// crawl is what each look at a standing clock moves it, so that a loop that waits for the last millisecond before a
// tick gets to where it can be held up.
const crawl = 20 * time.Microsecond

func (s *stall) begin(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds++; s.awake == nil {
		s.awake, s.frozen, s.looks = make(chan struct{}), now, 0
	}
}

// end ends one stall; the last one wakes the replica.
func (s *stall) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds--; s.holds <= 0 && s.awake != nil {
		close(s.awake)
		s.awake = nil
	}
}

// free ends all stalls: what is dead does not stand still.
func (s *stall) free() {
	s.mu.Lock()
	s.holds = 0
	s.mu.Unlock()
	s.end()
}

// now is the time as the replica sees it.
func (s *stall) now(now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awake == nil {
		return now
	}
	s.looks++
	return min(now, s.frozen+s.looks*crawl)
}

// stands reports whether the replica stands still.
func (s *stall) stands() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awake != nil
}

// wait returns when the replica runs; true if it did not.
func (s *stall) wait() (stalled bool) {
	for {
		s.mu.Lock()
		awake := s.awake
		s.mu.Unlock()
		if awake == nil {
			return stalled
		}
		<-awake
		stalled = true
	}
}
