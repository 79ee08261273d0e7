package sidecar

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// cancel has an operator cancel the only live run of the job.
func (w *world) cancel(job string) {
	w.t.Helper()
	w.operator(func(s *service.Store) {
		states, err := s.States(w.t.Context(), []string{job})
		w.must(err)
		if n := len(states[job].Running); n != 1 {
			w.t.Fatalf("%d runs are live\n%s", n, w.log())
		}
		lived, err := s.Cancel(w.t.Context(), job, []string{states[job].Running[0].Run}, uuid.NewString())
		w.must(err)
		if len(lived) != 1 {
			w.t.Fatalf("cancelled %q\n%s", lived, w.log())
		}
	})
}

// wasCancelled demands that the tick 0 of the job was started so often, and that its one run was cancelled.
func (w *world) wasCancelled(starts int) {
	w.t.Helper()
	if s := w.started("minute")[w.origin()]; len(s) != starts {
		w.t.Errorf("started as %+v\n%s", s, w.log())
	}
	w.expect(1, "runs_total", "cancelled")
	w.expect(0, "runs_total", "interrupted")
	w.expect(0, "runs_total", "failed")
	w.expect(0, "failures_total")
	w.expect(0, "handovers_total")
	w.expect(0, "running")
	last, err := w.replicas[0].store.History(w.t.Context(), "minute", 10)
	w.must(err)
	if len(last) != 1 || last[0].Outcome != "cancelled" || last[0].Failed {
		w.t.Errorf("the history is %+v", last)
	}
}

// patient are the keys of a job that is run again, handed on and tried again wherever it can be.
const patient = "guarantee: at-least-once, timeout: 50s, lock: {ttl: 6s}, retry: {limit: 3, backoff: 20s, maxBackoff: 20s}"

func TestACancelledRunEndsAtOnceAndIsNotRunAgain(t *testing.T) {
	simulate(t, policy(patient), func(w *world) {
		for range 3 {
			w.replica(40 * time.Second)
		}
		w.at(2*time.Second + 500*time.Millisecond)
		w.cancel("minute")
		w.at(2*time.Second + 700*time.Millisecond)
		w.expect(1, "runs_total", "cancelled")
		w.at(59 * time.Second)
		w.wasCancelled(1)
		w.at(110 * time.Second)
		w.expect(1, "runs_total", "succeeded") // the next tick
	})
}

// The outcome says it.
func TestTheHistoryDoesNotSayTwiceThatARunWasCancelled(t *testing.T) {
	simulate(t, policy(patient), func(w *world) {
		r := w.replica(0, func(r *replica) {
			r.work = func(ctx context.Context, _ execute.Run) execute.Result {
				<-ctx.Done()
				err := fmt.Errorf("%w; the app may still be working on it", context.Cause(ctx))
				return execute.Result{Status: execute.Canceled, Code: -1, Err: err}
			}
		})
		w.at(2 * time.Second)
		w.cancel("minute")
		w.at(3 * time.Second)
		last, err := r.store.History(w.t.Context(), "minute", 1)
		w.must(err)
		if len(last) != 1 || last[0].Outcome != "cancelled" || last[0].Detail != "by an operator; the app may still be working on it" {
			w.t.Errorf("the history is %+v", last)
		}
	})
}

func TestACancelledRunThatFailedIsNotTriedAgain(t *testing.T) {
	simulate(t, policy(patient), func(w *world) {
		w.replica(0, func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result {
				return execute.Result{Status: execute.Failed, Code: 1, Err: errors.New("no")}
			}
		})
		w.at(2 * time.Second)
		w.cancel("minute")
		w.at(59 * time.Second)
		w.wasCancelled(1)
	})
}

func TestACancelledRunIsNotTakenOver(t *testing.T) {
	simulate(t, policy(patient), func(w *world) {
		for range 2 {
			w.replica(40 * time.Second)
		}
		w.at(2 * time.Second)
		dead := w.holder("minute", 0)
		dead.crash() // which goes on by itself, until it trusts its lease no more
		w.cancel("minute")
		w.at(50 * time.Second)
		if s := w.started("minute")[w.origin()]; len(s) != 1 {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
		w.expect(1, "takeovers_total")
		w.expect(1, "runs_total", "cancelled")
		for _, r := range w.replicas {
			if n := r.value("failures_total"); r != dead && n != 0 {
				t.Errorf("%s counts %v failures\n%s", r.name, n, w.log())
			}
		}
		w.expect(0, "runs_total", "interrupted")
		w.operator(func(s *service.Store) {
			last, err := s.History(w.t.Context(), "minute", 10)
			if err != nil || len(last) != 1 || last[0].Outcome != "cancelled" || last[0].Failed {
				t.Errorf("the history is %+v, %v", last, err)
			}
		})
	})
}

// A shutdown cuts the run short before its replica hears of the cancel, and would have it run again.
func TestACancelledRunIsNotRunAgainAfterAShutdown(t *testing.T) {
	simulate(t, "shutdownGrace: 1s\n"+policy(patient), func(w *world) {
		first := w.replica(0, func(r *replica) {
			r.work = func(ctx context.Context, _ execute.Run) execute.Result {
				<-ctx.Done()
				time.Sleep(10 * time.Second)
				return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
			}
		})
		w.at(20 * time.Second)
		w.replica(10 * time.Second)
		w.at(25 * time.Second)
		first.stop()
		w.at(28 * time.Second) // it has been told to end, and takes its time
		w.cancel("minute")
		w.at(59 * time.Second)
		if s := w.started("minute")[w.origin()]; len(s) != 1 {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
	})
}

func TestARunThatIsCancelledBeforeItsTickNeverStarts(t *testing.T) {
	simulate(t, policy(patient), func(w *world) {
		for range 2 {
			w.replica(10 * time.Second)
		}
		w.at(-15 * time.Millisecond) // it is claimed
		w.cancel("minute")
		w.at(100 * time.Millisecond)
		if w.redis.Exists("solotick:{test}:lock:minute") {
			t.Error("its lock has a safety delay, as after a run")
		}
		w.at(59 * time.Second)
		w.wasCancelled(0)
		w.expect(1, "skips_total", "start_failed")
		w.at(80 * time.Second)
		w.expect(1, "runs_total", "succeeded")
	})
}
