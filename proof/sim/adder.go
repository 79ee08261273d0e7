package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
)

// ofTick is a tick of a job.
type ofTick struct {
	job  string
	tick int64
}

// checkFates adds up what was said of each tick.
func (w *world) checkFates() {
	if w.plan.Local {
		return
	}
	all := map[ofTick][]fate{}
	for _, s := range sources {
		for _, f := range s(w) {
			w.judgeOverlapped(f)
			k := ofTick{f.job, f.tick.UnixMilli()}
			if !slices.ContainsFunc(all[k], func(o fate) bool {
				return o.what == f.what && (f.what == fired || f.what == overlapped && o.by == f.by)
			}) {
				// a run starts in more than one attempt, and is settled again if a failover forgot that
				all[k] = append(all[k], f)
			}
		}
	}
	for _, name := range w.plan.names() {
		end := w.endOf(name)
		if end == nil {
			continue // no ledger is left
		}
		k := w.keptOf(name)
		for _, l := range w.lives(name) {
			// Redis never heard of that schedule
			if l.Guarantee == config.EveryReplica || l.Suspend || w.away(-1, l.from, l.to) {
				continue
			}
			w.addUp(&l, all, end, k)
		}
	}
}

// addUp looks at each tick of a life, from the newest to the oldest.
func (w *world) addUp(l *life, all map[ofTick][]fate, end *ending, k *kept) {
	var ticks []time.Time
	for tick := w.next(l.Job, w.began); ; tick = w.next(l.Job, tick) {
		at, ok := w.dueAt(tick.Add(l.Jitter))
		if ok && at > l.to-time.Second || tick.Sub(w.began) > l.to+time.Minute {
			break
		}
		if ok && at-l.Jitter > max(l.from, 3*time.Second) && !w.steppedAround(at) {
			ticks = append(ticks, tick)
		}
	}
	slices.Reverse(ticks)
	atEnd := l.to < w.plan.Lasts // nothing was said of any newer one
	for _, tick := range ticks {
		said := all[ofTick{l.Name, tick.UnixMilli()}]
		switch {
		case len(said) == 1 && said[0].what == missed && l.Claim == nil && w.claimedBeforeItsApp(l, tick, said[0].at):
			w.violatedAt(said[0].at, "fates", l.Name,
				"tick %s of a new job counts as missed, and came due before its app was ready", stamp(tick))
		case len(said) == 1:
			w.met["fate: "+said[0].what]++
			w.judgeKept(l, tick, said[0], k, end)
			atEnd = false
		case w.excusedFate(l.Name, tick, said):
			w.met["fates that a failover forgot"]++
		case len(said) == 2 && w.miscounted(l, said):
			w.met["fates that were counted by who knew less than was lost"]++
			atEnd = false
		case len(said) > 1:
			w.violatedAt(said[0].at, "fates", l.Name, "tick %s has more than one fate:%s", stamp(tick), list(said))
			atEnd = false
		case end.counted(tick.UnixMilli()):
			w.met["fate: "+missed+", and to be counted yet"]++
		case end.open[tick.UnixMilli()] || tick.UnixMilli() > end.tick:
			w.met["fate: "+open]++
		case w.pausedAt(l.Job, tick), w.heldAhead(l.Name, tick):
			w.met["fate: "+paused]++
		case w.bornAfter(l.Name, tick), w.beforeItsApp(l, tick) != nil:
			w.met["fate: "+born]++
		case w.changedAfter(l, tick):
			w.met["fate: "+altered]++
		case w.lostWhileItWaited(l.Name, tick):
			w.met["fate: lost with all data while it waited"]++
		case w.lostUncounted(l.Name, tick):
			w.met["fate: lost with all data before it was counted"]++
		case atEnd && w.couldSayNothing(l, tick):
			w.met["fate: "+altered]++
		default:
			at, _ := w.dueAt(tick)
			w.violatedAt(at, "fates", l.Name, "tick %s has no fate: it was neither fired nor counted", stamp(tick))
		}
	}
}

// couldSayNothing reports whether a tick, and all newer ones of a life, came due too late in that life for a replica to
// ask for them.
func (w *world) couldSayNothing(l *life, tick time.Time) bool {
	at, _ := w.dueAt(tick.Add(l.Jitter))
	return at > l.to-waited || !w.healthyFor(l.Name, at, at+asked) || w.disturbed(-1, at, at+asked)
}

// judgeOverlapped: a tick overlaps with a run that had begun when it came due, and with no other.
func (w *world) judgeOverlapped(f fate) {
	c, known := w.redis.claims.of(f.by)
	if f.what != overlapped || !known || w.stepped {
		return
	}
	j := w.during(f.job, f.tick.Sub(w.began)-time.Second, f.at)
	if j == nil {
		return
	}
	w.met["overlapped"]++
	due := w.dueOf(j, f.tick)
	if c.won > due+slack+2*w.plan.Far && !slices.ContainsFunc(w.redis.claims.all, func(o *claim) bool {
		return o.job == f.job && o.won <= due && (o.settled == 0 || o.settled >= due-slack)
	}) {
		w.violatedAt(f.at, "3: an overlap", f.job,
			"tick %s came due at %s, and was settled as an overlap of the run of tick %s, which was claimed at %s",
			stamp(f.tick), due, stamp(c.tick), c.won)
	}
}

// miscounted reports whether a tick was claimed, up to a second ahead, overlapped or counted before Redis lost all its
// data, and was counted as missed after it because the first replica that told Redis what was missing had not heard of
// it: a limit, whoever counts it then. Under at-least-once such a replica fires it.
func (w *world) miscounted(l *life, said []fate) bool {
	before, after := said[0], said[1]
	if after.at < before.at {
		before, after = after, before
	}
	again := after.what == missed || l.Guarantee == config.AtLeastOnce && after.what == fired
	return again && w.lostAllBetween(before.at-time.Second, after.at)
}

func list(said []fate) string {
	var b strings.Builder
	for _, f := range said {
		fmt.Fprintf(&b, " %s at %s (%s);", f.what, f.at, f.by)
	}
	return b.String()
}

// ending is what Redis keeps of a job at the very end.
type ending struct {
	tick int64
	open map[int64]bool // they wait for something
	gaps [][2]int64
}

// counted reports whether a tick lies in a gap that is still to be counted.
func (e *ending) counted(tick int64) bool {
	return slices.ContainsFunc(e.gaps, func(g [2]int64) bool { return g[0] < tick && tick < g[1] })
}

func (w *world) endOf(job string) *ending {
	if !w.redis.mini.Exists(prefix + "job:" + job) {
		return nil
	}
	l := w.redis.ledger(job)
	e := &ending{tick: l.tick, open: map[int64]bool{}, gaps: w.redis.unbooked(job)}
	for _, tick := range l.behind {
		e.open[tick] = true
	}
	members, _ := w.redis.mini.ZMembers(prefix + "due")
	for _, m := range members {
		if words := strings.Fields(m); len(words) > 1 && words[1] == job {
			e.open[numbers(words[0])[0]] = true
		}
	}
	for _, c := range w.redis.claims.all {
		if c.job == job && c.settled == 0 {
			e.open[c.tick.UnixMilli()] = true
		}
	}
	return e
}

// pausedAt reports whether a tick, or the instant at which it came due, lies in a pause.
func (w *world) pausedAt(j *config.Job, tick time.Time) bool {
	at, due := tick.Sub(w.began), w.dueOf(j, tick)
	return slices.ContainsFunc(w.redis.claims.held, func(h hold) bool {
		to := w.liftedTo(h)
		if ends := h.ends.Sub(w.began); !h.ends.IsZero() && (h.to == 0 || ends < to) {
			to = ends
		}
		from := (h.from + w.offsetAt(h.from)).Truncate(time.Millisecond) // as Redis writes it down
		if slices.ContainsFunc(w.phases(), func(p phase) bool {
			return p.far() && p.off > 0 && p.from <= h.from && h.from < p.to
		}) {
			from = h.from - skews // by the replicas' own clocks
		}
		return h.job == j.Name && from <= due && (to == 0 || at <= to)
	})
}

// bornAfter reports whether a ledger was made that counts a tick as settled, and of which nobody could know: the first
// one, or one after a loss that no replica has outlived.
func (w *world) bornAfter(job string, tick time.Time) bool {
	return slices.ContainsFunc(w.redis.claims.births, func(b birth) bool {
		return b.job == job && !tick.After(b.tick) && w.rightlyBorn(b) &&
			(w.stepped || !slices.ContainsFunc(w.redis.claims.loss, func(lost time.Duration) bool {
				return lost <= b.at && w.knewIt(job, lost, b.at)
			}))
	})
}

// claimedBeforeItsApp reports whether the first claim of a new job counted a tick that came due while its replica knew
// that the app was not ready.
func (w *world) claimedBeforeItsApp(l *life, tick time.Time, at time.Duration) bool {
	const asked = 300 * time.Millisecond // how often the app is asked, and how long an answer takes
	due := w.dueOf(l.Job, tick)
	first := w.beforeItsApp(l, tick)
	if first != nil && slices.ContainsFunc(w.redis.claims.held, func(h hold) bool {
		return h.job == l.Name && h.from >= due && h.to != 0 && h.to <= first.at
	}) {
		w.met["missed by a new job that was paused before its app was ready"]++ // a limit: who resumes it does not know
		return false
	}
	return first != nil && at >= first.at && downAll(w.plan.Unready, first.replica.place, due, due+asked) &&
		!w.disturbedBy("stall", first.replica.place, due) && !w.disturbedBy("stall", first.replica.place, due+asked)
}

// beforeItsApp is the first claim of a new job, or of one that has come back, that won or was refused, if a tick of the
// job came due before the replica that made the claim, and that was there all the time, had seen its app ready: the job
// has not missed it. Else it is nil.
func (w *world) beforeItsApp(l *life, tick time.Time) (first *ask) {
	due := w.dueOf(l.Job, tick)
	births := slices.Clone(w.redis.claims.births)
	if l.back {
		births = append(births, birth{l.Name, l.from, w.began.Add(l.from)})
	}
	if slices.ContainsFunc(births, func(b birth) bool {
		first = nil
		for _, a := range w.redis.claims.asks {
			if a.job == l.Name && a.table && (a.code == "WON" || a.code == "QUEUED" || a.code == "OVERLAP") && a.at >= b.at &&
				(first == nil || a.at < first.at) {
				first = a
			}
		}
		return first != nil && b.job == l.Name && tick.After(b.tick) && tick.Before(first.tick) &&
			first.replica.began <= w.dueOf(l.Job, w.next(l.Job, b.tick)) &&
			due < w.readySince(first.replica) &&
			(isDown(w.plan.Unready, first.replica.place, due, due) || w.disturbedBy("stall", first.replica.place, due))
	}) {
		return first
	}
	return nil
}

// readySince is when the app of a replica had become ready as the replica first saw that it was. A replica that stood
// still may have missed that it was ready before.
func (w *world) readySince(r *replica) (since time.Duration) {
	i := slices.IndexFunc(w.trace, func(n note) bool { return n.who == r.process && n.what == "the app is ready" })
	for _, d := range w.plan.Unready {
		if d.Place == r.place && i >= 0 && d.To <= w.trace[i].at {
			since = max(since, d.To)
		}
	}
	return since
}

// rightlyBorn reports whether a ledger was made where there was none: it is the first of its job, or Redis had lost the
// one before.
func (w *world) rightlyBorn(b birth) bool {
	last := time.Duration(-1)
	for _, o := range w.redis.claims.births {
		if o.job == b.job && o.at < b.at {
			last = max(last, o.at)
		}
	}
	return last < 0 || w.lostAllBetween(last, b.at)
}

// lostWhileItWaited reports whether a tick had been claimed and waited, handed on or in a queue, or was an overlap yet
// to be counted, when Redis lost all data: nobody else knew of that.
func (w *world) lostWhileItWaited(job string, tick time.Time) bool {
	return slices.ContainsFunc(w.redis.claims.asks, func(a *ask) bool {
		if c, won := w.redis.claims.of(a.run); a.code == "WON" && won &&
			(c.how == "finish" || c.how == "reap" && !c.back) {
			return false // it had ended
		}
		return a.job == job && (a.settles() && a.tick.Equal(tick) || a.lists(tick)) && w.forgotten(a.at) < w.plan.Lasts
	})
}

// lostUncounted reports whether a tick was missed, and only Redis knew that, when it lost all data: a limit.
func (w *world) lostUncounted(job string, tick time.Time) bool {
	return slices.ContainsFunc(w.redis.claims.uncounted, func(m missing) bool {
		return m.job == job && m.from < tick.UnixMilli() && tick.UnixMilli() < m.to
	})
}

// settles reports whether it settled its tick or made it wait.
func (a *ask) settles() bool { return a.code == "WON" || a.code == "QUEUED" || a.code == "OVERLAP" }

// lists reports whether it made a tick wait which it did not ask for itself.
func (a *ask) lists(tick time.Time) bool {
	return a.code == "QUEUED" && slices.ContainsFunc(a.list, func(m string) bool {
		return numbers(m)[0] == tick.UnixMilli()
	})
}

// changedAfter reports whether Redis, after a tick, learned of a new schedule of the job, or learned late of this one,
// because it was away when the table changed, or no replica ran then. In all cases the job has missed nothing before.
// So it has if Redis learned from a replica that began with this schedule, and could not tell that its newest ticks are
// those of the one before. After a loss of all data, replicas with different tables forget in this way what the first
// of them has said is missing.
func (w *world) changedAfter(l *life, tick time.Time) bool {
	if w.redis.claims.changed(l.Name) && slices.ContainsFunc(w.redis.claims.begun, func(b introduced) bool {
		return b.job == l.Name && b.at >= l.from && b.at <= l.to &&
			(w.began.Add(b.came).After(tick) && w.redis.claims.toldBefore(b) == nil ||
				w.began.Add(b.came+time.Second).After(tick) && w.lostAllBetween(b.at-recovery, b.came))
	}) {
		return true
	}
	return slices.ContainsFunc(w.redis.claims.sinces, func(b birth) bool {
		told := l.to < w.plan.Lasts && b.at >= l.to ||
			l.from > 0 && (w.away(-1, l.from, b.at-seconds) || !w.anyReached(l.from, b.at-seconds))
		return b.job == l.Name && b.tick.After(tick) && told && !w.bornWith(b)
	})
}

// anyReached reports whether a replica ran for a part of a time, and its place was not kept from Redis for all of that
// part.
func (w *world) anyReached(from, to time.Duration) bool {
	return slices.ContainsFunc(w.replicas, func(r *replica) bool {
		died, ends := r.diedAt(), r.endsAt()
		return r.began <= to && (died == 0 || died >= from) && (ends == 0 || ends >= from) &&
			!w.away(r.place, max(from, r.began), to)
	})
}

// bornWith reports whether a ledger was made at that moment.
func (w *world) bornWith(since birth) bool {
	return slices.ContainsFunc(w.redis.claims.births, func(b birth) bool {
		return b.job == since.job && b.at == since.at
	})
}

// steppedAround reports whether Redis' clock was set at about a time: ticks may come twice then, or not at all.
func (w *world) steppedAround(at time.Duration) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool {
		return s.why == redisSteps && s.from-2*skews <= at && at <= s.to+2*skews
	})
}

// excusedFate: what a failover has forgotten of a tick may be said again, or not; so may that it was missed, which a
// newer claim had said. With waitReplicas it forgets nothing that anybody was told.
func (w *world) excusedFate(job string, tick time.Time, said []fate) bool {
	c := w.redis.claims
	if w.plan.Confirms > 0 || len(c.oblivions) == 0 {
		return false
	}
	return slices.ContainsFunc(said, func(f fate) bool { return c.forgot(f.at) }) ||
		slices.ContainsFunc(c.asks, func(a *ask) bool {
			counts := a.settles() && (a.tick.Equal(tick) || len(said) == 0 && a.tick.After(tick))
			return a.job == job && (counts || a.lists(tick)) && c.forgot(a.at)
		})
}
