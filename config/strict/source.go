package strict

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A snippet of a longer line shows only a window around the caret.
const (
	windowBefore = 60
	WindowWidth  = 160
)

// source is a text with the parts that may be shown. It shows a line up to the first character that is neither in an
// open stretch nor YAML's punctuation; mask stands for the rest. So a mistake here hides too much, never too little.
type source struct {
	name      string
	keys      []Key // those at the top level
	lines     [][]rune
	stretches map[int][]stretch // by line, sorted; the redactor sets them
	parts     []part            // the files, if it was joined of several
	broken    bool              // the YAML could not be read: there are no stretches, each line is judged alone
}

// stretch is the part of a line that belongs to one key or value.
type stretch struct {
	from, to int  // 0-based, to exclusive
	open     bool // it may be shown
}

func newSource(name, text string, keys []Key) *source {
	s := &source{name: name, keys: keys, stretches: map[int][]stretch{}}
	for line := range strings.Lines(text) {
		s.lines = append(s.lines, []rune(strings.TrimRight(line, "\r\n")))
	}
	return s
}

// line returns the characters of a line, counted from 1; none for a line that does not exist.
func (s *source) line(n int) []rune {
	if n < 1 || n > len(s.lines) {
		return nil
	}
	return s.lines[n-1]
}

// clamp moves a position into the file: the YAML library reports the end of a file as a line after the last.
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

// visible returns how many characters of a line may be shown, and whether a secret may follow. It leaves out comments.
func (s *source) visible(n int) (end int, secret bool) {
	line, stretches := s.line(n), s.stretches[n]
	if s.broken {
		stretches = s.guess(n)
	}
	at := 0
	for i := 0; i <= len(stretches); i++ {
		next := stretch{from: len(line), to: len(line), open: true}
		if i < len(stretches) {
			next = stretches[i]
		}
		for ; at < next.from; at++ {
			if line[at] == '#' && (at == 0 || line[at-1] == ' ' || line[at-1] == '\t') {
				return at, false
			}
			if !strings.ContainsRune(" \t-:,[]{}?|>+", line[at]) {
				return at, true
			}
		}
		if i+1 < len(stretches) {
			next.to = min(next.to, stretches[i+1].from)
		}
		if next.to > at && !next.open {
			return at, true
		}
		at = max(at, next.to)
	}
	return at, false
}

// snippet renders the line around a column, and returns the place and width of the caret in the rendered text. A caret
// after the mask stands under an ellipsis.
func (s *source) snippet(line, column, width int) (text string, caret, carets int) {
	from, to := column-1, column-1+max(width, 1)
	end, secret := s.visible(line)
	runes := slices.Clone(s.line(line)[:end])
	if secret {
		runes = append(runes, []rune(mask)...)
		switch {
		case from > end:
			from, to = len(runes)+1, len(runes)+2
			runes = append(runes, []rune(" …")...)
		case from == end:
			to = len(runes)
		}
	}
	return window([]rune(strings.TrimRight(string(runes), " \t")), from, to)
}

// window renders the part of a line around the caret, which stands under the characters from "from" to "to".
func window(line []rune, from, to int) (text string, caret, carets int) {
	var out strings.Builder
	width, last := 0, 0 // characters written, and those up to the caret's end
	put := func(text string, at int) {
		if at <= from {
			caret = width
		}
		out.WriteString(text)
		width += utf8.RuneCountInString(text)
		if at < to {
			last = width
		}
	}
	start, end := 0, len(line)
	if from > windowBefore+WindowWidth/4 && end > WindowWidth {
		start = from - windowBefore
		put("…", start)
	}
	end = min(end, start+WindowWidth)
	for at := start; at < end; at++ {
		if line[at] == '\t' {
			put("→", at)
		} else {
			put(printableRune(line[at]), at)
		}
	}
	if from >= end {
		caret, last = width, 0
	}
	if end < len(line) {
		put("…", end)
	}
	return out.String(), caret, max(1, last-caret)
}

// problem makes a problem with its source line.
func (s *source) problem(line, column, width int, hint, message string) Problem {
	name, n := s.partOf(line)
	p := Problem{File: name, Line: n, Column: column, Message: Printable(message), Hint: Printable(hint)}
	if len(s.lines) > 0 && line > 0 {
		p.Source, p.Caret, p.Width = s.snippet(line, column, width)
	}
	return p
}
