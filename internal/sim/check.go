package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// check judges the whole trace when all is over.
func (w *world) check() {
	w.checkOnce()
	w.checkOverlap()
	w.checkLost()
	w.checkPaused()
	w.checkPrompt()
	w.checkSettled()
	w.checkHistory()
	w.checkWakes()
	w.checkTimers()
	w.checkTables()
	w.checkCaughtUp()
	w.checkMetrics()
}

// firing is a tick of a job, or, where every replica runs it, one process's.
type firing struct {
	job, process string
	tick         int64
}

// checkOnce: promise 1, no tick twice. Where the table says at-least-once, again only when the run before was cut short.
func (w *world) checkOnce() {
	starts := map[firing]*run{}
	for _, r := range w.runs {
		f := firing{job: r.Job, tick: r.Tick.UnixMilli()}
		if w.plan.job(r.Job).Guarantee == "every-replica" {
			if w.stepped || w.plan.jumps() || w.disturbed(-1, r.replica.began-time.Second, r.replica.began+3*time.Second) {
				continue // the ticks come again on a clock that is set back, and nothing guards them
			}
			f.process = r.replica.process
		}
		if before := starts[f]; before != nil {
			w.judgeAgain(before, r)
		}
		starts[f] = r
		if at := r.start + w.offsetAt(r.start); r.Token != 0 && !w.plan.Local && !w.stepped && at < r.Tick.Sub(w.began) {
			w.violatedAt(r.start, "1: never early", r.Job, "tick %s was started at %s", stamp(r.Tick), at)
		}
	}
}

// judgeAgain looks at a tick that was started before.
func (w *world) judgeAgain(before, r *run) {
	cl, _ := w.redis.claims.of(before.ID)
	switch {
	case before.ID == r.ID: // one run's attempts
		if r.Attempt > before.Attempt && before.end != 0 && before.status != execute.Succeeded && before.status != execute.Declined {
			w.met["tried again"]++
			return
		}
	case cl.again && (cl.how == "reap" || cl.how == "requeue") && (r.Kind == "takeover" || r.Kind == "handover") && r.Attempt > cl.attempt:
		w.met["run again"]++
		return
	}
	if w.bornBehind(before.start-time.Second, r.start) {
		return
	}
	w.violatedAt(r.start, "1: never twice", r.Job, "tick %s was fired by %s at %s (attempt %d) and by %s at %s (%s, attempt %d)", stamp(r.Tick),
		before.replica.process, before.start, before.Attempt, r.replica.process, r.start, r.Kind, r.Attempt)
}

// bornBehind tells whether Redis lost all in a time, and its clock is set in this world. A ledger that is born on a clock
// that was set back knows nothing of the ticks between: a limit.
func (w *world) bornBehind(from, to time.Duration) bool {
	return w.stepped && slices.ContainsFunc(w.redis.claims.loss, func(at time.Duration) bool { return at >= from && at <= to })
}

// checkOverlap: promise 3, no two runs of a job that may both rely on their leases; and a run's context ends with
// the trust in its lease.
func (w *world) checkOverlap() {
	last := map[string]*run{}
	until := map[string]time.Duration{}
	runs := slices.Clone(w.runs)
	slices.SortStableFunc(runs, func(a, b *run) int { return cmp.Compare(a.start, b.start) })
	for _, r := range runs {
		j := w.plan.job(r.Job)
		cl, ok := w.redis.claims.of(r.ID)
		if !ok {
			continue
		}
		end := min(r.over, cl.trust)
		if cl.how == "lost" {
			end = min(end, cl.settled) // when Redis loses all, it loses this too
		}
		if before := last[r.Job]; j.Policy != "Allow" && before != nil && before.ID != r.ID && r.start < until[r.Job] {
			w.violatedAt(r.start, "3: never overlapping", r.Job, "tick %s starts on %s at %s, and tick %s runs on %s until %s", stamp(r.Tick),
				r.replica.process, r.start, stamp(before.Tick), before.replica.process, until[r.Job])
		}
		if end > until[r.Job] {
			last[r.Job], until[r.Job] = r, end
		}
		if _, dead := r.replica.stopped(); !dead && r.over > cl.trust+w.reaction(r.replica, cl.trust, r.over) {
			w.violatedAt(cl.trust, "3: trust", r.Job, "the context of tick %s on %s ended at %s, and its lease was trusted until %s", stamp(r.Tick),
				r.replica.process, r.over, cl.trust)
		}
	}
}

// glance is how long after a stall a keeper has looked at its clock.
const glance = lock.Margin + 100*time.Millisecond

// reaction is how late a replica may notice that its trust is over: at once, or when a stall has ended and a timer that
// stood meanwhile goes off.
func (w *world) reaction(r *replica, trust, over time.Duration) time.Duration {
	for _, s := range w.spans {
		if s.place != r.place || s.why != "stall" || s.from > trust+time.Second {
			continue
		}
		first := w.wakes(s)
		end := first
		for _, next := range w.spans { // a stall that begins before the timer has gone off holds it up as well
			if next.place == r.place && next.why == "stall" && next.from > end && next.from <= end+glance {
				end = max(end, w.wakes(next))
			}
		}
		if over >= first && over <= end+glance {
			return over - trust
		}
	}
	return 20 * time.Millisecond
}

// wakes is when a stall ends, with those that lie over its end.
func (w *world) wakes(s span) time.Duration {
	end := s.to - recovery
	for _, o := range w.spans { // in the order in which they began
		if o.place == s.place && o.why == "stall" && o.from <= end {
			end = max(end, o.to-recovery)
		}
	}
	return end
}

// offsetAt is what Redis' clock was off by.
func (w *world) offsetAt(at time.Duration) (off time.Duration) {
	for _, f := range w.plan.Faults {
		if f.Kind == "redis steps" && f.At <= at {
			off += f.By
		}
	}
	return off
}

// jumps tells whether a replica's clock is set.
func (p *Plan) jumps() bool {
	return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind == "jump" })
}
