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

// TestWhichAnswersAcceptARun: an app that has sent a heartbeat has accepted the run, unless it answers otherwise itself. The app
// falls silent then.
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
		{"an answer that ends the run", 200, false, false, execute.Succeeded, false},
		{"an answer that ends the run, after a heartbeat", 200, false, true, execute.Succeeded, false},
		{"a failure", 500, false, false, execute.Failed, false},
		{"a failure, after a heartbeat", 500, false, true, execute.Failed, false},
		{"the failure of a proxy", 504, false, false, execute.Failed, false},
		{"the failure of a proxy, and the app works", 504, false, true, execute.Failed, true},
		{"no answer", -1, false, false, execute.Failed, false},
		{"no answer of an app that works", -1, false, true, execute.Interrupted, true},
	} {
		attempt(t, c.code, c.foreign, c.beaten, nil, func(got execute.Result, took, limit time.Duration) {
			if got.Status != c.want || got.Code != c.code {
				t.Errorf("%s: %+v", c.what, got)
			}
			if c.accepted && (took != heartbeat || limit != time.Hour) || !c.accepted && (took != 0 || limit != 0) {
				t.Errorf("%s: it took %s, limit %s", c.what, took, limit)
			}
		})
	}
}

func TestAReportCountsForMoreThanTheAnswerOfAProxy(t *testing.T) {
	report := &Report{Outcome: Succeeded}
	attempt(t, 504, false, true, report, func(got execute.Result, took, _ time.Duration) {
		if got.Status != execute.Succeeded || !got.Reported || got.Code != -1 || took != time.Second {
			t.Errorf("%+v after %s", got, took)
		}
	})
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

// TestNoHeartbeatIsAnsweredWithLeaveOnceTheRunIsOver: a heartbeat that comes as the call breaks keeps the run going, or is
// refused.
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
