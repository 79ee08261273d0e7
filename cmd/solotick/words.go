package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/solotick/solotick/internal/text"
)

var plural = text.Plural

// formatTime writes a time as RFC 3339 in UTC, with a fraction only if there is one. Every verb reads it as that
// instant.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// formatClock writes a time in UTC, without the date if it is that of now.
func formatClock(now, t time.Time) string {
	if now.UTC().Format(time.DateOnly) == t.UTC().Format(time.DateOnly) {
		return t.UTC().Format("15:04:05.999Z07:00")
	}
	return formatTime(t)
}

// formatDuration writes a duration in its one or two largest units.
func formatDuration(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// untilDue writes how long after now t is. It rounds up to the second, so that what was asked for a moment ago is
// confirmed: 48h, not 47h59m.
func untilDue(now, t time.Time) string {
	return formatDuration((t.Sub(now) + time.Second - 1).Truncate(time.Second))
}

// ago writes how long before now t was; "-" if t is zero.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return formatDuration(now.Sub(t)) + " ago"
}

// took writes how long a run lasted; "-" if it never began, or its length is not known.
func took(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// offset writes a clock's offset.
func offset(d time.Duration) string {
	if d.Abs() < time.Second {
		return fmt.Sprintf("%+.1fms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%+.1fs", d.Seconds())
}

// shorten cuts a name to n characters and keeps its beginning and its end, which tell most.
func shorten(name string, n int) string {
	r := []rune(name)
	if len(r) <= n {
		return name
	}
	head := (n - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
}

// cut keeps the first n characters of a line; 0 is no limit.
func cut(line string, n int) string {
	if n == 0 {
		return line
	}
	return text.Cut(line, n)
}

// wrap breaks text between words into lines of at most width characters, and longer words within; 0 is no limit.
func wrap(said string, width int) []string {
	line, lines := "", []string(nil)
	for _, word := range strings.Fields(said) {
		if line != "" && width > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
		for r := []rune(line); width > 0 && len(r) > width; r = []rune(line) {
			lines, line = append(lines, string(r[:width])), string(r[width:])
		}
	}
	return append(lines, line)
}

// hang breaks text into lines beside a first one: the others are indented by its width. width is the terminal's.
func hang(first, said string, width int) []string {
	indent := strings.Repeat(" ", utf8.RuneCountInString(first))
	lines := wrap(said, max(0, width-len(indent)))
	for i := range lines {
		lines[i] = first + lines[i]
		first = indent
	}
	return lines
}

// colour is the escape sequence that begins a colour on a terminal; "" = no colour.
type colour string

const (
	red    colour = "\x1b[31m"
	yellow colour = "\x1b[33m"
	green  colour = "\x1b[32m"
)

// paint colours a line that has its final width.
func (c colour) paint(line string) string {
	if c == "" {
		return line
	}
	return string(c) + line + "\x1b[0m"
}

// grid is a table in columns two blanks apart, with notes beneath its rows.
type grid struct {
	width int   // of the terminal; 0 = no limit
	names []int // columns whose cells may be shortened in the middle
	rows  []row
}

type row struct {
	cells, notes []string
	colour       colour
}

// grid returns a table as wide as the terminal.
func (a *app) grid(names []int, columns ...string) *grid {
	width, _ := terminal(a.out)
	g := &grid{width: width, names: names}
	g.add(columns...)
	return g
}

// add adds a row. It removes control characters: text from Redis must not move the cursor of a terminal.
func (g *grid) add(cells ...string) {
	for i := range cells {
		cells[i] = text.OneLine(cells[i])
	}
	g.rows = append(g.rows, row{cells: cells})
}

// last is the row that was added last.
func (g *grid) last() *row { return &g.rows[len(g.rows)-1] }

// note adds notes to the last row.
func (g *grid) note(notes ...string) {
	for _, said := range notes {
		g.last().notes = append(g.last().notes, "  "+text.OneLine(said))
	}
}

// lines returns the aligned rows, at most as wide as the terminal.
func (g *grid) lines() []string {
	widths := g.widths()
	var lines []string
	for _, row := range g.rows {
		var b strings.Builder
		for c, cell := range row.cells {
			cell = shorten(cell, widths[c])
			b.WriteString(cell + strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell)+2))
		}
		lines = append(lines, row.colour.paint(cut(strings.TrimRight(b.String(), " "), g.width)))
		for _, note := range row.notes {
			lines = append(lines, cut(note, g.width))
		}
	}
	return lines
}

// shortestName is the fewest characters to which a name is cut.
const shortestName = 8

func (g *grid) widths() []int {
	widths := make([]int, len(g.rows[0].cells))
	total := 2 * (len(widths) - 1)
	for c := range widths {
		for _, row := range g.rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(row.cells[c]))
		}
		total += widths[c]
	}
	for ; g.width > 0 && total > g.width; total-- {
		widest := g.names[0]
		for _, c := range g.names {
			if widths[c] > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= shortestName {
			break
		}
		widths[widest]--
	}
	return widths
}
