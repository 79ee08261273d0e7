// Package text makes text fit for people to read.
package text

import (
	"encoding/json"
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

// Between puts words between two others; "" if there are none.
func Between(before, words, after string) string {
	if words == "" {
		return ""
	}
	return before + words + after
}

// Cut keeps at most n characters of a text. If there were more, an ellipsis is the last of them.
func Cut(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// Plural is a number of things: "1 job", "2 jobs".
func Plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// JSON writes a value in one line of JSON. Unlike json.Marshal, it leaves the characters of HTML as they are. The value
// must be one that JSON can write.
func JSON(value any) string {
	var b strings.Builder
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	_ = w.Encode(value) // our values can all be written
	return strings.TrimSuffix(b.String(), "\n")
}
