package command

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/solotick/solotick/sidecar/execute"
)

// lineSize is how much is kept of one line; more would let a command without newlines fill the memory.
const lineSize = 64 << 10

// output receives the lines that one attempt of a command prints on both streams. Each line goes to the tail, and to
// the log unless the rate forbids it.
type output struct {
	log  *slog.Logger // knows job and run
	rate *rate        // of the job

	mu   sync.Mutex
	tail execute.Tail
	last execute.LastWords
}

func (o *output) line(stream string, line []byte, cut bool) {
	text := execute.Printable(string(line))
	if cut {
		text += fmt.Sprintf("… (cut: the line is longer than %d KiB)", lineSize>>10)
	}
	if logged, leftOut := o.keep(text); logged {
		o.warnLeftOut(leftOut)
		// The context of the run is not handed on: the last words of a canceled command are the most wanted.
		o.log.Info("output", "line", text, "stream", stream)
	}
}

// keep keeps a line, and reports whether it goes to the log, and how many did not before it.
func (o *output) keep(text string) (logged bool, leftOut int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail.Write([]byte(text))
	o.tail.Write([]byte{'\n'})
	o.last.AddLine(text)
	return o.rate.admit(len(text), time.Now())
}

func (o *output) warnLeftOut(leftOut int) {
	if leftOut > 0 {
		o.log.Warn("the command prints too much for the log: lines were left out", "lines", leftOut)
	}
}

// close logs how many lines were left out at the end, and adds to the words how many processes were left in the group.
func (o *output) close(left int) {
	o.warnLeftOut(o.rate.takeLeftOut())
	if left > 0 {
		o.keep(fmt.Sprintf("(the command left processes in its group when it ended, and they were killed: %d)", left))
		o.log.Warn("the command left processes in its group when it ended, and they were killed", "processes", left)
	}
}

// words are the tail of the output, and the line of it that tells why the command failed.
func (o *output) words() (tail, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tail.String(), o.last.Reason()
}

// lines cuts one stream into lines for out. A line is held until its newline comes, up to lineSize; the rest of a
// longer one is thrown away as it comes. Text after a carriage return begins the line anew, as on a terminal, where
// progress bars do so.
type lines struct {
	out      *output
	stream   string
	buf      []byte
	cut      bool
	returned bool // by a carriage return
}

// Write never fails: output must not bring the command a SIGPIPE.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		text := bytes.TrimRight(line, "\r")
		if at := bytes.LastIndexByte(text, '\r'); at >= 0 || len(text) > 0 && l.returned {
			l.buf, l.cut, text = l.buf[:0], false, text[at+1:]
		}
		if len(line) > 0 {
			l.returned = line[len(line)-1] == '\r'
		}
		if room := lineSize - len(l.buf); len(text) > room {
			text, l.cut = text[:room], true
		}
		l.buf = append(l.buf, text...)
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
	l.buf, l.cut, l.returned = l.buf[:0], false, false
}

// wholeRunes takes the beginning of a character off the end of b.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i > len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			return b[:i]
		}
	}
	return b
}
