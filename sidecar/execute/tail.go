package execute

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/solotick/solotick/internal/text"
)

// MaxOutput is how many bytes are kept of a job's words; the history holds them for every run.
const MaxOutput = 4 << 10

// Tail keeps the last MaxOutput bytes written to it. It is not safe for concurrent use.
type Tail struct {
	buf  []byte
	lost bool // not all that was written is there
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > MaxOutput {
		p, t.lost = p[n-MaxOutput:], true
	}
	// Moving the bytes down only when twice the size is reached makes many short writes cheap.
	if len(t.buf)+len(p) > 2*MaxOutput {
		t.buf, t.lost = t.buf[:copy(t.buf, t.buf[len(t.buf)-MaxOutput:])], true
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// String returns the tail as text that is safe to show, at most MaxOutput bytes of it.
func (t *Tail) String() string {
	b, lost := t.buf, t.lost
	if len(b) > MaxOutput {
		b, lost = b[len(b)-MaxOutput:], true
	}
	// Half a character at the beginning is our cut, not the job's.
	for i := 0; lost && i < utf8.UTFMax-1 && !utf8.RuneStart(b[0]); i++ {
		b = b[1:]
	}
	s := Printable(string(b))
	if len(s) > MaxOutput { // the picture of a control character is longer than the character
		s = strings.ToValidUTF8(s[len(s)-MaxOutput:], "")
	}
	return strings.TrimRight(s, "\n")
}

// Printable makes a job's words safe for terminals and logs. Invalid UTF-8, and characters that change the direction
// of text, become U+FFFD. Control characters become their pictures (ESC is ␛). Newlines and tabs stay.
func Printable(s string) string {
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

const (
	maxReason = 300      // characters of a reason: it has to fit into a line of the history, or an alert
	maxLine   = 16 << 10 // bytes of a line from which a reason is made
)

// LastWords keeps the last line of a command's words that is not part of a stack trace. If there is none, it keeps
// the first line.
type LastWords struct{ text string }

// AddLine adds the next line.
func (l *LastWords) AddLine(line string) {
	if strings.ContainsFunc(line, isWord) && (l.text == "" || !isFrame(line)) {
		l.text = line[:min(len(line), maxLine)]
	}
}

// Reason is the line that was kept, as Brief has it.
func (l *LastWords) Reason() string { return Brief(l.text) }

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// isFrame reports whether a line belongs to a stack trace, and is not its message.
func isFrame(line string) bool {
	return len(line) < maxFrame && frame.MatchString(strings.TrimRight(line, "\r\n"))
}

// maxFrame is longer than a frame is: each line of a command is looked at, and most of them soon.
const maxFrame = 1000

// frame has a line for each of the traces it knows. It is anchored, so that most lines are told by their beginning.
var frame = regexp.MustCompile("^(?:" + strings.Join([]string{
	`\s+(?:at|from|in) `,           // Java, JavaScript, .NET, Ruby
	`\s*\.\.\. \d+ (?:more|lines)`, // Java, JavaScript
	`Node\.js v\d`,                 // JavaScript
	`  (?:errno|code|syscall|address|port|path|dest|hostname): `,                  // JavaScript, below a trace
	`\s+File ".*", line \d+`,                                                      // Python
	`\S+:\d+:in [` + "`" + `'][^']*'$`,                                            // Ruby
	`#\d+ |  thrown in |Stack trace:$`,                                            // PHP
	`\[signal |goroutine \d+ \[|created by |\t\S+\.go:\d+|exit status \d+$`,       // Go
	`[\w./*()-]+\.[\w.*()-]+\((?:0x[\da-f]+|[{}, .?_])*\)$`,                       // Go
	`\s+\d+: (?:0x[\da-f]+|\S*::|\S+$)|stack backtrace:$|note: .*RUST_BACKTRACE=`, // Rust
	`\s+(?:\(.*\) \S+|\S+\.exs?):\d+: `,                                           // Elixir
}, "|") + ")")

// Brief makes a reason of a text: one line, safe to show, and not long.
func Brief(s string) string {
	return text.Cut(strings.Join(strings.Fields(Printable(s)), " "), maxReason)
}
