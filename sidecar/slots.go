package sidecar

import (
	"context"
	"math"
	"slices"
	"sync"
)

// admission is where wakes wait before they contend: for the app to be ready, and for a free slot. While one waits here,
// another replica takes its tick.
type slots struct {
	mu            sync.Mutex
	unready       string // why the app is not ready; "" = it is
	limit         int    // runs at once on this replica; 0 = no limit
	taken         int
	reservedTaken map[string]bool // reserved jobs whose own slot is taken
	waiting       []*slot         // in the order in which they came
}

// place is what one wake waits for, and holds once it is let in.
type slot struct {
	spec     *spec
	why      reason        // why it is not let in; "" = it is
	reserved bool          // it is the job's own slot
	granted  chan struct{} // closed then; nil if it did not have to wait
}

// enter waits until a wake of the job may contend. When ctx ends first it says what was missing.
func (g *slots) acquire(ctx context.Context, sp *spec) (*slot, reason) {
	g.mu.Lock()
	p := &slot{spec: sp}
	if g.grant(p); p.why == "" {
		g.mu.Unlock()
		return p, ""
	}
	p.granted = make(chan struct{})
	g.waiting = append(g.waiting, p)
	g.mu.Unlock()

	select {
	case <-p.granted:
		return p, ""
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.why == "" { // in that very moment
		return p, ""
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(w *slot) bool { return w == p })
	return nil, p.why
}

// try is enter for what does not wait; nil when it would have to.
func (g *slots) tryAcquire(sp *spec) *slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &slot{spec: sp}
	if g.grant(p); p.why != "" {
		return nil
	}
	return p
}

// missing is what a wake that was not let in waits for.
func (g *slots) missing() reason {
	if g.unreadiness() != "" {
		return notReady
	}
	return noSlot
}

// room is how many more would be let in now.
func (g *slots) free() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.unready != "":
		return 0
	case g.limit == 0:
		return math.MaxInt64
	}
	return int64(max(g.limit-g.taken, 0))
}

// pass lets a wake in if that is possible.
func (g *slots) grant(p *slot) {
	switch sp := p.spec; {
	case g.unready != "":
		p.why = notReady
		return
	case sp.Reserved && !g.reservedTaken[sp.Name]:
		g.reservedTaken[sp.Name], p.reserved = true, true
	case g.limit == 0 || g.taken < g.limit:
		g.taken++
	default:
		p.why = noSlot
		return
	}
	p.why = ""
}

// leave gives a place back.
func (g *slots) release(p *slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.reserved {
		delete(g.reservedTaken, p.spec.Name)
	} else {
		g.taken--
	}
	g.grantWaiting()
}

// admit lets in all who can be.
func (g *slots) grantWaiting() {
	g.waiting = slices.DeleteFunc(g.waiting, func(p *slot) bool {
		if g.grant(p); p.why != "" {
			return false
		}
		close(p.granted)
		return true
	})
}

// setUnready says why the app is not ready; "" when it is.
func (g *slots) setUnready(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unready = why
	g.grantWaiting()
}

func (g *slots) setLimit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = n
	g.grantWaiting()
}

// unreadiness is why the app is not ready; "" when it is.
func (g *slots) unreadiness() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unready
}
