package lock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"
)

// Interval is a time in which no replica fired the job's ticks: the ticks after From and before To.
type Interval struct {
	From, To time.Time
	Fate     string // of these ticks
}

// Missed is the fate of a tick that no replica fired in time. The scripts know these others of ticks without a run.
const (
	Missed     = "missed"
	PausedTick = "paused"
	Overlapped = "overlapped"
	Displaced  = "replaced" // under Replace: it waited for the end of a run, and a newer tick took its place
)

// Tick is the tick of an interval that was written down for a single one: an overlap, or what a run that was not taken
// over ended with. All others are for as many ticks as the schedule has in them, which may be none.
func (i Interval) Tick() (time.Time, bool) {
	switch i.Fate {
	case Missed, PausedTick, Displaced:
		return time.Time{}, false
	}
	return i.From.Add(time.Millisecond), i.To.Sub(i.From) == 2*time.Millisecond
}

// ParseGaps reads the gaps of an Answer: `<from ms>-<to ms>` for missed ticks, `<from ms>-<to ms>:<fate>` for others,
// each followed by a blank.
func ParseGaps(text string) ([]Interval, error) {
	var gaps []Interval
	for word := range strings.FieldsSeq(text) {
		bounds, fate, given := strings.Cut(word, ":")
		if !given {
			fate = Missed
		}
		var from, to int64
		if _, err := fmt.Sscanf(bounds, "%d-%d", &from, &to); err != nil || fate == "" {
			return nil, fmt.Errorf("reading the gaps %.100q: %q is no interval", text, word)
		}
		gaps = append(gaps, Interval{rds.FromMillis(from), rds.FromMillis(to), fate})
	}
	return gaps, nil
}

// Booking is what becomes of some ticks of a job's schedule that no replica fired.
type Booking struct {
	Fate  string
	Ticks int    // how many
	Entry string // that Redis keeps of them; opaque here
}

// Book counts ticks that no replica fired, once over all replicas. gaps is the text from an Answer, and all has the
// ticks of the job's schedule in it. It returns true if this call counted them, and false if another replica did. If a
// reply is lost, Book asks again until ctx ends. The error wraps ErrNoAnswer; the ticks may then be counted or not.
func (s *Store) Book(ctx context.Context, job, gaps string, all []Booking) (bool, error) {
	id := uuid.NewString()
	missed := 0
	var more []any
	for _, b := range all {
		if b.Fate == Missed || b.Fate == Displaced {
			missed += b.Ticks
		}
		more = append(more, b.Fate, b.Ticks, b.Entry)
	}
	keys := []string{s.redis.Keys.Ledger(job), s.redis.Keys.History(job), s.redis.Keys.Memo(id)}
	args := append([]any{gaps, missed, s.redis.History(job)}, more...)
	for try := 0; ; try++ {
		parts, err := s.redis.Call(ctx, bookScript, 1, keys, args...)
		if err == nil {
			n, err := rds.Integer(parts[len(parts)-1])
			return n == 1, err
		}
		if !beat.Sleep(ctx, rds.Backoff(try)) {
			return false, fmt.Errorf("counting ticks of %q that were not fired: %w: %w", job, ErrNoAnswer, err)
		}
	}
}
