package lossy

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// Match chooses requests by their words.
type Match func(words []string) bool

// Any is every request but those by which a client opens a connection.
func Any(words []string) bool {
	switch strings.ToLower(words[0]) {
	case "hello", "auth", "select", "client", "ping":
		return false
	}
	return true
}

// Command chooses by name.
func Command(name string) Match {
	return func(words []string) bool { return strings.EqualFold(words[0], name) }
}

// Script chooses the runs of one script, by its hash or with its source.
func Script(sha string) Match {
	return func(words []string) bool {
		if len(words) < 2 {
			return false
		}
		switch strings.ToLower(words[0]) {
		case "evalsha":
			return words[1] == sha
		case "eval":
			sum := sha1.Sum([]byte(words[1]))
			return hex.EncodeToString(sum[:]) == sha
		}
		return false
	}
}

type kind int

const (
	loseRequest kind = iota
	loseReply
	delayReply
	answer
	copied
)

// Action is what happens to a request that a Fault is aimed at.
type Action struct {
	kind  kind
	hang  bool
	delay time.Duration
	until <-chan struct{} // nil = delay
	text  string
}

var (
	// LoseRequest: the request does not arrive, and the connection is cut.
	LoseRequest = Action{kind: loseRequest}
	// HangRequest: the request does not arrive, and nothing on this connection does any more.
	HangRequest = Action{kind: loseRequest, hang: true}
	// LoseReply: the request is run, its reply is lost, and the connection is cut.
	LoseReply = Action{kind: loseReply}
	// HangReply: the request is run, and neither its reply nor any later one on this connection comes.
	HangReply = Action{kind: loseReply, hang: true}
	// Copy: nothing happens, but Deliver can send the request once more.
	Copy = Action{kind: copied}
)

// Delay holds the reply back for d, and with it those behind it on the same connection.
func Delay(d time.Duration) Action { return Action{kind: delayReply, delay: d} }

// Hold is Delay until a channel is closed.
func Hold(until <-chan struct{}) Action {
	return Action{kind: delayReply, delay: time.Hour, until: until}
}

// Refuse answers in Redis' place with an error ("LOADING …"); the request does not arrive.
func Refuse(text string) Action { return Action{kind: answer, text: text} }

// Fault waits for its request.
type Fault struct {
	proxy  *Proxy
	match  Match
	action Action
	left   int // matching requests up to and with the one meant
	words  []string
	raw    []byte
	struck chan struct{}
}

// Struck is closed when the request has come and the action was begun; of a lost reply, when Redis has run the request.
// It is closed, too, when the request has come and its connection ends before that, since the client gave up waiting.
func (f *Fault) Struck() <-chan struct{} { return f.struck }

// strike is called once, when the request has come; without a fault it does nothing.
func (f *Fault) strike() {
	if f != nil {
		close(f.struck)
	}
}

// Words is the request that was struck.
func (f *Fault) Words() []string {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	return f.words
}

// Deliver sends the request on a connection of its own, as a copy that was late on its way, and returns Redis' reply in
// RESP2 as it came. A fault can be delivered more than once.
func (f *Fault) Deliver(ctx context.Context) (string, error) {
	f.proxy.mu.Lock()
	raw := f.raw
	f.proxy.mu.Unlock()
	if raw == nil {
		return "", errors.New("delivering a late request: it has not come yet")
	}
	c, err := f.proxy.upstream(ctx)
	if err != nil {
		return "", fmt.Errorf("delivering a late request: %w", err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err := c.Write(raw); err != nil {
		return "", fmt.Errorf("delivering a late request: %w", err)
	}
	reply, err := readReply(bufio.NewReader(c))
	if err != nil {
		return "", fmt.Errorf("delivering a late request: %w", err)
	}
	return string(reply), nil
}

// Count counts requests that went through, or were struck.
type Count struct {
	match Match
	n     atomic.Int64
}

// N is the number so far.
func (c *Count) N() int { return int(c.n.Load()) }
