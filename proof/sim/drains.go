package sim

import (
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// back is how long after Redis is back the end of a run has been told to it: the longest wait before it is tried again.
const back = 2500 * time.Millisecond

// checkDrains: a replica that drains, or is told to end, tells Redis of the ends of its runs as long as their leases
// last, and tries again what failed as long as the grace lasts.
func (w *world) checkDrains() {
	attempts := map[string]int{}
	for i, r := range w.runs {
		attempts[r.ID]++
		ends := r.replica.endsAt()
		c, known := w.redis.claims.of(r.ID)
		if !known || ends == 0 || r.end == 0 || r.end < ends || r.end > ends+w.plan.Grace || r.replica.isDead() {
			continue
		}
		w.judgeRecorded(r, &c, ends+w.plan.Grace+3*lock.Margin)
		w.judgeRetried(i, r, max(attempts[r.ID], r.Attempt), ends) // some may never have started
	}
}

// judgeRecorded: the end of a run in the grace is recorded when Redis is back before the lease is over, or the replica
// is gone.
func (w *world) judgeRecorded(r *run, c *claim, gone time.Duration) {
	lease := min(c.renewed+w.plan.ttl(c.job), gone)
	by := r.end + back
	for _, s := range w.spans {
		if s.place == -1 && s.from <= by && s.to-recovery >= r.end {
			by = max(by, s.to-recovery+back)
		}
	}
	if len(c.undone) > 0 || by > lease || by > w.plan.Lasts || r.status == execute.Failed ||
		w.troubled(r.replica.place, r.start, by) {
		return
	}
	w.met["ended while it drained"]++
	if c.how == "reap" {
		w.violatedAt(r.end, "drain", r.Job, "the run of tick %s ended on %s at %s, which was draining; "+
			"its lease lasted until %s, Redis was there by %s, and it was taken over as interrupted at %s",
			stamp(r.Tick), r.replica.process, r.end, lease, by-back, c.settled)
	}
}

// troubled reports whether a place has another fault than that its replica ends.
func (w *world) troubled(place int, from, to time.Duration) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool {
		return s.place == place && s.from <= to && from <= s.to && s.why != "stop" && s.why != "drain"
	})
}

// judgeRetried: a run that fails in the grace is tried again while that lasts.
func (w *world) judgeRetried(i int, r *run, attempts int, ends time.Duration) {
	j := w.plan.job(r.Job)
	wait := j.Backoff << (attempts - 1)
	if r.asked || r.status != execute.Failed || attempts > j.Retries || r.end+wait+time.Second > ends+w.plan.Grace ||
		w.disturbed(-1, r.start, r.end+wait+time.Second) ||
		w.troubled(r.replica.place, r.start, r.end+wait+time.Second) {
		return
	}
	w.met["failed while it drained"]++
	for _, next := range w.runs[i+1:] {
		if next.ID == r.ID {
			return
		}
	}
	if slices.ContainsFunc(w.redis.claims.queued, func(q queued) bool {
		return q.job == r.Job && q.policy == string(config.Replace) && q.at >= r.start && q.at <= r.end+wait+time.Second
	}) {
		return // it was told to end meanwhile
	}
	if w.refused[r.ID] > r.end {
		return // it was tried, and the app refused
	}
	if c, _ := w.redis.claims.of(r.ID); r.code < 0 && !r.reported && !c.again {
		return // no answer came, so it may have run, and must not run again
	}
	w.violatedAt(r.end, "drain", r.Job,
		"attempt %d of %d for tick %s failed on %s at %s, which was draining until %s, and was not tried again",
		attempts, j.Retries+1, stamp(r.Tick), r.replica.process, r.end, ends+w.plan.Grace)
}
