package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

var (
	// ErrUnknownJob is wrapped by the error of a request for a job that no replica has registered, or whose ledger was
	// lost with Redis' data and is not registered anew yet.
	ErrUnknownJob = errors.New("the job is not known to Redis")
	// ErrPast is wrapped by the error of a pause whose end Redis' clock has reached.
	ErrPast = errors.New("its end has passed")
)

const (
	// MaxReason bounds the reason of a pause, in characters.
	MaxReason = 200
	// MaxBackfill bounds the ticks of one Backfill: its script holds Redis up for all others.
	MaxBackfill = 1000
)

// Pause holds a job back: of its table no tick before until is claimed (with the zero Time none at all until Resume), and
// what is handed on, taken over or caught up waits. What is asked for by hand passes. Ticks of a pause are settled, not
// missed. The reason becomes one line of printable characters and may have MaxReason of them. A pause replaces the one
// before it.
//
// A lost reply is asked for again until ctx ends. The error wraps ErrUnknownJob, ErrPast, or ErrNoAnswer, after which the
// job may be paused or not.
func (s *Store) Pause(ctx context.Context, job, reason string, until time.Time) error {
	reason = OneLine(reason)
	if n := utf8.RuneCountInString(reason); n > MaxReason {
		return fmt.Errorf("pausing job %q: the reason has %d characters, and at most %d are kept", job, n, MaxReason)
	}
	_, err := s.operate(ctx, pauseScript, "pausing", job, uuid.NewString(), []string{s.keys.ledger(job)}, s.keys.events,
		"pause", millis(until), reason)
	return err
}

// Resume ends a job's pause; false when there was none. Ticks up to now, or to the pause's own end when that has passed,
// count as settled. Errors are those of Pause.
func (s *Store) Resume(ctx context.Context, job string) (bool, error) {
	n, err := s.operate(ctx, pauseScript, "resuming", job, uuid.NewString(), []string{s.keys.ledger(job)}, s.keys.events, "resume")
	return n == 1, err
}

// Trigger has some replica run a job now, by hand: also while it is paused, and without taking a tick away from its table.
// The tick is Redis' time, in milliseconds that no schedule and no other trigger has. id is a UUID and the Nonce of what
// was added to the due set: asked again with one of the job's newest eight, nothing is added and the same is returned.
//
// A lost reply is asked for again until ctx ends. The error wraps ErrUnknownJob, or ErrNoAnswer, after which the job may
// be triggered or not.
func (s *Store) Trigger(ctx context.Context, job, id string) (Due, error) {
	d := Due{Job: job, Kind: "manual", Attempt: 1, Nonce: id}
	tick, err := s.operate(ctx, askScript, "triggering", job, id, []string{s.keys.ledger(job), s.keys.due}, d.suffix(), s.keys.events)
	if err != nil {
		return Due{}, err
	}
	d.Tick = fromMillis(tick)
	return d, nil
}

// Backfill has the replicas run a job for each of the ticks (in whole milliseconds, MaxBackfill at most), whether they
// were fired before or not, and returns how many were added. id is as with Trigger, and so are the errors.
func (s *Store) Backfill(ctx context.Context, job string, ticks []time.Time, id string) (int, error) {
	if n := len(ticks); n > MaxBackfill {
		return 0, fmt.Errorf("backfilling job %q: %d ticks are more than %d", job, n, MaxBackfill)
	}
	if len(ticks) == 0 { // the script would make one up
		return 0, nil
	}
	d := Due{Job: job, Kind: "backfill", Attempt: 1, Nonce: id}
	args := []any{d.suffix(), s.keys.events}
	for _, t := range ticks {
		args = append(args, millis(t))
	}
	n, err := s.operate(ctx, askScript, "backfilling", job, id, []string{s.keys.ledger(job), s.keys.due}, args...)
	return int(n), err
}

// operate sends one request of an operator until it is answered or ctx ends. Its id makes that harmless: a copy of what
// Redis has done before has no effect, however late it comes.
func (s *Store) operate(ctx context.Context, sc *script, doing, job, id string, keys []string, args ...any) (int64, error) {
	err := oneWord("job", job)
	if _, ok := TimerID(job); ok {
		err = errors.New("it is a timer")
	}
	if _, invalid := uuid.Parse(id); err == nil && (invalid != nil || len(id) != len(uuid.Nil.String())) {
		err = fmt.Errorf("id %q is no UUID", id)
	}
	if err != nil {
		return 0, fmt.Errorf("%s job %q: %w", doing, job, err)
	}
	args = append([]any{id}, args...)
	for try := 0; ; try++ {
		parts, err := s.call(ctx, sc, 1, keys, args...)
		if err == nil {
			n, err := operated(parts)
			if err != nil {
				err = fmt.Errorf("%s job %q: %w", doing, job, err)
			}
			return n, err
		}
		if !pause(ctx, backoff(try)) {
			return 0, fmt.Errorf("%s job %q: %w: %w", doing, job, ErrNoAnswer, err)
		}
	}
}

// operated reads the answer {code, now, number}.
func operated(parts []any) (int64, error) {
	switch parts[0] {
	case string(unknown):
		return 0, ErrUnknownJob
	case "PAST":
		return 0, ErrPast
	}
	return integer(parts[len(parts)-1])
}

// OneLine is text in one line of printable characters, single blanks between its words: what is safe to keep in Redis and
// to show on a terminal.
func OneLine(text string) string {
	blank := func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}
	return strings.Join(strings.Fields(strings.Map(blank, text)), " ")
}
