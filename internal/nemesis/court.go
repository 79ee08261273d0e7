package nemesis

import (
	"time"
)

// look checks one run by itself.
func (c *court) look(r *run) {
	if r.tick.UnixNano()%int64(c.job.every) != 0 || r.started() && r.arrived.Before(r.tick.Add(-edge)) {
		c.find("no tick of the job", r)
	}
	if c.memory == keepsAll && len(r.settled) != 1 {
		c.find("settled other than once", r)
	}
	if r.outcome() == interrupted {
		c.takenOver(r)
	}
	if r.started() && r.kind == "handover" {
		c.handedOver(r)
	}
}

// takenOver checks that a run was given up for a reason, and in time.
func (c *court) takenOver(r *run) {
	reaped := r.settled[0].at
	death, ok := c.death(r, reaped)
	if ok {
		c.measure(r, death, reaped)
	} else if all := c.record.on(theRedis, r.begin(), reaped); len(all) > 0 {
		death = all[0].from
	} else {
		c.forbid("taken over from a replica that nothing had happened to", r)
		return
	}
	c.of(c.record.classAt(death)).takeovers++
	if c.memory == keepsAll && c.late(death, reaped) { // how long clients take to find another master is not in the record
		c.find("taken over late", r)
	}
}

// death is when a run lost its replica: the first strike on it while the run was under way that its lease cannot have
// outlived, if there is one. Of a run that never started it is not known when it was claimed, so it is the last strike that
// can be the cause.
func (c *court) death(r *run, reaped time.Time) (at time.Time, ok bool) {
	for _, s := range c.record.on(r.replica, r.begin(), reaped) {
		switch {
		case s.harm == refused:
		case s.harm == killed && s.from.Before(r.begin().Add(-edge)): // this was a life of the replica before
		case s.from.After(reaped.Add(ttl/3 + edge - ttl)): // renewed as late as that, it would not have been given up yet
		case r.started() && (s.harm == killed || s.to.Sub(s.from) >= ttl-ttl/3-edge): // or it was renewed after that
			return s.from, true
		default:
			at, ok = s.from, true
		}
	}
	return at, ok
}

// measure says how long a takeover took, less what there was no Redis for or nobody to do it.
func (c *court) measure(r *run, death, noticed time.Time) {
	if next := c.next(r); c.job.again && next != nil {
		noticed = next.arrived
	}
	t := c.of(c.record.classAt(death))
	t.slowestTakeover = max(t.slowestTakeover, noticed.Sub(death)-downtime(c.outages, death, noticed))
}

// late tells whether some replica could have noticed a death before anybody did: it was whole, and had Redis, for as long
// as that takes.
func (c *court) late(death, noticed time.Time) bool {
	starts := []time.Time{death}
	for _, s := range c.record.strikes {
		if s.to.After(death) {
			starts = append(starts, s.to.Add(time.Nanosecond))
		}
	}
	for _, name := range c.replicas {
		for _, from := range starts {
			if to := from.Add(ttl + dying); to.Before(noticed) && !c.record.struck(name, from, to) {
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
		if b.tick.Equal(r.tick) && b.outcome() == notStarted && b.settled[0].at.Before(r.arrived) && b.settled[0].at.After(refusal) {
			refusal = b.settled[0].at
		}
	}
	if !refusal.IsZero() {
		t.slowestHandover = max(t.slowestHandover, r.arrived.Sub(refusal))
	}
}

// order checks what one run owes to those before it. Runs that may lie beside each other owe nothing.
func (c *court) order() {
	if c.job.allow {
		return
	}
	var before []*run
	for _, r := range c.runs {
		if !r.started() {
			continue
		}
		for _, b := range before {
			if b.token >= r.token {
				c.forbid("token did not grow", r)
			}
			if r.arrived.Before(b.ended) && !c.ranOn(b, r.arrived) {
				c.forbid("beside another run", r)
			}
		}
		// Only the last few can still be at work.
		if before = append(before, r); len(before) > 4 {
			before = before[1:]
		}
	}
}

// ranOn tells whether a run could lie beside another one although its lease was over: its replica was stopped, could
// neither renew nor cancel it, and had been so for as long as a lease lasts after its last renewal.
func (c *court) ranOn(r *run, at time.Time) bool {
	for _, s := range c.record.on(r.replica, r.arrived, at) {
		if s.harm == stopped && !at.Before(s.from.Add(ttl-ttl/3-edge)) {
			return true
		}
	}
	return false
}
