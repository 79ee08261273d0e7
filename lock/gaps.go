package lock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/rds"
)

// Interval is a time in which a job's ticks were missed: the ticks after From and before To.
type Interval struct{ From, To time.Time }

// ParseGaps reads the gaps of an Answer: `<from ms>-<to ms> `, one after the other.
func ParseGaps(text string) ([]Interval, error) {
	var gaps []Interval
	for word := range strings.FieldsSeq(text) {
		var from, to int64
		if _, err := fmt.Sscanf(word, "%d-%d", &from, &to); err != nil {
			return nil, fmt.Errorf("reading the gaps %.100q: %w", text, err)
		}
		gaps = append(gaps, Interval{rds.FromMillis(from), rds.FromMillis(to)})
	}
	return gaps, nil
}

// Book counts missed ticks once over all replicas. gaps is the text from an Answer, and ticks the number of ticks of
// the job's schedule in them. It returns true if this call counted them, and false if another replica did. If a reply
// is lost, Book asks again until ctx ends. The error wraps ErrNoAnswer; the ticks may then be counted or not.
func (s *Store) Book(ctx context.Context, job, gaps string, ticks int) (bool, error) {
	id := uuid.NewString()
	for try := 0; ; try++ {
		parts, err := s.redis.Call(ctx, bookScript, 1, []string{s.redis.Keys.Ledger(job), s.redis.Keys.Memo(id)}, gaps, ticks)
		if err == nil {
			n, err := rds.Integer(parts[len(parts)-1])
			return n == 1, err
		}
		if !rds.Sleep(ctx, rds.Backoff(try)) {
			return false, fmt.Errorf("counting the missed ticks of %q: %w: %w", job, ErrNoAnswer, err)
		}
	}
}
