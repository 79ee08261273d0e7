package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/callback"
)

// leases is the class of seeds in which apps hold leases: jobs without ticks, which one app has at a time.
const leases = "leases"

// leases: apps beside all replicas ask for the same leases again and again. The one that gets it keeps it by
// heartbeats, until it ends the run, dies, stands still or has to stop. Some jobs become leases, and cease to be such.
// In all else it is the class in which apps ask for ticks, and some of the jobs are as there.
func (p *Plan) leases(r *rand.Rand) {
	p.asks(r)
	if r.IntN(3) == 0 { // holders get busy
		p.Ready = true
		for place := range p.Replicas {
			from := 5*time.Second + upTo(r, 25*time.Second)
			p.Unready = append(p.Unready, Downtime{place, from, from + time.Second + upTo(r, 12*time.Second)})
		}
	}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if i > 0 && (j.Async == nil || r.IntN(2) == 0) {
			continue
		}
		j.Lease, j.Deadline, j.Reserved, j.Policy = true, 0, r.IntN(3) == 0, "Forbid"
		j.Days, j.Async.Timeout = nil, pick(r, 30*time.Second, 24*time.Hour, 24*time.Hour)
		beat := j.Async.Heartbeat
		j.Takes = pick(r, [2]time.Duration{0, beat}, [2]time.Duration{beat, 6 * beat},
			[2]time.Duration{2 * beat, 30 * time.Second}, [2]time.Duration{time.Minute, 2 * time.Minute})
		for range pick(r, 0, 0, 0, 1, 2) {
			p.Reloads = append(p.Reloads,
				Reload{At: 10*time.Second + upTo(r, 24*time.Second), Kind: pick(r, "lease", "lease", "missed"),
					Job: j.Name, To: "latest"})
		}
	}
	for i := range p.Faults {
		switch f := &p.Faults[i]; {
		case r.IntN(4) > 0:
		case !strings.HasPrefix(f.Kind, "redis"): // a holder's replica, more often than elsewhere
			f.Kind = pick(r, "crash", "stop", "stall", "cut")
		case f.Kind != redisSteps:
			f.Kind = pick(r, comesBackOlder, flushed, redisFull, redisReadsOnly)
			f.By = time.Second + upTo(r, 6*time.Second)
			switch {
			case f.Kind == comesBackOlder:
				p.Confirms = 0 // or nothing would be confirmed from the snapshot on
			case f.Kind == flushed && p.Ready: // nobody else knows since when an app was ready
				f.Kind = redisFull
			}
		}
	}
	p.outlasts()
	p.Lasts += 8 * time.Second
}

// hold is one try of an app to get a lease, and its time with it. n tells its tries apart.
func (w *world) hold(place int, j *Job, n uint64) {
	d := w.dice
	keys := func(what uint64) []uint64 { return []uint64{forHold, text(j.Name), uint64(place), n, what} }
	pause := 500 * time.Millisecond
	if d.chance(0.2, keys(1)...) {
		pause = 6 * time.Second
	}
	time.Sleep(d.between(0, pause, keys(2)...))
	leaves := never
	if d.chance(0.15, keys(3)...) {
		leaves = w.now() + d.between(0, 8*time.Second, keys(4)...)
	}
	w.asks(place, j, time.Time{}, leaves, keys(5))
}

// isLease reports whether the row is that of a lease. A job that the replicas run has ticks in any case.
func (j *Job) isLease() bool { return j.Lease && j.Asks }

// isLease reports whether a job was a lease all of a time.
func (w *world) isLease(job string, from, to time.Duration) bool {
	j := w.during(job, from, to)
	return j != nil && j.Schedule.IsLease()
}

// followed is how long after the end of a holding, or of a heartbeat that did not come, the app that waits has the
// lease: a look of its replica, a second later at most, and the ways of that and of the claim.
func (w *world) followed() time.Duration { return time.Second + slack + 10*w.plan.Far }

// checkLeases: one app has a lease at a time, and while one asks and nothing is wrong, one has it.
func (w *world) checkLeases() {
	var all []*worker // in the order in which they began to work
	for _, a := range w.workers {
		if w.runs[a.n].lease && a.from != 0 {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b *worker) int { return cmp.Compare(a.from, b.from) })
	for i, a := range all {
		for _, b := range all[:i] {
			if b.run.Job == a.run.Job {
				w.judgeHolders(b, a)
			}
		}
		w.met["holders of leases"]++
	}
	for _, name := range w.plan.names() {
		w.judgeNoTicks(name)
		for _, q := range w.asked {
			if q.job.Name == name {
				w.judgeIdle(q)
			}
		}
	}
	for _, a := range w.workers {
		if w.runs[a.n].lease {
			w.judgeFollowed(a)
			w.judgeUnready(a)
		}
	}
	for _, t := range w.redis.claims.turns {
		lease := slices.ContainsFunc(w.runs, func(r *run) bool { return r.ID == t.run.run && r.lease })
		if lease && t.after > t.before && !slices.Contains([]string{"failed", "timed_out"}, t.outcome) &&
			w.isLease(t.run.job, t.at-time.Second, t.at) && leaseIn(w.tableOf(t.run.replica, t.run.won), t.run.job) {
			w.violatedAt(t.at, "lease: no failure", t.run.job,
				"the run of %s ended as %q, by %s, and counts as a failure", stamp(t.run.tick), t.outcome, t.verb)
		}
	}
}

// trusts is until when an app may rely on its lease: for a heartbeat from when it sent the last one that was answered
// with leave, or until a replica took its last report.
func (a *worker) trusts() time.Duration {
	until := a.until
	for _, g := range a.granted {
		if g.finish != nil {
			until = min(until, g.at)
		}
	}
	return until
}

// judgeHolders: an app begins when the one before it does not rely on the lease any more. Its token is greater, and no
// replica takes a report of the one before.
func (w *world) judgeHolders(b, a *worker) {
	given := w.runs[a.n].start
	i := slices.IndexFunc(b.granted, func(g grant) bool { return g.at > given })
	late, older := b.trusts() > a.from, a.run.Token <= b.run.Token && !w.redisSetBack()
	switch {
	case !late && !older && i < 0:
		return
	case w.excusedMeeting(w.claimOf(b), w.claimOf(a), a.from):
		w.met["holders of a lease that Redis had forgotten"]++
		return
	case late:
		w.violatedAt(a.from, "lease: apart", a.run.Job, "the app of %s has had the lease since %s, by run %s, "+
			"and that of %s relies on run %s until %s", a.caller.process, a.from, short(a.run.ID), b.caller.process,
			short(b.run.ID), b.trusts())
	case older:
		w.violatedAt(a.from, "lease: tokens", a.run.Job, "the app of %s has the token %d, and that of %s had %d before",
			a.caller.process, a.run.Token, b.caller.process, b.run.Token)
	default:
		w.violatedAt(b.granted[i].at, "lease: a report", a.run.Job, "%s took a report of the app of %s, and that "+
			"of %s had been given the lease at %s", b.granted[i].by.process, b.caller.process, a.caller.process, given)
	}
}

func (w *world) claimOf(a *worker) claim {
	c, _ := w.redis.claims.of(a.run.ID)
	return c
}

// forgottenBy reports whether a failover had forgotten one of two claims by a time.
func forgottenBy(a, b claim, by time.Duration) bool {
	return a.how == "forgotten" && a.settled <= by || b.how == "forgotten" && b.settled <= by
}

// excusedMeeting reports whether Redis had lost one of two claims by a time: with all its data, or by a failover.
func (w *world) excusedMeeting(a, b claim, by time.Duration) bool {
	return w.lostAllBetween(min(a.won, b.won), by) || forgottenBy(a, b, by)
}

// notReady is why a holder of a lease has to give it up.
const notReady = "the app is not ready"

// hadGivenUp reports whether a run had to end for that before it was cancelled.
func (w *world) hadGivenUp(c *claim) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		return r.ID == c.run && r.over != 0 && r.over <= c.cancelled && r.cause != nil && r.cause.Error() == notReady
	})
}

// gaveUp reports whether a run had to end since its app was not ready, as its replica knew: it held a lease.
func (w *world) gaveUp(r *run, cause error) bool {
	const known = time.Second // for so long after a change, and for as long as the replica stood still
	at := w.now()
	unready := w.plan.BusyApp || isDown(w.plan.Unready, r.replica.place, at-known, at) ||
		w.disturbedBy("stall", r.replica.place, at)
	if cause.Error() != notReady || !w.plan.Ready || !unready || !r.lease {
		return false
	}
	w.met["leases whose holders were not ready"]++
	return true
}

// judgeNoTicks: nothing of a lease is missed, or counted otherwise without a run.
func (w *world) judgeNoTicks(name string) {
	for n := range w.tables {
		if j := row(w.tables[n], name); j != nil && !j.Schedule.IsLease() {
			return // some have ticks
		}
	}
	w.met["jobs that were leases all the time"]++
	for _, i := range w.keptOf(name).intervals {
		w.violatedAt(time.UnixMilli(i.first).Sub(w.began), "lease: no ticks", name, "%d ticks have the fate %q",
			i.count, i.fate)
	}
}

// waitsUntil is when an app that asked was answered, left, or lost its replica.
func (w *world) waitsUntil(q *asking) time.Duration {
	to := w.plan.Lasts
	for _, at := range []time.Duration{q.answered, q.left, q.replica.diedAt(), q.replica.endsAt()} {
		if at != 0 {
			to = min(to, at)
		}
	}
	return to
}

// couldGet reports whether an app waits for a lease all of a time, beside a replica that is well and could give it.
func (w *world) couldGet(q *asking, from, to time.Duration) bool {
	return q.at <= from && w.waitsUntil(q) > to && w.isLease(q.job.Name, from-time.Second, to) && !w.stepped &&
		w.isTick(w.row(q.job.Name, to), w.began.Add(from)) && w.isTick(w.row(q.job.Name, to), w.began.Add(to)) &&
		!w.paused(q.job.Name, from, to) && q.replica.began+recovery <= from &&
		!w.disturbed(q.replica.place, from-time.Second, to) && !w.disturbed(-1, from-time.Second, to) &&
		w.takes(q.replica.place, q.job.Name, from-time.Second, to)
}

// judgeIdle: a lease that nobody holds is the app's that waits for it.
func (w *world) judgeIdle(q *asking) {
	to := w.waitsUntil(q)
	if to-q.at < w.followed() {
		return
	}
	starts := []time.Duration{q.at}
	for _, s := range w.spans {
		starts = append(starts, s.to+time.Second+1)
	}
	var mine []*claim
	for _, c := range w.redis.claims.all {
		if c.job == q.job.Name {
			mine = append(mine, c)
			starts = append(starts, c.settled+q.job.Delay)
		}
	}
	for _, x := range starts {
		if end := x + w.followed(); x >= q.at && end < to && w.couldGet(q, x, end) {
			w.met["waits for a lease in good times"]++
			if !slices.ContainsFunc(mine, func(c *claim) bool {
				return c.won < end && (c.settled == 0 || c.settled+q.job.Delay > x)
			}) {
				w.violatedAt(x, "lease: idle", q.job.Name, "the app of %s asked at %s, nobody held the lease, "+
					"and nobody had it by %s", q.replica.process, q.at, end)
				return
			}
		}
	}
}

// judgeUnready: a holder whose app is not ready has to give the lease up.
func (w *world) judgeUnready(a *worker) {
	r := w.runs[a.n]
	place := r.replica.place
	for _, d := range w.plan.Unready {
		by := d.From + time.Second + 2*a.job.Async.Heartbeat
		if !w.plan.Ready || d.Place != place || d.From <= r.start || by >= d.To || w.disturbed(place, r.start, by) ||
			w.disturbed(-1, r.start, by) {
			continue
		}
		w.met["holders that were not ready for long"]++
		if r.end == 0 || r.end > by {
			w.violatedAt(d.From, "lease: not ready", r.Job, "the app of %s was not ready from %s on, and held the lease at %s",
				r.replica.process, d.From, by)
		}
	}
}

// judgeFollowed: a holder whose replica has died is followed within the ttl and three seconds, and one whose app alone
// has died within a heartbeat and a second, by an app that waits.
func (w *world) judgeFollowed(a *worker) {
	c, r := w.claimOf(a), w.runs[a.n]
	next := w.plan.Lasts
	for _, o := range w.redis.claims.all {
		if o.job == c.job && o.won > c.won {
			next = min(next, o.won)
		}
	}
	someone := func(from, by time.Duration) bool {
		return slices.ContainsFunc(w.asked, func(q *asking) bool {
			return q.job.Name == c.job && w.couldGet(q, from, by)
		})
	}
	place := r.replica.place
	if died := r.replica.diedAt(); died > c.won && (c.settled == 0 || c.settled > died) {
		by := died + w.plan.ttl(c.job) + seconds + a.job.Delay
		if w.disturbedBy("late", place, died) || w.disturbedBy("void", place, died) || !someone(died, min(by, next)) {
			return
		}
		w.met["leases whose holders' replicas died"]++
		if next > by {
			w.violatedAt(died, "lease: followed", c.job,
				"the replica of run %s died at %s, and no app had the lease by %s", short(c.run), died, by)
		}
		return
	}
	silent := a.is == mute || a.why == appDied || a.why == stoodStill && a.standsFor() > 2*a.job.Async.Heartbeat
	heard := max(a.heard, r.start)
	by := heard + a.job.Async.Heartbeat + a.job.Delay + w.followed()
	if !silent || r.end == 0 || r.replica.isDead() || r.replica.drains() && r.replica.endsAt() < by ||
		c.cancelled != 0 || w.disturbed(place, heard-recovery, by) || !someone(heard, min(by, next)) {
		return
	}
	w.met["leases whose holders fell silent"]++
	if next > by {
		w.violatedAt(heard, "lease: followed", c.job,
			"the app of run %s was last heard at %s, and no app had the lease by %s", short(c.run), heard, by)
	}
}

// judgeBeat: an app that was silent for longer than a heartbeat is not let go on.
func (a *worker) judgeBeat(p *replica, err error) {
	w, now := a.world, a.world.now()
	w.mu.Lock()
	last := a.heard
	if err == nil || err == callback.ErrUnsure {
		a.heard = now
	}
	if w.runs[a.n].lease && a.why == stoodStill && now > a.until && err != nil {
		w.met["holders that woke after their time and were refused"]++
	}
	w.mu.Unlock()
	if a.asked && err == nil && last != 0 && now > last+a.job.Async.Heartbeat+slack {
		w.violated("async: silence", a.run.Job, "%s let the app of tick %s go on, of which it had heard last at %s",
			p.process, stamp(a.run.Tick), last)
	}
}

// leaseIn reports whether a table has a job as a lease.
func leaseIn(t *config.Table, job string) bool {
	c := row(t, job)
	return c != nil && c.Schedule.IsLease()
}

// everLease reports whether a job is a lease at any time.
func (w *world) everLease(job string) bool {
	return slices.ContainsFunc(w.tables, func(t *config.Table) bool { return leaseIn(t, job) })
}
