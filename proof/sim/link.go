package sim

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// link is one connection of a replica with Redis.
type link struct {
	network        *network
	replica        *replica
	id             uint64
	client, server *end

	mu   sync.Mutex
	hung bool // nothing arrives any more
	last [2]time.Duration
}

// The directions of messages.
const (
	toServer = iota
	toClient
)

func newLink(n *network, r *replica, id uint64) *link {
	l := &link{network: n, replica: r, id: id}
	l.client = &end{link: l, way: toServer, signal: make(chan struct{}, 1)}
	l.server = &end{link: l, way: toClient, signal: make(chan struct{}, 1)}
	return l
}

// send lets a message travel; a nil one is the end of the stream. The call that it belongs to decides its fate.
func (l *link) send(way int, message []byte, about *call) {
	l.mu.Lock()
	if l.hung {
		l.mu.Unlock()
		return
	}
	delay, lost, hang := l.network.fate(l, way, about)
	if lost {
		l.hung = true
		l.mu.Unlock()
		if !hang {
			l.network.arrive(delay, 0, l.reset)
		}
		return
	}
	to := l.server
	if way == toClient {
		to = l.client
	}
	put := func() {
		if way == toServer && message != nil {
			l.network.world.redis.arriving(l, about)
		}
		to.put(message, about)
	}
	l.last[way] = l.network.arrive(delay+about.keep, l.last[way], func() {
		if way == toClient || !l.network.world.redis.standstill.keep(l, put) {
			put()
		}
	})
	l.mu.Unlock()
}

// sever ends the connection for both sides, and what is on its way with it.
func (l *link) sever() {
	l.mu.Lock()
	l.hung = true
	l.mu.Unlock()
	l.client.fail(syscall.ECONNRESET)
	l.server.fail(syscall.ECONNRESET)
	l.network.forget(l)
}

// reset cuts the connection for both sides. Messages that Redis has not read yet still arrive, or do not.
func (l *link) reset() {
	l.client.fail(syscall.ECONNRESET)
	if l.network.dice.chance(0.5, forHeld, l.replica.key, l.id, 1) {
		l.send(toServer, nil, &call{key: l.id})
	} else {
		l.server.fail(syscall.ECONNRESET)
	}
	l.network.forget(l)
}

// end is one side of a link: a net.Conn with buffers, so that nobody waits for a reader.
type end struct {
	link *link
	way  int // of what is written here

	mu       sync.Mutex
	arrived  []piece
	err      error // what a read says when all that has arrived is read
	closed   bool
	deadline time.Time // of reads
	limits   uint64    // how many there were
	signal   chan struct{}
}

type piece struct {
	data  []byte
	about *call
}

func (e *end) put(message []byte, about *call) {
	e.mu.Lock()
	switch {
	case e.closed:
	case message == nil && e.err == nil:
		e.err = io.EOF
	case message != nil && e.err == nil:
		e.arrived = append(e.arrived, piece{message, about})
	}
	e.mu.Unlock()
	e.wake()
}

// fail is how a cut connection looks from this end.
func (e *end) fail(err error) {
	e.mu.Lock()
	e.err = err
	e.arrived = nil
	e.mu.Unlock()
	e.wake()
}

func (e *end) wake() {
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// Read waits for something to arrive. The reader of a stalled replica does not run, and finds both the data and the end
// of its patience when it does again: the dice say which it sees first.
func (e *end) Read(p []byte) (int, error) {
	for {
		late := e.stand()
		e.mu.Lock()
		over := !e.deadline.IsZero() && !time.Now().Before(e.deadline)
		switch {
		case e.closed:
			e.mu.Unlock()
			return 0, net.ErrClosed
		case over && (late || len(e.arrived) == 0):
			e.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(e.arrived) > 0:
			n := e.take(p)
			e.mu.Unlock()
			return n, nil
		case e.err != nil:
			defer e.mu.Unlock()
			return 0, e.err
		}
		deadline := e.deadline
		e.mu.Unlock()
		e.sleep(deadline)
	}
}

// take copies what has arrived. A reply that is read is an answer that its replica has.
func (e *end) take(p []byte) int {
	first := &e.arrived[0]
	n := copy(p, first.data)
	first.data = first.data[n:]
	if len(first.data) == 0 {
		if e.way == toServer {
			e.link.network.world.redis.delivered(first.about)
		}
		e.arrived = e.arrived[1:]
	}
	return n
}

// stand holds a stalled replica up; true when its patience is to be seen before its data.
func (e *end) stand() bool {
	if e.way != toServer {
		return false
	}
	r := e.link.replica
	return r.stall.wait() && r.dice.chance(0.5, forStalled, r.key, e.link.id)
}

func (e *end) sleep(deadline time.Time) {
	if deadline.IsZero() {
		<-e.signal
		return
	}
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	select {
	case <-e.signal:
	case <-t.C:
	}
}

func (e *end) Write(p []byte) (int, error) {
	if e.way == toServer {
		e.link.replica.stall.wait()
	}
	var about *call
	n := len(p)
	if e.way == toClient {
		about, p = e.link.network.world.redis.answered(e.link, p)
	}
	e.mu.Lock()
	closed, err := e.closed, e.err
	e.mu.Unlock()
	switch {
	// sent to nobody; after an error the server would not write what else it runs
	case (closed || err != nil) && e.way == toClient:
		return n, nil
	case closed:
		return 0, net.ErrClosed
	case err != nil:
		return 0, syscall.EPIPE
	}
	if about == nil {
		r := e.link.replica
		about = &call{sent: e.link.network.world.now(), replica: r, key: r.messages.key(p)}
	}
	e.link.send(e.way, append([]byte(nil), p...), about)
	return n, nil
}

func (e *end) Close() error {
	e.mu.Lock()
	was := e.closed
	e.closed, e.arrived = true, nil
	e.mu.Unlock()
	e.wake()
	if !was {
		e.link.send(e.way, nil, &call{key: e.link.id})
		if e.way == toServer {
			e.link.network.forget(e.link)
		}
	}
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	if e.deadline = t; !t.IsZero() {
		e.limits++
		e.deadline = t.Add(early(0, e.link.network.dice.throw(forLimit, e.link.replica.key, e.link.id, e.limits)))
	}
	e.mu.Unlock()
	e.wake()
	return nil
}

func (e *end) SetDeadline(t time.Time) error    { return e.SetReadDeadline(t) }
func (e *end) SetWriteDeadline(time.Time) error { return nil } // a write never waits
func (e *end) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (e *end) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
