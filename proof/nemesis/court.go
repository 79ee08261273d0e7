package nemesis

import (
	"slices"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// look checks one run by itself.
func (c *court) look(r *run) {
	if !c.job.isLease() && (r.tick.UnixNano()-int64(c.job.offset))%int64(c.job.every) != 0 ||
		r.started() && r.arrived.Before(r.tick.Add(-c.early())) {
		c.find("no tick of the job", r)
	}
	if c.memory == keepsAll && len(r.settled) != 1 {
		c.find("settled other than once", r)
	}
	if c.crowded(r) {
		c.find("more runs than slots", r)
	}
	if r.outcome() == interrupted {
		c.takenOver(r)
	}
	if r.started() && r.kind == "handover" {
		c.handedOver(r)
	}
	if c.twice(r) {
		c.of(c.record.classAt(r.tick)).doubles++
		c.forbid("double", r)
	}
	if c.stale(r) {
		c.find("started although a newer tick was due", r)
	}
	c.drained(r)
}

// stale reports whether a run began although a newer tick was due by then, which takes the place of its tick. Only a
// strike on its own replica, or the death of Redis, can have held it up after its claim. Under at-least-once a replica
// runs a tick that it claimed in time, however late: a Redis that stood still after the claim can hold it up, too. The
// same holds for a tick that was given back.
func (c *court) stale(r *run) bool {
	next := r.tick.Add(c.job.every)
	if c.job.again && r.claimed().Before(next) && c.record.struck(r.replica, r.claimed(), r.arrived) || c.givenBack(r) {
		return false
	}
	if c.job.isLease() || !r.started() || c.job.lasts() ||
		r.first > 1 || r.kind != "schedule" && (r.kind != "catchup" || c.job.again) {
		return false
	}
	return r.arrived.After(next.Add(hair)) && !c.record.hit(r.replica, r.tick.Add(-edge), r.arrived) &&
		!c.record.gone(r.tick.Add(-edge), r.arrived)
}

// drained checks what a run on a replica that was told to end owes: the attempts that are left, within the grace. That
// its end is recorded is a matter of untold.
func (c *court) drained(r *run) {
	strikes := slices.DeleteFunc(c.record.on(r.replica, r.begin(), r.end()),
		func(s strike) bool { return s.harm != drained || s.from.Before(r.begin()) })
	if len(strikes) == 0 || !r.started() {
		return
	}
	c.of(c.record.classAt(strikes[0].from)).drained++
	struck := slices.ContainsFunc(c.record.on(r.replica, r.begin(), r.end()), func(s strike) bool {
		return s.harm != drained
	})
	if r.failed && r.attempt <= c.job.fails && r.outcome() == failed && !struck {
		c.find("attempts left", r)
	}
}

// untold reports whether Redis could not be told of the end of a run before an instant: its replica was struck, Redis
// was killed, or stood still until the lease was over.
func (c *court) untold(r *run, at time.Time) bool {
	for _, s := range c.record.on(r.replica, r.begin(), at) {
		if s.harm != refused && s.harm != drained {
			return true
		}
	}
	return c.unheard(r, at)
}

// unheard reports whether Redis is the reason for that.
func (c *court) unheard(r *run, at time.Time) bool {
	return slices.ContainsFunc(c.record.on(theRedis, r.begin(), at), func(s strike) bool {
		// by its last renewal
		leaseEnd := s.from.Add(c.job.lease() - min(c.job.lease()/3, max(s.from.Sub(r.begin()), 0)))
		return s.harm == away || s.to.Add(recovery).After(leaseEnd)
	})
}

// deaf is since when Redis may not have heard of a run: from the last strike that came while it was under way, or else
// from the first. Which one matters only if Redis was back in between for more than a lease: the run was renewed then.
func (c *court) deaf(r *run, at time.Time) (since time.Time) {
	for _, s := range c.record.on(theRedis, r.begin(), at) {
		if since.IsZero() || !r.ended.Before(s.from) {
			since = s.from
		}
	}
	return since
}

const unharmed = "taken over from a replica that nothing had happened to"

// takenOver checks that a run was given up for a reason, and in time.
func (c *court) takenOver(r *run) {
	reaped := r.settled[0].at
	death, ok := c.death(r, reaped)
	if ok {
		c.measure(r, death, reaped)
	} else if c.unheard(r, reaped) || c.unsure(r, reaped) {
		death = c.deaf(r, reaped)
	} else if c.silent(r) {
		return
	} else {
		what := unharmed
		if r.started() && !r.left && r.ended.Before(reaped) {
			what = "its end was not recorded"
		}
		c.forbid(what, r)
		return
	}
	c.of(c.record.classAt(death)).takeovers++
	switch {
	case c.memory != keepsAll: // how long clients take to find another master is not in the record
	case c.late(c.renewed(r, death), reaped):
		c.find("taken over late", r)
	case c.lateInPlace(r, death, reaped):
		c.find("taken over late in its place", r)
	}
}

// renewed is when the lease of a run may have been renewed last, after a death: if a replica was killed just before its
// way was open again, its kernel sends on what it had sent while it was cut off, after as long again at most.
func (c *court) renewed(r *run, death time.Time) time.Time {
	for _, s := range c.record.on(r.replica, death, death) {
		if s.harm == cut && slices.ContainsFunc(c.record.on(r.replica, s.from, s.to), func(k strike) bool {
			return k.harm == crashed && k.from.After(s.to.Add(-edge))
		}) {
			return s.to.Add(s.to.Sub(s.from))
		}
	}
	return death
}

// lateInPlace reports whether a run was left to another replica, or to its lease, although the next process of its
// replica was ready, which knew that the one before was dead. A process says that it is ready when it has looked around
// once. A run of a process that was drained before that death is not of the one that died: the file of its place does
// not name it. Nor is a run of that one over if its app may end it: the app may work as long as the lease lasts.
func (c *court) lateInPlace(r *run, death, reaped time.Time) bool {
	if !r.started() && slices.ContainsFunc(c.record.on(r.replica, r.begin(), death), func(s strike) bool {
		return s.harm.kills() && s.from.Before(death)
	}) {
		return false // it may have been claimed by the process that died then
	}
	return !c.job.async && slices.ContainsFunc(c.record.on(r.replica, death, reaped), func(s strike) bool {
		return s.harm == crashed && s.from.Equal(death) && s.to.Add(edge).Before(reaped) &&
			!c.drainedBefore(r, death) && len(c.record.on(r.replica, death, s.to)) == 1 &&
			len(c.record.on(theRedis, death.Add(-recovery), reaped)) == 0
	})
}

// drainedBefore reports whether another process took the place of the run's own at a drain, before that death.
func (c *court) drainedBefore(r *run, death time.Time) bool {
	return slices.ContainsFunc(c.record.on(r.replica, r.begin(), death), func(s strike) bool {
		return s.harm == drained && s.to.Before(death)
	})
}

// death is when a run lost its replica: the first strike on it while the run was under way that its lease cannot have
// outlived, if there is one, and else the last strike that can be the cause. Of a run that never started it is not
// known when it was claimed, so it is the last one, too.
func (c *court) death(r *run, reaped time.Time) (at time.Time, ok bool) {
	for _, s := range c.record.on(r.replica, r.begin(), reaped) {
		switch {
		case s.harm == refused || s.harm == drained:
		// this was a life of the replica before
		case s.harm.kills() && (s.from.Before(r.begin().Add(-edge)) || c.outlived(r, s)):
		// renewed as late as that, it would not have been given up yet
		case s.from.After(reaped.Add(edge - c.job.soonest(s.harm))):
		// or it was renewed after that
		case r.started() && (s.harm.kills() || s.to.Sub(s.from) >= c.job.soonest(s.harm)-edge && !c.wentOn(r, s)):
			return s.from, true
		default:
			at, ok = s.from, true
		}
	}
	return at, ok
}

// outlived reports whether the caller of a run waited for the app when the next process was ready after that strike:
// the run is of that process. A run that a command calls for, or that the app ends by a report, needs no caller that
// lives.
func (c *court) outlived(r *run, s strike) bool {
	return r.started() && !c.job.async && !c.job.exec && !s.to.IsZero() && r.ended.After(s.to)
}

// wentOn reports whether a run was under way when a later strike came than one that did not end its process: its caller
// still waited, for longer than one that has lost the lease, or its app had leave that was given in between.
func (c *court) wentOn(r *run, s strike) bool {
	return slices.ContainsFunc(c.record.on(r.replica, s.to, r.end()), func(next strike) bool {
		if next.harm == refused || next.harm == drained || !next.from.After(s.to.Add(edge)) {
			return false
		}
		if !c.job.async {
			return !r.ended.Before(next.from)
		}
		return slices.ContainsFunc(c.calls, func(q rig.Request) bool {
			return q.Run == r.id && lastLeave(&q).After(s.to) && q.Work.Until.After(next.from)
		})
	})
}

// measure says how long a takeover took, less what there was no Redis for or nobody to do it.
func (c *court) measure(r *run, death, noticed time.Time) {
	if next := c.next(r); c.job.again && next != nil {
		noticed = next.arrived
	}
	t := c.of(c.record.classAt(death))
	t.slowestTakeover = max(t.slowestTakeover, noticed.Sub(death)-downtime(c.outages, death, noticed))
}

// late reports whether some replica could have noticed a death before anybody did: it was whole, and had Redis, for as
// long as that takes.
func (c *court) late(death, noticed time.Time) bool {
	starts := []time.Time{death}
	for _, s := range c.record.strikes {
		if s.to.After(death) {
			starts = append(starts, s.to.Add(time.Nanosecond))
		}
	}
	for _, name := range c.replicas {
		for _, from := range starts {
			if to := from.Add(c.job.lease() + dying); to.Before(noticed) && !c.record.touched(name, from, to) {
				return true
			}
		}
	}
	return false
}

// next is the attempt that follows on a run; nil when there is none.
func (c *court) next(r *run) *run {
	for _, n := range c.runs {
		if n.tick.Equal(r.tick) && n.attempt > r.attempt && n.started() && n.arrived.After(r.begin()) {
			return n
		}
	}
	return nil
}

// handedOver counts how long it took from the last refusal to the arrival.
func (c *court) handedOver(r *run) {
	t := c.of(c.record.classAt(r.arrived))
	t.handovers++
	var refusal time.Time
	for _, b := range c.runs {
		if b.tick.Equal(r.tick) && b.outcome() == notStarted && b.settled[0].at.Before(r.arrived) &&
			b.settled[0].at.After(refusal) {
			refusal = b.settled[0].at
		}
	}
	if !refusal.IsZero() {
		t.slowestHandover = max(t.slowestHandover, r.arrived.Sub(refusal))
	}
}

// order checks what one run owes to those before it. Those that may lie beside each other may be claimed in another
// order than they arrive in, unless one arrived before the other one's tick.
func (c *court) order() {
	var before []*run
	for _, r := range started(c.runs) {
		for _, b := range before {
			if b.token >= r.token && (!c.job.allow || b.arrived.Add(c.early()).Before(r.tick)) {
				c.forbid("token did not grow", r)
			}
			// with async it is for watch
			if !c.job.allow && !c.job.async && r.arrived.Before(b.ended) && !c.ranOn(b, r.arrived) {
				c.forbid("beside another run", r)
			}
		}
		// Only the last few can still be at work.
		if before = append(before, r); len(before) > 4 {
			before = before[1:]
		}
	}
}

// ranOn reports whether a run could lie beside another one although its lease was over: its replica was stopped, could
// neither renew nor cancel it, and had been so for as long as a lease lasts after its last renewal.
func (c *court) ranOn(r *run, at time.Time) bool {
	for _, s := range c.record.on(r.replica, r.arrived, at) {
		if s.harm == stopped && !at.Before(s.from.Add(c.job.lease()-c.job.lease()/3-edge)) {
			return true
		}
	}
	return false
}
