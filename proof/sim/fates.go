package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// fates are what became of ticks, as all that says so tells it. The adder (checkFates) sees to it that each tick of a
// schedule has exactly one, over all replicas together:
//
//	fired         a replica started a run of it
//	not started   it was claimed, and given up or interrupted before it began
//	overlapped    Redis settled it as an overlap
//	missed        a replica counted it as missed, or dropped it
//	paused        it came due in a pause
//	born          a ledger was made that counts it as settled
//	lost          it waited, or was missed and not counted yet, when Redis lost all data, and nobody else knew of that
//	changed       the job changed or left before anything was said of it
//	open          it waits, or nothing newer was asked for, at the very end
//
// Those from paused on are what is left when nothing else was said.
type fates struct {
	world *world
	said  []fate
}

// fate is something that was said of a tick.
type fate struct {
	job, what string
	tick      time.Time
	at        time.Duration
	by        string
}

func newFates(w *world) *fates { return &fates{world: w} }

func (f *fates) say(job, what string, tick time.Time, by string) {
	f.said = append(f.said, fate{job: job, what: what, tick: tick, at: f.world.now(), by: by})
}

// overlaps reports whether Redis has said that a tick overlapped.
func (f *fates) overlaps(job string, tick time.Time) bool {
	return slices.ContainsFunc(f.said, func(o fate) bool {
		return o.job == job && o.what == overlapped && o.tick.Equal(tick)
	})
}

// settled records what the end of a run settled as overlaps. The claims are locked.
func (f *fates) settled(q *call, code string) {
	if code != "OK" || len(q.reply) <= answerOverlapped {
		return
	}
	for _, tick := range numbers(q.reply[answerOverlapped]) {
		f.say(q.args[argSettledJob], overlapped, millis(strconv.FormatInt(tick, 10)), q.run())
	}
}

// overlappedAtOnce records the answer to a claim that settles an overlap already: of the tick itself, or of the oldest
// of a hundred that stood behind the run. The claims are locked.
func (f *fates) overlappedAtOnce(q *call) {
	if len(q.reply) <= answerOverlap || q.reply[answerOverlap] == "0" {
		return
	}
	tick := millis(q.reply[answerOverlap])
	for _, o := range f.said {
		if o.job == q.ask.job && o.what == overlapped && o.tick.Equal(tick) && !f.world.redis.claims.forgot(o.at) {
			return // and was said to be that
		}
	}
	f.say(q.ask.job, overlapped, tick, "asked for by "+q.replica.process)
	f.oldest(q, tick)
}

// oldest: of the hundred that stand behind a run, one claim may settle more than one, and is told of the newest.
func (f *fates) oldest(q *call, newest time.Time) {
	if q.ask.code != "OVERLAP" || !newest.Before(q.ask.tick) {
		return
	}
	for _, a := range f.world.redis.claims.asks {
		said := func(o fate) bool { return o.job == a.job && o.tick.Equal(a.tick) }
		if a.job == q.ask.job && a.code == "OVERLAP" && a.tick.Before(newest) && !slices.ContainsFunc(f.said, said) &&
			a.behind != nil && a.behind.settled == 0 {
			f.say(a.job, overlapped, a.tick, "asked for by "+q.replica.process)
		}
	}
}

// The fates of ticks.
const (
	fired      = "fired"
	notStarted = "not started"
	overlapped = "overlapped"
	missed     = "missed"
	paused     = "paused"
	born       = "born"
	altered    = "changed"
	open       = "open"
)

// booked records the script by which ticks are counted as missed: it has the gaps in which they lie. The claims are
// locked.
func (c *claims) booked(q *call) {
	if _, again := c.bookings[q.request()]; again || len(q.reply) <= answerBooked || q.reply[answerBooked] != "1" {
		return // not by this request, or asked again
	}
	c.bookings[q.request()] = c.world.now()
	n, before := 0, len(c.fates.said)
	for _, gap := range strings.Fields(q.args[argGaps]) {
		from, to, fate := gapText(gap)
		switch fate {
		case paused, lock.Displaced, missed:
			in := c.fates.gap(q, fate, time.UnixMilli(from), time.UnixMilli(to))
			if fate != paused {
				n += in
			}
		}
	}
	if said, _ := strconv.Atoi(q.args[argBooked]); n != said && c.changed(q.job()) {
		c.fates.said = c.fates.said[:before] // it counted by the ticks that it had before it reloaded
	} else if n != said {
		c.world.violated("fates", q.job(), "%d ticks lie in the gaps %s, and %d are booked", n, q.args[argGaps], said)
	}
}

// changed reports whether a job's ticks are others now than in the first table: who counts may have other ticks than
// its table says by now. The claims are locked.
func (c *claims) changed(job string) bool {
	return slices.ContainsFunc(c.world.tables, func(t *config.Table) bool {
		first, j := row(c.world.tables[0], job), row(t, job)
		return first == nil || j == nil || first.Fingerprint != j.Fingerprint
	})
}

// gap says what became of the ticks within a gap.
func (f *fates) gap(q *call, fate string, from, to time.Time) (n int) {
	j := row(q.replica.sidecar.Table(), q.job())
	if j == nil {
		return 0
	}
	for tick := f.world.next(j, from); tick.Before(to); tick = f.world.next(j, tick) {
		if fate == lock.Displaced {
			fate = missed
		}
		f.say(q.job(), fate, tick, "booked by "+q.replica.process)
		n++
	}
	return n
}

// source is one that says what became of ticks.
type source func(*world) []fate

// sources are all of them.
var sources = []source{runs, scripts}

// scripts are what the scripts did. With waitReplicas nobody believes what a failover then forgot.
func scripts(w *world) []fate {
	return slices.DeleteFunc(slices.Clone(w.redis.claims.fates.said), func(f fate) bool {
		return w.plan.Confirms > 0 && w.redis.claims.forgot(f.at)
	})
}

// ranAgain reports whether the tick of a run that was taken over had another one. One that was told to end has none.
func (w *world) ranAgain(c *claim) bool {
	return c.again && slices.ContainsFunc(w.redis.claims.all, func(o *claim) bool {
		return o.job == c.job && o.tick.Equal(c.tick) && o.won > c.won && o.kind != "manual" && o.kind != "backfill"
	})
}

// claimedSince reports whether the tick of a run was claimed again when that run was over.
func (w *world) claimedSince(c *claim) bool {
	return slices.ContainsFunc(w.redis.claims.all, func(o *claim) bool {
		return o.job == c.job && o.tick.Equal(c.tick) && o.won >= c.settled && o.kind != "manual" &&
			o.kind != "backfill"
	})
}

// runs are the starts, and the claims that never came to one.
func runs(w *world) (all []fate) {
	started, fires := map[string]bool{}, map[ofTick]bool{}
	for _, r := range w.runs {
		if r.Token != 0 && r.Kind != "manual" && r.Kind != "backfill" {
			started[r.ID], fires[ofTick{r.Job, r.Tick.UnixMilli()}] = true, true
			all = append(all, fate{r.Job, fired, r.Tick, r.start, r.replica.process})
		}
	}
	for _, c := range w.redis.claims.all {
		neverRuns := c.how == "handover" && c.member == "" ||
			(c.how == "handover" || c.how == "abandon") && c.cancelled != 0
		if started[c.run] || c.kind == "manual" || c.kind == "backfill" {
			continue
		}
		// Nothing of its tick is due any more, and no replica has claimed it: what was handed on was dropped.
		dropped := func() bool {
			end := w.endOf(c.job)
			return end != nil && !end.open[c.tick.UnixMilli()] && !w.claimedSince(c)
		}
		fired := fires[ofTick{c.job, c.tick.UnixMilli()}]
		switch {
		case c.kind == "takeover" && (fired || !neverRuns && (c.how != "handover" && c.how != "reap" || !dropped())):
			// the tick had its fate by the run before
		case neverRuns, c.kind == "takeover", c.how == "reap" && !c.back && !w.ranAgain(c), c.how == "reap" && c.back && dropped():
			all = append(all, fate{c.job, notStarted, c.tick, c.settled, c.how})
		}
	}
	return all
}
