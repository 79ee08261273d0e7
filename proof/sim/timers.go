package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// TimerPlan is a timer that an operator sets.
type TimerPlan struct {
	ID       string
	Set, Due time.Duration
	Again    bool          // at-least-once
	Deleted  bool          // it is deleted a second after it was set, or 15 if it repeats
	Every    time.Duration // it repeats, in whole seconds; 0 = it does not, and comes due at Due
	Then     time.Duration // Every, from Set + 10 s on; 0 = the same
}

// repeats sets a timer that repeats, in a world of any class.
func (p *Plan) repeats(r *rand.Rand) {
	if p.Class == atRest || r.IntN(3) > 0 { // at rest, few things happen
		return
	}
	t := TimerPlan{ID: "series", Set: 3*time.Second + upTo(r, 10*time.Second), Again: r.IntN(2) == 0,
		Every: time.Duration(pick(r, 1, 3, 5, 10)) * time.Second, Then: time.Duration(pick(r, 0, 0, 2, 4)) * time.Second,
		Deleted: r.IntN(4) == 0}
	for _, f := range p.Faults {
		p.Lasts = max(p.Lasts, f.At+f.For+timerNature.TTL+4*time.Second)
		if f.Kind == "redis steps" { // it is set for times that have been, by a clock that is behind
			t.Then = 0
		}
	}
	p.Timers = append(p.Timers, t)
}

// timerNature is how a timer behaves.
var timerNature = Job{Name: "timer", TTL: 15 * time.Second, Policy: "Allow", Guarantee: "at-most-once",
	Takes: [2]time.Duration{0, 50 * time.Millisecond}}

// setTimer sets a timer, and deletes it if that is planned.
func (o *operator) setTimer(t TimerPlan) {
	guarantee := config.AtMostOnce
	if t.Again {
		guarantee = config.AtLeastOnce
	}
	when := fmt.Sprintf(`"after": "%s"`, t.Due-t.Set)
	if t.Every > 0 {
		when = fmt.Sprintf(`"schedule": "*/%d * * * * *"`, t.Every/time.Second)
	}
	body := fmt.Sprintf(`{%s, "guarantee": "%s", "http": {"url": "http://127.0.0.1:1/x"}}`, when, guarantee)
	if t.Then > 0 {
		o.world.later(10*time.Second, func() {
			o.setTimer(TimerPlan{ID: t.ID, Again: t.Again, Every: t.Then})
		})
	}
	parsed, err := config.ParseTimer(t.ID, []byte(body), time.Now().Add(o.world.offsetAt(o.world.now())))
	if err != nil {
		o.world.violated("timer", "", "%v", err)
		return
	}
	o.do(func(ctx context.Context, s *service.Store) (err error) {
		if t.Every > 0 {
			_, _, err = s.SetSeries(ctx, t.ID, parsed.At, parsed.Source)
		} else {
			_, err = s.SetTimer(ctx, t.ID, parsed.At, parsed.Source)
		}
		return err
	})
	if t.Deleted {
		wait := time.Second
		if t.Every > 0 {
			wait = 15 * time.Second
		}
		o.world.later(wait, func() {
			o.do(func(ctx context.Context, s *service.Store) error {
				_, err := s.DeleteTimer(ctx, t.ID)
				return err
			})
		})
	}
}

// manyTimers is when a fault begins that befalls a replica while its claims of many timers, sent together, are won: the
// answers to most of them are lost.
const manyTimers = "many timers"

// timerWon begins that fault. The claims are locked.
func (c *claims) timerWon(won *claim) {
	if t := c.timers[service.TimerID(won.job)]; t != nil {
		for _, o := range t.times {
			if o.replaced != 0 && o.tick.Equal(won.tick) && c.keeps(o.replaced) {
				c.world.violated("1: never twice", won.job, "%s is claimed, and was replaced at %s", stamp(o.tick),
					o.replaced)
			}
		}
	}
	n := len(c.all)
	if c.struck || n < 2 || c.all[n-2].won != won.won || c.all[n-2].replica != won.replica {
		return
	}
	for _, f := range c.world.plan.Faults {
		if f.After == manyTimers {
			c.struck = true
			f.Replica = won.replica.place
			if f.Kind == "void" { // at once, or the answers would be on their way
				c.world.strike(f)
			} else { // not while Redis runs what came over a connection
				c.world.later(1, func() { c.world.strike(f) })
			}
		}
	}
}

// timerState is a timer as Redis saw it.
type timerState struct {
	plan    TimerPlan
	set     time.Duration // 0: never
	source  string        // of the newest that was set
	deleted time.Duration // 0: it was not

	// Of one that repeats: its times that were made due, the one for which it waits and since when, and the one for
	// which it was to wait when it was set.
	times       []sprung
	waits, told time.Time
	since       time.Duration
}

// sprung is a time of a timer that repeats, which was made due.
type sprung struct {
	tick     time.Time
	at       time.Duration
	replaced time.Duration // when a newer one took its place, which is missed then; 0: none did
}

// sprang records the times of timers that repeat which were made due. The claims are locked.
func (c *claims) sprang(q *call) {
	w := c.world
	for i, code := range q.reply[min(answerSprung, len(q.reply)):] {
		args := q.args[argSprings+springArgs*i:]
		member := strings.Fields(args[0])
		w.met["springs: "+code]++
		w.note(q.replica, "spring", member[memberJob], args[1], "", code)
		t := c.timers[service.TimerID(member[memberJob])]
		if t == nil || code == string(service.SprungGone) {
			continue
		}
		t.waits, t.since = millis(args[2]), w.now()
		switch service.Sprung(code) {
		case service.SprungReplaced:
			c.replaced(t, member[memberJob])
		case service.SprungDue:
		default:
			continue
		}
		made := sprung{tick: millis(args[1]), at: w.now()}
		for _, o := range t.times {
			if !made.tick.After(o.tick) && c.keeps(o.at) {
				w.violated("1: never twice", member[memberJob], "%s is made due at %s, and %s was at %s",
					stamp(made.tick), made.at, stamp(o.tick), o.at)
			}
		}
		for _, cl := range c.all {
			if cl.job == member[memberJob] && cl.settled == 0 && !cl.back && c.keeps(cl.won) {
				w.violated("overlap", cl.job, "%s is made due at %s, and the run of %s lives, since %s",
					stamp(made.tick), made.at, stamp(cl.tick), cl.won)
			}
		}
		if t.deleted != 0 && c.keeps(t.deleted) {
			w.violated("1: deleted", member[memberJob], "%s is made due at %s, and the timer was deleted at %s",
				stamp(made.tick), made.at, t.deleted)
		}
		if every := int64(t.every() / time.Second); c.keeps(t.set) && made.tick.Unix()%every != 0 && !made.tick.Equal(t.told) {
			w.violated("1: replaced", member[memberJob], "at %s it was set to repeat every %d s, and %s is made due at %s",
				t.set, every, stamp(made.tick), made.at)
		}
		t.times = append(t.times, made)
	}
}

// replaced records that a newer time has replaced the newest one that Redis knows, which no replica may have claimed. The
// claims are locked.
func (c *claims) replaced(t *timerState, job string) {
	for i := range slices.Backward(t.times) {
		last := &t.times[i]
		if !c.keeps(last.at) {
			continue
		}
		last.replaced = c.world.now()
		for _, cl := range c.all {
			if cl.job == job && cl.tick.Equal(last.tick) && c.keeps(cl.won) {
				c.world.violated("overlap", job, "%s is replaced at %s, and was claimed at %s", stamp(last.tick),
					last.replaced, cl.won)
			}
		}
		return
	}
}

// keeps reports whether Redis still knows what it was told at a time. The claims are locked.
func (c *claims) keeps(at time.Duration) bool {
	return !c.forgot(at) && !slices.ContainsFunc(c.loss, func(l time.Duration) bool { return l >= at })
}

// every is how often a timer repeats, as it was set last.
func (t *timerState) every() time.Duration {
	if strings.Contains(t.source, fmt.Sprintf("*/%d ", t.plan.Then/time.Second)) {
		return t.plan.Then
	}
	return t.plan.Every
}

// timed records what was done about a timer. The claims are locked.
func (c *claims) timed(q *call, code string) {
	if len(q.args) <= argTimer {
		return
	}
	t := c.timers[q.args[argTimer]]
	switch {
	case t == nil:
	case code == "SET" && len(q.args) > argSource && q.args[argSource] != t.source: // else nothing has changed
		was, since := t.waits, t.since
		t.set, t.source, t.deleted = c.world.now(), q.args[argSource], 0
		if t.plan.Every == 0 || len(q.reply) <= answerWaits {
			return
		}
		t.waits, t.told, t.since = millis(q.reply[answerWaits]), millis(q.reply[answerWaits]), c.world.now()
		if was.Unix() > 0 && c.keeps(since) && !was.After(millis(q.reply[answerTime])) && !was.Equal(t.waits) {
			c.world.violated("2: never lost", service.TimerJob(t.plan.ID),
				"%s had come, and is lost: it was set anew, and waits for %s", stamp(was), stamp(t.waits))
		}
	case code == "DELETED":
		t.deleted, t.waits = c.world.now(), time.Time{}
	}
}

// checkTimersFired: each timer is fired once, and none is lost.
func (w *world) checkTimersFired() {
	starts := map[string][]*run{}
	for _, r := range w.runs {
		if service.IsTimer(r.Job) {
			starts[r.Job] = append(starts[r.Job], r)
		}
	}
	for id, t := range w.redis.claims.timers {
		job := service.TimerJob(id)
		switch {
		case t.deleted != 0 && t.plan.Every > 0:
			w.met["timers that repeat and were deleted"]++
			continue
		case t.deleted != 0:
			w.judgeDeleted(t, job, starts[job])
			continue
		case t.plan.Every > 0:
			w.checkSeries(t, job, starts[job])
			continue
		}
		if t.set == 0 || w.redis.claims.forgot(t.set) || w.forgotten(t.set) < w.plan.Lasts {
			continue
		}
		due := w.reached(w.began.Add(t.plan.Due), t.set)
		if w.offsetAt(due) > service.MaxOffset { // which nobody believes: it is due by the replicas' own clocks
			due = max(due, t.plan.Due)
		}
		w.met["timers"]++
		if len(starts[job]) > 0 && w.plan.Class == atRest { // few timers, and no crash that strikes one
			first := slices.MinFunc(starts[job], func(a, b *run) int { return cmp.Compare(a.start, b.start) }).start
			if from, ok := w.quiet(job, max(due, t.set), first, 2*time.Second); ok {
				w.violatedAt(from, "prompt", job,
					"the timer that came due at %s was fired at %s, and could have been since %s", due, first, from)
			}
		}
		if len(starts[job]) > 0 || due > w.plan.Lasts-15*time.Second {
			continue // that they are not too many is judged as for all runs
		}
		if w.diedBeforeTheStart(job) && !t.plan.Again {
			continue
		}
		from, ok := w.quiet(job, due, w.plan.Lasts, 10*time.Second)
		if !ok {
			continue
		}
		w.violatedAt(from, "2: never lost", job,
			"the timer that came due at %s was never fired, and could have been since %s", due, from)
	}
}

// checkSeries: a timer that repeats goes on. Its times are judged when they are made due.
func (w *world) checkSeries(t *timerState, job string, starts []*run) {
	if t.set == 0 || w.redis.claims.forgot(t.set) || w.forgotten(t.set) < w.plan.Lasts ||
		w.offsetAt(t.set) > service.MaxOffset { // which who sets a timer believes
		return
	}
	w.met["timers that repeat"]++
	w.met["times of timers that repeat"] += len(starts)
	last := t.set
	for _, r := range starts { // what was handed on goes on
		last = max(last, r.start)
	}
	for _, c := range w.redis.claims.all {
		if c.job == job && c.settled == 0 && c.won > t.set {
			return // it waits for that run, which is judged for itself
		}
		if c.job == job {
			last = max(last, c.settled)
		}
	}
	from, ok := w.quiet(job, last+t.every(), w.plan.Lasts, t.every()+10*time.Second)
	if !ok {
		return
	}
	w.violatedAt(from, "2: never lost", job,
		"it repeats every %s since %s, and was not fired after %s, and could have been since %s", t.every(), t.set,
		last, from)
}

// checkTimersForgotten: what a timer was to do is kept as long as it is due, and all runs are over.
func (w *world) checkTimersForgotten() {
	due, _ := w.redis.mini.ZMembers(prefix + "timers:due") // an error is an empty set
	for id, t := range w.redis.claims.timers {
		w.checkTimerForgotten(service.TimerJob(id), due)
		for _, made := range t.times {
			w.checkTimerForgotten(fmt.Sprintf("%s@%d", service.TimerJob(id), made.tick.UnixMilli()), due)
		}
	}
}

func (w *world) checkTimerForgotten(job string, due []string) {
	entry, _ := w.redis.mini.Get(prefix + job) // an error is an empty one
	isDue := slices.ContainsFunc(due, func(m string) bool { return strings.Fields(m)[memberJob] == job })
	if !isDue && leftoverTimer(entry) {
		w.violated("6: accounts", job, "it is not due, and what it was to do is still kept")
	}
}

// judgeDeleted: a timer that was deleted is not fired any more.
func (w *world) judgeDeleted(t *timerState, job string, starts []*run) {
	w.met["timers that were deleted"]++
	for _, r := range starts {
		if r.start > t.deleted && !w.redis.claims.forgot(t.deleted) {
			w.violatedAt(r.start, "1: deleted", job, "the timer was deleted at %s, and fired by %s at %s",
				t.deleted, r.replica.process, r.start)
		}
	}
}

// diedBeforeTheStart reports whether a replica died between its claim of a run and the start.
func (w *world) diedBeforeTheStart(job string) bool {
	for _, c := range w.redis.claims.all {
		if c.job == job && c.replica.diedAt() >= c.won && c.replica.isDead() && !w.wasStarted(c.run) {
			return true
		}
	}
	return false
}

// quiet finds a time of some length in which Redis and a replica were well, with a slot free for a job.
func (w *world) quiet(job string, from, to, length time.Duration) (time.Duration, bool) {
	starts := []time.Duration{from}
	for _, s := range w.spans {
		starts = append(starts, s.to+1)
	}
	for _, x := range starts {
		if x >= from && x+length <= to && !w.disturbed(-1, x, x+length) && w.healthyFor(job, x, x+length) {
			return x, true
		}
	}
	return 0, false
}
