package admin

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxConns is how many connections one of the two servers holds. A scraper, the kubelet and a browser need fewer,
	// and these cost less than a MiB, and an eighth of the descriptors that a process commonly has.
	maxConns = 32

	// leastStay is how long a connection can be idle before a new one may replace it. Without it, clients that connect
	// faster than the server reads requests would crowd out all others. It begins when the server begins to read: on a
	// busy machine, more time than this passes before.
	leastStay = 10 * time.Millisecond

	// pendingWait is how long makeRoom waits before it looks again, while the server is about to deal with connections.
	pendingWait = time.Millisecond

	// kernelBuffer bounds, in bytes, what the kernel keeps of a connection in each direction: that counts against the
	// container's memory, too.
	kernelBuffer = 64 << 10
)

// Listen listens on an address of the table for one of the servers of this package. The listener holds at most maxConns
// connections. Beyond that, a new connection closes the one that has waited longest for its client: first among those
// that have had an answer, then among those that have not asked yet. So clients that only hold connections cost the
// replica neither memory nor descriptors, and keep no client out. localhost is this machine, whatever the hosts file
// says.
func Listen(addr string) (net.Listener, error) {
	var l net.Listener
	var err error
	for _, at := range places(addr) {
		if l, err = net.Listen("tcp", at); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return &bounded{Listener: l}, nil
}

// places returns the addresses to try; the listener uses the first one that the machine has.
func places(addr string) []string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || !strings.EqualFold(host, "localhost") {
		return []string{addr}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// bounded is a listener with a limited number of connections.
type bounded struct {
	net.Listener

	mu      sync.Mutex
	idle    list.List // of *guest: idle connections, in the order in which they began to wait for their clients
	conns   int       // idle or not
	pending int       // connections that wait for the server; they are not in idle
}

// Accept returns the next connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !b.makeRoom() { // all have a request that is being answered
			c.Close()
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok { // a failure shows at the first read
			_ = tcp.SetReadBuffer(kernelBuffer)
			_ = tcp.SetWriteBuffer(kernelBuffer)
		}
		return b.take(c), nil
	}
}

// take counts a connection that there is room for.
func (b *bounded) take(c net.Conn) *guest {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns++
	b.pending++
	return &guest{Conn: c, of: b, pending: true}
}

// makeRoom closes connections until there is room for one more. It is false when all have a request that is answered.
func (b *bounded) makeRoom() bool {
	for {
		b.mu.Lock()
		oldest := b.longestIdle()
		switch {
		case b.conns < maxConns:
			b.mu.Unlock()
			return true
		case oldest == nil && b.pending == 0:
			b.mu.Unlock()
			return false
		case oldest == nil:
			b.mu.Unlock()
			time.Sleep(pendingWait)
			continue
		}
		wait := leastStay - time.Since(oldest.since)
		if wait <= 0 {
			oldest.forget()
			b.mu.Unlock()
			oldest.Conn.Close()
			continue
		}
		b.mu.Unlock()
		time.Sleep(wait)
	}
}

// longestIdle returns the connection that goes first, nil if none is idle. A client that has had an answer loses less than
// one that has not asked yet.
func (b *bounded) longestIdle() (oldest *guest) {
	for e := b.idle.Front(); e != nil; e = e.Next() {
		switch g := e.Value.(*guest); {
		case g.answered:
			return g
		case oldest == nil:
			oldest = g
		}
	}
	return oldest
}

// guest is a connection of a bounded listener. The listener's mutex guards its fields.
type guest struct {
	net.Conn
	of    *bounded
	since time.Time     // when its stay began
	place *list.Element // among the idle ones; nil while it is not
	// pending says that the server has to act: it has not begun to read, has read what may be a request, or has not sent
	// all of its answer. On a busy machine that takes a while, for which the client must not pay.
	pending   bool
	answering bool // the handler runs
	answered  bool // it has run before
	gone      bool
}

// Read marks the guest as idle while the server waits for a request.
func (g *guest) Read(p []byte) (int, error) {
	g.of.mu.Lock()
	waits := !g.answering && !g.gone // the server also reads while it answers, to see whether the client is still there
	if waits {
		g.attended()
		g.waits()
	}
	g.of.mu.Unlock()
	n, err := g.Conn.Read(p)
	if waits && n > 0 {
		g.of.mu.Lock()
		if g.place != nil {
			g.leaves()
			g.pends()
		}
		g.of.mu.Unlock()
	}
	return n, err
}

// pends says that the server has to act.
func (g *guest) pends() {
	if !g.pending && !g.gone {
		g.pending = true
		g.of.pending++
	}
}

// attended says that the server has acted.
func (g *guest) attended() {
	if g.pending {
		g.pending = false
		g.of.pending--
	}
}

// waits marks a guest as idle, and begins its stay. One that is idle keeps its place: the order is that in which the
// answers were sent, not that in which a busy server begins to read again.
func (g *guest) waits() {
	g.since = time.Now()
	if g.place == nil {
		g.place = g.of.idle.PushBack(g)
	}
}

// leaves marks a guest as not idle.
func (g *guest) leaves() {
	if g.place != nil {
		g.of.idle.Remove(g.place)
		g.place = nil
	}
}

// forget removes a guest, which makes room for another one.
func (g *guest) forget() {
	g.leaves()
	if !g.gone {
		g.gone = true
		g.of.conns--
		g.attended()
	}
}

// Close closes the connection. The server calls it also for a guest that makeRoom has closed.
func (g *guest) Close() error {
	g.of.mu.Lock()
	g.forget()
	g.of.mu.Unlock()
	return g.Conn.Close()
}

// Write marks the guest as idle while it writes: it may have to wait until the client reads.
func (g *guest) Write(p []byte) (int, error) {
	g.of.mu.Lock()
	if !g.gone {
		g.attended()
		g.waits()
	}
	g.of.mu.Unlock()
	n, err := g.Conn.Write(p)
	g.of.mu.Lock()
	if g.answering {
		g.leaves()
	}
	g.of.mu.Unlock()
	return n, err
}

// begins tells whether to answer a request of the guest; false if the connection was closed since the request arrived.
func (g *guest) begins() bool {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.attended()
	g.leaves()
	g.answering = true
	return !g.gone
}

// ends says that the handler has run. The server still has to send what it has buffered of the answer.
func (g *guest) ends() {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.answering, g.answered = false, true
	g.pends()
}

// guestKey is the key of the guest in a request's context.
type guestKey struct{}

func withGuest(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, c)
}

// attended keeps the connection of a request from counting as idle while the server makes the answer.
func attended(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
			if !g.begins() {
				return
			}
			defer g.ends()
		}
		next.ServeHTTP(w, r)
	})
}
