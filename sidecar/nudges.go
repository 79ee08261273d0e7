package sidecar

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/internal/beat"
)

// nudges make the looker look before its time. Looks, fires, reloads and messages of other replicas use them.
type nudges struct {
	nudged chan struct{} // holds one element while a look is wanted
	within atomic.Bool   // nudgeWithin will want one

	mu      sync.Mutex
	awaited map[string]bool // jobs of which the last look saw a due member that waits for the end of a run
}

func newNudges() *nudges { return &nudges{nudged: make(chan struct{}, 1)} }

// nudge has the looker look at once.
func (n *nudges) nudge() { beat.Kick(n.nudged) }

// nudgeIn has the looker look after d.
func (n *nudges) nudgeIn(d time.Duration) { time.AfterFunc(d, n.nudge) }

// nudgeWithin has the looker look once within d, however often it is called.
func (n *nudges) nudgeWithin(d time.Duration) {
	if n.within.CompareAndSwap(false, true) {
		time.AfterFunc(d, func() {
			n.within.Store(false)
			n.nudge()
		})
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
