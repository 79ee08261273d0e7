// Package text makes text fit for people to read.
package text

import (
	"fmt"
	"strings"
	"unicode"
)

// OneLine is text in one line of printable characters, single blanks between its words: what is safe to keep in Redis
// and to show on a terminal.
func OneLine(text string) string {
	blank := func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}
	return strings.Join(strings.Fields(strings.Map(blank, text)), " ")
}

// Plural is a number of things: "1 job", "2 jobs".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}
