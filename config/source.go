package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// mask stands wherever text is not shown.
const mask = "***"

// Of a longer line only a window around the caret is shown.
const (
	windowBefore = 60
	windowWidth  = 160
)

// source is the text of the table as it may be shown. Only what a token reveals is shown as it stands, besides the
// punctuation of YAML: what nobody vouched for is masked, so that a mistake in here hides too much and never too little.
type source struct {
	name   string
	keys   []key // what is known at the top level
	lines  [][]rune
	tokens map[int][]token // by line, sorted; see veil for where they come from
	broken bool            // the YAML could not be read: there are no tokens, lines are judged alone
}

// token is a stretch of a line that belongs to one key or value.
type token struct {
	from, to int    // 0-based, to exclusive
	text     string // shown in its place, unless
	open     bool   // it is shown as it stands
}

func newSource(name, text string, keys []key) *source {
	s := &source{name: name, keys: keys, tokens: map[int][]token{}}
	for line := range strings.Lines(text) {
		s.lines = append(s.lines, []rune(strings.TrimRight(line, "\r\n")))
	}
	return s
}

// line gives the characters of a line, counted from 1; none for a line that does not exist.
func (s *source) line(n int) []rune {
	if n < 1 || n > len(s.lines) {
		return nil
	}
	return s.lines[n-1]
}

// clamp moves a position into the file: the YAML library reports the end of a file as a line behind the last.
func (s *source) clamp(line, column int) (int, int) {
	if len(s.lines) == 0 {
		return 1, 1
	}
	if line > len(s.lines) {
		line = len(s.lines)
		column = len(s.lines[line-1]) + 1
	}
	line = max(line, 1)
	return line, max(1, min(column, len(s.lines[line-1])+1))
}

// snippet renders the line around a column and says where in the rendered text the caret goes, and how wide it is.
func (s *source) snippet(line, column, width int) (text string, caret, carets int) {
	r := rendering{runes: s.line(line), caretAt: column - 1, caretEnd: column - 1 + max(width, 1)}
	r.end = len(r.runes)
	if r.caretAt > windowBefore+windowWidth/4 && r.end > windowWidth {
		r.start = r.caretAt - windowBefore
		r.put("…", r.start)
	}
	if r.end-r.start > windowWidth {
		r.end = r.start + windowWidth
	}
	tokens := s.tokens[line]
	if s.broken {
		tokens = s.guess(line)
	}
	at := r.start
	first, _ := slices.BinarySearchFunc(tokens, at, func(t token, at int) int { return t.to - at })
	for i := first; i < len(tokens) && tokens[i].from < r.end; i++ {
		t := tokens[i]
		if i+1 < len(tokens) {
			t.to = min(t.to, tokens[i+1].from)
		}
		if t.to <= at {
			continue
		}
		r.gap(at, t.from)
		r.token(t)
		at = t.to
	}
	r.gap(at, r.end)
	if r.end < len(r.runes) {
		r.put("…", r.end)
	}
	return r.result()
}

// rendering is a line being written, with the place of the caret found on the way.
type rendering struct {
	runes             []rune
	start, end        int // what of the runes is shown
	caretAt, caretEnd int // in runes
	out               strings.Builder
	width             int // characters written so far
	caret, caretStop  int // in characters written
}

// put writes text that stands for what begins at the column at.
func (r *rendering) put(text string, at int) {
	if at <= r.caretAt {
		r.caret = r.width
	}
	r.out.WriteString(text)
	r.width += utf8.RuneCountInString(text)
	if at < r.caretEnd {
		r.caretStop = r.width
	}
}

func (r *rendering) rune(at int) {
	if r.runes[at] == '\t' {
		r.put("→", at)
		return
	}
	r.put(printableRune(r.runes[at]), at)
}

func (r *rendering) token(t token) {
	from, to := max(t.from, r.start), min(t.to, r.end)
	switch {
	case t.open:
	case t.from < r.start: // what of it would be left cannot be told
		r.put(mask, from)
		return
	default:
		text := []rune(t.text)
		if len(text) > windowWidth-windowBefore {
			text = append(text[:windowWidth-windowBefore], '…')
		}
		r.put(printable(string(text)), from)
		return
	}
	for i := from; i < to; i++ {
		r.rune(i)
	}
}

// gap writes what stands between tokens: punctuation as it is, anything else masked, comments not at all.
func (r *rendering) gap(from, to int) {
	from, to = max(from, r.start), min(to, r.end)
	first, last := -1, -1
	for i := from; i < to; i++ {
		if r.runes[i] == '#' && (i == 0 || r.runes[i-1] == ' ' || r.runes[i-1] == '\t') {
			to = i
			break
		}
		if !strings.ContainsRune(" \t-:,[]{}?|>+", r.runes[i]) {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	for i := from; i < to; i++ {
		switch {
		case first < 0 || i < first || i > last:
			r.rune(i)
		case i == first:
			r.put(mask, i)
		}
	}
}

func (r *rendering) result() (text string, caret, carets int) {
	text = strings.TrimRight(r.out.String(), " →")
	if r.caretAt >= r.end {
		r.caret, r.caretStop = r.width, 0
	}
	shown := utf8.RuneCountInString(text)
	caret = min(r.caret, shown)
	return text, caret, max(1, min(r.caretStop, shown)-caret)
}

// problem is a problem with its source line.
func (s *source) problem(line, column, width int, hint, message string) Problem {
	p := Problem{File: s.name, Line: line, Column: column, Message: printable(message), Hint: printable(hint)}
	if len(s.lines) > 0 && line > 0 {
		p.Source, p.caret, p.Width = s.snippet(line, column, width)
	}
	return p
}
