package nemesis

import (
	"slices"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// heartbeat is how long an app may work on a job with async for each heartbeat: as short as a table may have it.
const heartbeat = time.Second

// asyncLease is the shortest lease that a table may have with that heartbeat.
const asyncLease = 4 * time.Second

// longBeat is the longest heartbeat that goes with longLease. An app that got one just before its replica died might
// outlive the lease, were it not refused while the lease is unsure.
const longBeat = 3500 * time.Millisecond

// relied is how long before its end a replica does not rely on a lease any more.
const relied = time.Second

// soonest is the least time from a strike on a replica until a run of the job may be given up because of it. A lease
// was renewed a third of its length before at the earliest, and a heartbeat answered a third of one before. The next
// process in a place knows that the one before is dead, which says nothing of an app that may end the run by itself.
func (j job) soonest(h harm) time.Duration {
	switch {
	case h == crashed && !j.async:
		return 0
	case h == stopped && j.async: // it finds the app silent when it goes on
		return j.heartbeat() - j.heartbeat()/3
	case h == cut && j.async: // it answers no heartbeat that the lease may not outlast
		return j.lease() - j.lease()/3 - relied - j.heartbeat()/3
	}
	return j.lease() - j.lease()/3
}

// watch checks what apps did on runs that they had accepted. Each works only while it may. So nothing that happens to
// replicas or to Redis excuses that two of them worked at the same time.
func (c *court) watch() {
	if !c.job.async {
		return
	}
	for i := range c.calls {
		q := &c.calls[i]
		if q.Work.Began.IsZero() {
			continue
		}
		c.count(q)
		r := &run{job: c.job.name, tick: q.Tick.UTC(), id: q.Run, replica: q.Replica, arrived: q.Arrived}
		for _, next := range c.calls[i+1:] {
			switch {
			case !next.Arrived.Before(worked(q)), c.job.asks && c.mayBeLate(&next):
			case !next.Work.Began.IsZero() && next.Work.Began.Before(worked(q)):
				c.forbid("two apps at work", r)
			default:
				c.forbid("called while another app could work", r)
			}
		}
		if settled := c.byID(q.Run); settled != nil && slices.ContainsFunc(settled.settled, func(e entry) bool {
			return e.at.Add(written).Before(worked(q))
		}) {
			c.forbid("over while its app could work", r)
		}
		if c.answeredByAnother(q) {
			c.find("a heartbeat was answered by another process", r)
		}
		if q.Work.Died.IsZero() && stoppedEarly(q) && !stoodStill(q) &&
			!c.record.touched(q.Replica, q.Arrived.Add(-recovery), worked(q)) {
			c.find("its app had to stop, and nothing had happened", r)
		}
	}
}

// worked is when the work of a call ended.
func worked(q *rig.Request) time.Time {
	if q.Work.Ended.IsZero() {
		return q.Work.Until
	}
	return q.Work.Ended
}

// lastLeave is when the app of a call sent the last heartbeat that was answered with leave.
func lastLeave(q *rig.Request) time.Time { return q.Work.Until.Add(-q.Work.Heartbeat) }

// stoppedEarly reports whether an app had not done all of its work.
func stoppedEarly(q *rig.Request) bool {
	return q.Work.Stop != 0 || q.Work.Report == "" || q.Work.Report == interrupted
}

// unsure reports whether Redis stood still until the app of a run may have had to stop: its replica could not renew the
// lease, and so answered no heartbeat that the lease might not outlast. That is before the lease ends.
func (c *court) unsure(r *run, at time.Time) bool {
	return c.job.async && slices.ContainsFunc(c.record.on(theRedis, r.begin(), at), func(s strike) bool {
		return s.to.Add(recovery).After(s.from.Add(c.job.soonest(cut)))
	})
}

// stoodStill reports whether an app itself did not get to send a heartbeat in time, since the machine was busy. No
// replica can be the cause of it.
func stoodStill(q *rig.Request) bool { return q.Work.Late >= q.Work.Heartbeat/3 }

// silent reports whether the app of a run died or stood still, so that its replica took it for dead.
func (c *court) silent(r *run) bool {
	return c.job.async && slices.ContainsFunc(c.calls, func(q rig.Request) bool {
		return q.Run == r.id && (stoodStill(&q) || !q.Work.Died.IsZero())
	})
}

// count adds up what the apps did.
func (c *court) count(q *rig.Request) {
	t := c.of(c.record.classAt(q.Work.Began))
	t.works++
	if q.Work.Died.IsZero() && stoppedEarly(q) {
		t.stops++
	}
	if stoodStill(q) {
		t.stood++
	}
	if q.Work.Report == succeeded && q.Work.Answer == 200 {
		t.reports++
	}
}

// answeredByAnother reports whether a heartbeat was answered after the replica that had called had been killed.
func (c *court) answeredByAnother(q *rig.Request) bool {
	sent := lastLeave(q)
	return slices.ContainsFunc(c.record.on(q.Replica, q.Arrived, sent), func(s strike) bool {
		return s.harm.kills() && s.from.After(q.Arrived) && s.from.Add(hair).Before(sent)
	})
}

// reported reports whether the report that a run ended so was answered, and its replica and Redis were whole then.
// Faults before are no excuse: such a report is answered only while the run is the replica's.
func (c *court) reported(r *run, outcome string) bool {
	return slices.ContainsFunc(c.calls, func(q rig.Request) bool {
		return q.Run == r.id && q.Work.Report == outcome && q.Work.Answer == 200
	}) && !c.record.touched(r.replica, r.ended.Add(-recovery), r.end().Add(edge))
}
