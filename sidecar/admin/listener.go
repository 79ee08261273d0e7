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
	// faster than the server reads requests would crowd out all others. It begins when the server begins to read, and
	// again when the first bytes have come: on a busy machine, more time than this passes before either.
	leastStay = 10 * time.Millisecond

	// unreadWait is how long makeRoom waits before it looks again, while the server has read of no idle connection.
	unreadWait = time.Millisecond

	// kernelBuffer bounds, in bytes, what the kernel keeps of a connection in each direction: that counts against the
	// container's memory, too.
	kernelBuffer = 64 << 10
)

// Listen listens on an address of the table for one of the servers of this package. The listener holds at most maxConns
// connections. Beyond that, a new connection closes the one that has waited longest for its client: for a request, or
// for the client to read an answer. So clients that only hold connections cost the replica neither memory nor
// descriptors, and keep no client out. localhost is this machine, whatever the hosts file says.
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

	mu     sync.Mutex
	idle   list.List // of *guest: idle connections, waiting for their clients; the one idle for the longest time first
	conns  int       // idle or not
	unread int       // connections from which the server has not begun to read; they are not in idle
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
	b.unread++
	return &guest{Conn: c, of: b}
}

// makeRoom closes connections until there is room for one more. It is false when all have a request that is answered.
func (b *bounded) makeRoom() bool {
	for {
		b.mu.Lock()
		oldest := b.idle.Front()
		switch {
		case b.conns < maxConns:
			b.mu.Unlock()
			return true
		case oldest == nil && b.unread == 0:
			b.mu.Unlock()
			return false
		case oldest == nil:
			b.mu.Unlock()
			time.Sleep(unreadWait)
			continue
		}
		g := oldest.Value.(*guest)
		wait := leastStay - time.Since(g.since)
		if wait <= 0 {
			g.forget()
			b.mu.Unlock()
			g.Conn.Close()
			continue
		}
		b.mu.Unlock()
		time.Sleep(wait)
	}
}

// guest is a connection of a bounded listener. The listener's mutex guards its fields.
type guest struct {
	net.Conn
	of    *bounded
	since time.Time     // it is idle
	place *list.Element // among the idle ones; nil while it is not
	asked bool          // the server has begun to read
	gone  bool
}

// Read marks the guest as idle when the server begins to read, and anew when the first bytes have come.
func (g *guest) Read(p []byte) (int, error) {
	g.of.mu.Lock()
	first := !g.asked && !g.gone
	if first {
		g.asked = true
		g.of.unread--
		g.waits()
	}
	g.of.mu.Unlock()
	n, err := g.Conn.Read(p)
	if first && n > 0 {
		g.of.mu.Lock()
		if g.place != nil {
			g.leaves()
			g.waits()
		}
		g.of.mu.Unlock()
	}
	return n, err
}

// waits marks a guest as idle, from now on.
func (g *guest) waits() { g.since, g.place = time.Now(), g.of.idle.PushBack(g) }

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
		if !g.asked {
			g.of.unread--
		}
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
	answered := g.place == nil && !g.gone
	if answered {
		g.waits()
	}
	g.of.mu.Unlock()
	n, err := g.Conn.Write(p)
	if answered {
		g.of.mu.Lock()
		g.leaves()
		g.of.mu.Unlock()
	}
	return n, err
}

// begins tells whether to answer a request of the guest; false if the connection was closed since the request arrived.
func (g *guest) begins() bool {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.leaves()
	return !g.gone
}

func (g *guest) ends() {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	if !g.gone {
		g.waits()
	}
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
