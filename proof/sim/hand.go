package sim

import (
	"slices"
	"time"

	"github.com/solotick/solotick/config"
)

// checkAttempts: no two starts for a tick have the same number.
func (w *world) checkAttempts() {
	type numbered struct {
		ofTick
		attempt int
	}
	seen := map[numbered]*run{}
	for _, r := range w.runs {
		c, known := w.redis.claims.of(r.ID)
		if !known || !c.again || r.Kind == "backfill" || r.Kind == "manual" && w.askedFor(r) > 1 {
			continue
		}
		k := numbered{ofTick{r.Job, r.Tick.UnixMilli()}, r.Attempt}
		b := seen[k]
		seen[k] = r
		if b == nil {
			continue
		}
		w.met["attempts with a number that was there"]++
		if w.excusedDouble(b) || w.lostAfter(b) <= r.start || w.lostBefore(b) {
			continue
		}
		w.violatedAt(r.start, "attempts", r.Job, "tick %s was started as attempt %d by %s at %s and by %s at %s",
			stamp(r.Tick), r.Attempt, b.replica.process, b.start, r.replica.process, r.start)
	}
}

// lostBefore reports whether a run of the same tick lost its lock with all data before a run began. Then the tick may
// be run again for two reasons: that run was cut short, and a replica that had not heard of its claim has claimed it
// anew.
func (w *world) lostBefore(r *run) bool {
	return slices.ContainsFunc(w.redis.claims.all, func(c *claim) bool {
		return c.job == r.Job && c.tick.Equal(r.Tick) && c.how == "lost" && c.settled < r.start
	})
}

// excusedDouble reports whether Redis has forgotten the claim of a run, with nobody to confirm it, and the run's
// replica could not tell it again.
func (w *world) excusedDouble(r *run) bool {
	c, known := w.redis.claims.of(r.ID)
	return known && w.plan.Confirms == 0 && (c.how == "forgotten" && !w.toldAgain(c) || c.again && len(c.undone) > 0)
}

// toldAgain reports whether the replica that had a claim under at-most-once which Redis forgot was well for long enough
// afterwards, before any replica asked for the tick once more. A tick that was due already in what came back is not
// asked for.
func (w *world) toldAgain(c claim) bool {
	i := slices.IndexFunc(w.redis.claims.oblivions, func(o oblivion) bool { return c.won >= o.from && c.won <= o.to })
	if c.again || i < 0 {
		return false
	}
	back := w.redis.claims.oblivions[i].to
	for _, f := range w.plan.Faults {
		if f.Kind == failsOver || f.Kind == comesBackOlder {
			back = max(back, w.redis.claims.oblivions[i].to+f.For)
		}
	}
	for _, a := range w.redis.claims.asks {
		if a.job == c.job && a.at > back && (a.table && a.tick.Equal(c.tick) && a.settles() || a.lists(c.tick)) {
			ends, now := c.replica.endsAt(), row(w.tableOf(c.replica, a.at), c.job)
			if now != nil && now.Guarantee == config.AtLeastOnce {
				return false // it may run again by now
			}
			return a.at > back+2500*time.Millisecond && !c.replica.isDead() && (ends == 0 || ends > a.at) &&
				!w.disturbed(c.replica.place, back, a.at, failsOver, comesBackOlder)
		}
	}
	return false
}

// checkKinds: what somebody asked for stays that, whoever runs it again.
func (w *world) checkKinds() {
	byHand := map[ofTick]*claim{}
	for _, c := range w.redis.claims.all {
		k := ofTick{c.job, c.tick.UnixMilli()}
		b := byHand[k]
		switch {
		case b == nil && c.kind == "manual":
			byHand[k] = c
		case b != nil && b.run != c.run:
			w.met["run by hand again"]++
			if c.kind != b.kind {
				w.violatedAt(c.won, "by hand", c.job, "the run that was asked for as %s (%s) is run again as %s",
					b.kind, stamp(c.tick), c.kind)
			}
		}
	}
}

// judgeTriggers: what somebody asked for is run, and again when it was cut short. Newer ticks are not in its way, nor
// is a pause that had begun before.
func (j *judged) judgeTriggers() {
	w := j.world
	j.byMessage = true
	defer func() { j.byMessage = false }()
	for _, t := range w.redis.claims.triggers {
		if t.job != j.Name || t.at < j.first && w.everAsks(t.job) || t.forgotten != 0 && (w.plan.Confirms == 0 || w.redis.claims.promised[t.id] == 0 ||
			w.redis.claims.promised[t.id] > t.forgotten) {
			continue
		}
		w.met["triggered"]++
		from, known, mine := max(t.at, j.first, w.pausedByStep(t)), t.at, j.byHand(t)
		if j.asked, j.keeps = t.tick, 0; t.tick.Nanosecond() == 0 && j.Concurrency > 1 { // a backfill
			j.keeps = 1
		}
		for i := 0; ; i++ {
			won := w.plan.Lasts
			if i < len(mine) {
				won = mine[i].won
			}
			to := won
			if t.forgotten == 0 || t.forgotten < from { // that it is forgotten is no excuse where it is promised
				to = min(won, w.forgotten(known)) // its job may have been away when Redis lost it
			}
			if t.dropped != 0 {
				to = min(to, t.dropped)
			}
			if i == 0 {
				to = min(to, w.leftAfter(j.Name, t.at))
			}
			if x, yes := j.couldHave(from, to, !w.heldSince(j.Name, known)); yes {
				w.violatedAt(x, "2: never lost", j.Name,
					"the run that was asked for at %s could have been fired since %s, and was not by %s", t.at, x, won)
				break
			}
			if i == len(mine) {
				break
			}
			c := mine[i]
			if c.how == "finish" && !w.wasStarted(c.run) && w.refused[c.run] == 0 && w.well(&c) && c.cancelled == 0 {
				w.violatedAt(c.won, "2: never lost", j.Name, "the run that was asked for at %s was claimed by %s, "+
					"which was well, and not started", t.at, c.replica.process)
			}
			if again := (c.how == "reap" || c.how == "requeue") && c.again && !w.replaced(&c) && c.deaths < takeovers &&
				!w.redis.claims.late[c.run]; !again && (c.how != "abandon" || c.cancelled != 0) &&
				(c.how != "handover" || c.member == "" || c.cancelled != 0 || j.plan.Refuses > 0 ||
					len(w.plan.AppsDown) > 0) {
				break
			}
			from, known = max(c.dueAgain(), j.first), c.settled
		}
	}
}

// byHand are the claims of what somebody asked for.
func (j *judged) byHand(t queued) (mine []claim) {
	for _, c := range j.claims {
		if c.tick.Equal(t.tick) && c.won >= t.at &&
			(c.kind == "manual" || c.kind == "backfill" || c.kind == "takeover") {
			mine = append(mine, c)
		}
	}
	return mine
}

// lostAfter is when Redis first lost all its data after it had answered the claim of a run.
func (w *world) lostAfter(r *run) time.Duration {
	if c, ok := w.redis.claims.of(r.ID); ok {
		return w.forgotten(c.won)
	}
	return w.forgotten(r.start)
}

// pausedByStep is until when replicas leave a request by hand alone that met a pause while Redis' clock was set
// wrongly: a minute, or the end of the pause by that clock. 0 = they do not.
func (w *world) pausedByStep(t queued) (until time.Duration) {
	for _, a := range w.redis.claims.asks {
		if a.job == t.job && a.tick.Equal(t.tick) && a.code == "PAUSED" && w.steppedAround(a.at) {
			until = max(until, a.at+time.Minute)
		}
	}
	return until
}
