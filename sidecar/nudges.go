package sidecar

import (
	"sync"
	"time"

	"github.com/solotick/solotick/internal/beat"
)

// nudges make the looker look before its time. Looks, fires, reloads and messages of other replicas use them.
type nudges struct {
	nudged chan struct{} // holds one element while a look is wanted

	mu      sync.Mutex
	armed   map[*time.Timer]time.Time // of nudgeIn, under way, with their times; nil = the replica has ended
	awaited map[string]bool           // jobs of which the last look saw a due member that waits for the end of a run
}

func newNudges() *nudges {
	return &nudges{nudged: make(chan struct{}, 1), armed: map[*time.Timer]time.Time{}}
}

// nudge has the looker look at once.
func (n *nudges) nudge() { beat.Kick(n.nudged) }

// nudgeIn has the looker look after d.
func (n *nudges) nudgeIn(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.armed == nil {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		n.mu.Lock()
		delete(n.armed, t)
		n.mu.Unlock()
		n.nudge()
	})
	n.armed[t] = time.Now().Add(d)
}

// nudgeWithin has the looker look once within d, however often it is called.
func (n *nudges) nudgeWithin(d time.Duration) {
	latest, armed := time.Now().Add(d), false
	n.mu.Lock()
	for _, at := range n.armed {
		armed = armed || !at.After(latest)
	}
	n.mu.Unlock()
	if !armed {
		n.nudgeIn(d)
	}
}

// stop stops the timers of nudgeIn.
func (n *nudges) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for t := range n.armed {
		t.Stop()
	}
	n.armed = nil
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
