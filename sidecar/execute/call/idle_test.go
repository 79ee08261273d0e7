package call

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

func serveForEver(net.Conn, *bufio.Reader) int { return 0 }

func TestAFrequentJobReusesItsConnection(t *testing.T) {
	k := newCutter(t, 99, serveForEver)
	e := New(config.HTTP{URL: k.url}, Options{}).(*caller)
	for range 10 {
		e.transport.mu.Lock()
		e.transport.last = time.Now().Add(-time.Second)
		e.transport.mu.Unlock()
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	}
	if conns, seen := k.counts(); conns != 1 || seen != 10 {
		t.Errorf("%d connections for %d requests", conns, seen)
	}
	e.transport.take().Close()
}

func TestARareJobKeepsNoConnection(t *testing.T) {
	a := newApp(t, nil)
	e := New(config.HTTP{URL: a.URL}, Options{}).(*caller)
	for range 3 {
		e.transport.last = time.Now().Add(-idleLimit)
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		if kept(e) != nil || !a.last(t).Close {
			t.Error("a connection was kept")
		}
	}
}

func TestAConnectionIsKeptOnlyFromTheSecondFrequentCallOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, server := pipeCaller(t)
		go func() {
			for c := range server {
				if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					io.Copy(io.Discard, req.Body)
					io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
				}
			}
		}()
		for i, want := range []bool{false, true, true, false, true} {
			wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
			if kept := kept(e) != nil; kept != want {
				t.Errorf("call %d: kept %t", i, kept)
			}
			pause := time.Second
			if i == 2 {
				pause = idleLimit + time.Millisecond
			}
			time.Sleep(pause)
			synctest.Wait()
		}
		time.Sleep(idleLimit)
		close(server)
	})
}

func TestAnIdleConnectionIsClosedWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, server := pipeCaller(t)
		var gone time.Time
		var wg sync.WaitGroup
		wg.Go(func() {
			c := <-server
			r := bufio.NewReader(c)
			http.ReadRequest(r)
			c.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
			r.ReadByte()
			gone = time.Now()
		})
		e.transport.last = time.Now()
		begin := time.Now()
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		wg.Wait()
		if d := gone.Sub(begin); d != idleLimit || kept(e) != nil {
			t.Errorf("closed after %s", d)
		}
	})
}

// countingConn counts the connections that are open.
type countingConn struct {
	net.Conn
	open *atomic.Int32
}

func (c *countingConn) Close() error {
	c.open.Add(-1)
	return c.Conn.Close()
}

func TestRunsSideBySideKeepOneConnection(t *testing.T) {
	const n = 8
	var inside sync.WaitGroup
	inside.Add(n)
	a := newApp(t, func(http.ResponseWriter, *http.Request) {
		inside.Done()
		inside.Wait()
	})
	e := New(config.HTTP{URL: a.URL}, Options{}).(*caller)
	var open atomic.Int32
	dial := e.transport.dial
	e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		open.Add(1)
		return &countingConn{c, &open}, err
	}
	e.transport.last = time.Now()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded) })
	}
	wg.Wait()
	if kept(e) == nil || open.Load() != 1 {
		t.Errorf("%d connections are open", open.Load())
	}
	kept(e).Close()
}

func TestAnAnswerThatMustNotBeFollowedByAnotherEndsItsConnection(t *testing.T) {
	for name, text := range map[string]string{
		"close":        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.0":     "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"no length":    "HTTP/1.1 200 OK\r\n\r\nok",
		"more words":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
		"breaks off":   "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
		"other speech": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
	} {
		e := New(config.HTTP{URL: rawApp(t, saying(text))}, Options{}).(*caller)
		e.transport.last = time.Now()
		e.Execute(t.Context(), aRun())
		if kept(e) != nil {
			t.Errorf("%s: the connection was kept", name)
		}
	}
}

func TestAConnectionOfAnEndedContextIsNotKept(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	a := newApp(t, func(http.ResponseWriter, *http.Request) {})
	e := New(config.HTTP{URL: a.URL}, Options{}).(*caller)
	dial := e.transport.dial
	e.transport.dial = func(dctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(dctx, network, address)
		return &cancelAfter{Conn: c, text: "200 OK", cancel: func() { cancel(errLockLost) }}, err
	}
	e.transport.last = time.Now()
	e.Execute(ctx, aRun())
	if kept(e) != nil {
		t.Error("it was kept, with a deadline in the past")
	}
}
