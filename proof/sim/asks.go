package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/view"
)

// asksFirst is the class of seeds in which apps run jobs by their own schedulers, and ask before each tick.
const asksFirst = "apps ask first"

// asks: apps with clocks of their own ask for ticks, early and late, once and twice, and some leave before they are
// answered. Some of the jobs become such as something of them is due, and cease to be such.
func (p *Plan) asks(r *rand.Rand) {
	p.async(r)
	p.Faults, p.Confirms = nil, pick(r, 0, 0, 1)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if i > 0 && r.IntN(3) == 0 {
			continue // the others are as ever, or their apps end their runs by reports
		}
		j.reports(r)
		j.Retries, j.Ignores, j.Suspend = 0, false, false
		j.Missed, j.Jitter = pick(r, "latest", "latest", "skip", "all"), pick(r, 0, 0, j.Period/4)
		j.Deadline = pick(r, 0, 0, 0, 3*time.Second)
		if j.Asks = true; i == 0 || r.IntN(3) > 0 {
			if at := 10*time.Second + upTo(r, 15*time.Second); r.IntN(4) == 0 {
				p.Reloads = append(p.Reloads, Reload{At: at, Kind: "schedule", Job: j.Name, To: pick(r, "2s", "3s", "7s")})
			} else if r.IntN(4) == 0 {
				p.Reloads = append(p.Reloads, Reload{At: at, Kind: "leaves", Job: j.Name},
					Reload{At: at + 2*time.Second + upTo(r, 9*time.Second), Kind: "returns", Job: j.Name})
			}
			continue
		}
		j.Asks, j.Refuses = false, pick(r, 0, 0.5)
		for at := 10*time.Second + upTo(r, 6*time.Second); at < 34*time.Second; at += 8*time.Second + upTo(r, 8*time.Second) {
			x := Reload{At: at, Kind: "asks", Job: j.Name}
			if r.IntN(3) == 0 {
				x.Late = map[int]time.Duration{r.IntN(len(p.Replicas)): 2*time.Second + upTo(r, 6*time.Second)}
			}
			p.Reloads = append(p.Reloads, x)
		}
	}
	if p.Ready = r.IntN(4) == 0; p.Ready {
		for place := range p.Replicas {
			from := upTo(r, 25*time.Second)
			p.Unready = append(p.Unready, Downtime{place, from, from + upTo(r, 8*time.Second)})
		}
	}
	kinds := []string{"crash", "crash", crashInPlace, "stall", "stall", "cut", "cut", "void", "lossy", "late", "jump", "stop",
		"drain", "drain", "redis refuses", "redis refuses", "redis void", "redis lossy", "redis restarts", redisStalls,
		forgets, redisSteps, failsOver}
	switch r.IntN(6) {
	case 0: // the table says `clock: local`
		p.Own = true
		for i := range p.Replicas {
			p.Replicas[i].Skew = -upTo(r, 50*time.Millisecond)
		}
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "jump" || kind == redisSteps })
	case 1:
		p.excludes(r)
	case 2:
		for i := range p.Jobs {
			if j := &p.Jobs[i]; j.Asks {
				j.From = pick(r, 0, time.Duration(8+r.IntN(8))*time.Second)
				j.To = pick(r, 0, time.Duration(24+r.IntN(10))*time.Second)
			}
		}
	}
	for at := 8 * time.Second; at < 34*time.Second; at += 4*time.Second + upTo(r, 12*time.Second) {
		f := Fault{At: at, Kind: pick(r, kinds...), Replica: -1, For: 500*time.Millisecond + upTo(r, 8*time.Second)}
		switch f.Kind {
		case "jump":
			f.By = upTo(r, 2*skews) - skews
		case redisSteps:
			f.By = upTo(r, 20*time.Second) - 8*time.Second
		case failsOver:
			f.By, f.For = 5*time.Millisecond+upTo(r, 800*time.Millisecond), 100*time.Millisecond+upTo(r, time.Second)
			f.After = pick(r, "acquire WON", "acquire OVERLAP", "settle OK", "settle OK", "extend OK")
		}
		p.Faults = append(p.Faults, f)
	}
	p.outlasts()
	for range pick(r, 0, 1, 2) {
		p.Orders = append(p.Orders, Order{At: 8*time.Second + upTo(r, 25*time.Second), For: upTo(r, 8*time.Second),
			Kind: pick(r, "cancel", "trigger", "backfill", "pause"), Job: p.Jobs[r.IntN(len(p.Jobs))].Name})
	}
}

// outlasts lets the world last until what a failover has brought back is taken over. Some wait for an answer first.
func (p *Plan) outlasts() {
	for _, f := range p.Faults {
		if f.Kind == failsOver || f.Kind == comesBackOlder {
			p.Lasts = max(p.Lasts, f.At+2*impatient+f.By+f.For+p.ttlOfAsync()+waited)
		}
	}
}

// excludes lets a midnight pass, before or after which a calendar excludes the ticks of jobs whose apps ask. Their
// schedulers do not know that.
func (p *Plan) excludes(r *rand.Rand) {
	lead := (16*time.Second + upTo(r, 8*time.Second)).Truncate(time.Millisecond)
	p.From = 4*24*time.Hour - lead
	midnight := dawn.Add(4 * 24 * time.Hour)
	p.Calendars = []Calendar{{Name: closedDays, Dates: []string{dateOf(midnight.AddDate(0, 0, -r.IntN(2)))}}}
	for i := range p.Jobs {
		if j := &p.Jobs[i]; j.Asks {
			j.Days = &Days{Weekday: -1, Exclude: closedDays}
		}
	}
}

// inTable is a job's row as it has to be when its app asks.
func (j Job) inTable() Job {
	if !j.Asks {
		return j
	}
	j.Guarantee, j.Retries = "at-most-once", 0
	if j.Policy != "Allow" || j.Lease { // a reload may make it one
		j.Policy = "Forbid"
	}
	return j
}

// asking is one question of an app for a tick, and a handler of the run that may come of it.
type asking struct {
	replica *replica
	job     *Job
	tick    time.Time       // zero = the one next to now
	at      time.Duration   // it reached the replica
	asker   context.Context // ends when the app leaves

	begun chan int // the number of the run in the world, once it has begun

	// The world is locked.
	left     time.Duration // the app left; 0 = it did not
	answered time.Duration // 0 = it never was, or the replica died first
	run      execute.Run   // that it was given
	given    bool
	err      error // why it was given none
	forbids  bool  // the replica's table said then that no app asks, or has no such tick
}

// schedules begin with the world.
func (w *world) schedules() {
	for _, name := range w.plan.names() {
		for place := range w.plan.Replicas {
			if (w.plan.Class == asksFirst || w.plan.Class == leases) && w.plan.isAsync(name) {
				w.crew.Go(func() { w.schedule(place, name) })
			}
		}
	}
}

// schedule is the life of the scheduler of a job in the app beside a replica. Its clock is as good as that of a
// machine. It knows the table's newest version.
func (w *world) schedule(place int, name string) {
	const fast = 2500 * time.Millisecond
	skew := w.dice.between(-fast, fast, forAsk, uint64(place))
	tick := w.began.Add(w.plan.Replicas[place].Begins)
	for n := uint64(0); w.now() < w.plan.Lasts; n++ {
		c := w.row(name, w.now())
		switch {
		case c == nil || c.Guarantee == config.EveryReplica:
			time.Sleep(time.Second)
			tick = time.Now()
			continue
		case c.Schedule.IsLease():
			w.hold(place, w.plan.job(name), n)
			tick = time.Now()
			continue
		}
		tick = w.ticksOf(c).everyTick(tick)
		wanted := tick
		time.Sleep(time.Until(tick.Add(-skew)))
		w.crew.Go(func() { w.wantTick(place, w.plan.job(name), wanted) })
	}
}

// wantTick draws how an app asks for one tick, and when it leaves.
func (w *world) wantTick(place int, j *Job, tick time.Time) {
	d, key := w.dice, uint64(tick.UnixMilli())
	keys := func(what uint64) []uint64 { return []uint64{forAsk, text(j.Name), key, uint64(place), what} }
	within := func(to time.Duration, what uint64) time.Duration { return d.between(0, to, keys(what)...) }
	if d.chance(0.1, forAsk, text(j.Name), key) || d.chance(0.1, keys(1)...) {
		return // no app asks, or this one does not
	}
	asked, leaves := tick, never
	if d.chance(0.15, keys(2)...) {
		asked = time.Time{}
	}
	if d.chance(0.06, forAsk, text(j.Name), key, 3) || d.chance(0.15, keys(3)...) {
		due := tick.Sub(w.began)
		switch d.throw(keys(4)...) % 3 {
		case 0: // before the tick
			leaves = d.between(min(w.now(), due), due, keys(5)...)
		case 1: // as it comes
			leaves = due - 30*time.Millisecond + within(60*time.Millisecond, 5)
		case 2:
			leaves = due + within(3*time.Second, 5)
		}
	}
	if d.chance(0.12, keys(6)...) {
		w.crew.Go(func() {
			time.Sleep(within(2*time.Second, 7))
			w.asks(place, j, tick, never, keys(8))
		})
	}
	if d.chance(0.12, keys(9)...) {
		time.Sleep(within(j.Period, 10))
	}
	w.asks(place, j, asked, leaves, keys(11))
}

// asks asks for a tick, again if the replica cannot tell.
func (w *world) asks(place int, j *Job, tick time.Time, leaves time.Duration, keys []uint64) {
	for n := range uint64(3) {
		throw := func(what uint64) []uint64 { return append(slices.Clip(keys), n, what) }
		time.Sleep(w.dice.between(0, 3*time.Millisecond, throw(1)...))
		p := w.listening(place)
		if p != nil {
			p.stall.wait()
		}
		switch {
		case w.now() >= leaves || w.now() >= w.plan.Lasts:
			return
		case p != nil && !p.isDead() && !w.ask(p, j, tick, leaves, w.dice.chance(0.04, throw(2)...)):
			return
		}
		time.Sleep(time.Second)
	}
}

// ask asks a replica once, and does the work if it may. It returns true if the app may ask again. lost tells that the
// answer does not reach it.
func (w *world) ask(p *replica, j *Job, tick time.Time, leaves time.Duration, lost bool) (again bool) {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	q := &asking{replica: p, job: j, tick: tick, at: w.now(), asker: ctx, begun: make(chan int, 1)}
	if leaves < never {
		defer time.AfterFunc(leaves-w.now(), func() {
			w.mu.Lock()
			q.left = w.now()
			w.mu.Unlock()
			leave()
		}).Stop()
	}
	w.mu.Lock()
	w.asked = append(w.asked, q)
	w.mu.Unlock()
	w.note(p, "asks", j.Name, stamp(tick), "", "")
	type reply struct {
		view.Granted
		err error
	}
	replies := make(chan reply, 1)
	go func() {
		g, err := p.sidecar.Ask(ctx, j.Name, tick, q)
		replies <- reply{g, err}
	}()
	var r reply
	select {
	case r = <-replies:
	case <-p.ended:
		return true
	}
	w.mu.Lock()
	q.answered, q.err = w.now(), r.err
	c := row(p.sidecar.Table(), j.Name)
	q.forbids = c == nil || c.Claim == nil || !tick.IsZero() && !w.isTick(c, tick)
	w.mu.Unlock()
	w.note(p, "answers", j.Name, stamp(tick), r.Run, fmt.Sprint(" ", r.err))
	if r.err != nil {
		p.stall.wait()
		no, ok := errors.AsType[*view.NotGranted](r.err)
		return p.isDead() || ok && no.Unknown
	}
	var n int
	select {
	case n = <-q.begun:
	case <-p.ended:
		return false
	}
	p.stall.wait()
	a := newWorker(p, j, n, q.run, r.Token)
	a.asked = true
	switch {
	case lost || p.isDead() || a.chance(0.12, 17):
		a.is = mute // it never begins
	default:
		a.is = works
		if a.chance(0.08, 18) {
			a.stands = a.within(0, a.takes+1, 19)
		}
		time.Sleep(a.begins)
		a.work()
	}
	return false
}

// Execute implements callback.Executor: the attempt that comes of the question, as the replica's own code makes it.
func (q *asking) Execute(ctx context.Context, r execute.Run, async *config.Async,
	call func(*callback.Call) (execute.Result, bool)) execute.Result {
	p, w, n := q.replica, q.replica.world, -1
	p.stall.wait()
	accepted, stop := r.Accepted, func() bool { return true }
	r.Accepted = func(limit time.Duration) {
		if n >= 0 {
			w.accepted(n)
		}
		accepted(limit)
	}
	done := make(chan execute.Result, 1)
	go func() {
		res := p.callbacks.Execute(ctx, r, async, func(c *callback.Call) (execute.Result, bool) {
			res, foreign := call(c)
			if res.Code == http.StatusAccepted && !p.isDead() { // the app has just got it
				n = q.begins(r)
				stop = context.AfterFunc(ctx, func() {
					p.stall.wait()
					w.canceled(n, context.Cause(ctx))
				})
			}
			return res, foreign
		})
		p.stall.wait()
		done <- res
	}()
	var res execute.Result
	select {
	case res = <-done:
	case <-p.ended:
		res = canceled(ctx)
	}
	stop()
	if n >= 0 {
		w.ended(n, res)
	}
	return res
}

// begins records that the app was given the run. A process that stands still gives it by a clock that does as well, and
// refuses the first heartbeat when it goes on.
func (q *asking) begins(r execute.Run) int {
	w, p := q.replica.world, q.replica
	n := w.started(p, r)
	cl, _ := w.redis.claims.of(r.ID) // the job may have left the table since
	w.mu.Lock()
	q.run, q.given = r, true
	w.runs[n].asked, w.runs[n].stands = true, p.stall.stands()
	w.runs[n].lease = leaseIn(p.sidecar.Table(), r.Job) || cl.policy == string(lock.HeldByOne)
	left := q.left
	w.mu.Unlock()
	if left != 0 && left < w.now() {
		w.violated("asks: a grant", r.Job, "tick %s was started for an app that had left %s at %s", stamp(r.Tick),
			p.process, left)
	}
	q.begun <- n
	return n
}

// checkAsked: what is promised to apps that ask.
func (w *world) checkAsked() {
	for _, q := range w.asked {
		if q.answered == 0 {
			continue
		}
		no, refused := errors.AsType[*view.NotGranted](q.err)
		switch {
		case q.err != nil && !refused && q.forbids:
			w.met["asked for ticks that the replicas run"]++
		case q.err != nil && !refused && !w.stepped: // which takes a tick far away
			w.violatedAt(q.answered, "asks: a refusal", q.job.Name, "the app of %s asked for tick %s, and was refused: %v",
				q.replica.process, stamp(q.tick), q.err)
		case q.given:
			w.judgeGiven(q)
		case refused && q.left != 0:
			if (q.left - q.tick.Sub(w.began)).Abs() < 30*time.Millisecond {
				w.met["askers that left as the tick came"]++
			}
		case refused && no.Unknown && slices.ContainsFunc(w.redis.claims.asks, func(a *ask) bool {
			return a.job == q.job.Name && a.replica == q.replica && a.tick.Equal(q.tick) && a.code == "FIRED" &&
				a.read == q.answered
		}):
			w.violatedAt(q.answered, "asks: a refusal", q.job.Name, "the app of %s may ask again for tick %s (%s), "+
				"which was fired", q.replica.process, stamp(q.tick), no.Reason)
		case refused && no.Reason == "fired_elsewhere":
			w.judgeElsewhere(q, no)
		case refused && no.Reason == "queued":
			w.violatedAt(q.answered, "asks: a refusal", q.job.Name, "the app of %s asked for tick %s, and was told to wait",
				q.replica.process, stamp(q.tick))
		case refused && no.Reason == "outside_window" && (q.forbids || q.tick.IsZero() || w.everLease(q.job.Name)):
			w.met["askers for excluded ticks"]++
		case refused && no.Reason == "outside_window":
			w.violatedAt(q.answered, "asks: a refusal", q.job.Name, "the app of %s asked for tick %s, and was told "+
				"that it is excluded", q.replica.process, stamp(q.tick))
		}
	}
	for _, c := range w.redis.claims.all {
		j := w.during(c.job, c.sent-time.Second, c.won)
		if j == nil || j.Claim == nil {
			continue
		}
		w.met["claims of apps that asked"]++
		if !c.table && (c.how == "finish" || w.wasStarted(c.run)) {
			w.violatedAt(c.won, "asks: due", c.job, "%s ran tick %s, which was due: no app had asked for it",
				c.replica.process, stamp(c.tick))
		}
		if c.table && !slices.ContainsFunc(w.asked, func(q *asking) bool { return q.about(c) }) {
			w.violatedAt(c.won, "asks: nobody", c.job, "%s claimed tick %s, and its app had not asked",
				c.replica.process, stamp(c.tick))
		}
	}
	w.checkDueLeft()
	w.met["jobs that became those of apps that ask while something was due"] += w.became
}

// about reports whether an app asked for what a claim is of.
func (q *asking) about(c *claim) bool {
	return q.job.Name == c.job && q.replica == c.replica && q.at <= c.sent &&
		(q.tick.IsZero() || q.tick.Equal(c.tick) || q.replica.world.everLease(c.job)) // then it is no tick
}

func (w *world) judgeGiven(q *asking) {
	due := q.run.Tick.Sub(w.began)
	switch {
	case !q.tick.IsZero() && !q.tick.Equal(q.run.Tick) && w.everLease(q.job.Name):
		w.met["askers for ticks of a job that had become a lease"]++
	case !q.tick.IsZero() && !q.tick.Equal(q.run.Tick):
		w.violatedAt(q.answered, "asks: a grant", q.job.Name, "the app of %s asked for tick %s, and was given %s",
			q.replica.process, stamp(q.tick), stamp(q.run.Tick))
	case q.tick.IsZero():
		w.judgeNow(q)
	}
	if q.at < due-slack && !q.tick.IsZero() {
		w.met["askers that were held back, as their clocks were fast"]++
	}
}

// judgeNow: an app that asks for the tick of now is given the one that comes due next to that.
func (w *world) judgeNow(q *asking) {
	j := w.during(q.job.Name, q.at-time.Second, q.answered)
	if j == nil || j.Schedule.IsLease() || w.stepped || q.replica.began+recovery > q.at ||
		w.disturbed(q.replica.place, q.at-recovery, q.at) ||
		w.disturbed(-1, q.at-recovery, q.at) {
		return
	}
	w.met["apps that asked for the tick of now"]++
	far := func(tick time.Time) time.Duration { return (w.dueOf(j, tick) - q.at).Abs() }
	for _, other := range []time.Time{w.next(j, q.run.Tick), w.last(j, q.run.Tick.Add(-time.Nanosecond))} {
		if far(other)+slack < far(q.run.Tick) {
			w.violatedAt(q.at, "asks: now", q.job.Name, "the app of %s asked for the tick of now, and was given %s, not %s",
				q.replica.process, stamp(q.run.Tick), stamp(other))
		}
	}
}

// judgeElsewhere: a tick that was asked for in time, and is another's, was claimed by that one.
func (w *world) judgeElsewhere(q *asking, no *view.NotGranted) {
	if q.tick.IsZero() || w.stepped || q.at > q.tick.Sub(w.began)+asked || w.forgotten(q.at-recovery) < q.answered ||
		w.disturbed(q.replica.place, q.at-recovery, q.answered) || w.disturbed(-1, q.at-recovery, q.answered) ||
		w.during(q.job.Name, q.at-recovery, q.answered) == nil {
		return
	}
	if slices.ContainsFunc(w.redis.claims.asks, func(a *ask) bool {
		return a.job == q.job.Name && a.tick.Equal(q.tick) && a.code == "OVERLAP" && a.at < q.answered
	}) {
		w.met["told that a tick is another's which had been set free by the end of a run, and missed"]++
		return
	}
	w.met["askers that were refused since others had asked"]++
	if !slices.ContainsFunc(w.redis.claims.all, func(c *claim) bool {
		return c.job == q.job.Name && c.tick.Equal(q.tick) && c.won <= q.answered &&
			(no.By == "" || no.By == c.replica.name)
	}) {
		w.violatedAt(q.answered, "asks: elsewhere", q.job.Name,
			"the app of %s asked for tick %s, and was told that it was %q's, which had not claimed it",
			q.replica.process, stamp(q.tick), no.By)
	}
}

// checkDueLeft: nothing that is due of a job whose app asks waits, for no app asks for that again.
func (w *world) checkDueLeft() {
	for _, name := range w.plan.names() {
		j := w.during(name, w.plan.Lasts-8*time.Second, w.plan.Lasts)
		if j == nil || j.Claim == nil || w.stepped || w.disturbed(-1, w.plan.Lasts-8*time.Second, w.plan.Lasts) ||
			!w.healthyFor(name, w.plan.Lasts-8*time.Second, w.plan.Lasts) {
			continue
		}
		if w.everLease(name) && slices.ContainsFunc(w.redis.claims.all, func(c *claim) bool {
			return c.job == name && c.settled > w.plan.Lasts-waited
		}) {
			continue // the end of a holding sets free what another app had asked for just before it began
		}
		w.met["jobs of apps that ask, of which nothing was left"]++
		paused := w.pausedAt(j, w.began.Add(w.plan.Lasts-8*time.Second)) // then what was not asked for by hand waits
		if w.redis.isDue(name, w.plan.Lasts-waited, paused) {
			w.violated("asks: due", name, "the app asks for its ticks, and something is still due at the end")
		}
	}
}

// everAsks reports whether the app of a job asks for its ticks at any time: what is asked for by hand is dropped then.
func (w *world) everAsks(job string) bool {
	return slices.ContainsFunc(w.tables, func(t *config.Table) bool {
		c := row(t, job)
		return c != nil && c.Claim != nil
	})
}

// asksInTime reports whether an app that stays asks for a tick by then, beside a replica that is well.
func (w *world) asksInTime(job string, tick time.Time, due, by time.Duration) bool {
	return slices.ContainsFunc(w.asked, func(q *asking) bool {
		p := q.replica
		asks := q.tick.Equal(tick) || q.tick.IsZero() && tick.Sub(w.began.Add(q.at)) < 900*time.Millisecond // the one next to then
		return q.job.Name == job && asks && q.at <= due && (q.left == 0 || q.left > by) && !p.isDead() &&
			!p.drains() && p.began+recovery <= due && !w.disturbed(p.place, due-recovery, by) &&
			w.takes(p.place, job, due-time.Second, by)
	})
}
