package sidecar

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// accepting is a table with a job whose app may end its runs by itself.
func accepting(keys string) string {
	return `
jobs:
  - {name: minute, schedule: "* * * * *", http: {url: "http://127.0.0.1:1", async: {timeout: 50s, heartbeat: 5s}}, timeout: 2s, ` + keys + `}
`
}

// work is when an app worked on a run.
type work struct {
	tick     time.Time
	from, to time.Time
}

// app is an app that accepts runs. It works only as long as it may.
type app struct {
	of    atomic.Pointer[callback.Runs]
	takes time.Duration // a run
	beats atomic.Int64  // heartbeats until it falls silent; -1 = it does not
	fails int           // attempts that fail
	limit time.Duration // of a run

	mu       sync.Mutex
	works    []work
	attempts int
}

func newApp(takes time.Duration) *app {
	a := &app{takes: takes, limit: 50 * time.Second}
	a.of.Store(callback.New("127.0.0.1:9748"))
	a.beats.Store(-1)
	return a
}

// beside makes the app that of a replica.
func (a *app) beside(r *replica) { r.work = a.execute }

// execute is the executor, except that the call is played.
func (a *app) execute(ctx context.Context, r execute.Run) execute.Result {
	async := &config.Async{Timeout: a.limit, Heartbeat: 5 * time.Second}
	return a.of.Load().Execute(ctx, r, async, func(c *callback.Call) (execute.Result, bool) {
		go a.run(r, c.Token())
		beat.Sleep(ctx, time.Second) // until its 202
		return execute.Result{Status: execute.Succeeded, Code: 202}, false
	})
}

func (a *app) run(r execute.Run, token string) {
	a.mu.Lock()
	a.attempts++
	failing := a.attempts <= a.fails
	a.mu.Unlock()
	sent := time.Now()
	if _, err := a.of.Load().Beat(r.ID, token); err != nil || a.beats.Load() == 0 {
		return
	}
	w := work{tick: r.Tick, from: sent}
	done := false
	for n, until := int64(1), sent.Add(5*time.Second); time.Now().Before(until) && !done; {
		time.Sleep(min(1500*time.Millisecond, time.Until(until)))
		if done = time.Since(w.from) >= a.takes; done || a.beats.Load() >= 0 && n >= a.beats.Load() {
			continue
		}
		sent, n = time.Now(), n+1
		switch d, err := a.of.Load().Beat(r.ID, token); {
		case err == nil:
			until = sent.Add(d)
		case !errors.Is(err, callback.ErrUnsure):
			until = sent
		}
	}
	w.to = time.Now()
	a.mu.Lock()
	a.works = append(a.works, w)
	a.mu.Unlock()
	if a.beats.Load() < 0 {
		report := callback.Report{Outcome: callback.Succeeded}
		switch {
		case !done:
			report.Outcome = callback.Interrupted
		case failing:
			report = callback.Report{Outcome: callback.Failed, Detail: "disk full"}
		}
		_ = a.of.Load().Finish(r.ID, token, report)
	}
}

// apart demands that no two works of the apps lie beside each other, and returns them in order.
func (w *world) apart(apps ...*app) []work {
	w.t.Helper()
	var all []work
	for _, a := range apps {
		a.mu.Lock()
		all = append(all, a.works...)
		a.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b work) int { return a.from.Compare(b.from) })
	for i := 1; i < len(all); i++ {
		if all[i].from.Before(all[i-1].to) {
			w.t.Errorf("the app worked for tick %s while it worked for %s: %+v\n%s", all[i].tick, all[i-1].tick, all, w.log())
		}
	}
	return all
}

func TestARunLastsBeyondItsAnswer(t *testing.T) {
	simulate(t, accepting("lock: {ttl: 15s}"), func(w *world) {
		a := newApp(40 * time.Second)
		w.replica(0, a.beside)
		w.replica(0, a.beside)
		w.at(30 * time.Second)
		w.expect(1, "running", "minute")
		w.at(59 * time.Second)
		w.expect(1, "runs_total", "succeeded")
		if all := w.apart(a); len(all) != 1 || all[0].to.Sub(all[0].from) < 40*time.Second {
			t.Errorf("the app worked %+v\n%s", all, w.log())
		}
		w.expect(1, "fires_total", "minute")
	})
}

func TestATickThatComesDueWhileTheAppWorksOverlaps(t *testing.T) {
	table := strings.Replace(accepting("lock: {ttl: 15s}"), "timeout: 50s", "timeout: 5m", 1)
	simulate(t, table, func(w *world) {
		a := newApp(90 * time.Second)
		a.limit = 5 * time.Minute
		w.replica(0, a.beside)
		w.replica(0, a.beside)
		w.at(119 * time.Second)
		w.expect(1, "fires_total", "minute")
		w.expect(2, "skips_total", "minute", "overlap")
		w.at(121 * time.Second)
		w.expect(2, "fires_total", "minute")
		w.apart(a)
	})
}

// The app says that it has stopped before the end. At-most-once does not repeat that.
func TestARunThatTakesLongerThanItMayIsToldToEnd(t *testing.T) {
	simulate(t, accepting("lock: {ttl: 15s}, retry: {limit: 3, backoff: 1s, maxBackoff: 1s}"), func(w *world) {
		a := newApp(10 * time.Minute)
		w.replica(0, a.beside)
		w.at(59 * time.Second)
		w.expect(1, "runs_total", "timed_out")
		if !strings.Contains(w.replicas[0].logs.String(), `cause="the run took longer than its timeout of 50s"`) {
			t.Error(w.replicas[0].logs)
		}
		w.expect(0, "retries_total", "minute")
		if all := w.apart(a); len(all) != 1 || all[0].to.Sub(all[0].from) > 53*time.Second {
			t.Errorf("the app worked %+v\n%s", all, w.log())
		}
	})
}

func TestAnAppThatFallsSilentIsInterrupted(t *testing.T) {
	for guarantee, starts := range map[string]int{"at-most-once": 1, "at-least-once": 4} {
		simulate(t, accepting("lock: {ttl: 15s}, guarantee: "+guarantee), func(w *world) {
			a := newApp(40 * time.Second)
			a.beats.Store(1)
			w.replica(0, a.beside)
			w.replica(0, a.beside)
			w.at(58 * time.Second)
			s := w.started("minute")[w.origin()]
			if len(s) != starts { // with three deaths, it kills whoever runs it
				t.Errorf("%s: started %d times, want %d\n%s", guarantee, len(s), starts, w.log())
			}
			for n := 1; n < len(s); n++ { // each time it waits longer after the silence
				if gap, want := s[n].at.Sub(s[n-1].at), 5*time.Second+time.Second<<(2*(n-1)); (gap - want).Abs() > 50*time.Millisecond {
					t.Errorf("run %d began %s after the one before it, want %s\n%s", n+1, gap, want, w.log())
				}
			}
			w.expect(float64(starts), "runs_total", "interrupted")
			w.expect(float64(starts), "failures_total", "minute")
			w.apart(a)
			w.at(60*time.Second + 100*time.Millisecond)
			if s := w.started("minute")[w.origin().Add(time.Minute)]; len(s) != 1 {
				t.Errorf("%s: the next tick was started %d times", guarantee, len(s))
			}
			entry, err := w.replicas[0].store.Search(w.t.Context(), service.Search{Jobs: []string{"minute"}, Failed: true, Limit: 1})
			if err != nil || len(entry) != 1 || entry[0].Outcome != "interrupted" || entry[0].Detail != "the app sent no heartbeat within 5s" {
				t.Errorf("%s: %+v, %v", guarantee, entry, err)
			}
		})
	}
}

func TestAReportOfAFailureIsTriedAgain(t *testing.T) {
	simulate(t, accepting("lock: {ttl: 15s}, retry: {limit: 2, backoff: 1s, maxBackoff: 1s}"), func(w *world) {
		a := newApp(3 * time.Second)
		a.fails = 2
		w.replica(0, a.beside)
		w.at(40 * time.Second)
		w.expect(2, "retries_total", "minute")
		w.expect(1, "runs_total", "succeeded")
		if all := w.apart(a); len(all) != 3 {
			t.Errorf("the app worked %+v\n%s", all, w.log())
		}
	})
}

// The app learns only by its heartbeats that the run has to end. Until then the lease is kept.
func TestACancelledRunKeepsItsLeaseUntilTheAppHasStopped(t *testing.T) {
	simulate(t, accepting("lock: {ttl: 15s}"), func(w *world) {
		a := newApp(10 * time.Minute)
		w.replica(0, a.beside)
		w.replica(0, a.beside)
		w.at(10 * time.Second)
		a.beats.Store(0) // from now on it hears nothing, and stops by its own clock
		w.at(10*time.Second + 100*time.Millisecond)
		w.cancel("minute")
		w.at(13 * time.Second)
		w.expect(1, "running", "minute")
		w.at(16 * time.Second)
		w.expect(0, "running", "minute")
		w.expect(1, "runs_total", "cancelled")
		w.apart(a)
	})
}

// A process that is dead for certain says nothing of its app: that may work for as long as the lease lasts.
func TestARestartInPlaceWaitsForTheAppOfTheDead(t *testing.T) {
	simulate(t, accepting("lock: {ttl: 15s}, guarantee: at-least-once"), func(w *world) {
		first, second := uuid.NewString(), uuid.NewString()
		a, b := newApp(20*time.Second), newApp(5*time.Second)
		place := func(process string, died ...string) func(*replica) {
			return func(r *replica) { r.name, r.process, r.died = "app", process, died }
		}
		dead := w.replica(0, place(first), a.beside)
		w.at(8 * time.Second)
		dead.crash()
		a.of.Store(callback.New("127.0.0.1:9748")) // that of the process after it, which knows no token
		w.replica(0, place(second, lock.Node(first)), b.beside)
		w.at(14 * time.Second)
		if s := w.started("minute")[w.origin()]; len(s) != 1 {
			t.Errorf("taken over while the app may work: %+v\n%s", s, w.log())
		}
		w.at(40 * time.Second)
		if s := w.started("minute")[w.origin()]; len(s) != 2 {
			t.Errorf("started %+v\n%s", s, w.log())
		}
		if all := w.apart(a, b); len(all) != 2 {
			t.Errorf("the apps worked %+v\n%s", all, w.log())
		}
		history, err := w.replicas[1].store.History(w.t.Context(), "minute", 10)
		var outcomes []string
		for _, e := range history {
			outcomes = append(outcomes, e.Outcome)
		}
		if !slices.Equal(outcomes, []string{"succeeded", "interrupted"}) || err != nil {
			t.Errorf("%q, %v", outcomes, err)
		}
	})
}

// While Redis is away, the lease cannot be renewed: heartbeats are refused in time.
func TestTheAppStopsBeforeALeaseThatIsLost(t *testing.T) {
	simulate(t, accepting("lock: {ttl: 15s}, guarantee: at-least-once"), func(w *world) {
		a, b := newApp(40*time.Second), newApp(40*time.Second)
		alone := w.replica(0, a.beside)
		w.at(8 * time.Second)
		alone.disconnect(true)
		w.replica(0, b.beside)
		w.at(40 * time.Second) // the replica tries for a lease's length to record the end
		if s := w.started("minute")[w.origin()]; len(s) != 2 {
			t.Errorf("started %+v\n%s", s, w.log())
		}
		w.apart(a, b)
		if value := alone.value("runs_total", "interrupted"); value != 1 { // the app has stopped before the lock is lost
			t.Errorf("the run was not interrupted\n%s", w.log())
		}
	})
}

// The codes of a success say nothing of a run that the app had accepted: the guarantee decides.
func TestAnAcceptedRunThatIsTimedOutIsRepeatedAsTheGuaranteeSays(t *testing.T) {
	for guarantee, retries := range map[string]float64{"at-most-once": 0, "at-least-once": 1} {
		for _, codes := range []string{"[200]", "[200-299]"} {
			table := strings.Replace(accepting("lock: {ttl: 15s}, retry: {limit: 1, backoff: 1s, maxBackoff: 1s}, guarantee: "+guarantee),
				"async:", "successCodes: "+codes+", async:", 1)
			simulate(t, table, func(w *world) {
				a := newApp(time.Hour)
				a.limit = 10 * time.Second
				w.replica(0, a.beside)
				w.at(50 * time.Second)
				w.expect(retries, "retries_total", "minute")
				w.expect(1, "runs_total", "timed_out")
			})
		}
	}
}

// Replica and app live, and the lease was unsure: that is no death, however often it happens.
func TestOutagesOfRedisDoNotUseUpTheRepetitionsOfATick(t *testing.T) {
	table := strings.Replace(accepting("lock: {ttl: 15s}, guarantee: at-least-once"), "timeout: 50s", "timeout: 1h", 1)
	simulate(t, table, func(w *world) {
		a := newApp(40 * time.Second)
		a.limit = time.Hour
		alone := w.replica(0, a.beside)
		for n := range 8 {
			w.at(6*time.Second + time.Duration(n)*25*time.Second)
			alone.disconnect(true)
			time.Sleep(13500 * time.Millisecond)
			alone.disconnect(false)
		}
		w.at(5 * time.Minute)
		if n := alone.value("runs_total", "interrupted"); n < 5 {
			t.Fatalf("%v runs were interrupted\n%s", n, w.log())
		}
		all := w.apart(a)
		if n := len(w.started("minute")[w.origin()]); n < 5 {
			t.Errorf("the tick was started %d times\n%s", n, w.log())
		}
		history, err := alone.store.History(w.t.Context(), "minute", 50)
		ended := slices.ContainsFunc(history, func(e service.Entry) bool { return e.Tick.Equal(w.origin()) && e.Outcome == "succeeded" })
		if err != nil || !ended {
			t.Errorf("the tick did not succeed: %+v, %v, %+v\n%s", history, err, all, w.log())
		}
	})
}

func TestAShutdownWaitsForTheApp(t *testing.T) {
	simulate(t, "shutdownGrace: 3s\n"+accepting("lock: {ttl: 15s}, guarantee: at-least-once"), func(w *world) {
		a, b := newApp(40*time.Second), newApp(10*time.Second)
		first := w.replica(0, a.beside)
		w.at(5 * time.Second)
		first.stop()
		w.replica(0, b.beside)
		<-first.done
		w.at(40 * time.Second)
		if all := w.apart(a, b); len(all) != 2 {
			t.Errorf("the apps worked %+v\n%s", all, w.log())
		}
		if s := w.started("minute")[w.origin()]; len(s) != 2 || s[1].run.Kind != "takeover" {
			t.Errorf("started %+v\n%s", s, w.log())
		}
		w.expect(1, "runs_total", "shutdown")
	})
}
