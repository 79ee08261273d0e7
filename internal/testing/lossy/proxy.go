package lossy

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// Proxy stands between clients and one Redis.
type Proxy struct {
	upstream func(context.Context) (net.Conn, error)
	wg       sync.WaitGroup

	mu       sync.Mutex
	faults   []*Fault
	counts   []*Count
	links    map[*link]struct{}
	refusing bool
	closed   bool
	listener net.Listener
	addr     string
}

// New makes a proxy to what upstream connects to.
func New(upstream func(context.Context) (net.Conn, error)) *Proxy {
	return &Proxy{upstream: upstream, links: map[*link]struct{}{}}
}

// On aims an action at the n-th (from 1) request from now that matches.
func (p *Proxy) On(m Match, n int, a Action) *Fault {
	f := &Fault{proxy: p, match: m, action: a, left: n, struck: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

// Count counts the matching requests from now on.
func (p *Proxy) Count(m Match) *Count {
	c := &Count{match: m}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = append(p.counts, c)
	return c
}

// Heal takes back the faults that have not struck.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Dial connects in memory; its arguments are those of a client's Dialer and are ignored.
func (p *Proxy) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	refusing := p.refusing || p.closed
	p.mu.Unlock()
	if refusing {
		return nil, &net.OpError{Op: "dial", Net: "lossy", Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	if err := p.serve(ctx, far); err != nil {
		_ = near.Close()
		return nil, &net.OpError{Op: "dial", Net: "lossy", Err: err}
	}
	return near, nil
}

// Listen serves a free loopback port and returns its address.
func (p *Proxy) Listen() (string, error) {
	if err := p.listen("127.0.0.1:0"); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr, nil
}

func (p *Proxy) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.listener, p.addr = l, l.Addr().String()
	p.mu.Unlock()
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = p.serve(context.Background(), c) // the client sees the end of its connection
		}
	})
	return nil
}

// Refuse lets no new connection in, or again; those that are open live on (see Cut). The error is that of taking the
// port again.
func (p *Proxy) Refuse(refuse bool) error {
	p.mu.Lock()
	p.refusing = refuse
	l, addr := p.listener, p.addr
	if refuse {
		p.listener = nil
	}
	p.mu.Unlock()
	switch {
	case refuse && l != nil:
		return l.Close()
	case !refuse && l == nil && addr != "":
		return p.listen(addr)
	}
	return nil
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// Close ends everything and waits for it.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.Refuse(true)
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) error {
	server, err := p.upstream(ctx)
	if err != nil {
		_ = client.Close()
		return err
	}
	l := newLink(p, client, server)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing || p.closed { // since it began to connect
		l.close()
		return syscall.ECONNREFUSED
	}
	p.links[l] = struct{}{}
	p.wg.Go(l.run)
	return nil
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// aimedAt counts a request and returns the fault that it is meant to meet, if any.
func (p *Proxy) aimedAt(words []string, raw []byte) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.counts {
		if c.match(words) {
			c.n.Add(1)
		}
	}
	var hit *Fault
	rest := p.faults[:0:0]
	for _, f := range p.faults {
		if hit == nil && f.match(words) {
			if f.left--; f.left <= 0 {
				hit = f
				f.words, f.raw = words, raw
				continue
			}
		}
		rest = append(rest, f)
	}
	p.faults = rest
	return hit
}
