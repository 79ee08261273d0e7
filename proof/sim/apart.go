package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
)

// checkWorkers: what is promised to apps that follow the rules, whatever befalls their replicas.
func (w *world) checkWorkers() {
	slices.SortStableFunc(w.workers, func(a, b *worker) int { return cmp.Compare(a.from, b.from) })
	for i, a := range w.workers {
		r := w.runs[a.n]
		if a.from != 0 {
			w.judgeApart(a, w.workers[:i])
			w.meetWorker(a, r)
		}
		w.judgeGrants(a, r)
		w.judgeReport(a, r)
		w.judgeSilent(a, r)
	}
	for _, r := range w.runs {
		if w.plan.isAsync(r.Job) {
			w.judgeLimits(r)
		}
	}
	w.judgeDeaths()
}

// judgeApart: an app does not begin to work while as many work for its job as may, or another works for the same tick.
func (w *world) judgeApart(a *worker, before []*worker) {
	cl, _ := w.redis.claims.of(a.run.ID)
	limit, n := limitOf(cl.policy), 1
	if !strings.HasPrefix(cl.policy, string(lock.Allow)) {
		limit = 1
	}
	for _, b := range before {
		if b.job != a.job || b.from == 0 || b.to <= a.from {
			continue
		}
		other, _ := w.redis.claims.of(b.run.ID)
		if w.lostAllBetween(min(cl.won, other.won), a.from) {
			w.met["apps together after their leases were lost with all data"]++
			continue
		}
		if forgottenBy(other, cl, a.from) {
			w.met["apps together after a failover forgot a claim"]++
			continue
		}
		n++
		same := b.run.Tick.Equal(a.run.Tick) && b.run.Kind != "backfill" && a.run.Kind != "backfill"
		if same || limit > 0 && n > limit {
			w.violatedAt(a.from, "3: apps apart", a.run.Job, "the app of %s began to work for tick %s (attempt %d) "+
				"at %s, and that of %s worked for tick %s (attempt %d) from %s to %s",
				a.caller.process, stamp(a.run.Tick), a.run.Attempt, a.from,
				b.caller.process, stamp(b.run.Tick), b.run.Attempt, b.from, b.to)
			return
		}
	}
}

// meetWorker counts what makes it hard to keep apps apart.
func (w *world) meetWorker(a *worker, r *run) {
	w.met["apps that worked"]++
	w.met["apps that stopped: "+string(a.why)]++
	died := a.caller.diedAt()
	switch {
	case died != 0 && died < a.to:
		w.met["apps that outlived their replicas"]++
	case r.cause != nil && r.over < a.to:
		w.met["apps that worked on when their runs were to end"]++
	}
	if a.is == answerLost || a.is == answerless || a.is == answeredFor {
		w.met["apps that worked and whose answer was lost"]++
	}
	if cl, ok := w.redis.claims.of(a.run.ID); ok && cl.how == "reap" && cl.settled != 0 {
		w.met["apps whose runs were taken over"]++
	}
	if a.unknown {
		w.met["apps that a new process did not know"]++
	}
}

// judgeGrants: once another attempt of the tick has begun, no replica takes a report on the one before.
func (w *world) judgeGrants(a *worker, r *run) {
	for _, g := range a.granted {
		w.met["reports that were taken"]++
		if g.finish != nil && g.at < r.accepted {
			w.met["reports of the end that came before the answer"]++
		}
		for _, next := range w.runs[a.n+1:] {
			if next.Job == r.Job && next.Tick.Equal(r.Tick) && next.Kind != "backfill" && r.Kind != "backfill" &&
				next.start < g.at {
				mine := w.claimOf(a)
				if other, _ := w.redis.claims.of(next.ID); forgottenBy(mine, other, next.start) {
					w.met["reports on attempts that a failover forgot"]++
					continue
				}
				if mine.how == "lost" && g.at <= mine.settled+w.noticed() {
					w.met["reports on attempts that Redis lost with all data, before that was noticed"]++
					continue
				}
				w.violatedAt(g.at, "async: a token", r.Job,
					"%s took a report on attempt %d for tick %s, and attempt %d had begun on %s at %s",
					g.by.process, r.Attempt, stamp(r.Tick), next.Attempt, next.replica.process, next.start)
				return
			}
		}
	}
}

// judgeLeave: a heartbeat is answered with leave only if the lease is sure to last for another one. Then the app has
// stopped before anybody else may begin.
func (w *world) judgeLeave(a *worker, p *replica) {
	cl, known := w.redis.claims.of(a.run.ID)
	if now := w.now(); a.run.Token != 0 && (!known || cl.trust < now+a.job.Async.Heartbeat) {
		w.violated("async: a lease", a.run.Job, "%s let the app work on tick %s until %s, "+
			"and its lease is trusted until %s", p.process, stamp(a.run.Tick), now+a.job.Async.Heartbeat, cl.trust)
	}
}

// judgeReport: if a replica took the report of a success, and lived on and reached Redis, the tick has succeeded, and
// is not run again.
func (w *world) judgeReport(a *worker, r *run) {
	i := slices.IndexFunc(a.granted, func(g grant) bool {
		return g.finish != nil && g.finish.Outcome == callback.Succeeded
	})
	if i < 0 {
		return
	}
	g := a.granted[i]
	w.met["successes that were reported"]++
	cl, known := w.redis.claims.of(r.ID)
	died := g.by.diedAt()
	switch {
	case g.by != r.replica:
		w.violatedAt(g.at, "async: a report", r.Job, "%s took the report on a run of %s",
			g.by.process, r.replica.process)
	case !known || died != 0 && (cl.settled == 0 || died <= cl.settled):
		w.met["successes whose replicas died before they told Redis"]++
	case cl.how == "lost":
		w.met["successes of runs that were lost with all data"]++
	case cl.how == "forgotten":
		w.met["successes of runs that a failover forgot"]++
	case cl.how == "reap" && w.disturbed(r.replica.place, cl.renewed, cl.settled):
		w.met["successes whose replicas did not reach Redis in time"]++
	case r.status != execute.Succeeded || cl.how != "finish" || cl.outcome != "succeeded":
		w.violatedAt(g.at, "async: a report", r.Job,
			"%s took the report that tick %s had succeeded at %s, and it ended as %s, by %s as %q",
			g.by.process, stamp(r.Tick), g.at, r.status, cl.how, cl.outcome)
	default:
		w.met["successes that were recorded"]++
		for _, next := range w.runs[a.n+1:] {
			if next.Job == r.Job && next.Tick.Equal(r.Tick) && next.Kind != "backfill" && r.Kind != "backfill" &&
				!w.lostAllBetween(r.Tick.Sub(w.began), next.start) {
				w.violatedAt(next.start, "async: a report", r.Job,
					"tick %s was run again, and its success had been reported at %s", stamp(r.Tick), g.at)
			}
		}
	}
}

// judgeSilent: the run of an app that has died is over a heartbeat after the last one that came.
func (w *world) judgeSilent(a *worker, r *run) {
	if a.asked && a.is == mute && r.end != 0 && r.end <= w.plan.Lasts &&
		!w.disturbed(r.replica.place, r.start, r.end, "cut", "void", "lossy", "late") {
		w.met["apps that died before their first heartbeat"]++
		if r.end > r.start+a.job.Async.Heartbeat+slack {
			w.violatedAt(r.start, "async: silence", r.Job, "the app was given tick %s at %s and sent no heartbeat, "+
				"and the run ended on %s at %s", stamp(r.Tick), r.start, r.replica.process, r.end)
		}
	}
	standsLong := a.why == stoodStill && a.standsFor() > 2*a.job.Async.Heartbeat
	if a.why != appDied && !standsLong || r.accepted == 0 || r.end == 0 || len(a.granted) == 0 {
		return
	}
	// a heartbeat may have been on its way
	by := max(a.to+a.job.Async.Heartbeat/2, r.accepted) + a.job.Async.Heartbeat + slack
	if by > w.plan.Lasts || w.disturbed(r.replica.place, a.from, by, "cut", "void", "lossy", "late") {
		return
	}
	w.met["apps that died"]++
	if r.end > by {
		w.violatedAt(a.to, "async: silence", r.Job, "the app died at %s, and the run of tick %s ended on %s at %s",
			a.to, stamp(r.Tick), r.replica.process, r.end)
	}
}

// judgeLimits: the job's timeout limits the call, and the other one the run from when it was accepted.
func (w *world) judgeLimits(r *run) {
	j := w.plan.job(r.Job)
	from, limit := r.start, j.Timeout
	if r.accepted != 0 {
		from, limit = r.accepted, j.Async.Timeout
		if r.cause != nil && r.over <= from { // it was told to end before it was accepted
			from, limit = r.start, j.Timeout
		}
	}
	timedOut := r.cause != nil && strings.Contains(r.cause.Error(), "timeout")
	if timedOut {
		w.met["async runs that took too long"]++
	}
	if _, dead := r.replica.stopped(); dead || r.over == 0 ||
		w.disturbed(r.replica.place, r.start, r.over, "cut", "void", "lossy", "late") {
		return
	}
	if took := r.over - from; took > limit+slack || timedOut && took < limit-slack {
		w.violatedAt(r.over, "async: a limit", r.Job,
			"the run of tick %s on %s ended or was told to after %s of %s (%v)",
			stamp(r.Tick), r.replica.process, took, limit, r.cause)
	}
}

// judgeDeaths: a run whose app or replica has died is run again at most three times, and that of an app later each
// time. An app that could not go on because of the lease has not died.
func (w *world) judgeDeaths() {
	for _, c := range w.redis.claims.all {
		p, ok := w.parent(*c)
		how := p.how
		for _, u := range p.undone { // a failover has forgotten that end, and this claim
			if u.at <= c.won && c.won < p.settled {
				how = u.how
			}
		}
		if !ok || !w.plan.isAsync(c.job) || c.attempt <= p.attempt || how != "reap" && p.outcome != "interrupted" {
			continue
		}
		deaths, wait := p.deaths+1, time.Duration(0)
		switch {
		case how == "reap":
		case w.wasUnsure(p.run):
			deaths = p.deaths
			w.met["run again because the lease was not sure"]++
		default:
			wait = time.Second << (2 * p.deaths)
		}
		w.met["run again after a death"]++
		if c.deaths == takeovers {
			w.met["run again for the last time"]++
		}
		const ofRedis = time.Millisecond // its time is in whole ones
		// a failover that forgets the end of the run has it settled once more
		early := !w.stepped && len(p.undone) == 0 && p.how != "forgotten" && c.won < p.settled+wait-ofRedis
		if c.deaths != deaths || c.deaths > takeovers || early {
			w.violatedAt(c.won, "2: deaths", c.job, "tick %s is run again %s after its run on %s was interrupted, "+
				"as one of %d deaths after %d", stamp(c.tick), c.won-p.settled, p.replica.process, c.deaths, p.deaths)
		}
	}
}

// wasUnsure reports whether the last heartbeat for a run was refused because of the lease.
func (w *world) wasUnsure(run string) (unsure bool) {
	for _, r := range w.runs { // the last attempt tells
		for _, a := range w.workers {
			if r.ID == run && w.runs[a.n] == r {
				unsure = a.unsure
			}
		}
	}
	return unsure
}
