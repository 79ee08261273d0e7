package sim

import "time"

// checkConfirmed: with waitReplicas no failover forgets what somebody was told: that a tick is won or queued, that a run
// has ended, that what an operator asked for is done.
func (w *world) checkConfirmed() {
	if w.plan.Confirms == 0 || len(w.redis.claims.oblivions) == 0 {
		return
	}
	c := w.redis.claims
	w.met["failovers with waitReplicas"] += len(c.oblivions)
	for _, r := range w.runs {
		if cl, ok := c.of(r.ID); ok && cl.how == "forgotten" {
			w.violatedAt(r.start, "confirmed", r.Job, "tick %s was started on %s with a claim that a failover forgot", stamp(r.Tick),
				r.replica.process)
		}
	}
	for _, cl := range c.all {
		for _, u := range cl.undone {
			if (u.how == "finish" || u.how == "requeue") && u.told != 0 && cl.finished != 0 && cl.finished < cl.settled && cl.how == "reap" &&
				!cl.replica.isDead() &&
				!w.disturbed(-1, cl.finished-time.Second, cl.finished) { // it gave up when its ttl was over, and Redis had hardly come back
				w.violatedAt(u.at, "confirmed", cl.job, "the end of the run of tick %s was told to Redis at %s by %s and answered, "+
					"a failover forgot it, and the run was taken over at %s",
					stamp(cl.tick), u.at, cl.replica.process, cl.settled)
			}
		}
	}
	for id, d := range c.orders {
		if told := c.promised[id]; d.forgotten && told != 0 {
			w.violatedAt(told, "confirmed", d.job, "an operator was told at %s that what was asked for is done, and a failover forgot it", told)
		}
	}
	for _, q := range c.queued {
		if q.forgotten != 0 {
			w.judgeQueuedAway(q)
		}
	}
}

// finished records that a replica has done with a run: Redis knows of its end, as far as the replica can tell.
func (c *claims) finished(r *replica, job string, tick time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cl := range c.all {
		if cl.replica == r && cl.job == job && cl.tick.Equal(tick) && cl.finished == 0 {
			cl.finished = c.world.now()
		}
	}
}

// judgeQueuedAway: a tick that a failover forgot is asked for again by who was told that it is queued.
func (w *world) judgeQueuedAway(q queued) {
	var told *ask
	for _, a := range w.redis.claims.asks {
		switch {
		case a.job != q.job || !a.tick.Equal(q.tick):
		case a.at == q.at && a.read != 0:
			told = a
		case a.at > q.at:
			return
		}
	}
	j := w.during(q.job, q.at, q.forgotten)
	if j == nil || w.dueOf(j, j.Schedule.Next(q.tick)) < q.forgotten+3*time.Second {
		return // it was not worth firing any more when Redis was back
	}
	if told != nil && !told.replica.isDead() && !w.disturbedBy("stop", told.replica.place, q.at) {
		w.violatedAt(q.at, "confirmed", q.job, "%s was told at %s that tick %s is queued, a failover forgot it at %s, and nobody asked again",
			told.replica.process, told.read.Round(time.Millisecond), stamp(q.tick), q.forgotten)
	}
}
