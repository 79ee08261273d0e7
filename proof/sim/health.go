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

// disturbed reports whether a fault, of kinds other than but, lies over any part of a time at a place, or over all.
func (w *world) disturbed(place int, from, to time.Duration, but ...string) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool {
		return (s.place == place || s.place == -1) && s.from <= to && from <= s.to && !slices.Contains(but, s.why)
	})
}

// unanswered is why a span of no length is there: the replica asked Redis something in the void.
const unanswered = "unanswered"

// silence is how long a connection at rest may be dead before its replica notices, if it asks nothing meanwhile.
const silence = 33 * time.Second

// deaf reports whether messages may not reach a replica, and it does not know: its connections were in the void, and it
// asked nothing there.
func (w *world) deaf(place int, at time.Duration) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool {
		return s.place == place && s.why == "void" && s.from <= at && at <= s.to+silence &&
			!slices.ContainsFunc(w.spans, func(q span) bool {
				return q.place == place && q.why == unanswered && s.from <= q.from && q.from <= s.to
			})
	})
}

// disturbedBy reports whether a fault of a kind lay over a place, of which requests may come late.
func (w *world) disturbedBy(why string, place int, at time.Duration) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool {
		return s.place == place && s.why == why && s.from <= at && at <= s.to+w.slow()
	})
}

// healthy reports whether some replica was well all the time, faults of the kinds in but aside.
func (w *world) healthy(from, to time.Duration, but ...string) bool {
	for i, r := range w.plan.Replicas {
		if r.Begins+3*time.Second <= from && !w.disturbed(i, from, to, but...) {
			return true
		}
	}
	return false
}

// healthyFor reports whether some replica was well all the time, its app ready, and a slot free there for a job.
func (w *world) healthyFor(job string, from, to time.Duration) bool {
	return w.healthyWhere(job, from, to, func(int) bool { return true })
}

// healthyWhere is healthyFor, for the replicas in some places.
func (w *world) healthyWhere(job string, from, to time.Duration, in func(place int) bool) bool {
	for i, r := range w.plan.Replicas {
		if r.Begins+3*time.Second <= from && !w.disturbed(i, from, to) && w.takes(i, job, from, to) && in(i) {
			return true
		}
	}
	return false
}

// fit reports whether some replica had long been well when a tick came due, with its app ready and a slot free for the
// job.
func (w *world) fit(job string, due, to time.Duration) bool {
	for i, r := range w.plan.Replicas {
		if r.Begins+recovery <= due && !w.disturbed(i, due-recovery, to) && w.takes(i, job, due-time.Second, to) {
			return true
		}
	}
	return false
}

// well reports whether a run's replica had no trouble of any kind while it lasted.
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
