package sim

import "time"

// checkReturned: what waited when a job left the table is not fired when it is back, except what is to be run again.
func (w *world) checkReturned() {
	for _, left := range w.redis.claims.left {
		back, ok := w.returned(left)
		if !ok || w.redis.claims.forgot(left.at) {
			continue
		}
		w.met["left and returned"]++
		for _, r := range w.runs {
			c, _ := w.redis.claims.of(r.ID)
			if r.Job != left.job || r.start < back || r.Token == 0 || r.Kind == "takeover" || c.sent < left.at {
				continue
			}
			if at, first := w.redis.claims.askedAt(&c); c.isByHand() {
				if first && at < left.at && c.attempt == 1 && !w.redis.claims.forgot(c.won) {
					w.violatedAt(r.start, "table", r.Job, "tick %s, which somebody asked for at %s, "+
						"waited when the job left (by %s), and was fired at %s", stamp(r.Tick), at, left.at, r.start)
				}
				continue
			}
			if j := row(r.replica.sidecar.Table(), r.Job); !w.stepped && !w.plan.Local && j != nil &&
				w.dueOf(j, r.Tick) < left.at {
				w.violatedAt(r.start, "table", r.Job,
					"tick %s of before the job left the table (Redis knew by %s) and came back (at %s) was fired at %s",
					stamp(r.Tick), left.at, back, r.start)
			}
		}
	}
}

// returned is when a job came back that no replica had for a while; false when some had it all the time.
func (w *world) returned(left queued) (time.Duration, bool) {
	back := w.plan.Lasts
	for _, r := range w.replicas {
		if r.began > back {
			continue
		}
		version, has := r.version, false
		at := r.began
		for i := 0; ; i++ {
			has = row(w.tables[version], left.job) != nil
			next, to := w.nextSwap(r, at)
			died := w.plan.Lasts
			if d := r.diedAt(); d != 0 {
				died = d
			}
			to = min(to, died)
			if has && at <= left.at && to > left.at {
				return 0, false // it has it still
			}
			if has && at > left.at {
				back = min(back, at)
				break
			}
			if next < 0 {
				break
			}
			version, at = next, to
		}
	}
	return back, back < w.plan.Lasts
}

// nextSwap is the version that a replica had after a time, and from when on; -1: none.
func (w *world) nextSwap(r *replica, after time.Duration) (int, time.Duration) {
	for _, s := range w.swapped {
		if s.replica == r && s.at > after {
			return s.version, s.at
		}
	}
	return -1, w.plan.Lasts
}
