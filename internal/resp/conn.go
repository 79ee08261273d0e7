// Package resp bounds what a Redis can make its client allocate. A client of RESP (versions 2 and 3) allocates as much
// as a reply announces before any of the reply has come. Twelve bytes are enough to end the process, and a few more to
// fill its memory. A guarded connection follows the replies as they come in. It ends before the client has read the
// first reply that announces more than Redis would ever send to Solotick. It keeps nothing of a reply and changes
// nothing in it.
//
// A guarded connection also checks the form of a subscription's messages. go-redis relies on that form, in goroutines
// of its own, and eight bytes of another form end the process.
//
// The package does not bound how much a client keeps of many replies, each within the bounds. It does not check the
// values in them.
package resp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
)

// Error says why a connection was ended: the server sent bytes that are no reply of Redis, or a reply beyond the
// bounds.
type Error struct {
	Addr string // of the server
	What string // it sent
	TLS  bool   // the server seems to speak TLS, and the client does not
	Said string // the error with which a Redis refused the connection itself; "" = none
}

func (e *Error) Error() string {
	if e.Said != "" {
		return e.Said
	}
	return fmt.Sprintf("%s sent %s", e.Addr, e.What)
}

// ErrHandshake is wrapped by the error of a dial whose TLS handshake failed.
var ErrHandshake = errors.New("TLS handshake")

// conn is a guarded connection. Only one goroutine at a time may read, as on any connection that carries replies;
// others may write.
type conn struct {
	net.Conn
	asked atomic.Bool  // something was written since the scanner last asked
	stage atomic.Int32 // what the connection is used for, as far as its requests have told
	owed  atomic.Int64 // answers to the requests that were written in the stage opening
	began bool         // something was read
	scan  scanner
	ended error // what ended it
}

// A connection is opened, and then used for requests, or for one subscription and no other request.
const (
	opening = iota
	requesting
	subscribed
)

// rawConn is a conn that gives access to its socket: with it a pool finds out that an idle connection has ended.
type rawConn struct {
	*conn
	syscall.Conn
}

// Guard wraps a connection to a Redis and checks what it reads. With TLS, wrap the TLS connection, so that the
// decrypted bytes are checked. After Read has returned an *Error, it returns no more data; close the connection as
// usual.
func Guard(c net.Conn) net.Conn {
	guarded := &conn{Conn: c}
	if raw, ok := c.(syscall.Conn); ok {
		return rawConn{guarded, raw}
	}
	return guarded
}

// GuardRequests wraps a server's connection and checks what its client sends: each request must be an array that holds
// a command.
func GuardRequests(c net.Conn) net.Conn {
	guarded := &conn{Conn: c, began: true, scan: scanner{requests: true}}
	guarded.stage.Store(requesting)
	return guarded
}

func (c *conn) Write(p []byte) (int, error) {
	if c.stage.Load() == opening {
		c.opens(p)
	}
	c.asked.Store(true)
	return c.Conn.Write(p)
}

// opens looks at what is written first.
func (c *conn) opens(p []byte) {
	_, first, _ := bytes.Cut(p, []byte("\r\n")) // behind the number of words
	_, first, _ = bytes.Cut(first, []byte("\r\n"))
	first, _, _ = bytes.Cut(first, []byte("\r\n"))
	switch strings.ToLower(string(first)) {
	case "hello", "auth", "select", "client", "readonly":
		c.owed.Add(1 + int64(bytes.Count(p, []byte("\r\n*"))))
	case "subscribe":
		c.stage.Store(subscribed)
	default:
		c.stage.Store(requesting)
	}
}

func (c *conn) Read(p []byte) (int, error) {
	if c.ended != nil {
		return 0, c.ended
	}
	n, err := c.Conn.Read(p)
	switch {
	case c.began:
	case n > 0:
		c.began = true
		c.ended = c.greeted(p[:n])
	case errors.Is(err, io.EOF):
		// A TLS server treats a client that does not speak TLS in this way.
		c.ended = &Error{Addr: c.addr(), What: "nothing", TLS: true}
	}
	if c.ended == nil {
		stage := c.stage.Load()
		c.scan.messages = stage == subscribed
		wrong := c.scan.scan(p[:n], c.granted)
		if wrong == "" && stage == opening && c.scan.begun() > c.owed.Load() {
			wrong = "an answer that nobody asked for" // in a subscription it would be taken for a message
		}
		if wrong != "" {
			c.ended = &Error{Addr: c.addr(), What: wrong}
		}
	}
	if c.ended != nil {
		return 0, c.ended
	}
	return n, err
}

// granted reports whether the reply or request that begins may be large: a reply that was asked for, and every request.
func (c *conn) granted() bool { return c.scan.requests || c.asked.Load() && c.asked.Swap(false) }

func (c *conn) addr() string {
	if a := c.RemoteAddr(); a != nil {
		return a.String()
	}
	return "the server"
}

// greeted looks at the first bytes of a connection, with which a server may refuse this client. The client takes the
// two errors for an answer to its HELLO, goes on without it, and finds the connection closed.
func (c *conn) greeted(p []byte) error {
	line, _, _ := bytes.Cut(p[:min(len(p), maxSaid)], []byte("\r\n"))
	switch {
	case bytes.HasPrefix(line, []byte("-DENIED ")), bytes.HasPrefix(line, []byte("-ERR max number of clients")):
		said, _, _ := bytes.Cut(line[1:], []byte(". "))
		return &Error{Addr: c.addr(), What: "a refusal", Said: string(said)}
	case len(p) > 2 && p[0] == tlsAlert && p[1] == 3:
		return &Error{Addr: c.addr(), What: "an alert of TLS", TLS: true}
	}
	return nil
}

const (
	maxSaid  = 300  // bytes kept of a refusal
	tlsAlert = 0x15 // the first byte of a TLS server's answer to bytes that are no TLS
)

// Dial opens a connection of a client.
type Dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// Guarded guards every connection of dial.
func Guarded(dial Dial) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return Guard(c), nil
	}
}
