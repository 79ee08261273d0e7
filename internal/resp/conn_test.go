package resp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served is a guarded connection to a server that sends the pieces, one for each that is read, and ends.
func served(t *testing.T, pieces ...string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		for _, p := range slices.DeleteFunc(pieces, func(p string) bool { return p == "" }) {
			if _, err := io.WriteString(far, p); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { near.Close() })
	c := Guard(near)
	c.(*conn).stage.Store(requesting)
	return c
}

func TestAConnectionEndsForGoodAtWhatIsRefused(t *testing.T) {
	c := served(t, "+OK\r\n", "*500000000\r\n", "+OK\r\n")
	b := make([]byte, 100)
	if n, err := c.Read(b); err != nil || string(b[:n]) != "+OK\r\n" {
		t.Fatalf("%q, %v", b[:n], err)
	}
	for range 2 {
		n, err := c.Read(b)
		var refused *Error
		if n != 0 || !errors.As(err, &refused) || err.Error() != "pipe sent an array of 500000000 elements" {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
}

func TestWhatTheServerSaysInPlaceOfAGreetingIsTheError(t *testing.T) {
	for sent, want := range map[string]Error{
		"": {What: "nothing", TLS: true},
		"-DENIED Redis is running in protected mode because protected mode is enabled. In this mode connections are\r\n": {What: "a refusal",
			Said: "DENIED Redis is running in protected mode because protected mode is enabled"},
		"-ERR max number of clients reached\r\n": {What: "a refusal", Said: "ERR max number of clients reached"},
		"-DENIED " + strings.Repeat("x", 5000):   {What: "a refusal", Said: "DENIED " + strings.Repeat("x", maxSaid-8)},
		"\x15\x03\x01\x00\x02\x02\x46":           {What: "an alert of TLS", TLS: true},
	} {
		want.Addr = "pipe"
		_, err := served(t, sent).Read(make([]byte, 4096))
		var got *Error
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%.30q: %#v", sent, err)
		}
		// Later it is an answer like any other, and no end.
		c := served(t, "+OK\r\n", sent)
		_, _ = c.Read(make([]byte, 100))
		if _, err := c.Read(make([]byte, 4096)); errors.As(err, &got) && *got == want {
			t.Errorf("%.30q is the same later", sent)
		}
	}
}

func TestOnlyAnAlertOfTLSSeemsToBeOne(t *testing.T) {
	for _, sent := range []string{"\x15\x02\x01\x00", "\x15", "\x15\x03"} {
		_, err := served(t, sent).Read(make([]byte, 9))
		if got, ok := errors.AsType[*Error](err); !ok || *got != (Error{Addr: "pipe", What: `a reply that begins with the byte '\x15'`}) {
			t.Errorf("%q: %#v", sent, err)
		}
	}
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	_ = near.SetReadDeadline(time.Now())
	if _, err := Guard(near).Read(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without an answer: %#v", err)
	}
}

func TestAWriteGrantsALargeAnswer(t *testing.T) {
	answer := "$200000\r\n"
	if _, err := served(t, answer).Read(make([]byte, 100)); err == nil {
		t.Error("it came although nothing had been asked")
	}
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		_, _ = io.ReadFull(far, make([]byte, 4))
		_, _ = io.WriteString(far, answer)
	}()
	c := Guard(near)
	if _, err := io.WriteString(c, "PING"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Errorf("what was asked for: %v", err)
	}
	text := func(n int) string { return fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("x", n)) }
	twice := served(t, text(maxBatch-maxReply), text(maxReply))
	twice.(*conn).asked.Store(true)
	if _, err := io.Copy(io.Discard, twice); err == nil || err.Error() != fmt.Sprintf("pipe sent a text of %d bytes", maxReply) {
		t.Errorf("a second large answer to one write: %v", err)
	}
}

func TestARequestHasACommand(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$-1\r\n", ""},
		{"*2\r\n$3\r\nGET\r\n$1000000\r\n", ""},
		{"*2\r\n$3\r\nGET\r\n:1\r\n", ""},
		{"*-1\r\n", "a request without a command"},
		{"*0\r\n", "a request without a command"},
		{"*1\r\n$4\r\nPING\r\n*-1\r\n", "a request without a command"},
		{"$4\r\nPING\r\n", "a request without a command"},
		{"+PING\r\n", "a request without a command"},
		{"PING\r\n", `a request that begins with the byte 'P'`},
		{"*2\r\n$9223372036854775805\r\n", "a length of more than 10 digits"},
		{"*500000000\r\n", "an array of 500000000 elements"},
	} {
		near, far := net.Pipe()
		go func() {
			_, _ = io.WriteString(far, c.sent)
			far.Close()
		}()
		_, err := GuardRequests(near).Read(make([]byte, 1000))
		var refused *Error
		if errors.As(err, &refused) != (c.want != "") || refused != nil && refused.What != c.want {
			t.Errorf("%q: %v", c.sent, err)
		}
		near.Close()
	}
}

// A pool looks at the sockets of idle connections, and finds those that have ended without costing a request.
func TestASocketCanBeLookedAtThroughTheGuard(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := Guarded(new(net.Dialer).DialContext)(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(syscall.Conn); !ok {
		t.Error("a guarded socket cannot be looked at")
	}
	if _, ok := served(t).(syscall.Conn); ok {
		t.Error("what is no socket says that it is one")
	}
	l.Close()
	if c, err := Guarded(new(net.Dialer).DialContext)(context.Background(), "tcp", l.Addr().String()); err == nil || c != nil {
		t.Errorf("a dial that failed: %v, %v", c, err)
	}
}

// looped is a connection from which one batch of replies comes again and again.
type looped struct {
	net.Conn
	replies string
}

func (l looped) Read(p []byte) (int, error)  { return copy(p, l.replies), nil }
func (l looped) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkRead(b *testing.B) {
	claim := "*7\r\n$3\r\nWON\r\n:1700000000000\r\n:42\r\n$36\r\n01234567-0123-0123-0123-0123456789ab\r\n:0\r\n_\r\n*0\r\n"
	for name, c := range map[string]struct {
		reply string
		many  int
	}{
		"a number":                {":1700000000000\r\n", 1},
		"a claim":                 {claim, 1},
		"a batch of 200 claims":   {claim, 200},
		"a timer of 16 KiB":       {"$16000\r\n" + strings.Repeat("x", 16000) + "\r\n", 1},
		"a map of 20 short texts": {"%10\r\n" + strings.Repeat("$5\r\nfield\r\n$13\r\n1700000000000\r\n", 10), 1},
	} {
		replies := strings.Repeat(c.reply, c.many)
		for guard, wrap := range map[string]func(net.Conn) net.Conn{"bare": func(c net.Conn) net.Conn { return c }, "guarded": Guard} {
			b.Run(name+"/"+guard, func(b *testing.B) {
				conn := wrap(looped{replies: replies})
				p := make([]byte, len(replies))
				b.ReportAllocs()
				for b.Loop() {
					_, _ = conn.Write(nil)
					if _, err := conn.Read(p); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.many), "ns/reply")
			})
		}
	}
}

func TestASubscriptionBeginsWithWhatWasAskedFor(t *testing.T) {
	const hello, subscribe = "*2\r\n$5\r\nhello\r\n$1\r\n3\r\n", "*2\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n"
	const auth = "*2\r\n$4\r\nauth\r\n$1\r\np\r\n*2\r\n$6\r\nselect\r\n$1\r\n1\r\n"
	for _, c := range []struct {
		name   string
		turns  []string // a request and what is answered to it, by turns
		refuse string   // the error of the last turn
	}{
		{"a subscription", []string{hello, "%0\r\n", subscribe, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"}, ""},
		{"a subscription behind two answers to one write", []string{hello, "-ERR\r\n", auth, "+OK\r\n+OK\r\n", subscribe, "+PONG\r\n"}, ""},
		{"a message of another form", []string{hello, "%0\r\n", subscribe, "*1\r\n:1\r\n"}, "a message of another form"},
		{"one of another form behind capitals", []string{hello, "%0\r\n", strings.ToUpper(subscribe), "*1\r\n:1\r\n"}, "a message of another form"},
		{"the first byte of one", []string{hello, "%0\r\n+"}, "an answer that nobody asked for"},
		{"one that came too early", []string{hello, "%0\r\n*1\r\n:1\r\n"}, "an answer that nobody asked for"},
		{"a part of one", []string{hello, "%0\r\n*1\r\n"}, "an answer that nobody asked for"},
		{"one that came before anything", []string{"", "*1\r\n:1\r\n"}, "an answer that nobody asked for"},
		{"one that came too early behind an old Redis' answers", []string{hello, "-ERR\r\n", auth, "+OK\r\n+OK\r\n*1\r\n"}, "an answer that nobody asked for"},
		{"one behind the choice of a database", []string{"*2\r\n$6\r\nselect\r\n$1\r\n1\r\n", "+OK\r\n*1\r\n"}, "an answer that nobody asked for"},
		{"one behind the name of a client", []string{"*2\r\n$6\r\nclient\r\n$1\r\nx\r\n", "+OK\r\n*1\r\n"}, "an answer that nobody asked for"},
		{"one behind readonly", []string{"*1\r\n$8\r\nreadonly\r\n", "+OK\r\n*1\r\n"}, "an answer that nobody asked for"},
		{"an answer of any form", []string{hello, "%0\r\n", "*1\r\n$4\r\ntime\r\n", "*1\r\n:1\r\n", subscribe, "*1\r\n:1\r\n"}, ""},
	} {
		near, far := net.Pipe()
		go func() {
			_, _ = io.Copy(io.Discard, far) // which ends with the connection
		}()
		guarded, err := Guard(near), error(nil)
		for i, turn := range c.turns {
			if turn == "" {
				continue
			}
			if i%2 == 0 {
				_, err = io.WriteString(guarded, turn)
				continue
			}
			go func() { _, _ = io.WriteString(far, turn) }()
			_, err = io.ReadFull(guarded, make([]byte, len(turn)))
		}
		var refused *Error
		if errors.As(err, &refused) != (c.refuse != "") || refused != nil && refused.What != c.refuse {
			t.Errorf("%s: %v", c.name, err)
		}
		near.Close()
	}
}
