package rds

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Millis is an instant as scripts see it: milliseconds since the Unix epoch; the zero Time is 0.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMillis is the instant for which Millis returned the number.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Itoa writes a number as scripts do.
func Itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Number reads a field of a hash; 0 when there is none.
func Number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// OneWord refuses a text that is not one word. Redis keeps records separated by blanks, and a replica could not take
// over a run whose record it cannot read.
func OneWord(what, text string) error {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' }) {
		return fmt.Errorf("%s %q is empty or has a blank", what, text)
	}
	return nil
}

// Integer reads a number in an answer.
func Integer(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, Unexpected(v)
}

// Unexpected is the error of an answer of another form. It repeats only the beginning of the answer: a hostile one has
// megabytes.
func Unexpected(reply any) error {
	switch r := reply.(type) {
	case string:
		return fmt.Errorf("unexpected answer %.100q", r)
	case []any:
		if len(r) > 0 {
			return fmt.Errorf("%w, the first of %d", Unexpected(r[0]), len(r))
		}
	case int64:
		return fmt.Errorf("unexpected answer %d", r)
	}
	return errors.New("unexpected answer of another kind")
}
