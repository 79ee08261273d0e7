package sim

import "time"

// checkConfirmed: with waitReplicas no failover forgets what somebody was told: that a tick is won or queued, that a
// run has ended, that what an operator asked for is done.
func (w *world) checkConfirmed() {
	if w.plan.Confirms == 0 || len(w.redis.claims.oblivions) == 0 {
		return
	}
	c := w.redis.claims
	w.met["failovers with waitReplicas"] += len(c.oblivions)
	for _, r := range w.runs {
		if cl, ok := c.of(r.ID); ok && cl.how == "forgotten" {
			w.violatedAt(r.start, "confirmed", r.Job, "tick %s was started on %s with a claim that a failover forgot",
				stamp(r.Tick), r.replica.process)
		}
	}
	for _, cl := range c.all {
		for _, u := range cl.undone {
			if (u.how == "finish" || u.how == "requeue") && u.told != 0 && cl.how == "reap" && w.believed(cl) {
				w.violatedAt(u.at, "confirmed", cl.job, "the end of the run of tick %s was told to Redis at %s "+
					"by %s and answered, a failover forgot it, and the run was taken over at %s",
					stamp(cl.tick), u.at, cl.replica.process, cl.settled)
			}
		}
	}
	for id, d := range c.orders {
		if told := c.promised[id]; d.forgotten && told != 0 {
			w.violatedAt(told, "confirmed", d.job,
				"an operator was told at %s that what was asked for is done, and a failover forgot it", told)
		}
	}
	for _, q := range c.queued {
		if q.forgotten != 0 {
			w.judgeQueuedAway(q)
		}
	}
}

// believed reports whether a replica took the end of a run for recorded. Then it was done with the run before another
// replica took the run over, and before it gives up, which it does at the end of the ttl or of its own life.
func (w *world) believed(c *claim) bool {
	end := c.won
	for _, r := range w.runs {
		if r.ID == c.run {
			end = max(end, r.end)
		}
	}
	last := end + w.plan.ttl(c.job)
	if ends := c.replica.endsAt(); ends != 0 {
		last = min(last, ends+w.plan.Grace)
	}
	return c.finished != 0 && c.finished < min(c.settled, last) && !c.replica.isDead()
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
	if j == nil {
		return
	}
	worth := w.dueOf(j, w.next(j, q.tick))
	if j.StartingDeadline > 0 {
		worth = min(worth, q.tick.Add(j.StartingDeadline).Sub(w.began))
	}
	if worth < q.forgotten+3*time.Second {
		return // it was not worth firing any more when Redis was back
	}
	if told != nil && !told.replica.isDead() && !w.disturbedBy("stop", told.replica.place, q.at) {
		w.violatedAt(q.at, "confirmed", q.job,
			"%s was told at %s that tick %s is queued, a failover forgot it at %s, and nobody asked again",
			told.replica.process, told.read.Round(time.Millisecond), stamp(q.tick), q.forgotten)
	}
}
