package strict

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Problem is an error or a warning about a text, with its place. Its strings hold no secrets and no control characters,
// so they can be written to a terminal as they are.
type Problem struct {
	File         string // the name that Read got
	Line, Column int    // 1-based, in characters; 0 = of the file as a whole
	Message      string // `job "billing": schedule "61 * * * *": …`
	Source       string // the source line, secrets masked, cut when very long; "" when there is nothing to show
	Width        int    // characters under the caret(s)
	Hint         string // what to do about it; may be ""

	Caret int // where in Source the caret stands, 0-based: masking and cutting move it away from Column
}

// String formats the problem like a compiler's message, without a newline at its end:
//
//	table.yaml:14:15: job "billing": schedule "61 * * * *": …
//	    14 |     schedule: "61 * * * *"
//	       |               ^~~~~~~~~~~~
//	  hint: …
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(Printable(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": " + p.Message)
	if p.Source != "" {
		fmt.Fprintf(&b, "\n%6d | %s\n       | %s^%s", p.Line, p.Source,
			strings.Repeat(" ", p.Caret), strings.Repeat("~", max(p.Width-1, 0)))
	}
	if p.Hint != "" {
		b.WriteString("\n  hint: " + p.Hint)
	}
	return b.String()
}

// Problems are all problems of one text, sorted by position, none twice.
type Problems []Problem

// Error returns the Strings of all problems, one below the other.
func (ps Problems) Error() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.String()
	}
	return strings.Join(texts, "\n")
}

// Log logs each problem by itself.
func (ps Problems) Log(log *slog.Logger) {
	for _, p := range ps {
		log.Error("problem in the table", "file", p.File, "line", p.Line, "column", p.Column, "err", p.Message)
	}
}

// Tidy sorts by file and position and drops duplicates: the decoder finds a problem behind an alias once for each use
// of the alias.
func Tidy(ps []Problem) []Problem {
	order := func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	}
	sort.SliceStable(ps, func(i, j int) bool { return order(ps[i], ps[j]) < 0 })
	return slices.CompactFunc(ps, func(a, b Problem) bool { return order(a, b) == 0 })
}

// Printable returns s with an escape for every character that a terminal would act on or not show.
func Printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(printableRune(r))
	}
	return b.String()
}

func printableRune(r rune) string {
	if strconv.IsPrint(r) {
		return string(r)
	}
	quoted := strconv.QuoteRune(r)
	return quoted[1 : len(quoted)-1]
}
