package sim

import (
	"slices"
	"time"

	"github.com/solotick/solotick/config"
)

// The replicas fire a tick that nothing stands in the way of within these times. prompt is for a tick that comes due:
// at once, or after one more try. waited is for a tick that waits in the due set, or that no replica asked for in time:
// after the next look, a way there and back, and two seconds in which one replica stands back.
const (
	prompt = 1500 * time.Millisecond
	waited = 4 * time.Second
)

// lateness is how late a tick may be under `missed: skip`.
const lateness = 5 * time.Second

// checkLost: promise 2, each tick that a healthy replica could fire is fired, or nothing stands in its way but what the
// policies name.
func (w *world) checkLost() {
	if w.plan.Local && len(w.plan.Faults) > 0 {
		return // on clocks that are seconds apart, whoever joins ahead of the others passes over what they wait for
	}
	for _, name := range w.plan.names() {
		var claims []claim
		for _, c := range w.redis.claims.all {
			if c.job == name {
				claims = append(claims, *c)
			}
		}
		for _, l := range w.lives(name) {
			if l.Guarantee == config.EveryReplica {
				continue
			}
			p := w.plan.job(name)
			j := &judged{Job: l.Job, world: w, plan: p, claims: claims, first: max(l.from, 6*time.Second),
				last: min(l.to, w.plan.Lasts-5*time.Second)}
			if !l.Suspend {
				j.judgeTicks()
			}
			if l.Claim == nil { // or nothing is due that an app has not asked for
				j.judgeTriggers()
				j.judgeOwed()
			}
			j.keeps = 0
			j.judgeBirths()
		}
	}
}

// judged is a job, in one of its lives, whose ticks are looked at. Times of its ticks are the latest by its jitter.
type judged struct {
	*config.Job
	world       *world
	plan        *Job
	claims      []claim
	keeps       int           // how many of the runs that may live at once what is looked at leaves to the schedule
	asked       time.Time     // the tick that is looked at: under Allow a run of the same tick is in its way
	byMessage   bool          // replicas learn of what is looked at by a message alone
	first, last time.Duration // after that the replicas are about to end, or have other ticks
}

func (j *judged) judgeTicks() {
	w := j.world
	for tick := w.next(j.Job, w.began); ; tick = w.next(j.Job, tick) {
		at, ok := w.dueAt(tick.Add(j.Jitter))
		if ok && at > j.last-prompt {
			break
		}
		// by its jitter it may come due before the job is known
		if ok && at > j.first && w.cameDue(j.Job, tick) > j.first {
			w.met["ticks"]++
			if j.first > 6*time.Second {
				w.met["ticks after a reload"]++
			}
			j.judge(tick, at)
		}
	}
}

// judge looks at one tick from when it came due on.
func (j *judged) judge(tick time.Time, at time.Duration) {
	w := j.world
	j.asked = tick
	var mine []*claim
	for i := range j.claims {
		if c := &j.claims[i]; c.tick.Equal(tick) && c.kind != "manual" && c.kind != "backfill" {
			mine = append(mine, c)
		}
	}
	j.promptly(tick, mine)
	if j.Claim != nil { // it is lost if its app does not ask
		for _, c := range mine {
			if c.how == "finish" || c.how == "reap" {
				j.handedOn(c, at, w.plan.Lasts)
			}
		}
		return
	}
	if len(mine) == 0 {
		w.met["ticks that were not claimed"]++
		j.unclaimed(tick, at)
		return
	}
	if !mine[0].table {
		w.met["ticks that were claimed late or after waiting"]++
		j.unclaimedUntil(tick, at, mine[0].won)
	}
	for i, c := range mine {
		next := w.plan.Lasts
		if i+1 < len(mine) {
			next = mine[i+1].won
		}
		j.handedOn(c, at, next)
	}
}

// promptly checks that a tick is claimed at once, or at the second try, if it comes due in good times and no other run
// or pause of its job is in its way.
func (j *judged) promptly(tick time.Time, mine []*claim) {
	w := j.world
	due := w.cameDue(j.Job, tick)
	by := min(due+prompt, j.expires(tick, due))
	// Redis' clock is set over it, or before the next one
	if _, ok := w.dueAt(w.began.Add(w.dueOf(j.Job, tick))); !ok || by <= due {
		return
	}
	if w.plan.Local || w.disturbed(-1, due-recovery, by) || w.paused(j.Name, due-time.Second, by) ||
		j.settledByBirth(tick) < by || w.heldAhead(j.Name, tick) || w.notFollowed(due) || !w.fit(j.Name, due, by) ||
		j.Claim != nil && !w.asksInTime(j.Name, tick, due, by) ||
		j.inItsWay(func(c claim) bool {
			return !c.tick.Equal(tick) && c.won <= by && (c.settled == 0 || c.settled+j.Lock.SafetyDelay+slack >= due)
		}) {
		return
	}
	w.met["ticks in good times"]++
	if !slices.ContainsFunc(mine, func(c *claim) bool { return c.won <= by }) {
		w.violatedAt(due, "2: never lost", j.Name,
			"tick %s came due at %s, nothing was in its way, and it was not claimed by %s", stamp(tick), due, by)
	}
}

// unclaimed asks why a tick was never claimed. A pause settles the ticks before its end, however long after it the next
// one is.
func (j *judged) unclaimed(tick time.Time, at time.Duration) {
	if j.world.pausedAt(j.Job, tick) {
		j.world.met["settled by a pause"]++
		return
	}
	j.unclaimedUntil(tick, at, j.world.plan.Lasts)
}

// unclaimedUntil asks why a tick was not claimed before.
func (j *judged) unclaimedUntil(tick time.Time, at, won time.Duration) {
	w := j.world
	if w.heldAhead(j.Name, tick) {
		w.met["held by the wrong time of Redis' clock"]++
		return
	}
	from, to, lasting := at, j.expires(tick, at), false
	in := j.inTheWay(tick)
	q := j.queuedTick(tick)
	switch {
	case q != nil && q.behind != nil:
		w.met["queued"]++
		in = q.behind
		lasting = j.ConcurrencyPolicy == config.Queue
	case in != nil && in.isByHand() && !w.redis.claims.fates.overlaps(j.Name, tick): // it waited for the end of that
		w.met["waited for the end of a run by hand"]++
	// it lived then
	case in != nil && (in.how == "finish" || in.how == "requeue" ||
		in.how == "reap" && in.renewed >= w.cameDue(j.Job, tick)):
		w.met["overlap"]++
		return
	}
	if in != nil {
		if in.settled == 0 || in.how == "lost" {
			return
		}
		w.met["waited behind a run that ended by "+in.how]++
		from = in.settled
		// its answers were lost: the reaper looks at nothing else until it has one
		if in.how == "reap" && in.heard > from+3*time.Second {
			w.met["waited for a takeover whose answers were lost"]++
			from = in.heard
		}
	}
	if q == nil && j.behindAnother(tick) {
		w.met["overlap with a tick that waits"]++
		return
	}
	if q != nil && q.forgotten != 0 && w.plan.Confirms == 0 {
		w.met["queued, and forgotten by a failover"]++
		return
	}
	if q != nil && j.replacedInQueue(tick, from) {
		w.met["replaced while it was queued"]++
		return
	}
	if lasting {
		to = j.deadline(at, w.plan.Lasts)
	}
	to = min(to, j.settledByBirth(tick), w.forgotten(at))
	if q == nil && in == nil {
		to = min(to, w.pausedFrom(j.Name, at))
	}
	if x, yes := j.missedIts(from, min(to, won)); yes {
		w.violatedAt(x, "2: never lost", j.Name, "tick %s could have been fired since %s, and was not by %s",
			stamp(tick), x, min(to, won))
	}
}

// pausedFrom is when the next pause of a job begins, which settles the ticks that were missed before it.
func (w *world) pausedFrom(job string, at time.Duration) time.Duration {
	from := w.plan.Lasts
	for _, h := range w.redis.claims.held {
		if h.job == job && h.from >= at {
			from = min(from, h.from)
		}
	}
	return from
}

// handedUntil is the time until which a tick that is handed on, or given back, is worth firing. Where the guarantees
// say so, that is later than the next tick; not so if it was late before.
func (j *judged) handedUntil(c *claim, at time.Duration) time.Duration {
	if j.Missed == config.Skip && c.member == "" {
		return j.expires(c.tick, at) // what replicas are asked to take was taken in time
	}
	if j.Missed == config.All || j.ConcurrencyPolicy == config.Queue ||
		c.how == "handover" && j.Guarantee == config.AtLeastOnce && c.kind != "catchup" {
		j.world.met["handed on beyond the next tick"]++
		return j.deadline(at, j.world.plan.Lasts)
	}
	return j.expires(c.tick, at)
}

// expires is when a tick of the table is not worth firing any more.
func (j *judged) expires(tick time.Time, at time.Duration) time.Duration {
	next, ok := j.world.dueAt(j.world.next(j.Job, tick))
	if !ok {
		return at
	}
	to := j.deadline(at, next)
	if j.Missed == config.Skip {
		to = min(to, at-j.Jitter+lateness)
	}
	return to
}

func (j *judged) deadline(at, to time.Duration) time.Duration {
	if j.StartingDeadline > 0 {
		return min(to, at-j.Jitter+j.StartingDeadline)
	}
	return to
}

// handedOn asks what became of a run, and of its tick when it was over, until a run that followed was won.
func (j *judged) handedOn(c *claim, at, next time.Duration) {
	w := j.world
	w.met["runs that ended by "+c.how]++
	to := w.plan.Lasts
	switch c.how {
	case "finish":
		if !w.wasStarted(c.run) && w.refused[c.run] == 0 && w.well(c) && c.cancelled == 0 {
			w.violatedAt(c.won, "2: never lost", j.Name, "tick %s was claimed by %s, which was well, and not started",
				stamp(c.tick), c.replica.process)
		}
		return
	case "handover":
		if c.cancelled != 0 {
			return
		}
		if j.plan.Refuses > 0 || len(w.plan.AppsDown) > 0 { // it may be refused until it is given up
			j.checkPassedOver(c.settled, min(j.handedUntil(c, at), next, c.settled+leftAlone, w.forgotten(c.settled)),
				false)
			return
		}
		to = j.handedUntil(c, at)
	case "abandon":
		if c.cancelled != 0 {
			return
		}
		to = j.handedUntil(c, at)
		if c.kind == "takeover" {
			to = w.plan.Lasts
		}
	case "reap", "requeue":
		if w.well(c) && c.how == "reap" && !j.plan.Ignores {
			w.violatedAt(c.settled, "2: never lost", j.Name,
				"the run for tick %s on %s, which was well, was taken over", stamp(c.tick), c.replica.process)
		}
		if !c.again || c.deaths >= takeovers || w.redis.claims.late[c.run] || w.replaced(c) {
			return
		}
		w.met["to be run again"]++
		if j.ConcurrencyPolicy == config.Replace {
			w.met["to be run again under Replace"]++
		}
	default:
		return
	}
	if x, yes := j.missedIts(c.dueAgain(), min(to, next, w.forgotten(c.settled))); yes {
		w.violatedAt(x, "2: never lost", j.Name,
			"tick %s was given back by %s at %s, could have been run again since %s, and was not by %s",
			stamp(c.tick), c.how, c.settled, x, min(to, next))
	}
}

// dueAgain is when the tick of a run that was cut short is due again.
func (c *claim) dueAgain() time.Duration {
	if c.how != "requeue" {
		return c.settled
	}
	return c.settled + c.waits
}

// replaced reports whether a run was told to end, for a newer tick or by an operator.
func (w *world) replaced(c *claim) bool {
	return c.cancelled != 0 || slices.ContainsFunc(w.redis.claims.queued, func(q queued) bool {
		return q.job == c.job && q.policy == string(config.Replace) && q.at >= c.won && q.at <= c.settled
	})
}

// takeovers is how often a run that is cut short is run again.
const takeovers = 3

// missedIts finds a time in which a tick that waits must have been fired: some replica is well, and nothing else of the
// job runs, for as long as that takes.
func (j *judged) missedIts(from, to time.Duration) (time.Duration, bool) {
	return j.couldHave(from, to, false)
}

// couldHave is missedIts; for what passes a pause if passes is true.
func (j *judged) couldHave(from, to time.Duration, passes bool) (time.Duration, bool) {
	w := j.world
	starts := []time.Duration{from}
	for _, c := range j.claims {
		starts = append(starts, c.settled)
	}
	for _, s := range w.spans {
		starts = append(starts, s.to+time.Second+1, s.to+silence+time.Second+1)
	}
	slices.Sort(starts)
	for _, x := range starts {
		end := x + j.patience()
		hears := func(place int) bool { return !j.byMessage || !w.deaf(place, x-time.Second) }
		if x >= from && end <= min(to, j.last) && j.idle(x, end) && (passes || !w.paused(j.Name, x, end)) &&
			!w.disturbed(-1, x-time.Second, end) && w.healthyWhere(j.Name, x-time.Second, end, hears) {
			return x, true
		}
	}
	j.checkPassedOver(from, to, passes)
	return 0, false
}

func (j *judged) patience() time.Duration {
	if j.world.plan.Local {
		return waited + 6*time.Second
	}
	return waited
}

func (j *judged) idle(from, to time.Duration) bool {
	lives := func(c claim) bool { return c.won < to && (c.settled == 0 || c.settled > from) }
	if j.ConcurrencyPolicy == config.Allow && slices.ContainsFunc(j.claims, func(c claim) bool {
		return c.tick.Equal(j.asked) && lives(c)
	}) {
		return false
	}
	return !j.inItsWay(lives)
}

// inItsWay reports whether the runs for which a condition holds are so many that no further one may begin.
func (j *judged) inItsWay(lives func(claim) bool) bool {
	n := 0
	for _, c := range j.claims {
		if lives(c) {
			n++
		}
	}
	if j.ConcurrencyPolicy == config.Allow {
		return j.Concurrency > 0 && n >= j.Concurrency-j.keeps
	}
	return n > 0
}

// forgotten is when Redis lost all data after a time; the end when it did not.
func (w *world) forgotten(after time.Duration) time.Duration {
	for _, l := range w.redis.claims.loss {
		if l >= after {
			return l
		}
	}
	return w.plan.Lasts
}

// settledByBirth is when a tick was settled because a ledger that is born counts it as that: the loss before the birth.
func (j *judged) settledByBirth(tick time.Time) time.Duration {
	w := j.world
	for _, b := range w.redis.claims.births {
		if b.job == j.Name && !tick.After(b.tick) {
			lost := time.Duration(0)
			for _, l := range w.redis.claims.loss {
				if l <= b.at {
					lost = l
				}
			}
			return lost
		}
	}
	return w.plan.Lasts
}

// noticed is how long after a loss of all data a replica that is well has registered its jobs anew: a look that finds
// its connection cut, a second until the next one, and the ways of it, of the ledger's birth and of registering.
func (w *world) noticed() time.Duration { return 2500*time.Millisecond + 6*w.plan.Far }

// judgeBirths: what is not known to Redis any more is registered soon, or its ticks would be refused for as long as
// that takes.
func (j *judged) judgeBirths() {
	w := j.world
	all := w.redis.claims.loss
	for i, lost := range all {
		to := j.last
		if i+1 < len(all) {
			to = min(to, all[i+1])
		}
		for _, b := range w.redis.claims.births {
			if b.job == j.Name && b.at > lost {
				to = min(to, b.at)
			}
		}
		w.met["registered anew"]++
		starts := []time.Duration{max(lost, j.first)}
		wasFlushed := func(f Fault) bool { return f.Kind == flushed && f.At == lost }
		if slices.ContainsFunc(w.plan.Faults, wasFlushed) { // replicas at rest notice it before the next tick
			starts[0] = max(starts[0], w.dueOf(j.Job, w.next(j.Job, w.began.Add(lost)))-w.noticed())
		}
		for _, s := range w.spans {
			starts = append(starts, s.to+time.Second+1)
		}
		for _, x := range starts {
			if by := x + w.noticed(); x >= starts[0] && by < to && !w.disturbed(-1, x, by, forgets, flushed) &&
				w.healthy(x-time.Second, by, forgets, flushed) {
				w.violatedAt(x, "2: never lost", j.Name,
					"Redis lost all at %s, and the job was not registered anew from %s to %s", lost, x, to)
				break
			}
		}
	}
}

// inTheWay is the run that a tick met: one that ended well, or else the last one.
func (j *judged) inTheWay(tick time.Time) (in *claim) {
	for _, a := range j.world.redis.claims.asks {
		if a.job != j.Name || a.code != "OVERLAP" || !a.tick.Equal(tick) || a.behind == nil {
			continue
		}
		if in = a.behind; in.how == "finish" || in.how == "requeue" {
			return in
		}
	}
	return in
}

func (j *judged) queuedTick(tick time.Time) *queued {
	for i := range j.world.redis.claims.queued {
		if q := &j.world.redis.claims.queued[i]; q.job == j.Name && q.tick.Equal(tick) {
			return q
		}
	}
	return nil
}

// behindAnother reports whether a tick was refused for good, under Queue or by a limit: what was in its way was checked
// as Redis said so.
func (j *judged) behindAnother(tick time.Time) bool {
	return slices.ContainsFunc(j.world.redis.claims.asks, func(a *ask) bool {
		return a.job == j.Name && a.tick.Equal(tick) && a.code == "OVERLAP" &&
			(a.policy == string(config.Queue) || limitOf(a.policy) > 0) && a.table
	})
}

// replacedInQueue reports whether a newer tick took a queued one's place before it was free to run.
func (j *judged) replacedInQueue(tick time.Time, free time.Duration) bool {
	return j.ConcurrencyPolicy == config.Replace &&
		slices.ContainsFunc(j.world.redis.claims.queued, func(q queued) bool {
			return q.job == j.Name && q.tick.After(tick) && q.at <= free
		})
}
