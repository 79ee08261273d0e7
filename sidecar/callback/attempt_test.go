package callback

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

var anHour = config.Async{Timeout: time.Hour, Heartbeat: heartbeat}

// TestWhichAnswersAcceptARun: an app that has sent a heartbeat has accepted the run if its answer is lost. Each other answer
// than its own 202 ends the run.
func TestWhichAnswersAcceptARun(t *testing.T) {
	for _, c := range []struct {
		what            string
		code            int
		foreign, beaten bool
		accepted        bool
	}{
		{"the app's 202", http.StatusAccepted, false, false, true},
		{"the 202 of another server", http.StatusAccepted, true, false, false},
		{"an answer that ends the run", http.StatusOK, false, false, false},
		{"a failure", http.StatusInternalServerError, false, false, false},
		{"no answer", -1, false, false, false},
		{"no answer of an app that works", -1, false, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, begun := New("127.0.0.1:9748"), time.Now()
			limit := time.Duration(0)
			run := execute.Run{ID: "run", Accepted: func(d time.Duration) { limit = d }}
			got := r.Execute(t.Context(), run, &anHour, func(call *Call) (execute.Result, bool) {
				if c.beaten {
					mustBeat(t, r, call)
				}
				return execute.Result{Status: execute.Failed, Code: c.code}, c.foreign
			})
			took := time.Since(begun)
			if c.accepted && (got.Status != execute.Interrupted || took != heartbeat || limit != time.Hour) {
				t.Errorf("%s: %s after %s, limit %s", c.what, got.Status, took, limit)
			}
			if !c.accepted && (got.Status != execute.Failed || took != 0 || limit != 0) {
				t.Errorf("%s: %s after %s, limit %s", c.what, got.Status, took, limit)
			}
		})
	}
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
