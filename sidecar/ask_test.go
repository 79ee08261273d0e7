package sidecar

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// asked is a table with a job whose app's own scheduler runs it.
func asked(keys string) string {
	return `
jobs:
  - {name: minute, schedule: "* * * * *", claim: {}, ` + keys + `}
`
}

// question is what an app asks at a replica, and how it was answered.
type question struct {
	granted view.Granted
	refused *view.NotGranted
	err     error
	at      time.Time // of the answer
}

// asks has an app ask a replica for the tick that comes so long after the origin.
func (a *app) asks(ctx context.Context, r *replica, tick time.Duration) *question {
	q := &question{}
	q.granted, q.err = r.Ask(ctx, "minute", r.world.origin().Add(tick), a.of.Load())
	q.at = time.Now()
	q.refused, _ = errors.AsType[*view.NotGranted](q.err)
	return q
}

// worksOn has the app work on the run that it got.
func (a *app) worksOn(r *replica, q *question, tick time.Time) {
	a.run(execute.Run{ID: q.granted.Run, Tick: tick}, q.granted.Token)
}

// The clock of one app is fast, that of the other slow: the first is held back until the tick.
func TestOneOfTheAppsThatAskGetsTheTick(t *testing.T) {
	simulate(t, asked("lock: {ttl: 15s}"), func(w *world) {
		fast, slow, a := w.replica(0), w.replica(0), newApp(3*time.Second)
		for n := range 3 {
			tick := time.Duration(n) * time.Minute
			w.at(tick - 2500*time.Millisecond)
			var first *question
			go func() { first = a.asks(w.t.Context(), fast, tick) }()
			w.at(tick + 2500*time.Millisecond)
			second := a.asks(w.t.Context(), slow, tick)
			if first.err != nil || first.at.Sub(w.origin().Add(tick)).Round(time.Millisecond) != 0 || first.granted.Tick != stamp(w.origin().Add(tick)) ||
				first.granted.HeartbeatMS != 5000 {
				t.Errorf("the first was answered %+v", first)
			}
			if second.refused == nil || *second.refused != (view.NotGranted{Reason: "fired_elsewhere", By: "r1"}) {
				t.Errorf("the second was answered %+v, %v", second, second.err)
			}
			a.worksOn(fast, first, w.origin().Add(tick))
			synctest.Wait()
			w.expect(float64(n+1), "runs_total", "succeeded")
			if n > 0 && first.granted.Since != stamp(w.origin().Add(tick-time.Minute)) {
				t.Errorf("run %d works since %s", n, first.granted.Since)
			}
		}
		if all := w.apart(a); len(all) != 3 {
			t.Errorf("the apps worked %+v", all)
		}
	})
}

// Schedulers that cannot say which tick they run ask for the one next to now.
func TestAnAppMayAskForTheTickNextToNow(t *testing.T) {
	simulate(t, asked("lock: {ttl: 15s}"), func(w *world) {
		r, a := w.replica(0), newApp(0)
		for n, off := range []time.Duration{-25 * time.Second, 0, 29 * time.Second} {
			tick := time.Duration(n) * time.Minute
			w.at(tick + off)
			g, err := r.Ask(w.t.Context(), "minute", time.Time{}, a.of.Load())
			if err != nil || g.Tick != stamp(w.origin().Add(tick)) {
				t.Errorf("%s after %s: %+v, %v", off, tick, g, err)
			}
			_ = a.of.Load().Finish(g.Run, g.Token, callback.Report{Outcome: callback.Succeeded})
		}
	})
}

// A tick for which no app asks is missed, however many replicas live.
func TestATickThatNoAppAsksForIsMissed(t *testing.T) {
	simulate(t, asked("lock: {ttl: 15s}"), func(w *world) {
		r, a := w.replica(0), newApp(0)
		w.replica(0)
		w.at(0)
		_ = a.asks(w.t.Context(), r, 0)
		w.at(3 * time.Minute)
		if q := a.asks(w.t.Context(), r, 3*time.Minute); q.err != nil {
			t.Fatal(q.err)
		}
		w.at(3*time.Minute + time.Second)
		w.expect(2, "missed_total", "minute")
		if e := w.replicas[0].logs.String(); !strings.Contains(e, "missed ticks that no replica fired") {
			t.Error(e)
		}
		fates, err := r.store.TickFates(w.t.Context(), "minute")
		if e := fates.Fate(w.origin().Add(time.Minute)); err != nil || e == nil || e.Detail != "no app asked for it" {
			t.Errorf("the fate is %+v, %v", e, err)
		}
		if starts := w.started("minute"); len(starts) != 0 {
			t.Errorf("replicas started %+v by themselves", starts)
		}
	})
}

// An app asked for a tick to come. Then the table changes, and no tick is another one except those to come.
func TestATickThatTheTableHasLostIsOfNoApp(t *testing.T) {
	table := asked("lock: {ttl: 15s}, start: \"2000-01-01T00:10:30Z\"")
	simulate(t, table, func(w *world) {
		r, a := w.replica(0), newApp(0)
		w.at(-5 * time.Second)
		var q *question
		go func() { q = a.asks(w.t.Context(), r, 0) }()
		w.at(-3 * time.Second)
		w.must(r.Reload(parse(t, strings.Replace(table, "* * * * *", "30 * * * *", 1)), nil))
		w.at(time.Second)
		if q == nil || q.refused == nil || q.refused.Reason != "superseded" {
			t.Errorf("it was answered %+v", q)
		}
	})
}

// An app that leaves before the tick costs nothing, one that leaves after its answer costs the tick.
func TestAnAppThatAskedMayBeGone(t *testing.T) {
	simulate(t, asked("lock: {ttl: 15s}"), func(w *world) {
		first, second, a := w.replica(0), w.replica(0), newApp(time.Second)
		w.at(-5 * time.Second)
		ctx, leave := context.WithTimeout(w.t.Context(), 4*time.Second)
		defer leave()
		if q := a.asks(ctx, first, 0); q.refused == nil || !q.refused.Unknown {
			t.Errorf("it was answered %+v", q)
		}
		q := a.asks(w.t.Context(), second, 0)
		if q.err != nil {
			t.Fatal(q.err)
		}
		w.at(5*time.Second - time.Millisecond)
		w.expect(1, "running", "minute")
		w.at(5*time.Second + time.Millisecond)
		w.expect(1, "runs_total", "interrupted")
		w.expect(1, "skips_total", "minute", "not_asked")
		if _, err := a.of.Load().Beat(q.granted.Run, q.granted.Token); err == nil {
			t.Error("a heartbeat of a run that is over had leave")
		}
	})
}

// At the instant of the tick the app is gone, and the replica has claimed the tick already: no run begins, and the tick
// has failed.
func TestARunThatNoAppTakesNeverBegins(t *testing.T) {
	simulate(t, asked("lock: {ttl: 15s}"), func(w *world) {
		r, a := w.replica(0), newApp(time.Second)
		w.at(-time.Second)
		ctx, leave := context.WithTimeout(w.t.Context(), time.Second-ahead/2)
		defer leave()
		if q := a.asks(ctx, r, 0); q.refused == nil {
			t.Errorf("it was answered %+v", q)
		}
		w.at(time.Second)
		w.expect(0, "fires_total", "minute")
		w.expect(1, "runs_total", "not_started")
		if e := w.last("minute"); e == nil || e.Detail != errGone.Error() {
			t.Errorf("the history says %+v", e)
		}
		if due := w.dueMembers(); len(due) > 0 {
			t.Errorf("due: %v", due)
		}
	})
}

// No app asks again for a tick that becomes due all the same.
func TestWhatIsDueOfAnAppThatAsksIsMissedAtOnce(t *testing.T) {
	simulate(t, asked("lock: {ttl: 70s}"), func(w *world) {
		dies, a := w.replica(0), newApp(time.Second)
		w.at(0)
		if q := a.asks(w.t.Context(), dies, 0); q.err != nil {
			t.Fatal(q.err)
		}
		dies.crash()
		lives := w.replica(0)
		w.at(time.Minute) // the run may live, for all that is known
		if q := a.asks(w.t.Context(), lives, time.Minute); q.refused == nil || q.refused.Reason != "overlap" {
			t.Errorf("it was answered %+v, %v", q, q.err)
		}
		w.at(100 * time.Second)
		if due := w.dueMembers(); len(due) > 0 {
			t.Errorf("due: %v\n%s", due, w.log())
		}
		w.expect(1, "missed_total", "minute")
		w.at(2 * time.Minute)
		if q := a.asks(w.t.Context(), lives, 2*time.Minute); q.err != nil {
			t.Error(q.err)
		}
	})
}

// An app that waits for a tick as the table changes gets a heartbeat that fits into the lock as it is then.
func TestAnAppThatWaitsGetsTheHeartbeatInForce(t *testing.T) {
	simulate(t, strings.Replace(asked("lock: {ttl: 70s}"), "{}", "{heartbeat: 30s}", 1), func(w *world) {
		r, a := w.replica(0), newApp(0)
		w.at(-3 * time.Second)
		var q *question
		go func() { q = a.asks(w.t.Context(), r, 0) }()
		w.at(-2 * time.Second)
		w.swap(r, asked("lock: {ttl: 15s}"))
		w.at(time.Second)
		if q == nil || q.granted.HeartbeatMS != 5000 {
			t.Fatalf("it was answered %+v", q)
		}
		if _, err := a.of.Load().Beat(q.granted.Run, q.granted.Token); err != nil {
			t.Error(err)
		}
	})
}

// While its replica has no slot, an app is not told to ask again for a tick that is another's.
func TestAnAppWithoutASlotHearsThatTheTickIsAnothers(t *testing.T) {
	simulate(t, asked("lock: {ttl: 15s}"), func(w *world) {
		first, second, a := w.replica(0), w.replica(0), newApp(0)
		w.at(-time.Second)
		second.slots.setUnready("a test", time.Now())
		if q := a.asks(w.t.Context(), first, 0); q.err != nil {
			t.Fatal(q.err)
		}
		if q := a.asks(w.t.Context(), second, 0); q.refused == nil || *q.refused != (view.NotGranted{Reason: "fired_elsewhere", By: "r1"}) {
			t.Errorf("it was answered %+v, %v", q, q.err)
		}
	})
}

// Ticks and requests that the replicas would have run are dropped when an app takes over the job.
func TestWhatIsDueWhenAnAppTakesTheJobOverIsDropped(t *testing.T) {
	const before = `
jobs:
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}, guarantee: at-least-once, concurrencyPolicy: Queue}
`
	simulate(t, before, func(w *world) {
		r, a := w.replica(90*time.Second), newApp(0)
		w.at(61 * time.Second) // one waits behind the run
		w.operator(func(s *service.Store) {
			_, err := s.Trigger(w.t.Context(), "minute", "7d4b4f6e-5b7e-4a3b-9d0c-1d1f0c4d9a01")
			w.must(err)
		})
		w.swap(r, asked("lock: {ttl: 15s}"))
		w.at(95 * time.Second)
		if due := w.dueMembers(); len(due) > 0 {
			t.Errorf("due: %v\n%s", due, w.log())
		}
		if n := len(w.started("minute")); n != 1 {
			t.Errorf("%d ticks were started\n%s", n, w.log())
		}
		w.at(2 * time.Minute)
		if q := a.asks(w.t.Context(), r, 2*time.Minute); q.err != nil {
			t.Error(q.err)
		}
	})
}

// An app that waits for a tick as the table gives the job to the replicas does not get it.
func TestAJobThatLeavesItsAppIsRunByTheReplicas(t *testing.T) {
	simulate(t, asked("lock: {ttl: 15s}"), func(w *world) {
		r, a := w.replica(time.Second), newApp(0)
		w.at(-3 * time.Second)
		var q *question
		go func() { q = a.asks(w.t.Context(), r, 0) }()
		w.at(-2 * time.Second)
		w.swap(r, "\njobs:\n  - {name: minute, schedule: \"* * * * *\", exec: {command: [x]}}\n")
		w.at(time.Second)
		if q == nil || q.refused == nil || q.refused.Reason != "superseded" && q.refused.Reason != "fired_elsewhere" {
			t.Errorf("it was answered %+v", q)
		}
		if n := len(w.started("minute")[w.origin()]); n != 1 {
			t.Errorf("the replica started the tick %d times", n)
		}
	})
}

func TestWhyAnAppMayNotRunATick(t *testing.T) {
	table := strings.Replace(asked(`lock: {ttl: 15s}, exclude: [off], start: "2000-01-01T00:09:00Z"`), "\njobs:",
		"\ncalendars: {off: {dates: [2000-01-02]}}\njobs:\n"+
			`  - {name: theirs, schedule: "* * * * *", exec: {command: [x]}}`, 1)
	simulate(t, table, func(w *world) {
		r, a := w.replica(0), newApp(0)
		w.at(time.Second)
		for _, c := range []struct {
			what, job string
			tick      time.Duration
			want      service.Kind // of a refusal
			reason    string       // of a tick that is not for it
		}{
			{"no job", "none", 0, service.NoJob, ""},
			{"a job of the replicas", "theirs", 0, service.OtherWay, ""},
			{"no tick", "minute", time.Second, service.Invalid, ""},
			{"a tick far ahead", "minute", 2 * time.Minute, service.Future, ""},
			{"an excluded day", "minute", 25 * time.Hour, 0, "outside_window"},
			{"before the start", "minute", -3 * time.Minute, 0, "outside_window"},
			{"a tick whose successor is due", "minute", -time.Minute, 0, "superseded"},
		} {
			_, err := r.Ask(w.t.Context(), c.job, w.origin().Add(c.tick), a.of.Load())
			refused, _ := errors.AsType[*service.Refusal](err)
			not, _ := errors.AsType[*view.NotGranted](err)
			if c.reason == "" && (refused == nil || refused.Kind != c.want) || c.reason != "" && (not == nil || not.Reason != c.reason || not.Unknown) {
				t.Errorf("%s: %#v", c.what, err)
			}
		}
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "minute", "a test", time.Time{})) })
		w.at(time.Minute)
		if q := a.asks(w.t.Context(), r, time.Minute); q.refused == nil || q.refused.Reason != "paused" {
			t.Errorf("while it is paused: %+v", q)
		}
		r.disconnect(true)
		w.at(110 * time.Second)
		if q := a.asks(w.t.Context(), r, 2*time.Minute); q.refused == nil || !q.refused.Unknown ||
			!q.at.Equal(w.origin().Add(110*time.Second+longestAsk)) {
			t.Errorf("without Redis: %+v, %v", q, q.err)
		}
		r.disconnect(false)
		r.stop()
		synctest.Wait()
		if q := a.asks(w.t.Context(), r, 3*time.Minute); q.refused == nil || q.refused.Reason != "draining" || !q.refused.Unknown {
			t.Errorf("while it drains: %+v", q)
		}
	})
}

// While Redis' clock is behind the last claim, nobody gets the lease, and apps are told to ask again.
func TestALeaseWaitsForRedisClock(t *testing.T) {
	simulate(t, leased, func(w *world) {
		r, a := w.replica(0), newApp(0)
		w.at(0)
		held := a.holds(w.t.Context(), r)
		w.must(a.of.Load().Finish(held.granted.Run, held.granted.Token, callback.Report{Outcome: callback.Succeeded}))
		w.at(time.Second)
		w.redisIsAhead(-3 * time.Minute)
		if q := a.asksNow(w.t.Context(), r); q.refused == nil || q.refused.Reason != "overlap" && !q.refused.Unknown || q.at.Sub(w.origin()) < longestAsk {
			t.Errorf("it was answered %+v, %v", q, q.err)
		}
		w.redisIsAhead(0)
		if q := a.holds(w.t.Context(), r); q.err != nil {
			t.Error(q.err)
		}
	})
}

// An app that waits for a lease hears at once that its replica takes no more ticks. The others hear nothing of that.
func TestADrainEndsTheWaitForALease(t *testing.T) {
	simulate(t, leased, func(w *world) {
		one, other, a := w.replica(0), w.replica(0), newApp(50*time.Second)
		w.at(0)
		go a.worksOn(one, a.holds(w.t.Context(), one), w.origin())
		w.at(time.Second)
		var waits *question
		go func() { waits = a.asksNow(w.t.Context(), other) }()
		w.at(10 * time.Second)
		w.must(other.Drain(w.t.Context()))
		w.at(11*time.Second + time.Millisecond)
		if waits == nil || waits.refused == nil || waits.refused.Reason != "draining" {
			t.Errorf("it was answered %+v", waits)
		}
	})
}

// An app that gives up while its replica is not ready, or full, was not refused for its own sake.
func TestAnAppThatLeavesAReplicaThatIsNotReady(t *testing.T) {
	simulate(t, "\nready: {tcp: \"127.0.0.1:1\"}"+asked("lock: {ttl: 15s}"), func(w *world) {
		r, a := w.replica(0, func(r *replica) { r.app = unready{} }), newApp(0)
		w.at(0)
		if q := a.asks(w.t.Context(), r, 0); q.refused == nil || !q.refused.Unknown || q.refused.Reason != "not_ready" {
			t.Errorf("it was answered %+v, %v", q, q.err)
		}
		synctest.Wait()
		w.expect(1, "skips_total", "minute", "not_ready")
	})
}

type unready struct{}

func (unready) Probe(context.Context) error { return errors.New("busy") }

// A replica that only observes gives no tick to an app. The tick is taken all the same, so none is overdue.
func TestAnObservedJobIsOfNoApp(t *testing.T) {
	simulate(t, asked("observe: true"), func(w *world) {
		r, a := w.replica(0), newApp(0)
		w.at(time.Second)
		if q := a.asks(w.t.Context(), r, 0); q.refused == nil || q.refused.Reason != "observed" {
			t.Errorf("it was answered %+v", q)
		}
		w.expect(1, "runs_total", "observed")
	})
}

const leased = "\njobs:\n  - {name: minute, schedule: \"@lease\", claim: {}, lock: {ttl: 15s}}\n"

// holds has an app ask for the lease again and again, until it gets it.
func (a *app) holds(ctx context.Context, r *replica) (q *question) {
	again := func() bool {
		return q.refused != nil && (q.refused.Unknown || q.refused.Reason == "overlap" || q.refused.Reason == "fired_elsewhere")
	}
	for q = a.asksNow(ctx, r); again() && beat.Sleep(ctx, time.Millisecond); q = a.asksNow(ctx, r) {
		r.world.t.Logf("asked again: %v", q.refused)
	}
	return q
}

func (a *app) asksNow(ctx context.Context, r *replica) *question {
	q := &question{}
	q.granted, q.err = r.Ask(ctx, "minute", time.Time{}, a.of.Load())
	q.at = time.Now()
	q.refused, _ = errors.AsType[*view.NotGranted](q.err)
	return q
}

// A lease goes to one app, which keeps it while it sends heartbeats, and then to the next one. It has no ticks, so none
// is missed.
func TestOneAppAtATimeHoldsALease(t *testing.T) {
	simulate(t, leased, func(w *world) {
		one, other := w.replica(0), w.replica(0)
		first, second := newApp(10*time.Minute), newApp(10*time.Minute)
		w.at(0)
		held := first.holds(w.t.Context(), one)
		go first.worksOn(one, held, w.origin())
		w.at(time.Second)
		waits := second.asksNow(w.t.Context(), other)
		if waits.refused == nil || waits.refused.Reason != "overlap" || waits.refused.By != "r1" || waits.at.Sub(w.origin()) < longestAsk {
			t.Fatalf("the other was answered %+v, %v", waits, waits.err)
		}
		passed := make(chan *question, 1)
		go func() { passed <- second.holds(w.t.Context(), other) }()
		w.at(5 * time.Minute)
		if len(passed) > 0 {
			t.Fatalf("two hold it\n%s", w.log())
		}
		first.beats.Store(0) // it falls silent
		w.at(5*time.Minute + 7*time.Second)
		if len(passed) == 0 {
			t.Fatalf("nobody holds it\n%s", w.log())
		}
		next := <-passed
		if next.err != nil || next.granted.FencingToken <= held.granted.FencingToken {
			t.Fatalf("the next was answered %+v\n%s", next, w.log())
		}
		go second.worksOn(other, next, next.at)
		w.at(10 * time.Minute)
		other.crash()
		died := time.Now()
		first.beats.Store(-1)
		again := first.holds(w.t.Context(), one)
		if again.err != nil || again.at.Sub(died) > 17*time.Second {
			t.Errorf("it came back after %s: %v", again.at.Sub(died), again.err)
		}
		_ = first.of.Load().Finish(again.granted.Run, again.granted.Token, callback.Report{Outcome: callback.Succeeded})
		w.at(12 * time.Minute)
		if more := first.asksNow(w.t.Context(), one); more.err != nil {
			t.Error(more.err)
		}
		w.expect(0, "missed_total", "minute")
		w.expect(0, "failures_total", "minute")
		w.apart(first, second)
		if due := w.dueMembers(); len(due) > 0 {
			t.Errorf("due: %v", due)
		}
	})
}

// A holder that is not ready any more gives the lease up, if it means to or not. A leader that does nothing is worse
// than none. A run of a tick goes on.
func TestAnAppThatIsNotReadyLosesItsLease(t *testing.T) {
	const ready = "\nready: {tcp: \"127.0.0.1:1\", interval: 1s}"
	simulate(t, ready+leased, func(w *world) {
		gate := &moody{}
		one, other := w.replica(0, func(r *replica) { r.app = gate }), w.replica(0)
		first, second := newApp(10*time.Minute), newApp(10*time.Second)
		w.at(0)
		go first.worksOn(one, first.holds(w.t.Context(), one), w.origin())
		w.at(30 * time.Second)
		passed := make(chan *question, 1)
		go func() {
			q := second.holds(w.t.Context(), other)
			passed <- q
			second.worksOn(other, q, q.at)
		}()
		w.at(time.Minute)
		if len(passed) > 0 {
			t.Fatalf("two hold it\n%s", w.log())
		}
		gate.busy.Store(true)
		w.at(time.Minute + 9*time.Second)
		if len(passed) == 0 {
			t.Fatalf("nobody holds it\n%s", w.log())
		}
		w.at(2 * time.Minute)
		if all := w.apart(first, second); len(all) != 2 {
			t.Errorf("the apps worked %+v", all)
		}
		w.expect(1, "runs_total", "minute", "interrupted")
		w.expect(1, "runs_total", "minute", "succeeded")
	})
	simulate(t, ready+asked("lock: {ttl: 15s}"), func(w *world) {
		gate := &moody{}
		r, a := w.replica(0, func(r *replica) { r.app = gate }), newApp(30*time.Second)
		w.at(time.Second)
		go a.worksOn(r, a.asks(w.t.Context(), r, 0), w.origin())
		w.at(5 * time.Second)
		gate.busy.Store(true)
		w.at(40 * time.Second)
		w.expect(1, "runs_total", "minute", "succeeded")
	})
}

// moody is an app that may be busy.
type moody struct{ busy atomic.Bool }

func (m *moody) Probe(context.Context) error {
	if m.busy.Load() {
		return errors.New("busy")
	}
	return nil
}

// The first who ask at the same instant are several: one of them gets it, and the others wait.
func TestAppsThatAskForALeaseAtOnceWait(t *testing.T) {
	simulate(t, leased, func(w *world) {
		apps, answers := []*app{}, make(chan *question, 5)
		for n := range 5 { // two of the clocks are fast or slow
			apps = append(apps, newApp(3*time.Second))
			w.replica(0).set(time.Duration(n%3-1) * 300 * time.Millisecond)
		}
		for n, a := range apps {
			go func() {
				q := a.holds(w.t.Context(), w.replicas[n])
				answers <- q
				a.worksOn(w.replicas[n], q, q.at)
			}()
		}
		time.Sleep(59 * time.Second)
		if len(answers) != 5 {
			t.Errorf("%d apps have had the lease\n%s", len(answers), w.log())
		}
		if all := w.apart(apps...); len(all) != 5 {
			t.Errorf("the apps worked %+v", all)
		}
	})
}

// A lease has no ticks: a question that loses the race for it is no overlap, and no tick is missed if the holder dies.
func TestAQuestionThatLosesTheRaceForALeaseIsKeptNowhere(t *testing.T) {
	simulate(t, leased, func(w *world) {
		far := func(r *replica) { r.far = 5 * time.Millisecond }
		one, other, a := w.replica(0, far), w.replica(0, far), newApp(10*time.Second)
		w.at(0)
		go func() { a.worksOn(one, a.holds(w.t.Context(), one), w.origin()) }()
		w.at(2 * time.Millisecond)
		go a.asksNow(w.t.Context(), other)
		w.at(time.Second)
		for _, field := range []string{"behind", "fate:overlapped", "gaps"} {
			if kept := w.redis.HGet("solotick:{test}:job:minute", field); kept != "" {
				t.Errorf("%s is %q", field, kept)
			}
		}
		if n := other.value("skips_total", "minute", "overlap"); n != 1 {
			t.Errorf("it was refused %v times\n%s", n, w.log())
		}
		one.crash()
		w.at(time.Minute)
		w.expect(0, "missed_total", "minute")
	})
}

// A tick that an app asks for waits for nothing: it is due only for the moment after a run that was in its way is over.
func TestAnAppIsNeverToldToWait(t *testing.T) {
	for _, code := range []lock.Code{lock.Held, lock.Queued, lock.Waits} {
		if got := refusal(&wake{asker: &asker{}}, lock.Answer{Code: code}); got != overlap {
			t.Errorf("%s is told as %s", code, got)
		}
		if got := refusal(&wake{}, lock.Answer{Code: code}); got != queued {
			t.Errorf("to a replica %s is %s", code, got)
		}
	}
}
