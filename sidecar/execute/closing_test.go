package execute

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
)

// closings is an app that answers every request, and tells of each connection when its other end has closed it.
type closings struct {
	url    string
	closed chan int      // numbers of connections, from 0
	noise  chan struct{} // something is said on the first connection without being asked
	said   chan struct{}
}

func newClosings(t *testing.T) *closings {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	k := &closings{url: "http://" + l.Addr().String(), closed: make(chan int, 10), noise: make(chan struct{}), said: make(chan struct{})}
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n == 0 {
				go func() {
					select {
					case <-k.noise:
						_, _ = io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\n\r\n")
						close(k.said)
					case <-t.Context().Done():
					}
				}()
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					if _, err := http.ReadRequest(r); err != nil {
						k.closed <- n
						return
					}
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	return k
}

func (k *closings) wantClosed(t *testing.T, n int) {
	t.Helper()
	select {
	case got := <-k.closed:
		if got != n {
			t.Errorf("connection %d was closed, want %d", got, n)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("connection %d stays open", n)
	}
}

func TestAConnectionWhoseMomentNeverComesIsClosed(t *testing.T) {
	for _, kept := range []bool{false, true} {
		k := newClosings(t)
		e := NewHTTP(config.HTTP{URL: k.url}, HTTPOptions{}).(*caller)
		if kept {
			e.wire.last = time.Now()
			wantStatus(t, e.Execute(t.Context(), aRun()), Succeeded)
			e.wire.last = time.Now()
		}
		ctx, cancel := contextWithCause(t)
		r := aRun()
		r.Await = func(context.Context) { cancel(errLockLost) }
		wantCause(t, e.Execute(ctx, r))
		k.wantClosed(t, 0)
	}
}

func TestAKeptConnectionOnWhichTheAppSpeaksIsClosed(t *testing.T) {
	k := newClosings(t)
	e := NewHTTP(config.HTTP{URL: k.url}, HTTPOptions{}).(*caller)
	e.wire.last = time.Now()
	wantStatus(t, e.Execute(t.Context(), aRun()), Succeeded)
	first := kept(e)
	e.wire.last = time.Now()
	r := aRun()
	r.Await = func(context.Context) {
		close(k.noise)
		<-k.said
		awaitUnquiet(first.Conn)
	}
	wantStatus(t, e.Execute(t.Context(), r), Succeeded)
	k.wantClosed(t, 0)
	if c := e.wire.take(); c != nil {
		c.Close()
	}
}

// That a run was cancelled says nothing against keeping connections: the app did not break one.
func TestACanceledCallOnAKeptConnectionIsNotHeldAgainstIt(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	calls := 0
	a := newApp(t, func(_ http.ResponseWriter, r *http.Request) {
		if calls++; calls == 2 {
			cancel(errLockLost)
			<-r.Context().Done()
		}
	})
	e := NewHTTP(config.HTTP{URL: a.URL}, HTTPOptions{}).(*caller)
	for i, want := range []Status{Succeeded, Canceled, Succeeded} {
		e.wire.last = time.Now()
		of := ctx
		if i == 2 {
			of = t.Context()
		}
		wantStatus(t, e.Execute(of, aRun()), want)
		if (kept(e) != nil) != (want == Succeeded) {
			t.Errorf("after call %d a connection is kept: %t", i+1, kept(e) != nil)
		}
	}
	if c := e.wire.take(); c != nil {
		c.Close()
	}
}
