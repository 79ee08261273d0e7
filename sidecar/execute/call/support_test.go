package call

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

var errLockLost = errors.New("the lock was lost")

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

// wantCause checks that an attempt was ended by errLockLost and says so.
func wantCause(t *testing.T, res execute.Result) {
	t.Helper()
	wantStatus(t, res, execute.Canceled)
	if !errors.Is(res.Err, errLockLost) {
		t.Fatalf("error %v does not carry the cause", res.Err)
	}
}

// pipeCaller returns an executor whose connections are pipes, for bubbles, and their other ends as they are made.
func pipeCaller(*testing.T) (*caller, chan net.Conn) {
	server := make(chan net.Conn, 16)
	e := New(config.HTTP{URL: "http://127.0.0.1:8080/"}, Options{}).(*caller)
	e.transport.dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		server <- theirs
		return ours, nil
	}
	return e, server
}

// kept is the connection that the next call gets, nil for none.
func kept(e *caller) *conn {
	e.transport.mu.Lock()
	defer e.transport.mu.Unlock()
	if n := len(e.transport.idle); n > 0 {
		return e.transport.idle[n-1]
	}
	return nil
}
