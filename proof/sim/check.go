package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// check judges the whole trace when all is over.
func (w *world) check() {
	w.checkOnce()
	w.checkChanged()
	w.checkOverlap()
	w.checkLost()
	w.checkPaused()
	w.checkResumed()
	w.checkCancelled()
	w.checkPrompt()
	w.checkSettled()
	w.checkHistory()
	w.checkWakes()
	w.checkTimers()
	w.checkTables()
	w.checkBegun()
	w.checkCaughtUp()
	w.checkMetrics()
	w.checkSkipped()
	w.checkSuperseded()
	w.checkApps()
	w.checkAskedOnce()
	w.checkAnswered()
	w.checkAttempts()
	w.checkKinds()
	w.checkReturned()
	w.checkDrains()
	w.checkConfirmed()
	w.checkTimersFired()
	w.checkTimersPassedOver()
	w.checkTimersForgotten()
	w.checkFates()
	w.checkKept()
	w.checkDead()
	w.checkWorkers()
	w.checkAsked()
	w.checkLeases()
	w.checkSince()
	w.checkDays()
	w.checkTold()
	w.checkTurns()
	w.checkMended()
	w.checkHasty()
	w.checkDropped()
	w.met["writes that were denied"] += w.redis.denials
	w.met["answers to WAIT of too few"] += w.redis.unconfirmed
	w.met["messages that a standing Redis took"] += w.redis.standstill.taken
}

// firing is a tick of a job, or, where every replica runs it, one process's.
type firing struct {
	job, process string
	tick         int64
}

// checkOnce: promise 1, no tick twice. Where the table says at-least-once, again only when the run before was cut
// short.
func (w *world) checkOnce() {
	starts := map[firing]*run{}
	for _, r := range w.runs {
		f := firing{job: r.Job, tick: r.Tick.UnixMilli()}
		if r.Kind == "backfill" || r.Kind == "manual" { // its ticks may have been fired before
			if w.askedFor(r) > 1 {
				continue
			}
			f.process = r.Kind
		}
		if r.Token == 0 {
			if w.disturbed(-1, r.replica.began-time.Second, r.replica.began+3*time.Second) {
				continue // the ticks come again on a clock that is set back, and nothing guards them
			}
			f.process = r.replica.process
		}
		if before := starts[f]; before != nil {
			w.judgeAgain(before, r)
		}
		starts[f] = r
		if at := r.start + w.offsetAt(r.start); r.Token != 0 && !w.plan.Local && !w.stepped &&
			at < r.Tick.Sub(w.began) {
			w.violatedAt(r.start, "1: never early", r.Job, "tick %s was started at %s", stamp(r.Tick), at)
		}
	}
}

// askedFor counts the requests for a run of a tick.
func (w *world) askedFor(r *run) (n int) {
	for _, t := range w.redis.claims.triggers {
		if t.job == r.Job && t.tick.Equal(r.Tick) {
			n++
		}
	}
	return n
}

// checkChanged: a tick that every replica has fired for itself is not fired once more under a lock, when the job's
// guarantee changes, nor the other way round. Those of a rollout, in which the replicas do not agree, are left out.
func (w *world) checkChanged() {
	alone, under := map[ofTick]*run{}, map[ofTick]*run{}
	for _, r := range w.runs {
		k := ofTick{r.Job, r.Tick.UnixMilli()}
		if r.Token != 0 && under[k] == nil && r.Kind != "manual" && r.Kind != "backfill" {
			under[k] = r
		}
		b := alone[k]
		switch {
		case r.Kind == "manual" || r.Kind == "backfill":
		case r.Token == 0 && under[k] != nil && !w.stepped && !w.plan.Local && !w.rolledOut(r.Job, under[k].start):
			w.violatedAt(r.start, "1: never twice", r.Job,
				"tick %s was fired by %s at %s under a lock, and by %s at %s on every replica",
				stamp(r.Tick), under[k].replica.process, under[k].start, r.replica.process, r.start)
		case r.Token == 0:
			alone[k] = r
		case b != nil && !w.stepped && !w.plan.Local && !w.rolledOut(r.Job, b.start):
			w.violatedAt(r.start, "1: never twice", r.Job,
				"tick %s was fired by %s at %s, on every replica, and by %s at %s (%s) under a lock",
				stamp(r.Tick), b.replica.process, b.start, r.replica.process, r.start, r.Kind)
		}
	}
	w.met["ticks of every replica"] += len(alone)
}

// rolledOut reports whether the replicas did not agree on a job's guarantee at a time.
func (w *world) rolledOut(job string, at time.Duration) bool {
	for n, x := range w.plan.Reloads {
		if x.Job == job && x.Kind == "guarantee" && x.At-time.Second <= at &&
			at <= max(x.At+slowest, w.lastToSwap(n+1))+settling {
			return true
		}
	}
	return false
}

// judgeAgain looks at a tick that was started before.
func (w *world) judgeAgain(before, r *run) {
	cl, _ := w.redis.claims.of(before.ID)
	switch {
	case before.ID == r.ID: // one run's attempts
		if r.Attempt > before.Attempt && before.end != 0 && before.status != execute.Succeeded &&
			before.status != execute.Declined {
			w.met["tried again"]++
			return
		}
	case cl.again && (cl.how == "reap" || cl.how == "requeue" || cl.how == "lost") && r.Attempt > cl.attempt &&
		(r.Kind == "takeover" || r.Kind == "handover" ||
			r.Kind == before.Kind && (r.Kind == "manual" || r.Kind == "backfill")):
		w.met["run again"]++
		return
	}
	now, _ := w.redis.claims.of(r.ID)
	if now.again && w.lostAllBetween(min(cl.won, now.won), max(cl.won, now.won)) {
		w.met["fired again after a loss of data"]++
		return
	}
	// nor does the new ledger know of it
	if now.again && (now.table && w.outlivedLoss(cl) || !now.table && w.ofTwoLines(cl, now)) {
		w.met["fired by two lines of runs after a loss of data"]++
		return
	}
	if w.redis.claims.bornBehind(r.Job, r.Tick, before.start-time.Second, r.start) {
		w.met["doubles of a ledger that was born behind"]++
		return
	}
	if w.excusedDouble(before) {
		w.met["doubles that a failover excuses"]++
		return
	}
	if r.Token == 0 && before.replica == r.replica && w.redisSetBack() &&
		w.lacked(r.replica, r.Job, before.start-slack, r.start) {
		w.met["fired again by a job that left and came back before a clock that was set back had caught up"]++
		return
	}
	w.violatedAt(r.start, "1: never twice", r.Job,
		"tick %s was fired by %s at %s (attempt %d) and by %s at %s (%s, attempt %d)", stamp(r.Tick),
		before.replica.process, before.start, before.Attempt, r.replica.process, r.start, r.Kind, r.Attempt)
}

// redisSetBack reports whether Redis' clock was ever set back.
func (w *world) redisSetBack() bool {
	return slices.ContainsFunc(w.plan.Faults, func(f Fault) bool { return f.Kind == redisSteps && f.By < 0 })
}

// lacked reports whether a replica's table was without a job at some time in between.
func (w *world) lacked(r *replica, job string, from, to time.Duration) bool {
	return slices.ContainsFunc(w.swapped, func(s swapped) bool {
		return s.replica == r && s.at >= from && s.at <= to && row(w.tables[s.version], job) == nil
	})
}

// ofTwoLines reports whether neither of two runs of a tick goes on with the other, and one goes on with what was
// claimed before Redis lost all its data: a limit. Redis does not know what became of that, so a replica that finds its
// run lost has the tick run again, whatever other replicas know of it. A run that stems from one that ended well, or
// from the same one as the other, is never that, unless it waited for the end of that run: the new ledger did not know
// that the tick had been claimed.
func (w *world) ofTwoLines(before, now claim) bool {
	if now.parent == before.run && w.waitedBehind(before, now) {
		return w.outlivedLoss(before)
	}
	if p, ok := w.parent(now); ok && (p.how == "finish" || p.settled == 0 || p.run == before.run ||
		p.run == before.parent && !w.waitedBehind(p, before)) {
		return false
	}
	return w.outlivedLoss(before) || w.outlivedLoss(now)
}

// waitedBehind reports whether a claim from the table waited for the end of a run of the same tick.
func (w *world) waitedBehind(in, now claim) bool {
	return now.kind == "catchup" &&
		(now.policy == string(lock.Queue) || now.policy == string(lock.Replace) || w.refusedBehind(in, now))
}

// refusedBehind reports whether a claim from the table met with a run of the same tick, which had begun after the tick
// came due, or died before: that is no overlap, and the end of the run sets the tick free, as one that waited.
func (w *world) refusedBehind(in, now claim) bool {
	onRedis := func(at time.Duration) time.Time { return w.began.Add(at + w.offsetAt(at)) }
	began, lived := onRedis(in.won), onRedis(in.renewed)
	return slices.ContainsFunc(w.redis.claims.asks, func(a *ask) bool {
		return a.code == "OVERLAP" && a.table && a.job == in.job && a.tick.Equal(in.tick) && a.at <= now.won &&
			a.behind != nil && a.behind.run == in.run &&
			(a.came.Before(began) || in.how == "reap" && a.came.After(lived))
	})
}

// outlivedLoss reports whether a run goes on with one that was claimed before Redis lost all its data.
func (w *world) outlivedLoss(c claim) bool {
	for p, ok := w.parent(c); ok; p, ok = w.parent(p) {
		if w.lostAllBetween(p.won, c.won) {
			return true
		}
	}
	return false
}

// parent is the run of the same tick that a run goes on with.
func (w *world) parent(c claim) (claim, bool) {
	p, ok := w.redis.claims.of(c.parent)
	return p, ok && p.tick.Equal(c.tick) && p.won < c.won
}

// lostAllBetween reports whether Redis lost all its data in a time.
func (w *world) lostAllBetween(from, to time.Duration) bool {
	return slices.ContainsFunc(w.redis.claims.loss, func(at time.Duration) bool { return at >= from && at <= to })
}

// bornBehind reports whether a ledger was made in a time, after a loss of all data, and does not count a tick as
// settled because Redis' clock had been set back: a limit. The caller has the claims locked, or the run is over.
func (c *claims) bornBehind(job string, tick time.Time, from, to time.Duration) bool {
	return c.world.stepped && slices.ContainsFunc(c.births, func(b birth) bool {
		return b.job == job && b.at >= from && b.at <= to && tick.After(b.tick) &&
			slices.ContainsFunc(c.loss, func(at time.Duration) bool { return at >= from && at <= b.at })
	})
}

// checkOverlap: promise 3, no two runs of a job that may both rely on their leases; a run's context ends with the trust
// in its lease, and its work before the lease does.
func (w *world) checkOverlap() {
	beside := map[string]map[string]time.Duration{}
	runs := slices.Clone(w.runs)
	slices.SortStableFunc(runs, func(a, b *run) int { return cmp.Compare(a.start, b.start) })
	for _, r := range runs {
		cl, ok := w.redis.claims.of(r.ID)
		if !ok || r.stands {
			continue
		}
		end := min(r.over, cl.trust)
		if cl.how == "reap" && cl.unrenewed {
			end = min(end, cl.settled) // a limit
		}
		if cl.how == "lost" || cl.how == "forgotten" {
			end = min(end, cl.settled) // when Redis loses all, it loses this too
			if r.start >= cl.settled {
				continue // an attempt more, until its replica hears of that
			}
		}
		if beside[r.Job] == nil {
			beside[r.Job] = map[string]time.Duration{}
		}
		w.checkBeside(r, end, beside[r.Job])
		if _, dead := r.replica.stopped(); !dead && r.over > cl.trust+w.reaction(r.replica, cl.trust, r.over) {
			w.violatedAt(cl.trust, "3: trust", r.Job, "the context of tick %s on %s ended at %s, "+
				"and its lease was trusted until %s", stamp(r.Tick), r.replica.process, r.over, cl.trust)
		}
		if w.plan.job(r.Job).Ignores && r.cause != nil && r.gone > cl.trust {
			w.met["commands that ignored their end, and were killed after the trust in their lease"]++
		}
		told := r.gone - 500*time.Millisecond // at the latest, if it was killed because of the lease
		if _, dead := r.replica.stopped(); !dead &&
			r.gone > cl.trust+lock.Margin+w.reaction(r.replica, cl.trust, r.gone) &&
			told > cl.trust+w.reaction(r.replica, cl.trust, told) {
			w.violatedAt(cl.trust, "3: gone", r.Job, "tick %s ran on %s until %s, and its lease was over at %s (%v)",
				stamp(r.Tick), r.replica.process, r.gone, cl.trust+lock.Margin, r.cause)
		}
	}
}

// checkBeside: a run that starts, and those of its job that rely on their leases then, may all live at once. Of two of
// them, the policy of the one that was claimed later decides. until is when each ends, by its UUID.
func (w *world) checkBeside(r *run, end time.Duration, until map[string]time.Duration) {
	maps.DeleteFunc(until, func(_ string, end time.Duration) bool { return end <= r.start })
	until[r.ID] = max(until[r.ID], end)
	ids := slices.Sorted(maps.Keys(until))
	for _, id := range ids {
		c, _ := w.redis.claims.of(id)
		limit, n := limitOf(c.policy), 0
		for _, other := range ids {
			o, _ := w.redis.claims.of(other)
			if o.won > c.won {
				continue
			}
			n++
			if other != id && (other == r.ID || id == r.ID) && !strings.HasPrefix(c.policy, "Allow") {
				w.violatedAt(r.start, "3: never overlapping", r.Job, "tick %s starts on %s at %s, and tick %s runs on %s until %s",
					stamp(c.tick), c.replica.process, r.start, stamp(o.tick), o.replica.process, min(until[id], until[other]))
			}
		}
		if limit > 0 && n > limit {
			w.violatedAt(r.start, "3: a limit", r.Job, "tick %s starts on %s at %s: %d runs at once, and %d may",
				stamp(r.Tick), r.replica.process, r.start, n, limit)
		} else if n == limit {
			w.met["as many runs at once as may"]++
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
