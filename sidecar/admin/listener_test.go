package admin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// patience is how long a test waits for an event that must come.
const patience = time.Minute

// visitor is a client with a connection of its own.
type visitor struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func visit(t *testing.T, l net.Listener) *visitor {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &visitor{t: t, conn: c, in: bufio.NewReader(c)}
}

// asks sends a request and does not wait for the answer.
func (v *visitor) asks() {
	v.t.Helper()
	if _, err := io.WriteString(v.conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		v.t.Fatal(err)
	}
}

// hears reads an answer.
func (v *visitor) hears() error {
	_ = v.conn.SetReadDeadline(time.Now().Add(patience))
	answer, err := http.ReadResponse(v.in, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, answer.Body)
	}
	return err
}

// guestOf takes a connection, and returns the client's side of it as well.
func guestOf(t *testing.T, b *bounded) (*boundedConn, net.Conn) {
	mine, theirs := net.Pipe()
	t.Cleanup(func() {
		mine.Close()
		theirs.Close()
	})
	return b.take(mine), theirs
}

// pending takes a connection that waits for the server.
func pending(b *bounded) { b.take(nil) }

// reads has the server wait for a request.
func (g *boundedConn) reads() {
	go func() { _, _ = g.Read(make([]byte, 9)) }()
	synctest.Wait()
}

// answers has the server send an answer.
func (g *boundedConn) answers(t *testing.T, theirs net.Conn) {
	t.Helper()
	follow(g, http.StateActive)
	go func() { _, _ = g.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")) }()
	if _, err := io.ReadAtLeast(theirs, make([]byte, 64), 19); err != nil {
		t.Fatal(err)
	}
	follow(g, http.StateIdle)
}

// isGone reports whether a connection has made room.
func (g *boundedConn) isGone() bool { return !g.of.conns[g] }

// isSentAway reports whether the connection ends without an answer.
func (v *visitor) isSentAway() bool {
	err := v.hears()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// open serves a handler on a listener of ours.
func open(t *testing.T, h http.HandlerFunc) net.Listener {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server(h, slog.New(slog.DiscardHandler))
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = 0, 0, 0, 0 // they would make room, too
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // which ends with the test
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return l
}

func TestTheConnectionThatIsIdleForTheLongestTimeMakesRoom(t *testing.T) {
	l := open(t, func(http.ResponseWriter, *http.Request) {})
	var all []*visitor
	for i := range maxConns {
		v := visit(t, l)
		v.asks()
		if err := v.hears(); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		all = append(all, v)
	}
	all[0].asks() // and is not the oldest any more
	if err := all[0].hears(); err != nil {
		t.Fatal(err)
	}
	for i, oldest := range all[1:4] {
		late := visit(t, l)
		late.asks()
		if err := late.hears(); err != nil {
			t.Errorf("who comes late is not answered: %v", err)
		}
		if !oldest.isSentAway() {
			t.Errorf("connection %d, the oldest, was not closed", 1+i)
		}
	}
	for _, i := range []int{0, 4, maxConns - 1} {
		all[i].asks()
		if err := all[i].hears(); err != nil {
			t.Errorf("connection %d, which was not the oldest, is not answered any more: %v", i, err)
		}
	}
}

// A busy server began to read again in another order than it had answered.
func TestTheOrderIsThatOfTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounded(nil)
		var all []*boundedConn
		for range maxConns {
			g, theirs := guestOf(t, b)
			all = append(all, g)
			g.answers(t, theirs)
			time.Sleep(time.Microsecond)
		}
		for _, g := range slices.Backward(all) { // the server goes on to the next requests
			g.reads()
		}
		for i, g := range all {
			if !b.makeRoom() || !g.isGone() {
				t.Fatalf("connection %d was answered before the others, and does not go before them", i)
			}
			pending(b)
		}
	})
}

func TestAConnectionThatIsAnsweredIsNotSentAway(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	l := open(t, func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	})
	var all []*visitor
	for range maxConns {
		v := visit(t, l)
		v.asks()
		<-begun
		all = append(all, v)
	}
	late := visit(t, l)
	late.asks()
	if !late.isSentAway() {
		t.Error("a connection beyond the bound is held")
	}
	close(end)
	for i, v := range all {
		if err := v.hears(); err != nil {
			t.Errorf("connection %d was answered when another came, and got no answer: %v", i, err)
		}
	}
}

// Thirty-two clients that asked for the metrics and did not read them kept out the kubelet's probes, so that it
// restarted the replica.
func TestThoseWhoDoNotGoOnKeepNobodyOut(t *testing.T) {
	for name, request := range map[string]string{
		"they do not read their answers": "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"they do not send their bodies":  "POST /large HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			began, large := make(chan struct{}, maxConns), make([]byte, 16<<20) // more than two kernels keep
			l := open(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/large" {
					began <- struct{}{}
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = w.Write(large) // which ends with the connection
				}
			})
			for range 2 * maxConns {
				v := visit(t, l)
				if _, err := io.WriteString(v.conn, request); err != nil {
					t.Fatal(err)
				}
				select {
				case <-began:
				case <-time.After(patience):
					t.Fatal("a request waits for those who do not go on")
				}
				_, _ = io.WriteString(v.conn, "G") // as if it asked once more
			}
			late := visit(t, l)
			late.asks()
			if err := late.hears(); err != nil {
				t.Errorf("who reads its answer gets none: %v", err)
			}
		})
	}
}

func TestAConnectionHasAMomentToAskBeforeItMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const busy = time.Second // until the server begins to read
		b := newBounded(nil)
		var all []*boundedConn
		for i := range maxConns {
			g, theirs := guestOf(t, b)
			all = append(all, g)
			time.AfterFunc(busy+time.Duration(i)*time.Microsecond, func() { _, _ = g.Read(make([]byte, 9)) })
			if i == 1 { // its first bytes come at the end of its stay, when the server is busy again
				time.AfterFunc(busy+leastStay-time.Millisecond, func() { _, _ = theirs.Write([]byte("G")) })
			}
		}
		time.AfterFunc(busy+leastStay/2, func() { follow(all[0], http.StateActive) }) // its request has come
		begun := time.Now()
		if !b.makeRoom() || (time.Since(begun)-busy-leastStay).Abs() > pendingWait {
			t.Errorf("there was room after %s, want %s", time.Since(begun), busy+leastStay)
		}
		if all[0].isGone() || all[1].isGone() || !all[2].isGone() || all[3].isGone() {
			t.Error("the oldest that is idle is not the one that went")
		}
	})
}

func TestAConnectionDoesNotPayForABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounded(nil)
		var all []*boundedConn
		for range maxConns {
			g, theirs := guestOf(t, b)
			g.reads()
			if all = append(all, g); len(all) == 1 {
				_, _ = theirs.Write([]byte("G"))
			}
			synctest.Wait()
			time.Sleep(time.Microsecond)
		}
		time.Sleep(time.Second) // and the server does not get to the request
		if !b.makeRoom() || all[0].isGone() || !all[1].isGone() {
			t.Error("the one that has asked is sent away")
		}
		all[0].reads() // its request is not there as a whole
		for _, g := range all[2:] {
			follow(g, http.StateActive)
		}
		pending(b)
		if !b.makeRoom() || !all[0].isGone() {
			t.Error("the one that asks slowly stays")
		}
	})
}

func TestAConnectionThatWasAnsweredGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounded(nil)
		var all []*boundedConn
		for i := range maxConns {
			g, theirs := guestOf(t, b)
			all = append(all, g)
			if i == 20 || i == 25 {
				g.answers(t, theirs)
			}
			g.reads()
			time.Sleep(time.Microsecond)
		}
		time.Sleep(leastStay)
		for _, next := range []int{20, 25, 0, 1} {
			if !b.makeRoom() || !all[next].isGone() {
				t.Errorf("connection %d is not the next that goes", next)
			}
			pending(b)
		}
	})
}

func TestAConnectionIsNotSentAwayBeforeItsAnswerIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounded(nil)
		first, theirs := guestOf(t, b)
		follow(first, http.StateActive)
		for range maxConns - 1 {
			pending(b)
		}
		if begun := time.Now(); b.makeRoom() || first.isGone() || (time.Since(begun)-longestPending).Abs() > 2*pendingWait {
			t.Errorf("after %s, there was room for a connection beyond the bound: %t", time.Since(begun), first.isGone())
		}
		const busy = longestPending / 2 // until the server sends what it has buffered
		time.AfterFunc(busy, func() { _, _ = first.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")) })
		time.AfterFunc(busy+leastStay/2, func() { _, _ = theirs.Read(make([]byte, 64)) })
		begun := time.Now()
		if !b.makeRoom() || !first.isGone() || (time.Since(begun)-busy-leastStay).Abs() > pendingWait {
			t.Errorf("there was room after %s, want %s", time.Since(begun), busy+leastStay)
		}
	})
}

// A client that reads a long answer slowly does not go before those that have not asked.
func TestASlowReaderKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounded(nil)
		var all []*boundedConn
		for i := range maxConns {
			g, _ := guestOf(t, b)
			all = append(all, g)
			if i == 20 {
				follow(g, http.StateActive)
				go func() { _, _ = g.Write(make([]byte, 9)) }()
				synctest.Wait()
			} else {
				g.reads()
			}
			time.Sleep(time.Microsecond)
		}
		for i, g := range all {
			if !b.makeRoom() || !g.isGone() {
				t.Fatalf("connection %d is not the next that goes", i)
			}
			pending(b)
		}
	})
}

func TestARequestOfAConnectionThatWasSentAwayIsNotDone(t *testing.T) {
	b := newBounded(nil)
	mine, theirs := net.Pipe()
	defer theirs.Close()
	g := b.take(&late{Conn: mine, of: b})
	go func() { _, _ = io.WriteString(theirs, "GET /") }()
	if n, err := g.Read(make([]byte, 5)); n != 5 || err != nil || g.isGone() || !g.since.IsZero() {
		t.Fatalf("read %d with %v", n, err)
	}
	go func() { _, _ = io.WriteString(theirs, "POST ") }()
	g.Conn.(*late).goes = g
	if n, err := g.Read(make([]byte, 5)); n != 0 || err == nil {
		t.Errorf("read %d with %v of a connection that has gone", n, err)
	}
	follow(g, http.StateClosed) // as the server does, once more
	g = b.take(mine)
	follow(g, http.StateClosed)
	if len(b.conns) != 0 {
		t.Errorf("%d connections are counted", len(b.conns))
	}
}

// late is a connection that makes room when it has read something.
type late struct {
	net.Conn
	of   *bounded
	goes *boundedConn
}

func (l *late) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	delete(l.of.conns, l.goes)
	return n, err
}

// piped is a listener whose connections are pipes, so that their deadlines pass in fake time.
type piped struct {
	net.Listener
	conns chan net.Conn
}

func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p piped) Close() error { return nil }

func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

func TestNobodyIsWaitedForForEver(t *testing.T) {
	for _, c := range []struct {
		name, sent string
		reads      bool // the answer
		until      time.Duration
	}{
		{"a header that never ends", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", true, 5 * time.Second},
		{"a body that never ends", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{", true, 10 * time.Second},
		{"an answer that nobody reads", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", false, 30 * time.Second},
		{"no second request", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", true, 2 * time.Minute},
		{"no request at all", "", true, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						panic(http.ErrAbortHandler)
					}
					_, _ = w.Write(make([]byte, 1<<20)) // or the client has gone
				})
				l := piped{conns: make(chan net.Conn, 1)}
				s := server(w, slog.New(slog.DiscardHandler))
				served := make(chan struct{})
				go func() {
					defer close(served)
					_ = s.Serve(newBounded(l)) // which ends with the listener
				}()
				mine, theirs := net.Pipe()
				ended := make(chan time.Duration, 1)
				begun := time.Now()
				l.conns <- &closing{Conn: theirs, closed: func() {
					select {
					case ended <- time.Since(begun):
					default:
					}
				}}
				go func() {
					_, _ = io.WriteString(mine, c.sent)
					if c.reads {
						_, _ = io.Copy(io.Discard, mine) // until it is closed
					}
				}()
				select {
				case after := <-ended:
					if after > c.until+time.Second || after < c.until {
						t.Errorf("the connection was closed after %s, want %s", after, c.until)
					}
				case <-time.After(time.Hour):
					t.Error("the connection is still there after an hour")
				}
				mine.Close()
				close(l.conns)
				<-served
			})
		})
	}
}

// closing tells of its end.
type closing struct {
	net.Conn
	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

func TestLocalhostIsThisMachineWhateverTheHostsFileSays(t *testing.T) {
	for addr, want := range map[string][]string{
		"localhost:9748": {"127.0.0.1:9748", "[::1]:9748"},
		"LocalHost:0":    {"127.0.0.1:0", "[::1]:0"},
		"127.0.0.1:9748": {"127.0.0.1:9748"},
		"[::1]:9748":     {"[::1]:9748"},
		":9747":          {":9747"},
	} {
		if got := places(addr); !slices.Equal(got, want) {
			t.Errorf("%s listens on the first of %q, want %q", addr, got, want)
		}
	}
	l, err := Listen("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if again, err := Listen(fmt.Sprintf("localhost:%d", l.Addr().(*net.TCPAddr).Port)); err == nil {
		again.Close()
		t.Errorf("an address is listened on twice, the second time at %s", again.Addr())
	}
}
