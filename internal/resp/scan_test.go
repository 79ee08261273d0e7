package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

func always() bool { return true }

// between reports whether the scanner is between two replies.
func (s *scanner) between() bool { return s.kind == 0 && s.depth == 0 && s.body == 0 }

func TestWhatRedisDoesNotSendIsRefused(t *testing.T) {
	third, many := maxBatch/3+1, maxBatch/element
	texts := fmt.Sprintf("$%d\r\n%s\r\n", third, strings.Repeat("x", third))
	for name, c := range map[string]struct{ sent, want string }{
		"a text that overflows":                 {"*2\r\n$9223372036854775805", "a length of more than 10 digits"},
		"an array that fills the memory":        {"*500000000\r\n", "an array of 500000000 elements"},
		"a line without end":                    {"+" + strings.Repeat("x", maxLine+1), "a line of more than 4096 bytes"},
		"an error without end":                  {"-" + strings.Repeat("x", maxLine+1), "a line of more than 4096 bytes"},
		"a number without end":                  {":" + strings.Repeat("1", maxLine+1), "a line of more than 4096 bytes"},
		"a length without end":                  {"$" + strings.Repeat("0", 11), "a length of more than 10 digits"},
		"a length of eleven digits":             {"$00000000003\r\nabc\r\n", "a length of more than 10 digits"},
		"a text":                                {fmt.Sprintf("$%d\r\n", maxBatch+1), fmt.Sprintf("a text of %d bytes", maxBatch+1)},
		"an error in a text":                    {fmt.Sprintf("!%d\r\n", maxBatch+1), fmt.Sprintf("a text of %d bytes", maxBatch+1)},
		"a verbatim text":                       {fmt.Sprintf("=%d\r\n", maxBatch+1), fmt.Sprintf("a text of %d bytes", maxBatch+1)},
		"a map":                                 {fmt.Sprintf("%%%d\r\n", many/2+1), fmt.Sprintf("an array of %d elements", many+2)},
		"a set":                                 {fmt.Sprintf("~%d\r\n", many+1), fmt.Sprintf("an array of %d elements", many+1)},
		"a push":                                {fmt.Sprintf(">%d\r\n", many+1), fmt.Sprintf("an array of %d elements", many+1)},
		"arrays that announce one in another":   {strings.Repeat(fmt.Sprintf("*%d\r\n", many/2), 2), fmt.Sprintf("an array of %d elements", many/2)},
		"texts that are too large together":     {"*3\r\n" + strings.Repeat(texts, 3), fmt.Sprintf("a text of %d bytes", third)},
		"lines that are too large together":     {"*5000\r\n" + strings.Repeat("+"+strings.Repeat("x", maxBatch/5000)+"\r\n", 5000), tooLarge},
		"arrays that lie deep in each other":    {strings.Repeat("*1\r\n", maxDepth+1), "arrays that are more than 16 deep"},
		"maps that lie deep in each other":      {strings.Repeat("%1\r\n+k\r\n", maxDepth+1), "arrays that are more than 16 deep"},
		"attributes, which are never asked for": {"|1\r\n+a\r\n+b\r\n:1\r\n", `a reply that begins with the byte '|'`},
		"another protocol":                      {"HTTP/1.1 400 Bad Request\r\n", `a reply that begins with the byte 'H'`},
		"an empty line":                         {"\r\n", `a reply that begins with the byte '\r'`},
		"a length with a plus":                  {"$+5\r\nhello\r\n", "a length that is no number"},
		"a length below -1":                     {"*-2\r\n", "a length that is no number"},
		"a length of -0":                        {"$-0\r\n", "a length that is no number"},
		"a length of -11":                       {"$-11\r\n", "a length that is no number"},
		"no length":                             {"*\r\n", "a length that is no number"},
		"a length of nothing":                   {"*-\r\n", "a length that is no number"},
		"a length with a minus behind it":       {"$1-\r\n", "a length that is no number"},
		"a length with a blank":                 {"$5 \r\nhello\r\n", "a length that is no number"},
		"a length without \\r":                  {"$5\nhello\r\n", "a length that is no number"},
		"a length behind \\r":                   {"$\r5\n", "a length that is no number"},
		"a length with two \\r":                 {"$5\r\r\n", "a length that is no number"},
		"a streamed text":                       {"$?\r\n;4\r\n", "a length that is no number"},
	} {
		t.Run(name, func(t *testing.T) {
			var s scanner
			if got := s.scan([]byte(c.sent), always); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsWithinTheBoundsPasses(t *testing.T) {
	const manyNumbers = maxBatch/(element+len(":1\r\n")) - 1
	for _, sent := range []string{
		fmt.Sprintf("$%d\r\n%s\r\n", maxBatch-element, strings.Repeat("x", maxBatch-element)),
		fmt.Sprintf("*%d\r\n", manyNumbers) + strings.Repeat(":1\r\n", manyNumbers),
		strings.Repeat("*1\r\n", maxDepth) + ":1\r\n",
		"+" + strings.Repeat("x", maxLine-2) + "\r\n",
		"$-1\r\n*-1\r\n_\r\n%0\r\n*0\r\n$0\r\n\r\n~0\r\n>1\r\n+x\r\n,3.14\r\n(123\r\n#t\r\n=5\r\ntxt:x\r\n!3\r\nERR\r\n%-1\r\n",
	} {
		var s scanner
		if wrong := s.scan([]byte(sent), always); wrong != "" || !s.between() {
			t.Errorf("%.40q: %s, %+v", sent, wrong, s)
		}
	}
}

func TestABatchIsBoundedAsAWholeAndEachReplyBehindIt(t *testing.T) {
	text := func(n int) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", n, strings.Repeat("x", n)) }
	asked := true
	granted := func() bool { was := asked; asked = false; return was }
	var s scanner
	take := func(n int, want string) {
		t.Helper()
		if got := s.scan(text(n), granted); got != want {
			t.Fatalf("%d bytes: got %q, want %q", n, got, want)
		}
	}
	take(maxBatch-maxBatch/3, "")
	take(maxBatch/3-2*element, "")
	for range 50 { // all that was granted is used up: small ones still pass, as those of a large pipeline, and nudges, do
		take(maxReply-element, "")
	}
	asked = true
	take(maxBatch-maxBatch/3, "")
	take(maxBatch/2, fmt.Sprintf("a text of %d bytes", maxBatch/2))
	s = scanner{}
	take(maxReply-element+1, fmt.Sprintf("a text of %d bytes", maxReply-element+1)) // which nobody has asked for
}

// The commands whose answers Solotick reads, and some of other shapes.
var commands = []string{
	"HELLO 3", "INFO", "COMMAND", "TIME", "PING", "GET nothing", "HGETALL hash", "HGETALL nothing", "HMGET hash a nothing", "HSCAN hash 0",
	"ZRANGE set 0 -1 WITHSCORES", "ZSCORE set a", "XREVRANGE stream + - COUNT 5", "XINFO STREAM stream FULL", "LRANGE list 0 -1",
	"CLUSTER SLOTS", "CONFIG GET *", "EVAL 'return {1,{2,{3,\"x\"}},redis.error_reply(\"MY error\")}' 0",
	"EVAL 'return redis.call(\"HGETALL\",\"hash\")' 0",
	"EVALSHA 0 0", "EVAL 'error(\"x\")' 0", "CLIENT LIST", "MEMORY STATS", "DEBUG", "SUBSCRIBE one two", "COMMAND DOCS", "LOLWUT",
	"HELLO 2", "UNSUBSCRIBE", "INFO", "COMMAND", "HGETALL hash", "ZRANGE set 0 -1 WITHSCORES", "XREVRANGE stream + - COUNT 5",
	"SUBSCRIBE three", "PING",
}

// recorded is what a real Redis answers to all of them.
func recorded(t testing.TB) []byte {
	t.Helper()
	s := redistest.Start(t)
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fill := []string{
		"HSET hash a 1 b " + strings.Repeat("x", 5000), "ZADD set 1 a 2.5 b inf c", "RPUSH list a b c",
		"XADD stream * run x", "XADD stream * run y",
	}
	all := append(fill, commands...)
	go func() { _, _ = io.WriteString(c, strings.Join(all, "\r\n")+"\r\nQUIT\r\n") }()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	answers, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

func TestAllThatRedisAnswersPassesInPiecesOfAnySize(t *testing.T) {
	answers := recorded(t)
	random := rand.New(rand.NewPCG(1, 2))
	for largest := 1; largest <= len(answers)*2; largest *= 3 {
		var s scanner
		for rest := answers; len(rest) > 0; {
			n := min(1+random.IntN(largest), len(rest))
			if wrong := s.scan(rest[:n], always); wrong != "" {
				t.Fatalf("pieces of up to %d bytes: %s, ahead of %.100q", largest, wrong, rest)
			}
			rest = rest[n:]
		}
		if !s.between() {
			t.Fatalf("pieces of up to %d bytes: the end is not the end of a reply: %+v", largest, s)
		}
	}
	m := &model{in: bufio.NewReader(bytes.NewReader(answers))}
	for {
		if err := m.reply(0); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// model is a client that reads as go-redis does, and counts what it makes room for.
type model struct {
	in    *bufio.Reader
	took  int64
	depth int
}

func (m *model) reply(depth int) error {
	m.depth = max(m.depth, depth)
	line, err := m.in.ReadBytes('\n')
	m.took += int64(len(line))
	if err != nil {
		return err
	}
	if len(line) <= 2 || line[len(line)-2] != '\r' {
		return errors.New("not a line")
	}
	switch line[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		return nil
	}
	n, err := strconv.ParseInt(string(line[1:len(line)-2]), 10, 64)
	if err != nil || n < -1 {
		return errors.New("not a length")
	}
	switch line[0] {
	case '$', '!', '=':
		if n == -1 {
			return nil
		}
		m.took += n
		_, err := io.CopyN(io.Discard, m.in, n+2)
		return err
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		m.took += 16 * max(n, 0)
		for range max(n, 0) {
			if err := m.reply(depth + 1); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("no reply")
}

// A client reads an answer that passes as the scanner has read it, and takes no more than the bounds say; and in which
// pieces it comes makes no difference.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$9223372036854775805\r\n", "*500000000\r\n", "+OK\r\n:1\r\n$3\r\nabc\r\n", "*2\r\n*1\r\n:1\r\n%1\r\n+k\r\n_\r\n",
		"|1\r\n+a\r\n+b\r\n", "$-1\r\n*-1\r\n", ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n", "-ERR x\r\n", "~1\r\n,inf\r\n",
		"=7\r\ntxt:abc\r\n!2\r\nxx\r\n",
	} {
		f.Add([]byte(seed), uint64(1))
	}
	for i, answers := 0, recorded(f); i < len(answers); i += 3000 {
		f.Add(answers[i:min(i+3000, len(answers))], uint64(i))
	}
	f.Fuzz(func(t *testing.T, sent []byte, seed uint64) {
		var whole, pieces scanner
		wrong := whole.scan(sent, always)
		random := rand.New(rand.NewPCG(seed, 0))
		got := ""
		passed := 0
		for got == "" && passed < len(sent) {
			n := min(1+random.IntN(8), len(sent)-passed)
			got = pieces.scan(sent[passed:passed+n], always)
			if got == "" {
				passed += n
			}
		}
		if got != wrong {
			t.Fatalf("at once %q, in pieces %q", wrong, got)
		}
		m := &model{in: bufio.NewReader(iotest.DataErrReader(bytes.NewReader(sent[:passed])))}
		for err := error(nil); err == nil; m.took = 0 {
			err = m.reply(0)
			switch {
			case m.took > maxBatch+maxLine || m.depth > maxDepth:
				t.Fatalf("a client takes %d bytes, %d deep", m.took, m.depth)
			case errors.Is(err, io.EOF) && wrong == "" && m.took == 0 && !pieces.between():
				t.Fatalf("a client is at the end of a reply, and the scanner is not: %+v", pieces)
			case err != nil && !errors.Is(err, io.EOF) && err.Error() != "not a line": // at which a client ends the connection
				t.Fatalf("a client says %v", err)
			}
		}
	})
}

// go-redis takes the form of a message for granted.
func TestAMessageHasItsForm(t *testing.T) {
	subscribed := "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
	for sent, fits := range map[string]bool{
		subscribed: true,
		">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n":                 true,
		"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n":                  true,
		">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n":                    true,
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\ndue\r\n":            true,
		"*2\r\n$4\r\npong\r\n$0\r\n\r\n":                             true,
		"+PONG\r\n":                                                  true,
		"$4\r\nPONG\r\n":                                             true,
		"$-1\r\n":                                                    true,
		"-NOPERM no\r\n":                                             true,
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$8200\r\n":                false,
		"*1\r\n:1\r\n":                                               false,
		"*0\r\n":                                                     false,
		"*-1\r\n":                                                    false,
		">1\r\n$7\r\nmessage\r\n":                                    false,
		"*3\r\n:1\r\n":                                               false,
		"*3\r\n$-1\r\n":                                              false,
		"*3\r\n+message\r\n":                                         false,
		"*2\r\n$7\r\nmessage\r\n$1\r\nc\r\n":                         false,
		"*4\r\n$7\r\nmessage\r\n$1\r\nc\r\n":                         false,
		"*3\r\n$7\r\nmessage\r\n:1\r\n":                              false,
		"*3\r\n$7\r\nmessage\r\n$-1\r\n":                             false,
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:1\r\n":                   false,
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n*1\r\n":                   false,
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$-1\r\n":                  false,
		"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n$1\r\n1\r\n":            false,
		"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n_\r\n":                  false,
		"*3\r\n$9\r\nsubscribe\r\n:1\r\n":                            false,
		"*2\r\n$4\r\npong\r\n$-1\r\n":                                false,
		"*2\r\n$4\r\npong\r\n:1\r\n":                                 false,
		"*4\r\n$8\r\npmessage\r\n$1\r\nc\r\n":                        false,
		"*3\r\n$0\r\n\r\n$1\r\nc\r\n":                                false,
		"*3\r\n$30\r\nmessagemessagemessagemessage!!\r\n$1\r\nc\r\n": false,
		":1\r\n":             false,
		"%1\r\n":             false,
		"~3\r\n":             false,
		"*250000\r\n$-1\r\n": false,
		"_\r\n":              false,
	} {
		for _, before := range []string{"", subscribed} {
			s := scanner{messages: true}
			wrong := s.scan([]byte(before+sent), always)
			if (wrong == "") != fits || fits && !s.between() {
				t.Errorf("%q: %q", before+sent, wrong)
			}
			single := scanner{messages: true}
			piecewise := ""
			for _, b := range []byte(before + sent) {
				if piecewise = single.scan([]byte{b}, always); piecewise != "" {
					break
				}
			}
			if (piecewise == "") != fits {
				t.Errorf("%q in single bytes: %q", before+sent, piecewise)
			}
		}
	}
}
