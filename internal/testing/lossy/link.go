package lossy

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// link is one client's connection with its own connection to Redis.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	toServer       *outbox
	toClient       *outbox
	expected       chan *Fault // one for each request that was passed on, in order; nil: its reply gets through
	done           chan struct{}
	once           sync.Once
}

// maxUnanswered requests per connection: beyond it the proxy reads no further, as a full socket would.
const maxUnanswered = 1 << 10

func newLink(p *Proxy, client, server net.Conn) *link {
	l := &link{proxy: p, client: client, server: server, expected: make(chan *Fault, maxUnanswered),
		done: make(chan struct{})}
	l.toServer, l.toClient = newOutbox(l, server), newOutbox(l, client)
	return l
}

// close ends both connections; what is on its way is lost.
func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

func (l *link) run() {
	var wg sync.WaitGroup
	for _, f := range []func(){l.requests, l.replies, l.toServer.run, l.toClient.run} {
		wg.Go(func() {
			defer l.close()
			f()
		})
	}
	wg.Wait()
	l.proxy.forget(l)
	for close(l.expected); ; { // no reply comes to these any more
		f, ok := <-l.expected
		if !ok {
			return
		}
		f.strike()
	}
}

// requests passes on what the client asks, until a fault or the end of the connection.
func (l *link) requests() {
	r := bufio.NewReader(l.client)
	for {
		words, raw, err := readRequest(r)
		if err != nil {
			return
		}
		f := l.proxy.aimedAt(words, raw)
		if f != nil && f.action.kind == loseRequest {
			f.strike()
			if !f.action.hang {
				l.toServer.cut()
			}
			swallow(r)
			return
		}
		if f != nil && f.action.kind == answer {
			raw = []byte("*1\r\n$4\r\nPING\r\n") // keeps replies in order; what comes back is replaced
		}
		select {
		case l.expected <- f:
		case <-l.done:
			f.strike()
			return
		}
		l.toServer.put(raw)
	}
}

// replies passes on what Redis answers.
func (l *link) replies() {
	r := bufio.NewReader(l.server)
	for {
		raw, err := readReply(r)
		if err != nil {
			return
		}
		if raw[0] == '>' { // a push belongs to no request
			l.toClient.put(raw)
			continue
		}
		var f *Fault
		select {
		case f = <-l.expected:
		case <-l.done:
			return
		}
		if f == nil {
			l.toClient.put(raw)
			continue
		}
		f.strike()
		switch f.action.kind {
		case loseReply:
			if !f.action.hang {
				l.toClient.cut()
			}
			swallow(r)
			return
		case answer:
			raw = []byte("-" + f.action.text + "\r\n")
		case delayReply:
			t := time.NewTimer(f.action.delay)
			select {
			case <-t.C:
			case <-f.action.until:
				t.Stop()
			case <-l.done:
				t.Stop()
				return
			}
		}
		l.toClient.put(raw)
	}
}

// swallow reads until the connection ends.
func swallow(r *bufio.Reader) {
	for {
		if _, err := r.Discard(1); err != nil {
			return
		}
	}
}

// outbox writes to a connection what was put in, in order, and never makes the one who puts wait.
type outbox struct {
	link *link
	conn net.Conn
	wake chan struct{}

	mu    sync.Mutex
	items [][]byte // nil: cut the link here
}

func newOutbox(l *link, c net.Conn) *outbox {
	return &outbox{link: l, conn: c, wake: make(chan struct{}, 1)}
}

func (o *outbox) put(raw []byte) {
	o.mu.Lock()
	o.items = append(o.items, raw)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// cut ends the link when everything before has been written.
func (o *outbox) cut() { o.put(nil) }

func (o *outbox) run() {
	for {
		select {
		case <-o.wake:
		case <-o.link.done:
			return
		}
		o.mu.Lock()
		items := o.items
		o.items = nil
		o.mu.Unlock()
		for _, raw := range items {
			if raw == nil {
				return
			}
			if _, err := o.conn.Write(raw); err != nil {
				return
			}
		}
	}
}
