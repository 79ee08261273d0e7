package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// waitsByHand is the class of requests by hand that wait.
const waitsByHand = "waits by hand"

// waits: many runs that were asked for by hand wait beside the schedule, as the job is paused, resumed and cancelled,
// and leaves the table.
func (p *Plan) waits(r *rand.Rand) {
	p.willing(r)
	p.Faults = nil
	j := &p.Jobs[0]
	j.Period, j.Policy = time.Duration(pick(r, 5, 7, 10))*time.Second,
		pick(r, "Forbid", "Forbid", "Forbid", "Queue", "Allow")
	j.Guarantee, j.Missed = pick(r, "at-most-once", "at-least-once"), pick(r, "latest", "latest", "all")
	j.Jitter, j.Suspend, j.TTL, j.Deadline, j.Timeout = 0, false, 3*time.Second, 0, 20*time.Second
	j.Takes, j.Ends = [2]time.Duration{j.Period / 4, j.Period * 2 / 3}, pick(r, "", "", "fails", failsAlone, failsAlone)
	at := 12*time.Second + upTo(r, 4*time.Second)
	p.Orders = append(p.Orders, Order{At: at, Kind: "backfill", Job: j.Name, N: 5 + r.IntN(8)})
	for at < 34*time.Second {
		at += time.Second + upTo(r, 6*time.Second)
		o := Order{At: at, Kind: pick(r, "trigger", "trigger", "pause", "pause until", "backfill", "rerun",
			"rerun trigger", "cancel", "cancel waiting"), Job: j.Name, N: 3}
		if strings.HasPrefix(o.Kind, "pause") {
			o.For = 3*time.Second + upTo(r, 6*time.Second)
		}
		p.Orders = append(p.Orders, o)
	}
	switch r.IntN(4) {
	case 0:
		at := 16*time.Second + upTo(r, 8*time.Second)
		p.Reloads = append(p.Reloads, Reload{At: at, Kind: "leaves", Job: j.Name},
			Reload{At: at + 3*time.Second + upTo(r, 6*time.Second), Kind: "returns", Job: j.Name})
	case 1:
		p.Faults = []Fault{{At: 18*time.Second + upTo(r, 8*time.Second), Kind: pick(r, "crash", "stop"), Replica: -1,
			For: 4 * time.Second}}
	}
	p.Lasts = 55 * time.Second
}

// cancelWaiting drops what waits of a job by hand.
func (o *operator) cancelWaiting(job string) {
	id, until := uuid.NewString(), time.Now().Add(o.world.offsetAt(o.world.now())+8*time.Second)
	o.do(func(ctx context.Context, s *service.Store) error {
		_, err := s.CancelWaiting(ctx, job, id, until)
		return err
	})
}

// rerunTrigger has the newest run of a trigger run again.
func (o *operator) rerunTrigger(job string, now time.Duration) {
	c, j := o.world.redis.claims, o.world.row(job, now)
	if j == nil {
		return
	}
	c.mu.Lock()
	given := service.Moment{}
	for _, t := range c.triggers {
		if t.job == job && t.tick.Nanosecond() != 0 {
			given.Time = t.tick
		}
	}
	c.mu.Unlock()
	if given.IsZero() {
		return
	}
	id := uuid.NewString()
	o.do(func(ctx context.Context, s *service.Store) error {
		d, err := (&service.Operator{Store: s, Limit: 8 * time.Second}).Rerun(ctx, *j, given, true, id)
		if err == nil {
			o.promised(id, job, d.Tick)
		}
		return err
	})
}

// drops records what an operator's script has dropped. The claims are locked.
func (c *claims) drops(q *call) {
	c.world.note(nil, "drops", q.args[argCancelJob], "", "", q.reply[answerCancelled])
	for _, ms := range strings.Fields(q.reply[answerCancelled]) {
		c.world.met["dropped as it waited by hand"]++
		c.drop = append(c.drop, queued{job: q.args[argCancelJob], tick: millis(ms), at: c.world.now()})
		for i := range c.triggers {
			if t := &c.triggers[i]; t.job == q.args[argCancelJob] && t.tick.Equal(millis(ms)) && t.dropped == 0 {
				t.dropped = c.world.now()
			}
		}
	}
	members, _ := c.world.redis.mini.ZMembers(prefix + "due")
	for _, m := range members {
		if words := strings.Fields(m); words[memberJob] == q.args[argCancelJob] &&
			slices.Contains([]string{"manual", "backfill"}, kindIn(words[memberKind])) {
			c.world.violated("by hand", words[memberJob], "what waits was dropped, and %q waits still", m)
		}
	}
}

// droppedAgain reports whether a run by hand was to be run again, and an operator has dropped that.
func (w *world) droppedAgain(c *claim) bool {
	return c.isByHand() && slices.ContainsFunc(w.redis.claims.drop, func(d queued) bool {
		return d.job == c.job && d.tick.Equal(c.tick) && d.at >= c.settled
	})
}

// checkDropped: what was dropped is not run any more, and the history says so.
func (w *world) checkDropped() {
	for _, t := range w.redis.claims.triggers {
		if t.dropped == 0 || w.leftAfter(t.job, t.at) < t.dropped || w.forgets() || len(w.redis.claims.loss) > 0 {
			continue
		}
		runs := 0
		for _, c := range w.redis.claims.all {
			if c.job != t.job || c.parent != t.id || !c.tick.Equal(t.tick) {
				continue
			}
			if runs++; c.won > t.dropped {
				w.violatedAt(c.won, "by hand", t.job, "tick %s, which waited by hand, was dropped at %s, and run at %s",
					stamp(t.tick), t.dropped, c.won)
			}
		}
		if said := w.recorded(t.id); runs == 0 && said != "cancelled" {
			w.violatedAt(t.dropped, "by hand", t.job, "tick %s, which waited by hand, was dropped at %s, "+
				"and the history has %q", stamp(t.tick), t.dropped, said)
		}
	}
}

// isByHand tells of a run whether somebody asked for it.
func (c *claim) isByHand() bool { return c.kind == "manual" || c.kind == "backfill" }

// askedAt is when a run was asked for that is the first of its request; not ok for any other.
func (c *claims) askedAt(cl *claim) (at time.Duration, ok bool) {
	for _, t := range c.triggers { // the last one: it was asked for again if a failover forgot it
		if cl.isByHand() && t.id == cl.parent && t.job == cl.job && t.tick.Equal(cl.tick) && t.at <= cl.won {
			at, ok = t.at, true
		}
	}
	return at, ok
}

// checkScheduleFirst asks Redis itself, as it has answered the claim of a run by hand: no tick of the schedule is due
// that any replica could have fired before.
func (s *store) checkScheduleFirst(a *ask) {
	if a.code != "WON" || a.kind != "backfill" || s.world.stepped {
		return
	}
	now := s.world.began.Add(s.world.now()).UnixMilli()
	due, _ := s.mini.SortedSet(prefix + "due")
	for member, at := range due {
		words := strings.Fields(member)
		if len(words) <= memberKind || words[memberJob] != a.job {
			continue
		}
		kind, waited := kindIn(words[memberKind]), time.Duration(now-int64(at))*time.Millisecond
		if kind == "catchup" && len(words) <= refusals && waited > s.world.inLine()+slack {
			s.hasty = append(s.hasty, hasty{a, millis(words[0]), waited})
		}
	}
}

// hasty is a run by hand that began although a tick of the schedule had been due for some time.
type hasty struct {
	*ask
	before time.Time
	waited time.Duration
}

// checkHasty: nothing but a pause lets a backfill go before a tick of the schedule that is worth firing. For a replica
// whose clock is far behind, the tick has not come yet.
func (w *world) checkHasty() {
	for _, h := range w.redis.hasty {
		j := w.during(h.job, h.at, h.at) // the table may have changed since the tick came due
		worth := j != nil && (j.Missed == config.All || j.ConcurrencyPolicy == config.Queue ||
			w.dueOf(j, w.next(j, h.before)) > h.at)
		if worth && h.replica.place != w.plan.Behind-1 && !w.paused(h.job, h.at-h.waited, h.at) &&
			!w.disturbed(-1, h.at-h.waited-recovery, h.at) {
			w.violatedAt(h.at, "by hand", h.job,
				"the run of tick %s that was asked for began before tick %s of the schedule, which was due for %s",
				stamp(h.tick), stamp(h.before), h.waited)
		}
	}
}

// besideHand is called with the settlement of a run that somebody asked for: it takes no tick away from the schedule,
// so the newest one that came due beside it is no overlap. The claims are locked.
func (c *claims) besideHand(q *call, cl *claim) {
	if cl == nil || !cl.isByHand() || len(q.reply) <= answerOverlapped {
		return
	}
	newest, free := int64(0), numbers(q.reply[answerFreed])[0]
	for _, tick := range numbers(q.reply[answerOverlapped]) {
		newest = max(newest, tick)
	}
	if newest == 0 || slices.ContainsFunc(c.all, func(o *claim) bool {
		return o != cl && o.job == cl.job && o.settled == 0
	}) {
		return // another run may have been in its way
	}
	c.world.met["ticks beside runs by hand"]++
	if newest > free {
		c.world.violated("by hand", cl.job, "tick %s came due beside the run of tick %s, which was asked for, "+
			"and was skipped", stamp(millis(strconv.FormatInt(newest, 10))), stamp(cl.tick))
	}
}

// standing is what the ledger said of how a job stands, when a run last ended.
type standing struct {
	lastSuccess int64
	at          time.Duration
}

// judgeStanding: what somebody asked for changes how the job stands only as far as its tick tells. The store is not
// locked, the claims are.
func (c *claims) judgeStanding(q *call, cl *claim) {
	if cl == nil || cl.job == "" {
		return
	}
	key := prefix + "job:" + cl.job
	read := func(field string) int64 {
		n, _ := strconv.ParseInt(c.world.redis.mini.HGet(key, field), 10, 64)
		return n
	}
	for _, field := range []string{"ended", "succeeded"} {
		if n := read(field); n%1000 != 0 && !c.world.everLease(cl.job) {
			c.world.violated("by hand", cl.job, "the ledger has %s = %d, which is no tick of the schedule", field, n)
		}
	}
	before, last := c.stands[cl.job], read("lastSuccess")
	c.stands[cl.job] = standing{last, c.world.now()}
	if cl.isByHand() && last > max(before.lastSuccess, cl.tick.UnixMilli()) && !c.forgot(before.at) {
		c.world.violated("by hand", cl.job, "the run of tick %s that was asked for made the last success %s, after %s",
			stamp(cl.tick), stamp(time.UnixMilli(last)), stamp(time.UnixMilli(before.lastSuccess)))
	}
}

// checkMended: a rerun without a tick is not about one that a rerun has mended.
func (w *world) checkMended() {
	c := w.redis.claims
	if len(c.oblivions) > 0 || len(c.loss) > 0 {
		return
	}
	for _, a := range c.reruns {
		w.met["reruns of the newest failure"]++
		failed, mended := time.Duration(0), time.Duration(0)
		for _, cl := range c.all {
			if cl.job != a.job || !cl.tick.Equal(a.tick) || cl.how != "finish" || cl.settled == 0 ||
				cl.settled >= a.at {
				continue
			}
			if cl.outcome == "succeeded" {
				mended = max(mended, cl.settled)
			} else {
				failed = max(failed, cl.settled)
			}
		}
		if mended > failed {
			w.violatedAt(a.at, "by hand", a.job, "the rerun of the newest that failed is about tick %s, "+
				"which has succeeded at %s", stamp(a.tick), mended)
		}
	}
}

// leftAfter is when a job was first away from the table after a time, as Redis was told: what waits by hand is dropped
// then.
func (w *world) leftAfter(job string, from time.Duration) time.Duration {
	for _, l := range w.redis.claims.left {
		back := w.plan.Lasts
		for _, s := range w.redis.claims.sinces {
			if s.job == job && s.at > l.at && !slices.ContainsFunc(w.redis.claims.left, func(o queued) bool {
				return o.job == job && o.at == s.at
			}) {
				back = min(back, s.at)
			}
		}
		if l.job == job && back >= from {
			return max(l.at, from)
		}
	}
	return w.plan.Lasts
}

// heldSince reports whether a pause of a job began after a time, which keeps back what was due by hand by then.
func (w *world) heldSince(job string, at time.Duration) bool {
	return slices.ContainsFunc(w.redis.claims.held, func(h hold) bool { return h.job == job && h.began >= at })
}

// standsBeside reports whether a tick came due beside a run that somebody asked for, and may wait for its end.
func standsBeside(j *config.Job, in *claim) bool {
	return in.isByHand() && j.ConcurrencyPolicy == config.Forbid
}
