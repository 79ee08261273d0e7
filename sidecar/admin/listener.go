package admin

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxConns is how many connections one of the two servers holds. A scraper, the kubelet and a browser need fewer;
	// an app may ask for dozens of ticks at once. They cost few MiB, and a quarter of the descriptors of a shell.
	maxConns = 64

	// leastStay is how long a connection can be idle before a new one may replace it. Without it, clients that connect
	// faster than the server reads requests would crowd out all others. It begins when the server begins to read: on a
	// busy machine, more time than this passes before.
	leastStay = 10 * time.Millisecond

	// pendingWait is how long makeRoom waits before it looks again, while the server deals with all connections.
	pendingWait = time.Millisecond

	// longestPending is how long it does so before it refuses a new one.
	longestPending = time.Second

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
	return newBounded(l), nil
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

	mu    sync.Mutex
	conns map[*boundedConn]bool
}

func newBounded(l net.Listener) *bounded {
	return &bounded{Listener: l, conns: map[*boundedConn]bool{}}
}

// Accept returns the next connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !b.makeRoom() {
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
func (b *bounded) take(c net.Conn) *boundedConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := &boundedConn{Conn: c, of: b}
	b.conns[g] = true
	return g
}

// makeRoom closes a connection if there is no room for one more. It is false if each of them waits for the server.
func (b *bounded) makeRoom() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for begun := time.Now(); len(b.conns) == maxConns; {
		var first *boundedConn
		for g := range b.conns {
			if !g.since.IsZero() && (first == nil || g.goesBefore(first)) {
				first = g
			}
		}
		wait := pendingWait
		if first != nil {
			wait = leastStay - time.Since(first.since)
		} else if time.Since(begun) > longestPending {
			return false
		}
		if wait <= 0 {
			delete(b.conns, first)
			first.Conn.Close()
			break
		}
		b.mu.Unlock()
		time.Sleep(wait)
		b.mu.Lock()
	}
	return true
}

// boundedConn is a connection of a bounded listener. The listener's mutex guards its fields.
type boundedConn struct {
	net.Conn
	of *bounded
	// since is when it began to wait for its client: when an answer was sent last or, before that, when the server
	// began to read. Zero while it waits for the server, which has not begun to read, has read what may be a request,
	// or answers it. On a busy machine that takes a while, for which the client must not pay.
	since    time.Time
	answered bool // it has had an answer
}

// goesBefore tells which of two makes room. A client that has had an answer loses less than one that has not asked yet.
func (g *boundedConn) goesBefore(other *boundedConn) bool {
	if g.answered != other.answered {
		return g.answered
	}
	return g.since.Before(other.since)
}

// Read reads a request, or nothing if the connection has made room.
func (g *boundedConn) Read(p []byte) (int, error) {
	if len(p) == 1 { // so the server sees, while it answers, whether the client is still there
		return g.Conn.Read(p)
	}
	g.of.mu.Lock()
	if g.since.IsZero() { // else it has had an answer: a busy server reads in another order than it has answered
		g.since = time.Now()
	}
	g.of.mu.Unlock()
	n, err := g.Conn.Read(p)
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	if !g.of.conns[g] {
		return 0, net.ErrClosed
	}
	if n > 0 {
		g.since = time.Time{}
	}
	return n, err
}

// Write waits for the client, too: the kernel may have no room for more until it reads.
func (g *boundedConn) Write(p []byte) (int, error) {
	g.of.mu.Lock()
	g.since = time.Now()
	g.of.mu.Unlock()
	return g.Conn.Write(p)
}

// follow is the ConnState of a server on a bounded listener.
func follow(c net.Conn, state http.ConnState) {
	g, ok := c.(*boundedConn)
	if !ok {
		return
	}
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	switch state {
	case http.StateActive:
		g.since = time.Time{}
	case http.StateIdle:
		g.answered = true
	case http.StateClosed:
		delete(g.of.conns, g)
	}
}
