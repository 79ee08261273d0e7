package sidecar

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

const minutely = `
jobs:
  - {name: minute, schedule: "* * * * *", timeout: 40s, exec: {command: [x]}}
`

func TestRedisAwayAtTheTickIsAskedAgainWhileTheTickIsWorthFiring(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(time.Second)
		w.at(-time.Second)
		r.disconnect(true)
		w.at(20 * time.Second)
		r.disconnect(false)
		w.at(30 * time.Second)
		s := w.started("minute")[w.origin()]
		if len(s) != 1 || s[0].at.Before(w.origin().Add(20*time.Second)) || s[0].at.After(w.origin().Add(23*time.Second)) {
			t.Errorf("the tick was started as %v, want once, soon after +20s", s)
		}
		if got := r.value("redis_up"); got != 1 {
			t.Errorf("redis_up = %v, want 1", got)
		}
		if !strings.Contains(r.logs.String(), "Redis does not answer") {
			t.Error("the log does not say that Redis was away")
		}
	})
}

func TestRedisAwayUntilTheNextTickIsARedisError(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(time.Second)
		w.at(-time.Second)
		r.disconnect(true)
		w.at(59 * time.Second)
		if got := r.value("redis_up"); got != 0 {
			t.Errorf("redis_up = %v, want 0", got)
		}
		w.at(90 * time.Second)
		r.disconnect(false)
		w.at(121 * time.Second)
		w.expect(1, "skips_total", "redis_error")
		if n := len(w.started("minute")[w.origin()]); n != 0 {
			t.Errorf("the tick of the outage was started %d times", n)
		}
		for _, at := range []time.Duration{time.Minute, 2 * time.Minute} {
			if n := len(w.started("minute")[w.origin().Add(at)]); n != 1 {
				t.Errorf("tick +%s was started %d times, want once", at, n)
			}
		}
		w.expect(1, "missed_total")
	})
}

func TestAStartingDeadlineEndsTheAsking(t *testing.T) {
	simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", startingDeadline: 10s, exec: {command: [x]}}
`, func(w *world) {
		r := w.replica(time.Second)
		w.at(-time.Second)
		r.disconnect(true)
		w.at(11 * time.Second)
		r.disconnect(false)
		w.at(30 * time.Second)
		w.expect(1, "skips_total", "redis_error")
		if n := len(w.started("minute")[w.origin()]); n != 0 {
			t.Errorf("the tick was started %d times after its deadline", n)
		}
	})
}

func TestAnOutageDoesNotBusyLoop(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(time.Second)
		w.at(-time.Second)
		r.disconnect(true)
		before := r.dialed()
		w.at(50 * time.Second)
		if dials := r.dialed() - before; dials < 25 || dials > 200 {
			t.Errorf("%d connections were tried in 50 s", dials)
		}
	})
}

func TestALostLockCancelsTheRunBeforeItsLeaseEnds(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(30 * time.Second)
		type end struct {
			at    time.Time
			cause error
		}
		ends := make(chan end, 1)
		r.mu.Lock()
		r.work = func(ctx context.Context, _ execute.Run) execute.Result {
			<-ctx.Done()
			ends <- end{time.Now(), context.Cause(ctx)}
			return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
		}
		r.mu.Unlock()
		w.at(2 * time.Second)
		r.disconnect(true)
		w.at(50 * time.Second)
		e := <-ends
		if took := e.at.Sub(w.origin()); took < 13*time.Second || took > 14500*time.Millisecond || !errors.Is(e.cause, lock.ErrLost) {
			t.Errorf("the run ended after %s by %v; its lease was trusted for 14 s", took, e.cause)
		}
		w.expect(1, "runs_total", "lost_lock")
		r.disconnect(false)
	})
}

func TestDataLossInMidRunEndsTheRunAndFiresNothingTwice(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		for range 3 {
			w.replica(30 * time.Second)
		}
		w.at(2 * time.Second)
		w.redis.FlushAll()
		w.at(3*time.Minute - time.Second)
		by := w.started("minute")
		for _, at := range []time.Duration{0, time.Minute, 2 * time.Minute} {
			if n := len(by[w.origin().Add(at)]); n != 1 {
				t.Errorf("tick +%s was started %d times, want once\n%s", at, n, w.log())
			}
		}
		w.expect(1, "runs_total", "lost_lock")
	})
}

func TestTheTimeoutEndsARunThatLongAfterItsTick(t *testing.T) {
	for _, timeout := range []time.Duration{40 * time.Second, 10 * time.Millisecond} { // also one shorter than what the claim is ahead
		t.Run(timeout.String(), func(t *testing.T) {
			simulate(t, strings.Replace(minutely, "40s", timeout.String(), 1), func(w *world) {
				var ended time.Time
				w.replica(0, func(r *replica) {
					r.work = func(ctx context.Context, _ execute.Run) execute.Result {
						<-ctx.Done()
						ended = time.Now()
						return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
					}
				})
				w.at(59 * time.Second)
				w.expect(1, "runs_total", "timed_out")
				w.expect(1, "fires_total")
				if got := ended.Sub(w.origin()); got < timeout || got > timeout+5*time.Millisecond {
					t.Errorf("it was told to end %s after its tick, with a timeout of %s", got, timeout)
				}
			})
		})
	}
}

func TestOutcomesOfTheExecutorAreCounted(t *testing.T) {
	for status, want := range map[execute.Status]string{
		execute.Succeeded: "succeeded", execute.Failed: "failed", execute.Declined: "declined",
	} {
		t.Run(want, func(t *testing.T) {
			simulate(t, minutely, func(w *world) {
				r := w.replica(0, func(r *replica) {
					r.work = func(context.Context, execute.Run) execute.Result {
						return execute.Result{Status: status, Err: errors.New("said so"), Code: 1, RetryAfter: time.Minute}
					}
				})
				w.at(time.Second)
				w.expect(1, "runs_total", want)
				w.expect(1, "fires_total")
				r.shows(1, "ticks_total", "minute", want)
				if got := r.value("last_success_timestamp_seconds", "minute"); (got != 0) != (want == "succeeded") {
					t.Errorf("last_success_timestamp_seconds = %v", got)
				}
			})
		})
	}
}

func TestADeadReplicasRunIsRecordedAsInterruptedOnce(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		dead := w.replica(30 * time.Second)
		w.at(2 * time.Second)
		w.replica(time.Second)
		w.replica(time.Second)
		if n := len(w.started("minute")[w.origin()]); n != 1 {
			t.Fatalf("the tick was started %d times", n)
		}
		dead.disconnect(true)
		w.at(30 * time.Second)
		w.expect(1, "runs_total", "interrupted")
		w.expect(1, "takeovers_total")
		w.at(61 * time.Second)
		if n := len(w.started("minute")[w.origin().Add(time.Minute)]); n != 1 {
			t.Errorf("the tick after the death was started %d times", n)
		}
	})
}

func TestATickThatADeadReplicaHeldUpIsFired(t *testing.T) {
	simulate(t, `
jobs:
  - {name: ten, schedule: "@every 10s", exec: {command: [x]}}
`, func(w *world) {
		dead := w.replica(5 * time.Second)
		w.at(time.Second)
		w.replica(time.Second)
		dead.disconnect(true)
		w.at(30 * time.Second)
		s := w.started("ten")[w.origin().Add(10*time.Second)]
		if len(s) != 1 || s[0].at.After(w.origin().Add(20*time.Second)) {
			t.Errorf("the tick during the dead lease was started as %v, want once, by +20s\n%s", s, w.log())
		}
	})
}

func TestAJobThatCannotBeStartedHereIsStartedElsewhere(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(0, func(r *replica) { r.work = nil })
		w.at(-30 * time.Second)
		w.replica(time.Second)
		w.at(30*time.Minute + 30*time.Second)
		w.once("minute", time.Minute, 30*time.Minute, 5*time.Second)
		if w.sum("handovers_total") == 0 {
			t.Error("in half an hour no tick was handed over")
		}
		for _, r := range w.replicas {
			fires, skips := r.value("fires_total"), r.value("skips_total")
			if fires+skips < 31 {
				t.Errorf("%s: %v fires and %v skips for at least 31 wakes", r.name, fires, skips)
			}
		}
	})
}

func TestATickThatCannotBeStartedIsHandedOnAfterAnOutageToo(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		cutOff := w.replica(0, func(r *replica) {
			r.work = nil
			r.ifNot = func() { r.disconnect(true) }
		})
		w.at(5 * time.Second)
		second := w.replica(time.Second)
		w.at(22 * time.Second) // later than its lease
		cutOff.disconnect(false)
		w.at(30 * time.Second)
		if s := w.started("minute")[w.origin()]; len(s) != 1 || s[0].replica != second.name {
			t.Errorf("the tick was started as %v, want once, by the other replica\n%s", s, w.log())
		}
	})
}

func TestAJobThatCannotBeStartedAnywhereIsGivenUp(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(0, func(r *replica) { r.work = nil })
		w.at(58 * time.Second)
		w.expect(1, "runs_total", "not_started")
		w.expect(0, "fires_total")
		w.expect(5, "handovers_total")
		if s, err := w.redis.ZMembers("solotick:{test}:due"); err == nil {
			t.Errorf("the due set still has %q", s)
		}
	})
}

func TestWhatMayNotBeFiredIsSkippedForItsReason(t *testing.T) {
	simulate(t, `
jobs:
  - {name: off, schedule: "* * * * *", suspend: true, exec: {command: [x]}}
`, func(w *world) {
		w.replica(0)
		w.at(time.Second)
		w.expect(1, "skips_total", "suspended")
		w.expect(0, "fires_total")
		if got := w.sum("next_tick_timestamp_seconds"); got != 0 {
			t.Errorf("a suspended job's next tick is at %v", got)
		}
	})
}

func TestATickThatIsRefusedUntilItsDeadlineHasFailedOnce(t *testing.T) {
	simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", startingDeadline: 4s, exec: {command: [x]}}
`, func(w *world) {
		w.replica(0, func(r *replica) { r.work = nil })
		w.replica(0, func(r *replica) { r.work = nil })
		w.at(50 * time.Second)
		w.expect(1, "runs_total", "not_started")
		w.expect(1, "failures_total")
		w.expect(0, "missed_total")
		w.expect(0, "fires_total")
		if s, err := w.redis.ZMembers("solotick:{test}:due"); err == nil {
			t.Errorf("the due set still has %q", s)
		}
	})
}
