package sidecar

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/sidecar/execute"
)

func policy(keys string) string {
	return `
jobs:
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}, ` + keys + `}
`
}

// crash takes a replica away without a goodbye: nothing of it reaches Redis any more, and its jobs are gone.
func (r *replica) crash() { r.disconnect(true) }

// holder is the replica that started a tick, once it has.
func (w *world) holder(job string, tick time.Duration) *replica {
	w.t.Helper()
	s := w.started(job)[w.origin().Add(tick)]
	if len(s) == 0 {
		w.t.Fatalf("%s: nobody started the tick +%s\n%s", job, tick, w.log())
	}
	for _, r := range w.replicas {
		if r.name == s[len(s)-1].replica {
			return r
		}
	}
	return nil
}

func TestAtLeastOnceRunsAgainWhatWasInterrupted(t *testing.T) {
	simulate(t, policy("guarantee: at-least-once, timeout: 40s, lock: {ttl: 6s}"), func(w *world) {
		for range 3 {
			w.replica(20 * time.Second)
		}
		w.at(2 * time.Second)
		w.holder("minute", 0).crash()
		w.at(50 * time.Second)
		s := w.started("minute")[w.origin()]
		if len(s) != 2 || s[1].run.Attempt != 2 || s[1].run.Kind != kindTakeover || s[0].replica == s[1].replica || s[1].run.Token <= s[0].run.Token {
			t.Fatalf("started as %+v\n%s", s, w.log())
		}
		if late := s[1].at.Sub(w.origin()); late < 7*time.Second || late > 11*time.Second {
			t.Errorf("it was taken over at +%s; the lease began at 2 s at most and lasts 6 s", late)
		}
		w.expect(1, "takeovers_total")
		w.expect(1, "runs_total", "interrupted")
		w.expect(1, "runs_total", "succeeded")
	})
}

func TestAtMostOnceWritesDownWhatWasInterrupted(t *testing.T) {
	simulate(t, policy("guarantee: at-most-once, timeout: 40s, lock: {ttl: 6s}"), func(w *world) {
		for range 3 {
			w.replica(20 * time.Second)
		}
		w.at(2 * time.Second)
		w.holder("minute", 0).crash()
		w.at(50 * time.Second)
		if s := w.started("minute")[w.origin()]; len(s) != 1 {
			t.Fatalf("started as %+v\n%s", s, w.log())
		}
		w.expect(1, "runs_total", "interrupted")
	})
}

// A run that a shutdown cuts short goes on elsewhere at once, without waiting for a lease to end.
func TestAtLeastOnceGoesOnElsewhereAfterAShutdown(t *testing.T) {
	simulate(t, "shutdownGrace: 3s\n"+policy("guarantee: at-least-once, timeout: 40s"), func(w *world) {
		w.replica(20 * time.Second)
		w.replica(20 * time.Second)
		w.at(2 * time.Second)
		first := w.holder("minute", 0)
		first.stop()
		w.at(50 * time.Second)
		s := w.started("minute")[w.origin()]
		if len(s) != 2 || s[1].run.Kind != kindTakeover || s[1].run.Attempt != 2 || s[1].at.After(w.origin().Add(5200*time.Millisecond)) {
			t.Fatalf("started as %+v\n%s", s, w.log())
		}
		w.expect(1, "runs_total", "shutdown")
		w.expect(0, "takeovers_total")
	})
}

// A job that kills its replica is not passed on for ever.
func TestTakeoversAreBounded(t *testing.T) {
	simulate(t, policy("guarantee: at-least-once, timeout: 20m, lock: {ttl: 3s}"), func(w *world) {
		var replicas []*replica
		for range 6 {
			replicas = append(replicas, w.replica(10*time.Minute))
		}
		for i := range 5 {
			w.at(2*time.Second + time.Duration(i)*10*time.Second)
			if n := len(w.started("minute")[w.origin()]); n == min(i+1, 4) && n > i {
				w.holder("minute", 0).crash()
			}
		}
		w.at(55 * time.Second)
		if n := len(w.started("minute")[w.origin()]); n != 4 {
			t.Errorf("started %d times, want the first and three takeovers\n%s", n, w.log())
		}
		for _, r := range replicas {
			r.disconnect(true)
		}
	})
}

func TestWhatCannotBeStartedIsRunElsewhereAtOnce(t *testing.T) {
	simulate(t, policy("timeout: 40s"), func(w *world) {
		time.Sleep(150 * time.Millisecond) // so that no look for what is due falls on the tick
		var failed *replica                // whichever claims the tick; from then on the other one can start it
		var both [2]*replica
		for i := range both {
			r := w.replica(time.Second, func(r *replica) {
				able := r.work
				r.work, r.ifNot = nil, func() {
					w.mu.Lock()
					defer w.mu.Unlock()
					failed = r
					other := both[1-i]
					other.mu.Lock()
					defer other.mu.Unlock()
					other.work = able
				}
			})
			w.mu.Lock()
			both[i] = r
			w.mu.Unlock()
		}
		w.at(30 * time.Second)
		s := w.started("minute")[w.origin()]
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(s) != 1 || failed == nil || s[0].replica == failed.name {
			t.Fatalf("started as %+v", s)
		}
		if failed.value("handovers_total") != 1 || s[0].at.After(w.origin().Add(100*time.Millisecond)) || s[0].run.Kind != "handover" {
			t.Errorf("it was handed over and started after %s as %s", s[0].at.Sub(w.origin()), s[0].run.Kind)
		}
	})
}

func TestFailedAttemptsAreRepeatedUnderTheSameLock(t *testing.T) {
	simulate(t, policy("timeout: 4s, retry: {limit: 3, backoff: 2s, maxBackoff: 3s}"), func(w *world) {
		var runs []execute.Run
		var at []time.Duration
		w.replica(0, func(r *replica) {
			r.work = func(ctx context.Context, run execute.Run) execute.Result {
				runs, at = append(runs, run), append(at, time.Since(w.origin()))
				switch len(runs) {
				case 1:
					return execute.Result{Status: execute.Failed, Code: 1, Err: errors.New("no")}
				case 2:
					return execute.Result{Status: execute.Failed, Code: 503, Err: errors.New("busy"), RetryAfter: 7 * time.Second}
				case 3: // the timeout is each attempt's own
					<-ctx.Done()
					return execute.Result{Status: execute.Canceled, Code: -1, Err: context.Cause(ctx)}
				}
				return execute.Result{Status: execute.Succeeded}
			}
		})
		w.at(50 * time.Second)
		if len(runs) != 4 {
			t.Fatalf("%d attempts at %v\n%s", len(runs), at, w.log())
		}
		for i, r := range runs {
			if r.Attempt != i+1 || r.ID != runs[0].ID || r.Token != runs[0].Token {
				t.Errorf("attempt %d: %+v", i+1, r)
			}
		}
		for i, limits := range [][2]time.Duration{{time.Second, 2 * time.Second}, {7 * time.Second, 7 * time.Second}, {5500 * time.Millisecond, 7 * time.Second}} {
			if d := at[i+1] - at[i]; d < limits[0] || d > limits[1] {
				t.Errorf("attempt %d came after %s, want %s to %s", i+2, d, limits[0], limits[1])
			}
		}
		w.expect(3, "retries_total")
		w.expect(1, "fires_total")
		w.expect(1, "runs_total", "succeeded")
		w.expect(0, "runs_total", "failed")
	})
}

func TestRetriesEnd(t *testing.T) {
	never := func(d time.Duration) func(*replica) {
		return func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				return execute.Result{Status: execute.Failed, Code: 503, Err: errors.New("busy"), RetryAfter: d}
			}
		}
	}
	simulate(t, policy("retry: {limit: 2, backoff: 1s}"), func(w *world) {
		w.replica(0, never(0))
		w.at(30 * time.Second)
		w.expect(2, "retries_total")
		w.expect(1, "runs_total", "failed")
	})
	simulate(t, policy("retry: {limit: 2, backoff: 1s}"), func(w *world) {
		w.replica(0, never(time.Hour)) // the next tick is the next try
		w.at(30 * time.Second)
		w.expect(0, "retries_total")
		w.expect(1, "runs_total", "failed")
	})
}

func TestWhatMayHaveRunIsNotRepeatedUnderAtMostOnce(t *testing.T) {
	for guarantee, want := range map[string]float64{"at-most-once": 0, "at-least-once": 2} {
		simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", http: {url: "http://127.0.0.1/"}, retry: {limit: 2, backoff: 1s}, guarantee: `+guarantee+`}
`, func(w *world) {
			w.replica(0, func(r *replica) {
				r.work = func(context.Context, execute.Run) execute.Result {
					return execute.Result{Status: execute.Failed, Code: -1, Err: errors.New("the connection was cut")}
				}
			})
			w.at(30 * time.Second)
			if got := w.sum("retries_total"); got != want {
				t.Errorf("%s: tried again %v times, want %v", guarantee, got, want)
			}
		})
	}
}

// The table judges which answers allow a second try: by default those to faults that may pass, and no others.
func TestTheAnswerDecidesWhetherACallIsTriedAgain(t *testing.T) {
	long(t)
	for _, c := range []struct {
		retry, guarantee string
		code             int
		want             float64
	}{
		{"", "at-most-once", 500, 2}, {"", "at-most-once", 599, 2},
		{"", "at-most-once", 408, 2}, {"", "at-most-once", 425, 2}, {"", "at-most-once", 429, 2},
		{"", "at-most-once", 400, 0}, {"", "at-most-once", 404, 0},
		{"", "at-least-once", 422, 0}, {"", "at-least-once", 302, 0}, {"", "every-replica", 403, 0},
		{", on: [404, 500-502]", "at-most-once", 404, 2}, {", on: [404, 500-502]", "at-most-once", 502, 2},
		{", on: [404, 500-502]", "at-least-once", 503, 0},
		{"", "at-most-once", 200, 0}, {"", "at-least-once", 200, 2}, // an answer that broke off
	} {
		simulate(t, fmt.Sprintf(`
jobs:
  - {name: minute, schedule: "* * * * *", http: {url: "http://127.0.0.1/"}, retry: {limit: 2, backoff: 1s%s}, guarantee: %s}
`, c.retry, c.guarantee), func(w *world) {
			w.replica(0, func(r *replica) {
				r.work = func(context.Context, execute.Run) execute.Result {
					return execute.Result{Status: execute.Failed, Code: c.code, Err: errors.New("no")}
				}
			})
			w.at(30 * time.Second)
			if got := w.sum("retries_total"); got != c.want {
				t.Errorf("%s, retry {%s}: after %d it was tried again %v times, want %v", c.guarantee, c.retry, c.code, got, c.want)
			}
			w.expect(1, "runs_total", "failed")
		})
	}
}

func TestReplaceEndsTheRunAtOnceWhereverItIs(t *testing.T) {
	simulate(t, policy("concurrencyPolicy: Replace, timeout: 10m"), func(w *world) {
		for range 3 {
			w.replica(90 * time.Second)
		}
		w.at(3*time.Minute + 30*time.Second)
		for tick := time.Duration(0); tick <= 3*time.Minute; tick += time.Minute {
			s := w.started("minute")[w.origin().Add(tick)]
			if len(s) != 1 || s[0].at.Sub(s[0].tick) > 100*time.Millisecond {
				t.Fatalf("tick +%s was started as %+v\n%s", tick, s, w.log())
			}
		}
		w.expect(3, "runs_total", "replaced")
		w.expect(1, "running")
		w.expect(0, "missed_total")
	})
}

// Three replicas have a job that runs for two and a half periods, and may run twice at once.
func TestAllowWithALimitSkipsWhatComesDueBesideAsManyRuns(t *testing.T) {
	simulate(t, policy("concurrencyPolicy: Allow, concurrency: 2, timeout: 10m"), func(w *world) {
		w.at(-30 * time.Second)
		for range 3 {
			w.replica(150 * time.Second)
		}
		w.at(70 * time.Second)
		_, err := w.replicas[0].store.Trigger(w.t.Context(), "minute", uuid.NewString())
		w.must(err)
		w.at(170 * time.Second)
		// The tick of the second minute comes due beside two runs. The run by hand begins as the first ends.
		for i, at := range []time.Duration{0, time.Minute, 150 * time.Second} {
			if len(w.starts) != 3 || w.starts[i].at.Sub(w.origin()).Round(time.Second) != at {
				t.Fatalf("start %d of %d is not at +%s\n%s", i, len(w.starts), at, w.log())
			}
		}
		w.expect(3, "skips_total", "overlap")
		for _, r := range w.replicas {
			r.shows(1, "ticks_total", "minute", "overlapped")
		}
		w.expect(0, "missed_total")
	})
}

func TestQueueLetsOneTickWait(t *testing.T) {
	simulate(t, policy("concurrencyPolicy: Queue, timeout: 10m"), func(w *world) {
		w.at(-30 * time.Second)
		for range 3 {
			w.replica(140 * time.Second)
		}
		w.at(400 * time.Second)
		w.expectOrder("minute", "0s schedule", "1m0s catchup", "3m0s catchup")
		w.expect(9, "skips_total", "queued") // on each replica two that ran, and the one that waits
		for i, at := range []time.Duration{0, 140 * time.Second, 280 * time.Second} {
			if got := w.starts[i].at.Sub(w.origin()); got < at || got > at+100*time.Millisecond {
				t.Errorf("start %d came at +%s, want +%s", i, got, at)
			}
		}
	})
}

func TestWhatIsQueuedOutlivesTheRunThatIsInTheWay(t *testing.T) {
	simulate(t, policy("concurrencyPolicy: Queue, timeout: 10m"), func(w *world) {
		w.at(-30 * time.Second)
		for range 3 {
			w.replica(90 * time.Second)
		}
		w.at(65 * time.Second)
		w.holder("minute", 0).crash()
		w.at(100 * time.Second)
		if s := w.started("minute")[w.origin().Add(time.Minute)]; len(s) != 1 {
			t.Errorf("the waiting tick was started as %+v\n%s", s, w.log())
		}
		w.expect(1, "runs_total", "interrupted")
	})
}

// Waits double up to their limit and not beyond what a number holds.
func TestManyRetriesStayWithinTheirLimit(t *testing.T) {
	simulate(t, policy("timeout: 1s, retry: {limit: 100, backoff: 100ms, maxBackoff: 400ms}"), func(w *world) {
		w.replica(0, func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				return execute.Result{Status: execute.Failed, Code: 1, Err: errors.New("no")}
			}
		})
		w.at(50 * time.Second)
		w.expect(100, "retries_total")
		w.expect(1, "runs_total", "failed")
	})
}

// A run that a shutdown cuts short, and that was to be replaced anyway, does not come before what replaces it.
func TestWhatIsReplacedIsNotRunAgain(t *testing.T) {
	simulate(t, "shutdownGrace: 1s\n"+policy("concurrencyPolicy: Replace, guarantee: at-least-once, timeout: 10m"), func(w *world) {
		first := w.replica(0, func(r *replica) {
			r.work = func(ctx context.Context, _ execute.Run) execute.Result {
				<-ctx.Done()
				time.Sleep(10 * time.Second)
				return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
			}
		})
		w.at(20 * time.Second)
		w.replica(80 * time.Second)
		w.at(55 * time.Second)
		first.stop()
		w.at(3*time.Minute + 30*time.Second)
		w.expectOrder("minute", "0s schedule", "1m0s catchup", "2m0s catchup", "3m0s catchup")
	})
}
