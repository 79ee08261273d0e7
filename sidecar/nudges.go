package sidecar

import (
	"sync"
	"sync/atomic"
	"time"
)

// nudges make the looker look before its time. Looks, fires, reloads and messages of other replicas use them.
type nudges struct {
	nudged     chan struct{} // holds one element while a look is wanted
	slotWanted atomic.Bool   // something due was left to other replicas, for want of a slot or of the app

	mu      sync.Mutex
	timers  map[*time.Timer]bool // of nudgeIn, under way; nil = the replica has ended
	awaited map[string]bool      // jobs of which the last look has seen a due member that waits for the end of a run
}

func newNudges() *nudges {
	return &nudges{nudged: make(chan struct{}, 1), timers: map[*time.Timer]bool{}}
}

// nudge has the looker look at once.
func (n *nudges) nudge() {
	select {
	case n.nudged <- struct{}{}:
	default: // it is about to look
	}
}

// nudgeIn has the looker look after d.
func (n *nudges) nudgeIn(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timers == nil {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		n.mu.Lock()
		delete(n.timers, t)
		n.mu.Unlock()
		n.nudge()
	})
	n.timers[t] = true
}

// stop stops the timers of nudgeIn.
func (n *nudges) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for t := range n.timers {
		t.Stop()
	}
	n.timers = nil
}

// wantSlot records that a due member was left to other replicas. The next slot that becomes free here makes the
// looker look again.
func (n *nudges) wantSlot() { n.slotWanted.Store(true) }

// slotFreedDelay is how long the look for a free slot waits: many may become free in a short time.
const slotFreedDelay = 50 * time.Millisecond

// slotFreed records that a slot has become free.
func (n *nudges) slotFreed() {
	if n.slotWanted.Swap(false) {
		n.nudgeIn(slotFreedDelay)
	}
}

// awaitEnds records the jobs of which a due member waits for the end of a run, as a look has seen them.
func (n *nudges) awaitEnds(jobs map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.awaited = jobs
}

// runEnded has the looker look at once if a due member has waited for the end of this run. Otherwise the next tick of
// a job whose runs fill most of the time would be claimed first, again and again.
func (n *nudges) runEnded(job string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.awaited[job] {
		n.nudge()
	}
}
