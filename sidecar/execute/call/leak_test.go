package call

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// openConn is a connection of the kernel's that counts among the open ones.
type openConn struct {
	*net.TCPConn
	open *atomic.Int32
}

func (c *openConn) Close() error {
	err := c.TCPConn.Close()
	if err == nil {
		c.open.Add(-1)
	}
	return err
}

// counting has the connections of a caller counted while they are open. Those that are left are closed with the test:
// the app waits for their end.
func counting(t *testing.T, e *caller) (open *atomic.Int32) {
	open = &atomic.Int32{}
	dial := e.transport.dial
	e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		t.Cleanup(func() { _ = c.Close() })
		return &openConn{c.(*net.TCPConn), open}, nil
	}
	return open
}

func TestARunWhoseMomentNeverComesLeavesNoConnection(t *testing.T) {
	for name, reused := range map[string]bool{"new": false, "kept": true} {
		k := newCutter(t, 9, func(net.Conn, *bufio.Reader) int { return 0 })
		e := New(config.HTTP{URL: k.url}, Options{}).(*caller)
		open := counting(t, e)
		if reused {
			warm(t, e)
		}
		ctx, cancel := contextWithCause(t)
		r := aRun()
		r.Await = func(context.Context) { cancel(errLockLost) }
		wantCause(t, e.Execute(ctx, r))
		if n := open.Load(); n != 0 {
			t.Errorf("%s: %d connections are left open", name, n)
		}
	}
}

func TestAConnectionThatBecomesNoisyBeforeTheMomentIsClosed(t *testing.T) {
	speak := make(chan struct{})
	k := newCutter(t, 2, func(c net.Conn, r *bufio.Reader) int {
		<-speak
		io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n")
		_, _ = r.ReadByte() // its end
		return 0
	})
	e := New(config.HTTP{URL: k.url}, Options{}).(*caller)
	open := counting(t, e)
	warm(t, e)
	first := kept(e).Conn.(*openConn).TCPConn
	r := aRun()
	r.Await = func(context.Context) {
		close(speak)
		awaitUnquiet(first)
	}
	e.transport.last = time.Now()
	wantStatus(t, e.Execute(t.Context(), r), execute.Succeeded)
	if second := kept(e); second != nil {
		e.transport.take().Close()
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections are left open", n)
	}
}

// A cancelled run is no reason to stop keeping connections: the app did not break one.
func TestACanceledCallOnAKeptConnectionIsNotHeldAgainstIt(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	calls := 0
	a := newApp(t, func(_ http.ResponseWriter, r *http.Request) {
		if calls++; calls == 2 {
			cancel(errLockLost)
			<-r.Context().Done()
		}
	})
	e := New(config.HTTP{URL: a.URL}, Options{}).(*caller)
	for i, want := range []execute.Status{execute.Succeeded, execute.Canceled, execute.Succeeded} {
		e.transport.last = time.Now()
		of := ctx
		if i == 2 {
			of = t.Context()
		}
		wantStatus(t, e.Execute(of, aRun()), want)
		if (kept(e) != nil) != (want == execute.Succeeded) {
			t.Errorf("after call %d a connection is kept: %t", i+1, kept(e) != nil)
		}
	}
	if c := e.transport.take(); c != nil {
		c.Close()
	}
}
