package call

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
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

func TestRunsSideBySideKeepAConnectionEach(t *testing.T) {
	const n = 8
	var inside sync.WaitGroup
	a := newApp(t, func(http.ResponseWriter, *http.Request) {
		inside.Done()
		inside.Wait()
	})
	e := New(config.HTTP{URL: a.URL}, Options{}).(*caller)
	open := counting(t, e)
	var made atomic.Int32
	dial := e.transport.dial
	e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		made.Add(1)
		return dial(ctx, network, address)
	}
	e.transport.last = time.Now()
	for range 2 {
		inside.Add(n)
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded) })
		}
		wg.Wait()
	}
	if made.Load() != n || open.Load() != n {
		t.Errorf("%d connections were made, %d are open", made.Load(), open.Load())
	}
	for c := e.transport.take(); c != nil; c = e.transport.take() {
		c.Close()
	}
}

func TestJobsShareTheConnectionsToTheirServer(t *testing.T) {
	one, other := newCutter(t, 99, serveForEver), newCutter(t, 99, serveForEver)
	servers := &Servers{}
	call := func(url string, remote bool) {
		e := New(config.HTTP{URL: url}, Options{Servers: servers, AllowRemote: remote}).(*caller)
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		t.Cleanup(func() {
			if c := e.transport.take(); c != nil {
				c.Close()
			}
		})
	}
	call(one.url, false) // the first is no frequent call yet
	for range 5 {
		call(one.url, false)
	}
	if conns, seen := one.counts(); conns != 2 || seen != 6 {
		t.Errorf("%d connections for %d requests", conns, seen)
	}
	call(other.url, false)
	if conns, _ := other.counts(); conns != 1 {
		t.Errorf("%d connections to another server", conns)
	}
	call(one.url, true)
	if conns, _ := one.counts(); conns != 3 {
		t.Errorf("a job that may call other machines has used the connection of one that may not: %d connections", conns)
	}
}

func TestServersThatAreNotCalledAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := &Servers{}
		broken := servers.get(serverName{host: "broken"})
		broken.stopKeeping()
		for i := range 10 * sweepAbove {
			servers.get(serverName{host: strconv.Itoa(i)}).callsOften()
			time.Sleep(time.Second)
		}
		if n := len(servers.of); n > sweepAbove {
			t.Errorf("%d servers are known", n)
		}
		if servers.get(serverName{host: "broken"}) != broken {
			t.Error("it is forgotten that a server breaks kept connections")
		}
	})
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
