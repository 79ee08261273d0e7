package sidecar

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
)

// A replica that drains makes the most of its grace: for ends that Redis cannot be told of, and for attempts that are
// left.

func TestTheEndOfARunInADrainIsRecordedThoughRedisIsAway(t *testing.T) {
	for _, guarantee := range []string{"at-most-once", "at-least-once"} {
		for _, whole := range []bool{false, true} {
			name := guarantee + ", away from the one that drains"
			if whole {
				name = guarantee + ", away from all"
			}
			t.Run(name, func(t *testing.T) {
				simulate(t, "shutdownGrace: 25s\n"+policy("guarantee: "+guarantee+", timeout: 1h, lock: {ttl: 15s}"), func(w *world) {
					w.at(-2 * time.Second)
					for range 2 {
						w.replica(10 * time.Second)
					}
					w.at(time.Second)
					first := w.holder("minute", 0)
					first.stop()
					away := func(cut bool) {
						for _, r := range w.replicas {
							if whole || r == first {
								r.disconnect(cut)
							}
						}
					}
					w.at(9500 * time.Millisecond)
					away(true) // the run ends half a second later
					w.at(16 * time.Second)
					away(false)
					if err := awaited(first, 15*time.Second); err != "" {
						t.Error(err)
					}
					w.at(59 * time.Second)
					if s := w.started("minute")[w.origin()]; len(s) != 1 {
						t.Errorf("started as %+v\n%s", s, w.log())
					}
					w.expect(1, "runs_total", "succeeded")
					w.expect(0, "runs_total", "interrupted")
					entries, err := w.replicas[0].store.History(w.t.Context(), "minute", 10)
					if len(entries) != 1 || entries[0].Outcome != "succeeded" || err != nil {
						t.Errorf("the history has %+v, %v", entries, err)
					}
				})
			})
		}
	}
}

// failsUntil fails in each attempt before one.
func failsUntil(attempt int, each time.Duration) func(*replica) {
	return func(r *replica) {
		r.work = func(ctx context.Context, run execute.Run) execute.Result {
			if !beat.Sleep(ctx, each) {
				return execute.Result{Status: execute.Canceled, Code: -1, Err: context.Cause(ctx)}
			}
			if run.Attempt < attempt {
				return execute.Result{Status: execute.Failed, Code: 1, Err: errors.New("no")}
			}
			return execute.Result{Status: execute.Succeeded}
		}
	}
}

func TestTheAttemptsThatAreLeftAreMadeWithinTheGrace(t *testing.T) {
	for _, guarantee := range []string{"at-most-once", "at-least-once"} {
		t.Run(guarantee, func(t *testing.T) {
			simulate(t, "shutdownGrace: 25s\n"+policy("guarantee: "+guarantee+", timeout: 30s, retry: {limit: 5, backoff: 2s, maxBackoff: 2s}"),
				func(w *world) {
					w.at(-2 * time.Second)
					for range 2 {
						w.replica(0, failsUntil(6, time.Second))
					}
					w.at(1500 * time.Millisecond)
					first := w.holder("minute", 0)
					first.stop()
					w.at(59 * time.Second)
					if first.value("retries_total") != 5 || first.value("runs_total", "succeeded") != 1 {
						t.Errorf("%v retries\n%s", first.value("retries_total"), w.log())
					}
					for _, s := range w.started("minute")[w.origin()] {
						if s.replica != first.name || s.run.Kind != kindSchedule {
							t.Errorf("started elsewhere as %+v", s)
						}
					}
					w.expect(1, "runs_total")
				})
		})
	}
}

// The grace is over before the attempts are: the tick goes on elsewhere under at-least-once, and no attempt is counted
// that never comes.
func TestTheAttemptsThatTheGraceHasNoTimeForAreMadeElsewhere(t *testing.T) {
	for _, in := range []string{"an attempt", "a wait"} {
		for guarantee, starts := range map[string]int{"at-most-once": 1, "at-least-once": 2} {
			t.Run(guarantee+", in "+in, func(t *testing.T) {
				backoff := "2s, maxBackoff: 2s"
				if in == "a wait" {
					backoff = "40s, maxBackoff: 40s"
				}
				simulate(t, "shutdownGrace: 5s\n"+policy("guarantee: "+guarantee+", timeout: 30s, retry: {limit: 5, backoff: "+backoff+"}"),
					func(w *world) {
						each := 10 * time.Second
						if in == "a wait" {
							each = 2 * time.Second
						}
						w.at(-2 * time.Second)
						for range 2 {
							w.replica(0, failsUntil(2, each))
						}
						w.at(time.Second)
						first := w.holder("minute", 0)
						first.stop()
						if err := awaited(first, 7*time.Second); err != "" {
							t.Error(err)
						}
						w.at(50 * time.Second)
						runs := map[string]int{} // by replica: the highest attempt
						for _, s := range w.started("minute")[w.origin()] {
							runs[s.replica] = max(runs[s.replica], s.run.Attempt)
						}
						if len(runs) != starts {
							t.Errorf("the attempts were %v\n%s", runs, w.log())
						}
						want := 0.0
						if in == "a wait" {
							want = 1 // it was to come when the grace was not over yet
						}
						if n := first.value("retries_total"); n != want {
							t.Errorf("%v retries are counted, want %v\n%s", n, want, first.logs)
						}
					})
			})
		}
	}
}

// An attempt that fails when the grace is over, whatever it is told, is the last one.
func TestAnAttemptThatFailsAfterTheGraceIsFollowedByNone(t *testing.T) {
	simulate(t, "shutdownGrace: 5s\n"+policy("timeout: 30s, retry: {limit: 5, backoff: 100ms, maxBackoff: 100ms}"), func(w *world) {
		r := w.replica(0, func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				time.Sleep(8 * time.Second)
				return execute.Result{Status: execute.Failed, Code: 1, Err: errors.New("no")}
			}
		})
		w.at(time.Second)
		r.stop()
		w.at(30 * time.Second)
		w.expect(0, "retries_total")
		w.expect(1, "runs_total", "failed")
	})
}

func TestADrainEndsSoonAfterTheGraceThoughRedisIsGoneForGood(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a run that has ended": 2 * time.Second, "a run that goes on": time.Hour} {
		t.Run(name, func(t *testing.T) {
			simulate(t, "shutdownGrace: 10s\n"+policy("guarantee: at-least-once, timeout: 2h, lock: {ttl: 10m}"), func(w *world) {
				r := w.replica(takes)
				w.at(time.Second)
				r.disconnect(true)
				w.at(3 * time.Second)
				r.stop()
				if err := awaited(r, 14*time.Second); err != "" {
					t.Error(err)
				}
				if name == "a run that goes on" && time.Since(w.origin()) < 13*time.Second {
					t.Errorf("it ended at +%s, before its grace was over", time.Since(w.origin()))
				}
			})
		})
	}
}
