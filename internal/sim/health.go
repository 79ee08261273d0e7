package sim

import (
	"slices"
	"time"
)

// span is a time in which less can be asked of a replica, or of all.
type span struct {
	place    int // -1: all
	from, to time.Duration
	why      string
}

func (w *world) span(place int, from, to time.Duration, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spans = append(w.spans, span{place, from, to, why})
}

// disturbed tells whether a fault, but for some kinds, lies over any part of a time at a place, or over all.
func (w *world) disturbed(place int, from, to time.Duration, but ...string) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool {
		return (s.place == place || s.place == -1) && s.from <= to && from <= s.to && !slices.Contains(but, s.why)
	})
}

// disturbedBy tells whether a fault of a kind lay over a place, of which requests may come late.
func (w *world) disturbedBy(why string, place int, at time.Duration) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.place == place && s.why == why && s.from <= at && at <= s.to+w.slow() })
}

// healthy tells whether some replica was well all the time, but for faults of some kinds.
func (w *world) healthy(from, to time.Duration, but ...string) bool {
	for i, r := range w.plan.Replicas {
		if r.Begins+3*time.Second <= from && !w.disturbed(i, from, to, but...) {
			return true
		}
	}
	return false
}

// well tells whether a run's replica had no trouble of any kind while it lasted.
func (w *world) well(c *claim) bool {
	over := c.settled
	if over == 0 {
		over = w.plan.Lasts
	}
	stopping, dead := c.replica.stopped()
	return !dead && (stopping == 0 || stopping > over) && !w.disturbed(c.replica.place, c.won-10*time.Second, over) &&
		!w.disturbed(-1, c.won-10*time.Second, over)
}

func (w *world) wasStarted(id string) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return r.ID == id })
}

// dueAt is the world's time at which Redis' clock first reached a tick; false when it was set over it.
func (w *world) dueAt(tick time.Time) (time.Duration, bool) {
	d := tick.Sub(w.began)
	from, off := time.Duration(0), time.Duration(0)
	for _, f := range w.plan.Faults {
		if f.Kind == "redis steps" {
			if at := d - off; at >= from && at < f.At {
				return at, true
			}
			from, off = f.At, off+f.By
		}
	}
	return d - off, d-off >= from
}

// reached is the world's time, from one on, at which Redis' clock has reached an instant.
func (w *world) reached(t time.Time, from time.Duration) time.Duration {
	d := t.Sub(w.began)
	for _, f := range w.plan.Faults {
		if f.Kind == "redis steps" && f.At > from {
			if at := d - w.offsetAt(from); at < f.At {
				return max(from, at)
			}
			from = f.At
		}
	}
	return max(from, d-w.offsetAt(from))
}
