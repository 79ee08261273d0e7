package execute

import (
	"strings"
	"unicode"
	"unicode/utf8"
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
		s = s[len(s)-MaxOutput:]
		for !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
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
