package callback

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

var anHour = config.Async{Timeout: time.Hour, Heartbeat: heartbeat}

// TestWhichAnswersAcceptARun: an app that has sent a heartbeat has accepted the run, whatever was answered. The app
// falls silent then, and the run ends as it was answered.
func TestWhichAnswersAcceptARun(t *testing.T) {
	for _, c := range []struct {
		what            string
		code            int
		foreign, beaten bool
		want            execute.Status
		accepted        bool
	}{
		{"the app's 202", 202, false, false, execute.Interrupted, true},
		{"the 202 of another server", 202, true, false, execute.Succeeded, false},
		{"the 202 of another server, after a heartbeat", 202, true, true, execute.Succeeded, true},
		{"an answer that ends the run", 200, false, false, execute.Succeeded, false},
		{"an answer that ends the run, after a heartbeat", 200, false, true, execute.Succeeded, true},
		{"a failure", 500, false, false, execute.Failed, false},
		{"a failure, after a heartbeat", 500, false, true, execute.Failed, true},
		{"the failure of a proxy", 504, false, false, execute.Failed, false},
		{"the failure of a proxy, and the app works", 504, false, true, execute.Failed, true},
		{"no answer", -1, false, false, execute.Failed, false},
		{"no answer of an app that works", -1, false, true, execute.Interrupted, true},
	} {
		attempt(t, c.code, c.foreign, c.beaten, nil, func(got execute.Result, took, limit time.Duration) {
			code := c.code
			if code == 202 && !c.foreign {
				code = -1
			}
			if got.Status != c.want || got.Code != code {
				t.Errorf("%s: %+v", c.what, got)
			}
			if c.accepted && (took != heartbeat || limit != time.Hour) || !c.accepted && (took != 0 || limit != 0) {
				t.Errorf("%s: it took %s, limit %s", c.what, took, limit)
			}
		})
	}
}

func TestAReportCountsForMoreThanTheAnswer(t *testing.T) {
	for _, code := range []int{200, 500, 504, -1} {
		for outcome, want := range map[Outcome]execute.Status{Succeeded: execute.Succeeded, Failed: execute.Failed, Interrupted: execute.Interrupted} {
			attempt(t, code, false, true, &Report{Outcome: outcome}, func(got execute.Result, took, _ time.Duration) {
				if got.Status != want || !got.Reported || got.Code != -1 || took != time.Second {
					t.Errorf("%d, %s: %+v after %s", code, outcome, got, took)
				}
			})
		}
	}
}

// An app that could not go on because of the lease is not at fault.
func TestTheErrorTellsThatTheLeaseWasUnsure(t *testing.T) {
	for _, reports := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sure := true
			r := New("127.0.0.1:9748")
			run := execute.Run{ID: "run", Lasts: func(d time.Duration) bool { return sure || d == 0 }}
			got := r.Execute(t.Context(), run, &anHour, func(c *Call) (execute.Result, bool) {
				mustBeat(t, r, c)
				time.AfterFunc(time.Second, func() {
					sure = false
					_, _ = r.Beat("run", c.Token())
					if reports {
						_ = r.Finish("run", c.Token(), Report{Outcome: Interrupted})
					}
				})
				return execute.Result{Status: execute.Succeeded, Code: 202}, false
			})
			why := ErrSilent
			if reports {
				why = ErrStopped
			}
			if got.Status != execute.Interrupted || !errors.Is(got.Err, why) || !errors.Is(got.Err, ErrUnsure) {
				t.Errorf("reports %t: %+v", reports, got)
			}
		})
	}
}

// attempt plays an attempt whose call is answered with a code, and whose app may report a second later.
func attempt(t *testing.T, code int, foreign, beaten bool, report *Report, f func(got execute.Result, took, limit time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, begun := New("127.0.0.1:9748"), time.Now()
		limit := time.Duration(0)
		run := execute.Run{ID: "run", Accepted: func(d time.Duration) { limit = d }}
		got := r.Execute(t.Context(), run, &anHour, func(c *Call) (execute.Result, bool) {
			if beaten {
				mustBeat(t, r, c)
			}
			if report != nil {
				time.AfterFunc(time.Second, func() { _ = r.Finish("run", c.Token(), *report) })
			}
			status := execute.Failed
			if code >= 200 && code < 300 {
				status = execute.Succeeded
			}
			return execute.Result{Status: status, Code: code}, foreign
		})
		f(got, time.Since(begun), limit)
	})
}

// TestNoHeartbeatIsAnsweredWithLeaveOnceTheRunIsOver: a heartbeat that comes as the call breaks keeps the run going, or
// is refused.
func TestNoHeartbeatIsAnsweredWithLeaveOnceTheRunIsOver(t *testing.T) {
	r := New("127.0.0.1:9748")
	told, cancel := context.WithCancel(t.Context())
	cancel() // then the run lasts only until the app must have stopped
	async := &config.Async{Heartbeat: 100 * time.Microsecond}
	for range 500 {
		var beats sync.WaitGroup
		var lasts atomic.Bool
		leave := make(chan time.Time, 1) // until then
		run := execute.Run{ID: "run", Lasts: func(time.Duration) bool { return lasts.Load() }}
		r.Execute(told, run, async, func(c *Call) (execute.Result, bool) {
			asking := make(chan bool)
			beats.Go(func() {
				close(asking)
				sent, err := time.Now(), error(ErrUnsure)
				for errors.Is(err, ErrUnsure) {
					sent = time.Now()
					_, err = r.Beat("run", c.Token())
				}
				if err == nil {
					leave <- sent.Add(async.Heartbeat)
				}
			})
			<-asking
			lasts.Store(true)
			return execute.Result{Status: execute.Failed, Code: -1}, false
		})
		ended := time.Now()
		beats.Wait()
		select {
		case until := <-leave:
			if ended.Before(until) {
				t.Fatalf("the run ended %s before the app had to stop", until.Sub(ended))
			}
		default:
		}
	}
}
