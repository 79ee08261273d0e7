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
	// maxConns is how many connections one of the two servers holds. A scraper, the kubelet and a browser need fewer, and
	// these cost less than a MiB, and an eighth of the descriptors that a process commonly has.
	maxConns = 32

	// leastStay is how long a connection is waited for before it makes room for another. Without it, those who connect faster
	// than requests are read would crowd everybody out.
	leastStay = 10 * time.Millisecond

	// kernelBuffer bounds, in bytes, what the kernel keeps of a connection in each direction: that counts against the
	// container's memory, too.
	kernelBuffer = 64 << 10
)

// Listen listens on an address of the table for one of the servers of this package. The listener holds at most maxConns
// connections. Beyond that, a new connection closes the one that has waited the longest for its client: for a request, or for
// an answer to be read. So clients that only hold connections cost the replica neither memory nor descriptors, and keep
// nobody out. localhost is this machine, whatever the hosts file says.
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

// places are the addresses to listen on: the first that the machine has.
func places(addr string) []string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || !strings.EqualFold(host, "localhost") {
		return []string{addr}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// bounded is a listener with few connections.
type bounded struct {
	net.Listener

	mu    sync.Mutex
	idle  list.List // of *guest that is waited for, to ask or to read its answer; the one that is so for the longest time first
	conns int       // idle or not
}

// Accept returns the next connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !b.makeRoom() { // all are answered at this moment
			c.Close()
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok { // a failure shows at the first read
			_ = tcp.SetReadBuffer(kernelBuffer)
			_ = tcp.SetWriteBuffer(kernelBuffer)
		}
		g := &guest{Conn: c, of: b}
		b.mu.Lock()
		b.conns++
		g.waits()
		b.mu.Unlock()
		return g, nil
	}
}

// makeRoom closes connections until there is room for one more. It is false when none of them is idle.
func (b *bounded) makeRoom() bool {
	for {
		b.mu.Lock()
		oldest := b.idle.Front()
		switch {
		case b.conns < maxConns:
			b.mu.Unlock()
			return true
		case oldest == nil:
			b.mu.Unlock()
			return false
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

// guest is a connection of a bounded listener. Its fields are of's to guard.
type guest struct {
	net.Conn
	of    *bounded
	since time.Time     // it is idle
	place *list.Element // among the idle ones; nil while it is not
	gone  bool
}

// waits puts a guest behind the other idle ones.
func (g *guest) waits() { g.since, g.place = time.Now(), g.of.idle.PushBack(g) }

// leaves takes a guest from among the idle ones.
func (g *guest) leaves() {
	if g.place != nil {
		g.of.idle.Remove(g.place)
		g.place = nil
	}
}

// forget makes room for another guest.
func (g *guest) forget() {
	g.leaves()
	if !g.gone {
		g.gone = true
		g.of.conns--
	}
}

// Close is called by the server, for a guest that was sent away too.
func (g *guest) Close() error {
	g.of.mu.Lock()
	g.forget()
	g.of.mu.Unlock()
	return g.Conn.Close()
}

// Write waits for the guest to read what was written before, as long as the kernel has no room for more.
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

// begins tells whether a request of the guest may be answered: not when the connection was closed since it came.
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

// guestKey is where the context of a request has its guest.
type guestKey struct{}

func withGuest(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, guestKey{}, c)
}

// attended keeps the connection of a request from being taken for idle while its answer is made.
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
