package call

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// cutter is an app that answers the first good requests of each connection, and then treats it badly. It counts the
// requests whose first line it has seen.
type cutter struct {
	url  string
	good int                                   // requests answered per connection
	cut  func(c net.Conn, r *bufio.Reader) int // then; returns how many requests it has seen

	mu    sync.Mutex
	conns int
	seen  int
}

func newCutter(t *testing.T, good int, cut func(c net.Conn, r *bufio.Reader) int) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &cutter{url: "http://" + l.Addr().String(), good: good, cut: cut}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { k.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return k
}

func (k *cutter) serve(c net.Conn) {
	defer c.Close()
	k.add(1, 0)
	r := bufio.NewReader(c)
	for range k.good {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		k.add(0, 1)
		io.Copy(io.Discard, req.Body)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if req.Close {
			return
		}
	}
	k.add(0, k.cut(c, r))
}

func (k *cutter) add(conns, seen int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conns += conns
	k.seen += seen
}

func (k *cutter) counts() (conns, seen int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.conns, k.seen
}

// warm makes e hold an idle connection to its app.
func warm(t *testing.T, e *caller) {
	t.Helper()
	for range 2 { // the first is no frequent call yet
		e.transport.last = time.Now()
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	}
	if kept(e) == nil {
		t.Fatal("no connection was kept")
	}
	e.transport.last = time.Now()
}

// cuts are the ways to break a reused connection when a request has come.
var cuts = map[string]func(c net.Conn, r *bufio.Reader) int{
	"reads it whole, closes": func(c net.Conn, r *bufio.Reader) int {
		req, err := http.ReadRequest(r)
		if err != nil {
			return 0
		}
		io.Copy(io.Discard, req.Body)
		return 1
	},
	"reads it whole, resets": func(c net.Conn, r *bufio.Reader) int {
		req, err := http.ReadRequest(r)
		if err != nil {
			return 0
		}
		io.Copy(io.Discard, req.Body)
		c.(*net.TCPConn).SetLinger(0)
		return 1
	},
	"reads half of it, closes": func(c net.Conn, r *bufio.Reader) int {
		if _, err := r.ReadString('\n'); err != nil {
			return 0
		}
		return 1
	},
	"answers a part, closes": func(c net.Conn, r *bufio.Reader) int {
		req, err := http.ReadRequest(r)
		if err != nil {
			return 0
		}
		io.Copy(io.Discard, req.Body)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		return 1
	},
}

func TestABrokenReusedConnectionGetsNoSecondRequest(t *testing.T) {
	for name, cut := range cuts {
		for _, body := range []string{"", "{}", strings.Repeat("x", 60<<10)} {
			for _, method := range []string{"POST", "GET"} {
				k := newCutter(t, 1, cut)
				e := New(config.HTTP{Method: method, URL: k.url, Body: body}, Options{}).(*caller)
				e.transport.last = time.Now()
				wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
				_, before := k.counts()
				e.transport.last = time.Now()
				res := e.Execute(t.Context(), aRun())
				wantStatus(t, res, execute.Failed)
				if !strings.Contains(res.Err.Error(), "may have started") {
					t.Errorf("%s: %v", name, res.Err)
				}
				conns, after := k.counts()
				if conns != 1 || after-before != 1 {
					t.Errorf("%s, %s with %d bytes: %d connections, %d requests", name, method, len(body), conns, after-before)
				}
				if kept(e) != nil || e.transport.callsOften() {
					t.Errorf("%s: connections are kept on", name)
				}
			}
		}
	}
}

// The reason for a transport of our own: the same app, called by net/http's Transport, gets the request twice.
func TestTheStandardTransportWouldResend(t *testing.T) {
	k := newCutter(t, 1, cuts["reads it whole, closes"])
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	call := func() error {
		req, err := http.NewRequestWithContext(context.Background(), "POST", k.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", `"a/b/c"`)
		resp, err := transport.RoundTrip(req)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	for range 2 {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	if conns, seen := k.counts(); conns != 2 || seen != 3 {
		t.Errorf("%d connections, %d requests for two calls: it does not resend any more", conns, seen)
	}
}

func TestAnIdleConnectionThatTheAppClosedCostsNoTick(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed":       func(net.Conn) {},
		"reset":        func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) },
		"said goodbye": func(c net.Conn) { io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n") },
	} {
		rest := make(chan struct{}, 2)
		k := newCutter(t, 1, func(c net.Conn, _ *bufio.Reader) int { <-rest; end(c); return 0 })
		e := New(config.HTTP{URL: k.url, Body: "{}"}, Options{}).(*caller)
		e.transport.last = time.Now()
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		c := kept(e)
		if c == nil {
			t.Fatal("no connection was kept")
		}
		rest <- struct{}{}
		rest <- struct{}{}
		awaitUnquiet(c.Conn)
		e.transport.last = time.Now()
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		if conns, seen := k.counts(); conns != 2 || seen != 2 {
			t.Errorf("%s: %d connections, %d requests", name, conns, seen)
		}
	}
}

// awaitUnquiet returns when the kernel has heard of the other end's close, without taking anything off the connection.
func awaitUnquiet(c net.Conn) {
	rc, _ := c.(*net.TCPConn).SyscallConn()
	rc.Read(func(fd uintptr) bool { return !peek(int(fd)) })
}

func TestNothingWrittenIsSentOnANewConnection(t *testing.T) {
	k := newCutter(t, 9, func(net.Conn, *bufio.Reader) int { return 0 })
	e := New(config.HTTP{URL: k.url}, Options{}).(*caller)
	warm(t, e)
	// The moment between the look at the connection and the write: this side cannot send any more.
	kept(e).Conn.(*net.TCPConn).CloseWrite()
	_, before := k.counts()
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if _, after := k.counts(); after-before != 1 {
		t.Errorf("%d requests", after-before)
	}
	if !e.transport.callsOften() {
		t.Error("connections are not kept any more, though nothing was lost")
	}
	e.transport.take().Close()
}

// halfWriter takes a part of what is written, then fails.
type halfWriter struct {
	net.Conn
	part int
}

func (c *halfWriter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p[:c.part])
	if err == nil {
		c.Conn.(*net.TCPConn).SetLinger(0)
		c.Conn.Close()
		err = io.ErrShortWrite
	}
	return n, err
}

func TestOnlyAWriteOfNothingIsCertain(t *testing.T) {
	k := newCutter(t, 9, func(net.Conn, *bufio.Reader) int { return 0 })
	for part, want := range map[int]execute.Status{0: execute.NotStarted, 1: execute.Failed, 50: execute.Failed} {
		e := New(config.HTTP{URL: k.url}, Options{}).(*caller)
		dial := e.transport.dial
		e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			return &halfWriter{c, part}, err
		}
		wantStatus(t, e.Execute(t.Context(), aRun()), want)
	}
}
