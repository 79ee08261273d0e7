package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// judgeOwed: at-least-once outlives a loss of all data. The newest tick that came due while nobody could fire it is
// fired when Redis is back, and a run that lost its lock by that is run again.
func (j *judged) judgeOwed() {
	w := j.world
	if j.Guarantee != config.AtLeastOnce {
		return
	}
	for _, lost := range w.redis.claims.loss {
		if lost < j.first || lost > j.last {
			continue
		}
		j.judgeLostRuns(lost)
		i := slices.IndexFunc(w.redis.claims.births, func(b birth) bool { return b.job == j.Name && b.at >= lost })
		if i < 0 || j.Missed == config.Skip || w.stepped {
			continue
		}
		b := w.redis.claims.births[i]
		tick := w.last(j.Job, w.began.Add(b.at-slack))
		for w.dueOf(j.Job, tick) > b.at-slack {
			tick = w.last(j.Job, tick.Add(-time.Nanosecond))
		}
		due := w.dueOf(j.Job, tick)
		if due <= j.first || !w.knewIt(j.Name, lost, b.at) || w.paused(j.Name, due-time.Second, due+time.Second) ||
			j.livedOver(due) {
			continue
		}
		won := w.plan.Lasts
		known := false
		for _, c := range j.claims {
			if !c.tick.Before(tick) && c.won < b.at {
				known = true // it was claimed before the loss
			}
			if c.tick.Equal(tick) {
				won = min(won, c.won)
			}
		}
		// the connections of others come back
		by := b.at + j.patience() + 2*time.Second
		// Redis is away once more
		again := slices.ContainsFunc(w.spans, func(s span) bool {
			return s.place == -1 && s.from > b.at && s.from <= by
		})
		if known || again || w.paused(j.Name, b.at, by) {
			continue
		}
		if q := j.queuedTick(tick); q != nil && q.at < lost {
			w.met["lost with all data while it waited"]++
			continue
		}
		w.met["owed after a loss"]++
		if by < min(j.expires(tick, due), won, j.last) && j.idle(b.at, by) &&
			!w.disturbed(-1, b.at, by, "redis refuses", forgets, flushed) &&
			w.healthy(b.at, by, "redis refuses", forgets, flushed) {
			w.violatedAt(b.at, "2: at least once", j.Name, "tick %s came due at %s, all data was lost at %s, "+
				"the ledger was made anew at %s, and the tick was not fired by %s", stamp(tick), due, lost, b.at, by)
		}
	}
}

// judgeLostRuns: a run that lost its lock by a loss of all data is run again.
func (j *judged) judgeLostRuns(lost time.Duration) {
	w := j.world
	for _, c := range j.claims {
		if c.how != "lost" || c.settled != lost || !c.again || w.replaced(&c) {
			continue
		}
		for _, r := range w.runs {
			if r.ID != c.run || r.status != execute.Canceled || r.end == 0 || r.end < lost ||
				!errors.Is(r.cause, lock.ErrLost) ||
				w.away(r.replica.place, r.end, r.end+j.Lock.TTL) || w.silent(r.end, r.end+j.Lock.TTL) {
				continue
			}
			w.met["lost its lock by a loss"]++
			won := w.plan.Lasts
			for _, n := range j.claims {
				if n.tick.Equal(c.tick) && n.won > lost {
					won = min(won, n.won)
				}
			}
			if x, yes := j.missedIts(r.end, min(won, w.forgotten(r.end))); yes {
				w.violatedAt(x, "2: at least once", j.Name,
					"the run of tick %s lost its lock at %s since all data was lost at %s, and was not run again by %s",
					stamp(c.tick), r.end, lost, x+j.patience())
			}
		}
	}
}

// livedOver reports whether a run of the job was in the way of a tick that came due then.
func (j *judged) livedOver(due time.Duration) bool {
	return slices.ContainsFunc(j.claims, func(c claim) bool {
		return c.won <= due && (c.settled == 0 || c.settled >= due)
	})
}

// knewIt reports whether some replica was there before and after that had been told of the job's ledger: from all
// others, nobody can learn what was fired before.
func (w *world) knewIt(job string, from, to time.Duration) bool {
	return slices.ContainsFunc(w.replicas, func(r *replica) bool {
		died := r.diedAt()
		told := slices.ContainsFunc(w.redis.claims.told, func(i introduced) bool {
			return i.replica == r && i.job == job && i.at < from
		})
		return told && r.began < from-recovery && (died == 0 || died > to) && (r.endsAt() == 0 || r.endsAt() > to)
	})
}

// silent reports whether Redis answered nobody, or refused every write, from one time to another. Its last second does
// not count: a replica may wait as long before it connects again.
func (w *world) silent(from, to time.Duration) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool {
		return slices.Contains([]string{"redis void", "redis refuses", "redis full"}, s.why) && s.from <= from &&
			to-time.Second <= s.to-recovery
	})
}

// away reports whether faults kept a place from Redis all of a time. One that follows before connections are made again
// goes on with the one before.
func (w *world) away(place int, from, to time.Duration) bool {
	for at := from; ; {
		end := at
		for _, s := range w.spans {
			if s.place == place && s.from <= at {
				end = max(end, s.to)
			}
		}
		if to <= end-recovery {
			return true
		}
		if end == at {
			return false
		}
		at = end
	}
}
