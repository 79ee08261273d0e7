package sim

import (
	"slices"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// success is a tick of a schedule whose run has succeeded, as its replica told Redis.
type success struct {
	tick time.Time
	at   time.Duration
	sure bool // Redis has surely written it down. It may have done so when the run had been taken over before
}

// succeeds notes that Redis was told of the end of a run. A job's list is never changed, so that a claim can keep the
// one of its time. The claims are locked.
func (c *claims) succeeds(cl *claim, sure bool) {
	if service.IsTimer(cl.job) || cl.kind == "manual" {
		return // neither is a tick of a schedule
	}
	c.successes[cl.job] = append(slices.Clip(c.successes[cl.job]), success{cl.tick, c.world.now(), sure})
}

// forgetSuccesses is what a loss of data does to what was written down since a time. The claims are locked.
func (c *claims) forgetSuccesses(since time.Duration) {
	for job, all := range c.successes {
		c.successes[job] = slices.DeleteFunc(slices.Clone(all), func(s success) bool { return s.at >= since })
	}
}

// checkSince: each run of a tick is told the newest tick that had succeeded when the tick was claimed for the first
// time.
func (w *world) checkSince() {
	first := w.firstClaims()
	told := map[*claim]*run{}
	for _, r := range w.runs {
		if service.IsTimer(r.Job) || r.Token == 0 {
			if !r.Since.IsZero() {
				w.violatedAt(r.start, "since", r.Job, "tick %s was told that %s had succeeded, "+
					"and nobody keeps its successes", stamp(r.Tick), stamp(r.Since))
			}
			continue
		}
		c := first[r.ID]
		if c == nil {
			w.met["claimed twice by one run, with a loss of data between"]++
			continue // it may have been told of either claim
		}
		w.judgeSince(r, c)
		w.judgeSame(told[c], r, c)
		told[c] = r
	}
}

// firstClaims are, by run, the first claims of their ticks: that of the run itself, or of one before it. It is nil for
// a run that has two.
func (w *world) firstClaims() map[string]*claim {
	type chain struct {
		ofTick
		kind string
	}
	first, begun, newest := map[string]*claim{}, map[chain]*claim{}, map[chain]*claim{}
	for _, c := range w.redis.claims.all {
		k := chain{ofTick: ofTick{c.job, c.tick.UnixMilli()}}
		switch c.kind {
		case "manual", "backfill": // of one tick there may be several, and each goes on with its own run
			k.kind = c.parent
		}
		if begun[k] == nil || w.beginsAnew(begun[k], newest[k], c) {
			begun[k] = c
		}
		newest[k] = c
		if c.isByHand() {
			begun[chain{k.ofTick, c.run}], newest[chain{k.ofTick, c.run}] = begun[k], c
		}
		if _, twice := first[c.run]; twice {
			first[c.run] = nil
		} else {
			first[c.run] = begun[k]
		}
	}
	return first
}

// endedTick reports whether the tick of a run ended with it: it ran to its end, though late, or was not to be run
// again. Of a claim that Redis has forgotten it has forgotten the end as well.
func (w *world) endedTick(c *claim) bool {
	return c.how != "forgotten" && (c.how == "finish" || c.member == "" || w.redis.claims.late[c.run] || w.replaced(c))
}

// beginsAnew reports whether Redis did not keep any more what had succeeded before the first claim of a tick, when the
// tick was claimed once more. It keeps that until the tick ends. before is the newest claim until then.
func (w *world) beginsAnew(first, before, c *claim) bool {
	switch {
	case first.how == "forgotten" && first.settled <= c.won || w.lostAllBetween(first.won, c.won):
		w.met["told since when anew after a loss of data"]++
	case before.how == "reap" && before.member == "" && before.back: // its replica then said that it had never started
		w.met["told since when anew after it was taken for dead"]++
	case slices.ContainsFunc(w.redis.claims.all, func(o *claim) bool {
		return o.isByHand() && c.isByHand() && w.endedTick(o) && o.job == c.job &&
			o.tick.Equal(c.tick) && o.settled > first.won && o.settled <= c.won
	}): // the tick ended by a backfill while another one was to be run again
		w.met["told since when anew after another run of the tick"]++
	default:
		return false
	}
	return true
}

// judgeSame: the runs of a tick are all told the same.
func (w *world) judgeSame(before, r *run, c *claim) {
	if before == nil {
		return
	}
	w.met["told again since when"]++
	if now, _ := w.redis.claims.of(r.ID); len(now.known) > len(c.known) {
		w.met["told the same after a newer success"]++
	}
	if !before.Since.Equal(r.Since) {
		w.violatedAt(r.start, "since", r.Job, "tick %s, claimed first at %s, was told by %s that %s had succeeded, "+
			"and by %s (%s) that %s had", stamp(r.Tick), c.won, before.replica.process, orNone(before.Since),
			r.replica.process, r.Kind, orNone(r.Since))
	}
}

// judgeSince compares what a run was told with what had succeeded when its tick was claimed for the first time.
func (w *world) judgeSince(r *run, c *claim) {
	if c.isByHand() && w.sharesTick(c) {
		return // what the tick was told before may still be kept for it
	}
	var sure, perhaps time.Time // the newest of them
	for _, s := range c.known {
		if s.sure && s.tick.After(sure) {
			sure = s.tick
		}
		if s.tick.After(perhaps) {
			perhaps = s.tick
		}
	}
	switch {
	case r.Since.IsZero() && sure.IsZero():
		w.met["told of no success before the first one"]++
	case r.Since.IsZero() && !perhaps.Before(r.Tick):
		w.met["told of no success, since a newer tick has succeeded"]++
	case !sure.Before(r.Tick) || r.Since.Before(sure):
		w.violatedAt(r.start, "since", r.Job, "tick %s, claimed first at %s, was told that %s had succeeded, "+
			"and the newest one was %s", stamp(r.Tick), c.won, orNone(r.Since), orNone(sure))
	case !r.Since.Before(r.Tick) ||
		!slices.ContainsFunc(c.known, func(s success) bool { return s.tick.Equal(r.Since) }):
		w.violatedAt(r.start, "since", r.Job, "tick %s, claimed first at %s, was told that %s had succeeded, "+
			"which Redis was not told", stamp(r.Tick), c.won, orNone(r.Since))
	case !w.didSucceed(r.Job, r.Since, c.won):
		w.violatedAt(r.start, "since", r.Job, "tick %s, claimed first at %s, was told that %s had succeeded, "+
			"and no app had answered so", stamp(r.Tick), c.won, orNone(r.Since))
	default:
		w.met["told since when"]++
	}
}

// sharesTick reports whether another run of a tick was claimed before, and had not surely ended.
func (w *world) sharesTick(c *claim) bool {
	return slices.ContainsFunc(w.redis.claims.all, func(o *claim) bool {
		return o != c && o.job == c.job && o.tick.Equal(c.tick) && o.won <= c.won &&
			(o.how != "finish" || o.settled >= c.won)
	})
}

// didSucceed reports whether an app had done the work of a tick by then, under a lock.
func (w *world) didSucceed(job string, tick time.Time, by time.Duration) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		return r.Job == job && r.Tick.Equal(tick) && r.Token != 0 && r.Kind != "manual" &&
			r.status == execute.Succeeded && r.end <= by
	})
}

// orNone is a tick, or that there is none.
func orNone(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return stamp(t)
}
