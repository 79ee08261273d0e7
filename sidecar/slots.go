package sidecar

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slots decide who begins next. Each wake asks here, and waits until the app is ready and a slot is free; a job that
// has something due asks in the same way (see dueTicks). While it waits, another replica may take its tick.
type slots struct {
	mu       sync.Mutex
	unready  string         // why the app is not ready; "" = it is
	limit    int            // runs at once on this replica; 0 = no limit, -1 = none: there is no table
	taken    int            // of the limit
	reserved map[string]int // what each reserved job holds: all but one are of the limit
	waiting  []*slot

	denied time.Time                 // when the app was last asked and was not ready; zero = never
	ready  atomic.Pointer[time.Time] // the value of denied at the app's first yes; nil = no yes yet
}

// slot is what a wake, or a job that has something due, waits for and then holds.
type slot struct {
	spec     *spec
	deadline time.Time     // when it is too late to start the tick; zero = never
	asked    time.Time     // when it began to wait
	why      reason        // why it is not let in; "" = it is
	granted  chan struct{} // closed then; nil = it was let in at once
	notify   func()        // called then, unless it is nil or it was let in at once, with the slots locked
}

// longWait is how long a wake lets others go ahead that came after it. So nothing waits for ever.
const longWait = time.Minute

// compare orders the wakes that wait, the next one first: those that have waited for long, then by priority, then those
// that are too late first, then as they came.
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

// ask asks for a slot for a tick of a job, with that starting deadline. It has to be released, whether it is granted or
// not. If it is granted later, notify is called then; nil calls nothing.
func (g *slots) ask(sp *spec, deadline time.Time, notify func()) *slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &slot{spec: sp, deadline: deadline, asked: time.Now(), notify: notify}
	if g.grant(p); p.why != "" {
		p.granted, g.waiting = make(chan struct{}), append(g.waiting, p)
	}
	return p
}

// await waits until a slot is granted. If ctx ends first, it returns what was missing.
func (g *slots) await(ctx context.Context, p *slot) reason {
	select {
	case <-p.granted:
	case <-ctx.Done():
	}
	return g.missing(p)
}

// missing is why a slot is not granted; "" if it is.
func (g *slots) missing(p *slot) reason {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.why
}

// free is the number of slots that would be granted now.
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

// grant gives a wake its slot if one is free and the app is ready.
func (g *slots) grant(p *slot) {
	switch sp := p.spec; {
	case g.unready != "", g.limit < 0:
		p.why = notReady
		return
	case sp.Reserved && g.reserved[sp.Name] == 0:
	case g.limit == 0 || g.taken < g.limit:
		g.taken++
	default:
		p.why = noSlot
		return
	}
	if p.spec.Reserved {
		g.reserved[p.spec.Name]++
	}
	p.why = ""
	if p.granted != nil {
		close(p.granted)
	}
}

// release gives a slot back, or waits no more for it.
func (g *slots) release(p *slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch name := p.spec.Name; {
	case p.why != "":
		g.waiting = slices.DeleteFunc(g.waiting, func(w *slot) bool { return w == p })
		return
	case !p.spec.Reserved:
		g.taken--
	case g.reserved[name] > 1: // the run that is left has the job's own slot now
		g.reserved[name]--
		g.taken--
	default:
		delete(g.reserved, name)
	}
	g.grantWaiting()
}

// grantWaiting gives slots to those that wait, in their order.
func (g *slots) grantWaiting() {
	now := time.Now()
	slices.SortStableFunc(g.waiting, func(p, o *slot) int { return p.compare(o, now) })
	g.waiting = slices.DeleteFunc(g.waiting, func(p *slot) bool {
		if g.grant(p); p.why == "" && p.notify != nil {
			p.notify()
		}
		return p.why == ""
	})
}

// setUnready changes why the app is not ready, as it said when it was asked; "" if it is. It returns what it was
// before.
func (g *slots) setUnready(why string, asked time.Time) (before string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before, g.unready = g.unready, why
	if why != "" {
		g.denied = asked
	} else {
		g.ready.CompareAndSwap(nil, new(g.denied))
	}
	g.grantWaiting()
	return before
}

func (g *slots) setLimit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = n
	g.grantWaiting()
}

// idle is why the replica takes no ticks; "" if it does.
func (g *slots) idle() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.limit < 0:
		return NoTable
	case g.unready != "":
		return "the app is not ready: " + g.unready
	}
	return ""
}
