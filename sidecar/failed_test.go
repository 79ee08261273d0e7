package sidecar

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
)

// The same runs count as failed in the history, the metrics and the log.

// settled gives the entries of a job in the history, the oldest first, as "outcome" or "outcome FAILED", and checks
// that those that failed are the failures.
func (w *world) settled(job string) []string {
	w.t.Helper()
	var all []string
	w.operator(func(s *service.Store) {
		entries, err := s.History(w.t.Context(), job, 1000)
		w.must(err)
		failures, err := s.Search(w.t.Context(), service.Search{Jobs: []string{job}, Failed: true, Limit: 1000})
		w.must(err)
		failed := map[string]bool{}
		for _, e := range failures {
			failed[e.Run] = true
		}
		for _, e := range slices.Backward(entries) {
			text := e.Outcome
			if e.Failed {
				text += " FAILED"
			}
			if failed[e.Run] != e.Failed {
				w.t.Errorf("%+v is among the failures: %t", e, failed[e.Run])
			}
			all = append(all, text)
		}
	})
	return all
}

func (w *world) last(job string) *service.Entry {
	w.t.Helper()
	var last *service.Entry
	w.operator(func(s *service.Store) {
		states, err := s.States(w.t.Context(), []string{job})
		w.must(err)
		last = states[job].Last
	})
	return last
}

func TestATickThatIsHandedOverHasNotFailed(t *testing.T) {
	simulate(t, "\njobs:\n  - {name: minute, schedule: '* * * * *', startRetries: 1, exec: {command: [x]}}", func(w *world) {
		w.replica(time.Second)
		w.at(30 * time.Second)
		for range 2 { // from then on there are only those that cannot start it
			w.replica(0, refuses)
		}
		w.at(50 * time.Second)
		w.replicas[0].stop()
		w.at(time.Minute + 500*time.Millisecond)
		if e := w.last("minute"); e == nil || e.Outcome != "succeeded" {
			t.Errorf("while the second tick is on its way, the last run is %+v, want the first tick's\n%s", e, w.log())
		}
		w.expect(0, "failures_total")
		w.at(90 * time.Second)
		want := []string{"succeeded", "handed_over", "handed_over", "handed_over", "not_started FAILED"}
		if got := w.settled("minute"); !slices.Equal(got, want) {
			t.Errorf("the history is %q, want %q", got, want)
		}
		if e := w.last("minute"); e == nil || e.Outcome != "not_started" || !e.Failed {
			t.Errorf("the last run is %+v", e)
		}
		w.expect(3, "handovers_total")
		w.expect(1, "runs_total", "not_started")
		w.expect(1, "failures_total")
		w.expect(4, "skips_total", "start_failed")
		w.expect(0, "skips_total", "not_ready") // which is the gate's alone
	})
}

func TestEveryEndOfARunCountsAsFailedEverywhereOrNowhere(t *testing.T) {
	with := func(result execute.Result) func(*replica) {
		return func(r *replica) {
			r.work = func(context.Context, execute.Run) execute.Result { return result }
		}
	}
	long := func(r *replica) {
		r.work = func(ctx context.Context, _ execute.Run) execute.Result {
			<-ctx.Done()
			return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
		}
	}
	for _, c := range []struct {
		keys   string
		change func(*replica)
		stop   bool
		want   string
	}{
		{"", func(*replica) {}, false, "succeeded"},
		{"", with(execute.Result{Status: execute.Failed, Err: errors.New("exit code 1"), Code: 1}), false, "failed FAILED"},
		{"", with(execute.Result{Status: execute.Declined, Code: 409}), false, "declined"},
		{"timeout: 1s", long, false, "timed_out FAILED"},
		{"startRetries: 0", refuses, false, "not_started FAILED"},
		{"", long, true, "shutdown FAILED"}, // nobody runs it again
		{"guarantee: at-least-once", long, true, "shutdown"},
		{"guarantee: every-replica", long, true, "shutdown FAILED"},
	} {
		t.Run(strings.TrimSpace(c.want+" "+c.keys), func(t *testing.T) {
			table := "shutdownGrace: 3s\njobs:\n  - {name: minute, schedule: '* * * * *', exec: {command: [x]}, " + c.keys + "}\n"
			simulate(t, table, func(w *world) {
				r := w.replica(time.Second, c.change)
				w.at(2 * time.Second)
				if c.stop {
					r.stop()
				}
				w.at(20 * time.Second)
				if got := w.settled("minute"); !slices.Equal(got, []string{c.want}) {
					t.Errorf("the history is %q, want %q\n%s", got, c.want, w.log())
				}
				failed := 0.0
				if strings.HasSuffix(c.want, " FAILED") {
					failed = 1
				}
				w.expect(failed, "failures_total")
				if log := r.logs.String(); strings.Contains(log, "level=ERROR msg=finished") != (failed == 1) {
					t.Errorf("the log says something else:\n%s", log)
				}
			})
		})
	}
}

// Redis knows nothing of the run any more, since it has lost its data.
func TestARunThatRedisHasForgottenWasNotTakenForDead(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(10 * time.Second)
		w.at(9900 * time.Millisecond)
		w.redis.FlushAll()
		w.at(20 * time.Second)
		w.expect(1, "runs_total", "lost_lock")
		if strings.Contains(r.logs.String(), "taken for dead") {
			t.Errorf("it says so:\n%s", w.log())
		}
	})
}

// The run's replica was cut off, and another one has counted the run as interrupted: the history and the metrics have
// one failure.
func TestARunThatWasTakenForDeadFailsOnce(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		long := func(r *replica) {
			r.work = func(ctx context.Context, _ execute.Run) execute.Result {
				<-ctx.Done()
				return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
			}
		}
		first := w.replica(0, long)
		w.at(time.Second)
		w.replica(0)
		first.disconnect(true)
		w.at(25 * time.Second)
		first.disconnect(false)
		w.at(40 * time.Second)
		if !strings.Contains(first.logs.String(), "taken for dead") {
			t.Errorf("it was not:\n%s", w.log())
		}
		if got, want := w.settled("minute"), []string{"interrupted FAILED"}; !slices.Equal(got, want) {
			t.Errorf("the history is %q, want %q\n%s", got, want, w.log())
		}
		w.expect(1, "runs_total", "lost_lock")
		w.expect(1, "runs_total", "interrupted")
		w.expect(1, "failures_total")
	})
}

// A run that the end of its replica cut off is told of as a failure, if no replica runs it again.
func TestARunThatTheShutdownCutOffIsToldOfAsAFailure(t *testing.T) {
	heard := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if job, failed := strings.CutSuffix(r.URL.Path, "/fail"); failed {
			heard <- job
		}
	}))
	defer server.Close()
	pings := notify.New(nil, "test")
	for _, job := range []string{"at-least-once", "at-most-once"} { // the latter is the last one to be told of
		table := "shutdownGrace: 1s\njobs:\n  - {name: minute, schedule: '* * * * *', exec: {command: [x]}, guarantee: " + job +
			", notify: {url: '" + server.URL + "/" + job + "'}}\n"
		simulate(t, table, func(w *world) {
			r := w.replica(50*time.Second, func(r *replica) { r.pings = pings })
			w.at(2 * time.Second)
			r.stop()
			<-r.done
		})
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute) // outside the bubble, where there is a network
	defer stop()
	ended := make(chan error)
	go func() { ended <- pings.Run(ctx) }()
	select {
	case got := <-heard:
		if got != "/at-most-once" {
			t.Errorf("told of %q", got)
		}
	case <-ctx.Done():
		t.Error("nobody was told of it")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
