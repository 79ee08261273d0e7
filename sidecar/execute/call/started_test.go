package call

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/rig"
	"github.com/solotick/solotick/sidecar/execute"
)

// Starts are counted by this call: one too many is a tick fired twice in the eyes of an operator.
func TestStartedIsCalledOnceWhenTheJobBegins(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
		}
	}))
	defer app.Close()

	ok := []config.CodeRange{{From: 200, To: 299}}
	for name, c := range map[string]struct {
		executor execute.Executor
		status   execute.Status
		started  int
	}{
		"a call":            {New(config.HTTP{Method: "POST", URL: app.URL, SuccessCodes: ok}, Options{}), execute.Succeeded, 1},
		"a redirected call": {New(config.HTTP{Method: "POST", URL: app.URL + "/moved", SuccessCodes: ok}, Options{}), execute.Succeeded, 1},
		"a refused call":    {New(config.HTTP{Method: "POST", URL: "http://" + rig.FreeAddr(t), SuccessCodes: ok}, Options{}), execute.NotStarted, 0},
	} {
		t.Run(name, func(t *testing.T) {
			started := 0
			res := c.executor.Execute(context.Background(), execute.Run{Service: "s", Job: "j", ID: "id", Started: func() { started++ }})
			if res.Status != c.status || started != c.started {
				t.Errorf("%s (%v) after %d calls of Started, want %s after %d", res.Status, res.Err, started, c.status, c.started)
			}
		})
	}
}

// A job that may not begin, because its lock was lost while it was made ready, never reaches the app.
func TestAJobThatMayNotBeginIsNotBegun(t *testing.T) {
	calls := 0
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer app.Close()
	lost := errors.New("lost")
	ctx, cancel := context.WithCancelCause(context.Background())
	e := New(config.HTTP{Method: "POST", URL: app.URL}, Options{})
	res := e.Execute(ctx, execute.Run{Service: "s", Job: "j", ID: "id",
		Await:   func(context.Context) { cancel(lost) },
		Started: func() { t.Error("Started was called") },
	})
	if res.Status != execute.Canceled || !errors.Is(res.Err, lost) || calls != 0 {
		t.Errorf("%s (%v) after %d calls, want canceled by the cause after none", res.Status, res.Err, calls)
	}
}

// The connection is made while the tick is waited for; an app that closes it meanwhile is called on another one.
func TestTheCallGoesOutOnALiveConnectionWhenItsMomentComes(t *testing.T) {
	var conns, calls atomic.Int32
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	app.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	app.Start()
	defer app.Close()
	e := New(config.HTTP{Method: "POST", URL: app.URL, SuccessCodes: []config.CodeRange{{From: 200, To: 299}}}, Options{})
	for i := range 3 {
		res := e.Execute(context.Background(), execute.Run{Service: "s", Job: "j", ID: "id", Await: func(context.Context) {
			if i == 2 {
				app.CloseClientConnections()
			}
		}})
		if res.Status != execute.Succeeded {
			t.Fatalf("call %d: %s (%v)", i+1, res.Status, res.Err)
		}
	}
	// One for the first call, one that the second keeps, one in place of that.
	if calls.Load() != 3 || conns.Load() != 3 {
		t.Errorf("%d calls over %d connections, want 3 over 3", calls.Load(), conns.Load())
	}
}
