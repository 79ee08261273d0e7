package lock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// TickOf is a tick of a job's schedule.
type TickOf struct {
	Job  string
	Tick time.Time
}

// readAtOnce is how many ledgers one script reads: about a third of a millisecond of Redis' time.
const readAtOnce = 250

// Claimed tells what claims of many ticks would hear if the ticks are claimed already. It costs Redis a fraction of
// such claims. The Code of an answer is Fired or Waits; it is "" if the tick is not claimed. A replica that leaves the
// first claim of its ticks to others asks this before it claims them itself.
//
// Where claims wait for replicas of Redis, no tick counts as claimed: a failover could forget the claim. If Redis gives
// no answer, Claimed returns the error.
func (s *Store) Claimed(ctx context.Context, ticks []TickOf) ([]Answer, error) {
	answers := make([]Answer, 0, len(ticks))
	if s.redis.WaitReplicas() > 0 {
		return answers[:len(ticks)], nil
	}
	for some := range slices.Chunk(ticks, readAtOnce) {
		keys, args := make([]string, len(some)), make([]any, len(some))
		for i, t := range some {
			keys[i], args[i] = s.redis.Keys.Ledger(t.Job), rds.Millis(t.Tick)
		}
		for n := len(args); n > 1 && args[n-1] == args[n-2]; n-- { // mostly, all of a moment
			args = args[:n-1]
		}
		parts, err := s.redis.Call(ctx, claimedScript, 0, keys, args...)
		if err == nil && len(parts) != len(some)+1 {
			err = rds.Unexpected(parts)
		}
		if err != nil {
			return nil, fmt.Errorf("reading which of %d ticks are claimed: %w", len(ticks), err)
		}
		now, _ := rds.Integer(parts[0]) // Call has read it
		for i, t := range some {
			a, err := parseClaimed(parts[i+1], t.Tick)
			if err != nil {
				return nil, fmt.Errorf("reading whether a tick of %q is claimed: %w", t.Job, err)
			}
			a.Now = rds.FromMillis(now)
			answers = append(answers, a)
		}
	}
	return answers, nil
}

func parseClaimed(reply any, tick time.Time) (Answer, error) {
	if text, short := reply.(string); short {
		born, holder, _ := strings.Cut(text, " ")
		ms, err := rds.Integer(born)
		return Answer{Code: Fired, Prev: tick, Holder: holder, Born: rds.FromMillis(ms)}, err
	}
	fields, claimed := reply.([]any)
	if !claimed {
		return Answer{}, nil
	}
	if len(fields) != 8 {
		return Answer{}, rds.Unexpected(reply)
	}
	var n [5]int64
	for i := range n {
		if fields[i] == nil { // most have no overlap and no pause behind them
			continue
		}
		var err error
		if n[i], err = rds.Integer(fields[i]); err != nil {
			return Answer{}, err
		}
	}
	a := Answer{Code: Fired, Prev: rds.FromMillis(n[0]), Overlap: rds.FromMillis(n[1]), PausedTo: rds.FromMillis(n[2]),
		Born: rds.FromMillis(n[4])}
	a.Holder, _ = fields[5].(string)
	a.Gaps, _ = fields[6].(string)
	behind, _ := fields[7].(string)
	if rds.Millis(tick) == n[3] || strings.Contains(behind, rds.Itoa(rds.Millis(tick))+"@") {
		a.Code = Waits
	}
	return a, nil
}
