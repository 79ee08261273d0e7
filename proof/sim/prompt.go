package sim

import (
	"time"

	"github.com/solotick/solotick/config"
)

// nudge is how long it takes from a script to what a replica does about it, as the design allows: 100 ms, and the ways
// of the nudge, of a look that was under way with the records and the ends of runs that it takes over, of the look that
// the nudge causes, and of the question for what that finds.
func (w *world) nudge() time.Duration { return 100*time.Millisecond + (1+6+2+1)*w.plan.Far }

// seconds are what the design leaves open in "within the lease plus seconds": two looks, and the way there.
const seconds = 3 * time.Second

// checkPrompt: what has to happen soon when nothing else is wrong.
func (w *world) checkPrompt() {
	for i, c := range w.redis.claims.all {
		w.judgeWatchers(c)
		switch c.how {
		case "handover":
			w.judgeHandover(c, w.redis.claims.all[i+1:])
		case "reap":
			w.judgeTakeover(c, w.plan.job(c.job).TTL)
		}
	}
	for _, q := range w.redis.claims.queued {
		if q.policy == string(config.Replace) && q.behind != nil {
			w.judgeReplace(q)
		}
	}
}

// judgeHandover: a tick that could not be started is another replica's at once, when it is refused for the first time.
func (w *world) judgeHandover(c *claim, after []*claim) {
	by := c.settled + w.nudge()
	if c.rounds > 0 || c.refused > 0 || c.member == "" || w.disturbed(c.replica.place, c.settled-time.Second, by) ||
		w.paused(c.job, c.settled, by) || !w.another(c.replica.place, c.job, c.settled-time.Second, by) {
		return
	}
	j := w.during(c.job, c.settled-time.Second, by)
	if j == nil {
		return
	}
	at, _ := w.dueAt(c.tick)
	if next, ok := w.dueAt(w.next(j, c.tick)); !ok || next <= by ||
		j.StartingDeadline > 0 && at+j.StartingDeadline <= by {
		return // a newer tick is due, or it is too late for this one
	}
	w.met["handed over in good times"]++
	for _, n := range after {
		if n.job == c.job && n.won <= by && n.won >= c.settled {
			return // this tick, or a newer one
		}
	}
	w.violatedAt(c.settled, "prompt", c.job, "tick %s was handed over at %s, and no replica had it by %s",
		stamp(c.tick), c.settled, by)
}

// another reports whether a replica elsewhere is well, and has been there long enough to hear nudges.
func (w *world) another(place int, job string, from, to time.Duration) bool {
	if w.disturbed(-1, from-recovery, to) || to > w.plan.Lasts || w.plan.Local {
		return false
	}
	for i, r := range w.plan.Replicas {
		if i != place && r.Begins+recovery <= from && !w.disturbed(i, from-recovery, to) && !w.deaf(i, from) &&
			w.takes(i, job, from, to) {
			return true
		}
	}
	return false
}

// judgeTakeover: a dead replica's run is taken over within its lease plus seconds.
func (w *world) judgeTakeover(c *claim, ttl time.Duration) {
	if w.plan.DeafReaps > 0 {
		return // a look waits for the answers of its takeovers
	}
	died := c.replica.diedAt()
	if died == 0 || died < c.won {
		return
	}
	by := died + ttl + seconds
	if w.during(c.job, died-time.Second, by) == nil || !w.another(c.replica.place, "", died, by) ||
		w.disturbedBy("late", c.replica.place, died) || w.disturbedBy("void", c.replica.place, died) {
		return
	}
	w.met["taken over in good times"]++
	if c.settled > by {
		w.violatedAt(c.settled, "prompt", c.job, "tick %s was left by a replica that died at %s, and taken over at %s",
			stamp(c.tick), died, c.settled)
	}
}

// judgeReplace: a replica learns at once that its run is replaced, wherever it is.
func (w *world) judgeReplace(q queued) {
	by := q.at + w.nudge()
	place := q.behind.replica.place
	if w.disturbed(place, q.at-recovery, by) || w.disturbed(-1, q.at-recovery, by) ||
		q.behind.replica.began+recovery > q.at {
		return
	}
	w.met["replaced in good times"]++
	for _, r := range w.runs {
		if r.ID == q.behind.run && r.start <= q.at && r.over > by && r.end != 0 {
			w.violatedAt(q.at, "prompt", q.job, "the run of tick %s was to be replaced from %s on, and told at %s",
				stamp(r.Tick), q.at, r.over)
		}
	}
}
