package lock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Due is one tick that is to be fired besides the table: handed over, set free by a takeover, asked for. Its member in
// the due set is new at every enqueue (Nonce), so that a late copy of a claim never pops what was put back after it.
type Due struct {
	Tick      time.Time
	Job       string
	Kind      string
	Attempt   int
	Handovers int
	Nonce     string        // UUID of the run that enqueued it
	Avoid     string        // replica that could not start it, and stands back; may be empty
	Age       time.Duration // for how long it has been due, as a Look saw it; no part of the member
}

// Member is the due set's text: blank-separated, the tick in milliseconds first.
func (d Due) Member() string { return itoa(millis(d.Tick)) + d.suffix() }

// suffix is what follows the tick.
func (d Due) suffix() string {
	s := fmt.Sprintf(" %s %s %d %d %s", d.Job, d.Kind, d.Attempt, d.Handovers, d.Nonce)
	if d.Avoid != "" {
		s += " " + d.Avoid
	}
	return s
}

// ParseDue reads a member.
func ParseDue(member string) (Due, error) {
	f := strings.SplitN(member, " ", 7)
	if len(f) < 6 {
		return Due{}, fmt.Errorf("reading due member %q: it has %d fields", member, len(f))
	}
	tick, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return Due{}, fmt.Errorf("reading due member %q: tick: %w", member, err)
	}
	d := Due{Tick: fromMillis(tick), Job: f[1], Kind: f[2], Nonce: f[5]}
	if d.Attempt, err = strconv.Atoi(f[3]); err != nil {
		return Due{}, fmt.Errorf("reading due member %q: attempt: %w", member, err)
	}
	if d.Handovers, err = strconv.Atoi(f[4]); err != nil {
		return Due{}, fmt.Errorf("reading due member %q: handovers: %w", member, err)
	}
	if len(f) == 7 {
		d.Avoid = f[6]
	}
	return d, nil
}

// Drop takes a member out of the due set without running it; false when another replica was faster.
func (s *Store) Drop(ctx context.Context, member string) (bool, error) {
	reply, err := s.burst.do(ctx, "zrem", s.keys.due, member)
	if err != nil {
		return false, fmt.Errorf("dropping due member %q: %w", member, err)
	}
	n, err := integer(reply)
	if d, bad := ParseDue(member); n == 1 && bad == nil {
		if id, ok := TimerID(d.Job); ok {
			_ = s.ForgetTimer(ctx, id)
		}
	}
	return n == 1, err
}
