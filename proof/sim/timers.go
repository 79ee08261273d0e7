package sim

import (
	"cmp"
	"context"
	"fmt"
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
	Again    bool // at-least-once
	Deleted  bool // it is deleted a second after it was set
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
	body := fmt.Sprintf(`{"after": "%s", "guarantee": "%s", "http": {"url": "http://127.0.0.1:1/x"}}`,
		t.Due-t.Set, guarantee)
	parsed, err := config.ParseTimer(t.ID, []byte(body), time.Now().Add(o.world.offsetAt(o.world.now())))
	if err != nil {
		o.world.violated("timer", "", "%v", err)
		return
	}
	o.do(func(ctx context.Context, s *service.Store) error {
		_, err := s.SetTimer(ctx, t.ID, parsed.At, parsed.Source)
		return err
	})
	if t.Deleted {
		o.world.later(time.Second, func() {
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
	deleted time.Duration // 0: it was not
}

// timed records what was done about a timer. The claims are locked.
func (c *claims) timed(q *call, code string) {
	if len(q.args) <= argTimer {
		return
	}
	t := c.timers[q.args[argTimer]]
	switch {
	case t == nil:
	case code == "SET":
		t.set = c.world.now()
	case code == "DELETED":
		t.deleted = c.world.now()
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
		if t.deleted != 0 {
			w.judgeDeleted(t, job, starts[job])
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
			if from, ok := w.quiet(job, max(due, t.set), first, 5*time.Second); ok {
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

// checkTimersForgotten: what a timer was to do is kept as long as it is due, and all runs are over.
func (w *world) checkTimersForgotten() {
	due, _ := w.redis.mini.ZMembers(prefix + "timers:due") // an error is an empty set
	for id := range w.redis.claims.timers {
		job := service.TimerJob(id)
		entry, _ := w.redis.mini.Get(prefix + job) // and this an empty one
		isDue := slices.ContainsFunc(due, func(m string) bool { return strings.Fields(m)[memberJob] == job })
		if !isDue && leftoverTimer(entry) {
			w.violated("6: accounts", job, "it is not due, and what it was to do is still kept")
		}
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
