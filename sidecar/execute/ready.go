package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Ready asks the app whether it is ready. It is safe for concurrent use if Ask is.
type Ready struct {
	Timeout time.Duration               // of a question; 0 = 1 s
	Ask     func(context.Context) error // asks once; nil = it is ready
}

// Probe asks once: nil if the app is ready. Otherwise the error is that of Ask, in one line of at most 256 bytes. It
// says so if the answer took longer than the timeout, or ctx ended first.
func (r *Ready) Probe(ctx context.Context) error {
	timeout := cmp.Or(r.Timeout, time.Second)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := r.Ask(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil:
		return fmt.Errorf("no answer within %s", timeout)
	}
	return errors.New(OneLine(err.Error()))
}

// oneLineSize bounds the words of a probe or ping: they go into log lines and heartbeats.
const oneLineSize = 256

// OneLine makes a text safe for a log line and a heartbeat: one line of at most 256 bytes.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, Printable(s))
	if len(s) <= oneLineSize {
		return s
	}
	const cut = "…"
	return strings.ToValidUTF8(s[:oneLineSize-len(cut)], "") + cut
}
