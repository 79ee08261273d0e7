package sidecar

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// slots admits wakes: each waits here until the app is ready, this replica leaves no ticks to others because it is busy, and a
// slot is free. While it waits, another replica takes its tick.
type slots struct {
	mu            sync.Mutex
	unready       string // why the app is not ready; "" = it is
	busy          string // why the replica leaves ticks to others; "" = it does not
	limit         int    // runs at once on this replica; 0 = no limit
	taken         int
	reservedTaken map[string]bool // reserved jobs whose own slot is taken
	waiting       []*slot
}

// slot is what one wake waits for, and then holds.
type slot struct {
	spec     *spec
	deadline time.Time     // when it is too late to start the tick; zero = never
	asked    time.Time     // when it began to wait
	why      reason        // why it is not let in; "" = it is
	reserved bool          // it is the job's own slot
	granted  chan struct{} // closed then; nil if it did not have to wait
}

// longWait is how long a wake lets others go ahead that came after it. So nothing waits for ever.
const longWait = time.Minute

// compare orders the wakes that wait, the next one first: those that have waited for long, then by priority, then those that
// are too late first, then as they came.
func (p *slot) compare(o *slot, now time.Time) int {
	waited, others := now.Sub(p.asked) >= longWait, now.Sub(o.asked) >= longWait
	switch {
	case waited || others:
		return p.asked.Compare(o.asked)
	case p.spec.Priority != o.spec.Priority:
		return o.spec.Priority - p.spec.Priority
	case p.deadline.IsZero() != o.deadline.IsZero():
		return o.deadline.Compare(p.deadline) // the zero time comes last
	}
	return cmp.Or(p.deadline.Compare(o.deadline), p.asked.Compare(o.asked))
}

// acquire waits for a slot for a wake of the job, whose tick has that starting deadline. If ctx ends first, it returns what
// was missing.
func (g *slots) acquire(ctx context.Context, sp *spec, deadline time.Time) (*slot, reason) {
	g.mu.Lock()
	p := &slot{spec: sp, deadline: deadline, asked: time.Now()}
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

// tryAcquire is acquire without the wait; nil if there is no slot.
func (g *slots) tryAcquire(sp *spec) *slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &slot{spec: sp}
	if g.grant(p); p.why != "" {
		return nil
	}
	return p
}

// missing is why a wake has got no slot.
func (g *slots) missing() reason {
	if g.idle() != "" {
		return notReady
	}
	return noSlot
}

// free is the number of slots that tryAcquire would grant now.
func (g *slots) free() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.unready != "" || g.busy != "":
		return 0
	case g.limit == 0:
		return math.MaxInt64
	}
	return int64(max(g.limit-g.taken, 0))
}

// grant gives a wake its slot if one is free, and nothing else keeps it back.
func (g *slots) grant(p *slot) {
	switch sp := p.spec; {
	case g.unready != "", g.busy != "" && sp.claims(): // what every replica runs can be left to none
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

// release gives a slot back.
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

// grantWaiting gives slots to the wakes that wait, in their order.
func (g *slots) grantWaiting() {
	now := time.Now()
	slices.SortStableFunc(g.waiting, func(p, o *slot) int { return p.compare(o, now) })
	g.waiting = slices.DeleteFunc(g.waiting, func(p *slot) bool {
		if g.grant(p); p.why != "" {
			return false
		}
		close(p.granted)
		return true
	})
}

// setUnready records why the app is not ready; "" if it is.
func (g *slots) setUnready(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unready = why
	g.grantWaiting()
}

// setBusy records why the replica leaves ticks to others; "" if it does not. It returns what it was before.
func (g *slots) setBusy(why string) (before string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, g.busy = g.busy, why
	g.grantWaiting()
	return before
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

// idle is why the replica takes no ticks; "" if it does.
func (g *slots) idle() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.unready != "":
		return "the app is not ready: " + g.unready
	case g.busy != "":
		return "the replica is busy: " + g.busy
	}
	return ""
}
