package resp

import (
	"bytes"
	"fmt"
	"strings"
)

// The limits on what a server may send. The largest answer that Solotick asks for is that of a hundred timers with
// their requests, 6.4 MiB; a look with all that it may see has 5 MiB.
const (
	// maxBatch bounds, in bytes, the answer to one write of the client: one request, or a pipeline of them.
	maxBatch = 8 << 20
	// maxReply bounds a reply behind that bound, or one that the client did not ask for: one timer has 64 KiB, and its
	// mark.
	maxReply = 72 << 10
	// maxMessage bounds a message of a subscription. A nudge has a hundred bytes, and so has a message of a Sentinel.
	maxMessage = 8 << 10
	// maxLine bounds a line: a word, an error or a number. The error of Redis in protected mode has 1 KiB.
	maxLine = 4 << 10
	// maxDepth bounds how deep arrays lie in each other: a client reads them by recursion. COMMAND has eight levels.
	maxDepth = 16
	// maxDigits bounds an announced length, so that no sum of two overflows.
	maxDigits = 10
	// element is the size that each element counts in addition to its text: about as much as a client allocates for the
	// smallest one.
	element = 64
)

// kinds are the first bytes of lines: of those that are a value, and of headers, which announce how much follows them.
var kinds = [256]byte{'+': line, '-': line, ':': line, '_': line, ',': line, '#': line, '(': line,
	'$': header, '!': header, '=': header, '*': header, '~': header, '>': header, '%': header}

const unknown, line, header = 0, 1, 2

// forms are the rest of a subscription's messages, after their first word: '$' is a text, '?' a text or none, ':' a
// number.
var forms = map[string]string{"subscribe": "?:", "unsubscribe": "?:", "message": "$$", "pong": "$"}

// maxWord is larger than the first word of any message.
const maxWord = 16

// scanner follows replies as they come in, in pieces of any size, and keeps nothing of them.
type scanner struct {
	requests bool // it follows requests, not replies
	messages bool // it follows the messages of a subscription

	replies int64         // that have come
	total   int64         // elements of the outermost array
	word    [maxWord]byte // of a message, the first one
	written int           // bytes of it, with its \r\n
	left    int64         // bytes that the present reply may still have, announced ones included

	kind     byte  // of the line that is being read; 0 = the next byte begins one
	length   int64 // announced by the line so far
	digits   int
	negative bool
	ended    bool // the line's \r has come
	size     int  // bytes of the line so far

	body  int64           // bytes of a text, its \r\n included, still to come
	open  [maxDepth]int64 // elements still to come, of each array that is open
	depth int
}

// scan follows one more piece. It calls granted when a reply begins: granted reports whether the client has written
// something since its last call. scan returns what is wrong with the replies; "" = nothing is.
func (s *scanner) scan(p []byte, granted func() bool) (wrong string) {
	for len(p) > 0 && wrong == "" {
		switch {
		case s.body > 0:
			n := min(s.body, int64(len(p)))
			if s.messages && s.nth() == 0 {
				s.written += copy(s.word[s.written:], p[:n])
			}
			p = p[n:]
			if s.body -= n; s.body == 0 {
				s.complete()
			}
		case s.kind == 0:
			if s.depth == 0 {
				s.left = max(s.left, maxReply)
				if granted() {
					s.left = maxBatch
				}
				if s.messages {
					s.left, s.written = maxMessage, 0
				}
				s.left -= element // those of an array are counted with it
			}
			s.kind, p = p[0], p[1:]
			if s.messages && !s.fits() {
				return otherForm
			}
			switch kinds[s.kind] {
			case unknown:
				if s.requests {
					return fmt.Sprintf("a request that begins with the byte %q", s.kind)
				}
				// Attributes (|) are unknown, too: Redis sends none unless it is asked to, and a client reads them by
				// recursion.
				return fmt.Sprintf("a reply that begins with the byte %q", s.kind)
			case line:
				s.size = 0
				if s.requests && s.depth == 0 {
					return "a request without a command"
				}
			case header:
				s.length, s.digits, s.negative, s.ended = 0, 0, false, false
				if n := s.whole(p); n > 0 {
					p = p[n:]
					wrong = s.announced()
				}
			}
		case kinds[s.kind] == header:
			b := p[0]
			p = p[1:]
			wrong = s.header(b)
		default:
			n := bytes.IndexByte(p, '\n') + 1
			whole := n > 0
			if !whole {
				n = len(p)
			}
			p = p[n:]
			wrong = s.text(n, whole)
		}
	}
	return wrong
}

// text reads n more bytes of a line.
func (s *scanner) text(n int, whole bool) string {
	s.size += n
	s.left -= int64(n)
	switch {
	case s.size > maxLine:
		return fmt.Sprintf("a line of more than %d bytes", maxLine)
	case s.left < 0:
		return tooLarge
	case whole:
		s.complete()
	}
	return ""
}

const tooLarge = "a reply that is too large"

// whole reads the rest of a header that is complete in p, as nearly all headers are, and returns its size; else 0.
func (s *scanner) whole(p []byte) int {
	n := int64(0)
	for i, b := range p[:min(len(p), maxDigits+1)] {
		if b < '0' || b > '9' {
			if i == 0 || b != '\r' || i+1 >= len(p) || p[i+1] != '\n' {
				return 0
			}
			s.length = n
			return i + 2
		}
		n = 10*n + int64(b-'0')
	}
	return 0
}

// header reads the next byte of a line that announces a length: digits or -1, and \r\n. A client may accept more forms
// than that; Redis sends no other.
func (s *scanner) header(b byte) string {
	switch {
	case b >= '0' && b <= '9' && !s.ended && s.digits < maxDigits:
		s.length = 10*s.length + int64(b-'0')
		s.digits++
		return ""
	case b >= '0' && b <= '9' && !s.ended:
		return fmt.Sprintf("a length of more than %d digits", maxDigits)
	case b == '-' && !s.negative && s.digits == 0 && !s.ended:
		s.negative = true
		return ""
	case b == '\r' && !s.ended && s.digits > 0 && (!s.negative || s.length == 1 && s.digits == 1):
		s.ended = true
		return ""
	case b == '\n' && s.ended:
		return s.announced()
	}
	return "a length that is no number"
}

// announced handles such a line when it is complete.
func (s *scanner) announced() string {
	n := s.length
	if s.requests && s.depth == 0 && (s.kind != '*' || s.negative || n == 0) {
		return "a request without a command"
	}
	if s.messages && !s.fitsLength() {
		return otherForm
	}
	if s.negative { // there is no such value
		s.complete()
		return ""
	}
	switch s.kind {
	case '$', '!', '=':
		if s.left -= n; s.left < 0 {
			return fmt.Sprintf("a text of %d bytes", n)
		}
		s.body = n + 2
		return ""
	case '%':
		n *= 2
	}
	if s.left -= n * element; s.left < 0 { // at once, as the client makes room for them
		return fmt.Sprintf("an array of %d elements", n)
	}
	if n == 0 {
		s.complete()
		return ""
	}
	if s.depth == maxDepth {
		return fmt.Sprintf("arrays that are more than %d deep", maxDepth)
	}
	s.kind = 0
	if s.depth == 0 {
		s.total = n
	}
	s.open[s.depth] = n
	s.depth++
	return ""
}

// complete ends a value, and the arrays of which it was the last.
func (s *scanner) complete() {
	s.kind = 0
	for s.depth > 0 {
		if s.open[s.depth-1]--; s.open[s.depth-1] > 0 {
			return
		}
		s.depth--
	}
	s.replies++
}

// begun is how many replies have come, including one that has only come in part.
func (s *scanner) begun() int64 {
	if s.kind != 0 || s.depth > 0 {
		return s.replies + 1
	}
	return s.replies
}

const otherForm = "a message of another form"

// nth is the index of the present value in the array of a message, from 0; -1 outside of a message.
func (s *scanner) nth() int64 {
	if s.depth != 1 {
		return -1
	}
	return s.total - s.open[0]
}

// fits reports whether the value that begins here may stand at this place of a message.
func (s *scanner) fits() bool {
	nth := s.nth()
	switch {
	case s.depth == 0: // an error, the answer to a PING, or a message
		return strings.IndexByte("+-$*>", s.kind) >= 0
	case nth == 0:
		return s.kind == '$'
	}
	form := s.form()
	if s.total != int64(1+len(form)) {
		return false
	}
	return form[nth-1] == s.kind || form[nth-1] == '?' && (s.kind == '$' || s.kind == '_')
}

// fitsLength reports whether the announced value may have this length, or be absent, at this place of a message.
func (s *scanner) fitsLength() bool {
	nth := s.nth()
	switch {
	case s.depth == 0:
		return s.kind == '$' || s.length > 1 && !s.negative
	case s.negative:
		return nth > 0 && s.form()[nth-1] == '?'
	}
	return true
}

// form is the form of a message after its first word.
func (s *scanner) form() string { return forms[string(s.word[:max(s.written-len("\r\n"), 0)])] }
