package execute

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	tailSize = 4 << 10  // what is kept of a job's words; the history holds it for every run
	lineSize = 64 << 10 // what is kept of one line; more would let a job without newlines fill the memory
)

// tail keeps the last tailSize bytes written to it. It is not safe for concurrent use.
type tail struct {
	buf  []byte
	lost bool // not all that was written is there
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > tailSize {
		p, t.lost = p[n-tailSize:], true
	}
	// Moving the bytes down only when twice the size is reached makes many short writes cheap.
	if len(t.buf)+len(p) > 2*tailSize {
		t.buf, t.lost = t.buf[:copy(t.buf, t.buf[len(t.buf)-tailSize:])], true
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// String returns the tail as text that is safe to show, at most tailSize bytes of it.
func (t *tail) String() string {
	b, lost := t.buf, t.lost
	if len(b) > tailSize {
		b, lost = b[len(b)-tailSize:], true
	}
	// Half a character at the beginning is our cut, not the job's.
	for i := 0; lost && i < utf8.UTFMax-1 && !utf8.RuneStart(b[0]); i++ {
		b = b[1:]
	}
	s := printable(string(b))
	if len(s) > tailSize { // a picture is longer than what it stands for
		s = s[len(s)-tailSize:]
		for !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return strings.TrimRight(s, "\n")
}

// printable makes a job's words safe for terminals and logs: invalid UTF-8 and characters that change the direction of
// text become U+FFFD, control characters become their pictures (ESC is ␛). Newlines and tabs stay.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return '\u2421'
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return utf8.RuneError
		}
		return r // strings.Map hands a byte that is not UTF-8 over as U+FFFD
	}, s)
}

// output takes what one attempt of a command says, on both streams, as lines: each goes to the tail, and to the log unless
// that were too much for it.
type output struct {
	log  *slog.Logger // knows job and run
	rate *rate        // of the job

	mu   sync.Mutex
	tail tail
	last lastWords
}

func (o *output) line(stream string, line []byte, cut bool) {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	text := printable(string(line))
	if cut {
		text += fmt.Sprintf("… (cut: the line is longer than %d KiB)", lineSize>>10)
	}
	if logged, leftOut := o.keep(text); logged {
		o.tellOf(leftOut)
		// The context of the run is not handed on: the last words of a canceled command are the most wanted.
		o.log.LogAttrs(context.Background(), slog.LevelInfo, text, slog.String("stream", stream))
	}
}

// keep keeps a line, and tells whether it goes to the log, and how many did not before it.
func (o *output) keep(text string) (logged bool, leftOut int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail.Write([]byte(text))
	o.tail.Write([]byte{'\n'})
	o.last.hear(text)
	return o.rate.admit(len(text), time.Now())
}

func (o *output) tellOf(leftOut int) {
	if leftOut > 0 {
		o.log.Warn("the command prints too much for the log: lines were left out", "lines", leftOut)
	}
}

// close tells of lines that were left out at the end.
func (o *output) close() {
	o.tellOf(o.rate.untold())
}

// words are the tail of what the command said, and what of it all tells why it failed.
func (o *output) words() (tail, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tail.String(), o.last.reason()
}

// lines cuts one stream into lines for out. A line is held until its newline comes, up to lineSize; the rest of a
// longer one is thrown away as it comes.
type lines struct {
	out    *output
	stream string
	buf    []byte
	cut    bool
}

// Write never fails: a command must not get SIGPIPE because of what it said.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		if room := lineSize - len(l.buf); len(line) > room {
			line, l.cut = line[:room], true
		}
		l.buf = append(l.buf, line...)
		if ended {
			l.emit()
		}
		p = rest
	}
	return n, nil
}

// close hands on a last line that had no newline.
func (l *lines) close() {
	if len(l.buf) > 0 {
		l.emit()
	}
}

func (l *lines) emit() {
	line := l.buf
	if l.cut {
		line = wholeRunes(line)
	}
	l.out.line(l.stream, line, l.cut)
	l.buf, l.cut = l.buf[:0], false
}

// wholeRunes takes the beginning of a character off the end of b.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
