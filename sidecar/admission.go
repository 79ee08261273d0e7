package sidecar

import (
	"context"
	"math"
	"slices"
	"sync"
)

// admission is where wakes wait before they contend: for the app to be ready, and for a free slot. While one waits here,
// another replica takes its tick.
type admission struct {
	mu      sync.Mutex
	unready string // why the app is not ready; "" = it is
	limit   int    // runs at once on this replica; 0 = no limit
	taken   int
	own     map[string]bool // reserved jobs whose own slot is taken
	waiting []*place        // in the order in which they came
}

// place is what one wake waits for, and holds once it is let in.
type place struct {
	spec  *spec
	why   reason        // why it is not let in; "" = it is
	own   bool          // it is the job's own slot
	letIn chan struct{} // closed then; nil if it did not have to wait
}

// enter waits until a wake of the job may contend. When ctx ends first it says what was missing.
func (g *admission) enter(ctx context.Context, sp *spec) (*place, reason) {
	g.mu.Lock()
	p := &place{spec: sp}
	if g.pass(p); p.why == "" {
		g.mu.Unlock()
		return p, ""
	}
	p.letIn = make(chan struct{})
	g.waiting = append(g.waiting, p)
	g.mu.Unlock()

	select {
	case <-p.letIn:
		return p, ""
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.why == "" { // in that very moment
		return p, ""
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(w *place) bool { return w == p })
	return nil, p.why
}

// try is enter for what does not wait; nil when it would have to.
func (g *admission) try(sp *spec) *place {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &place{spec: sp}
	if g.pass(p); p.why != "" {
		return nil
	}
	return p
}

// missing is what a wake that was not let in waits for.
func (g *admission) missing() reason {
	if g.unreadiness() != "" {
		return notReady
	}
	return noSlot
}

// room is how many more would be let in now.
func (g *admission) room() int64 {
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
func (g *admission) pass(p *place) {
	switch sp := p.spec; {
	case g.unready != "":
		p.why = notReady
		return
	case sp.Reserved && !g.own[sp.Name]:
		g.own[sp.Name], p.own = true, true
	case g.limit == 0 || g.taken < g.limit:
		g.taken++
	default:
		p.why = noSlot
		return
	}
	p.why = ""
}

// leave gives a place back.
func (g *admission) leave(p *place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.own {
		delete(g.own, p.spec.Name)
	} else {
		g.taken--
	}
	g.admit()
}

// admit lets in all who can be.
func (g *admission) admit() {
	g.waiting = slices.DeleteFunc(g.waiting, func(p *place) bool {
		if g.pass(p); p.why != "" {
			return false
		}
		close(p.letIn)
		return true
	})
}

// setUnready says why the app is not ready; "" when it is.
func (g *admission) setUnready(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unready = why
	g.admit()
}

func (g *admission) setLimit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = n
	g.admit()
}

// unreadiness is why the app is not ready; "" when it is.
func (g *admission) unreadiness() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unready
}
