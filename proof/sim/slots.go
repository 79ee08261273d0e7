package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// contended: jobs of low priority want every slot all the time, while others have something due: a trigger, a run to be
// repeated, a tick that waited for the end of a run or was handed over, a timer.
func (p *Plan) contended(r *rand.Rand) {
	for len(p.Jobs) < 3 { // one alone would leave the slot free at times
		p.Jobs = append(p.Jobs, newJob(r, len(p.Jobs)))
	}
	p.willing(r)
	p.MaxRunning = pick(r, 1, 1, 1, 2)
	p.Replicas = p.Replicas[:1+r.IntN(2)]
	greedy := pick(r, 0, 0, 5) // all the same, or the others would have no run in all the time
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Reserved, j.Suspend, j.Jitter, j.Delay, j.Deadline, j.Timeout = false, false, 0, 0, 0, 20*time.Second
		j.Priority, j.Policy, j.Missed = greedy, "Allow", pick(r, "latest", "skip")
		j.Period = time.Duration(pick(r, 2, 3)) * time.Second
		j.Takes = [2]time.Duration{j.Period / 2, j.Period}
	}
	due := &p.Jobs[0]
	due.Priority, due.Policy, due.Missed = pick(r, 0, 5, 9), pick(r, "Forbid", "Queue", "Replace", "Replace", "Allow"),
		pick(r, "latest", "all")
	due.Guarantee, due.TTL = pick(r, "at-least-once", "at-least-once", "at-most-once"), 3*time.Second
	due.Period = time.Duration(pick(r, 7, 10, 13)) * time.Second
	due.Takes = pick(r, [2]time.Duration{0, due.Period / 3}, [2]time.Duration{due.Period / 2, due.Period},
		[2]time.Duration{due.Period, 2 * due.Period})
	for at := 8 * time.Second; at < 30*time.Second; at += 4*time.Second + upTo(r, 8*time.Second) {
		switch pick(r, "trigger", "trigger", "timer", "timer", "crash") {
		case "trigger":
			p.Orders = append(p.Orders, Order{At: at, Kind: "trigger", Job: due.Name})
		case "timer":
			p.Timers = append(p.Timers, TimerPlan{ID: fmt.Sprintf("t%d", len(p.Timers)+1),
				Set: at - 2*time.Second, Due: at})
		case "crash":
			p.Faults = append(p.Faults, Fault{At: at, Kind: "crash", Replica: -1,
				For: 500*time.Millisecond + upTo(r, 3*time.Second)})
		}
	}
	if len(p.Replicas) > 1 && r.IntN(3) == 0 {
		p.AppsDown = []Downtime{{0, 9 * time.Second, 25 * time.Second}}
	}
	p.elsewhere()
}

// inLine is how long after something is due all replicas have it in line for a slot: a look, and a second in which it
// was left alone since a run was in its way, and the ways there.
func (w *world) inLine() time.Duration { return 2200*time.Millisecond + 10*w.plan.Far }

// checkPassedOver: what is due, or waits, gets a slot before what is less important, and before what came later and is
// as important. A replica has one due member of each job in line at a time. passes tells that a pause is not in its
// way.
func (j *judged) checkPassedOver(from, to time.Duration, passes bool) {
	w := j.world
	if w.plan.MaxRunning == 0 || w.plan.Ready || w.plan.Local || w.stepped || j.Reserved {
		return
	}
	from = max(from, w.redis.claims.listed(j.Name, j.asked)) // it is in line anew
	for _, c := range w.redis.claims.all {
		if c.job == j.Name || !c.table || c.won <= from || c.won+slack+4*w.plan.Far >= min(to, j.last) {
			continue
		}
		came, yields := j.before(c)
		x := came - slack - w.inLine() // whatever was in its way until then
		if !yields || x < max(from, j.first) || !j.idle(x-j.Lock.SafetyDelay, c.won+slack) ||
			!passes && w.paused(j.Name, x, c.won) || w.disturbed(-1, x-recovery, c.won) ||
			w.disturbed(c.replica.place, x-recovery, c.won) || c.replica.began+recovery > x ||
			c.replica.drains() && c.replica.endsAt() <= c.won ||
			isDown(w.plan.AppsDown, c.replica.place, x-recovery, c.won) ||
			w.swaps(c.replica, from, c.won) || // all that wait are in line anew when their jobs change, as they come
			slices.ContainsFunc(j.claims, func(o claim) bool {
				// whoever has refused it leaves it to others
				return o.won >= x && o.won <= c.won || o.how == "handover" && o.replica == c.replica &&
					o.tick.Equal(j.asked) && o.settled <= c.won && c.won < o.settled+leftAlone
			}) ||
			// the slot was its job's, for what a pause then refused
			slices.ContainsFunc(w.redis.claims.asks, func(a *ask) bool {
				return a.job == j.Name && a.code == "PAUSED" && a.replica == c.replica && a.at >= x && a.at <= c.won
			}) {
			continue
		}
		w.violatedAt(c.won, "slots", j.Name, "%s was due since %s, and %s gave its slot to tick %s of %s, "+
			"which is less important, or came later", stamp(j.asked), from, c.replica.process, stamp(c.tick), c.job)
		return
	}
	w.met["waited for slots"]++
}

// before reports whether what waits of a job goes before a claim of the table, if it is in line before a time.
func (j *judged) before(c *claim) (time.Duration, bool) {
	o := j.world.row(c.job, c.won)
	switch {
	case o == nil || o.Reserved || o.Priority > j.Priority:
		return 0, false
	case o.Priority < j.Priority:
		return c.sent, true
	}
	return j.world.cameDue(o, c.tick), o.StartingDeadline == 0 && o.Missed != config.Skip
}

// checkTimersPassedOver is checkPassedOver for timers that are alone.
func (w *world) checkTimersPassedOver() {
	for id, t := range w.redis.claims.timers {
		j := &judged{Job: &config.Job{Name: service.TimerJob(id), ConcurrencyPolicy: config.Allow}, world: w,
			plan: &timerNature, asked: w.began.Add(t.plan.Due), first: 6 * time.Second, last: w.plan.Lasts}
		won := w.plan.Lasts
		for _, c := range w.redis.claims.all {
			if service.IsTimer(c.job) {
				j.claims = append(j.claims, *c) // one is in line at a time
				if c.job == j.Name {
					won = min(won, c.won)
				}
			}
		}
		if t.plan.Every == 0 && t.set != 0 && t.deleted == 0 && !w.redis.claims.forgot(t.set) {
			j.checkPassedOver(max(t.plan.Due, t.set), min(won, w.forgotten(t.set)), false)
		}
	}
}
