//go:build linux

package main

import (
	"regexp"
	"strings"
	"time"
)

// line is one line of the terminal.
type line struct {
	at   time.Duration // when it was there, from the first picture on
	runs []run
}

// run is a piece of a line in one style.
type run struct {
	style string // classes of the picture
	text  string
}

func (l line) text() string {
	var all strings.Builder
	for _, r := range l.runs {
		all.WriteString(r.text)
	}
	return all.String()
}

func prompt(at time.Duration, command string) line {
	return line{at, []run{{"g", "$"}, {"", " " + command}}}
}

// screen turns the output of a program into lines. The program writes one line after another, as the demo does: it does
// not move the cursor.
type screen struct {
	start time.Time // of the picture
	lines []line
	rest  string // of a line whose end has not come yet
}

// together is the time within which lines come at once. A reader sees no difference, and the picture has fewer steps.
const together = 50 * time.Millisecond

func (s *screen) write(now time.Time, output string) {
	s.rest += output
	for {
		text, rest, whole := strings.Cut(s.rest, "\n")
		if !whole {
			return
		}
		s.rest = rest
		s.lines = append(s.lines, line{now.Sub(s.start).Round(together), styled(strings.TrimSuffix(text, "\r"))})
	}
}

var escape = regexp.MustCompile("\x1b\\[([0-9]*)m")

// classes are the styles of the demo, by the code of their escape.
var classes = map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "u", "35": "m", "36": "c"}

// styled splits a line at its escapes.
func styled(text string) []run {
	var runs []run
	style, from := "", 0
	add := func(text string) {
		if text != "" {
			runs = append(runs, run{style, text})
		}
	}
	for _, at := range escape.FindAllStringSubmatchIndex(text, -1) {
		add(text[from:at[0]])
		from = at[1]
		if class := classes[text[at[2]:at[3]]]; class != "" {
			style = strings.TrimSpace(style + " " + class)
		} else {
			style = ""
		}
	}
	add(text[from:])
	return runs
}
