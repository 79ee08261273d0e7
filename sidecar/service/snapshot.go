package service

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// Snapshot is what one Look saw.
type Snapshot struct {
	Runs      []lock.Running
	Due       []lock.Due // due members: timers last, the oldest first otherwise
	Next      time.Time  // when the first job's member that is not due comes due, by Redis' time; zero = there is none
	NextTimer time.Time  // when the first timer that is not due comes due, by Redis' time; zero = there is none
	// Undecodable is how many members of timers were skipped, because another version wrote them.
	Undecodable, UndecodableRuns int64

	Jobs int64 // revision of the dynamic jobs; it grows with every change, and is 0 if there never was one
	// Born is when the ledger that all timers share was made; zero when Redis knows none. If Register answered another
	// time for TimerJobs, Redis has lost its data since. The replica should then register all jobs again soon: until
	// then each job may lose ticks.
	Born time.Time
}

// Look reads Redis' time, the runs, all due members, and when the next ones come due. It also reads when Redis' memory
// begins, and the revision of the dynamic jobs. It takes one round trip, or two (see dueQueue). It reads the oldest of
// the due timers, at most as many as timers says, and at least one.
func (s *Store) Look(ctx context.Context, timers int64) (Snapshot, error) {
	now, err := s.estimate(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	soon := now.Add(100 * time.Millisecond) // Redis may be ahead of the estimate
	var ofJobs, ofTimers dueQueue
	var running *redis.ZSliceCmd
	var jobs, born fields
	at, err := s.pipelined(ctx, func(pipe redis.Pipeliner) {
		ofJobs = askDue(ctx, pipe, s.redis.Keys.DueJobs, longestWait.Milliseconds(), maxDue)
		ofTimers = askDueBy(ctx, pipe, s.redis.Keys.DueTimers, soon, max(timers, 1))
		// After the due members: if a run takes one of them meanwhile, the others are seen to wait for it.
		running = pipe.ZRangeWithScores(ctx, s.redis.Keys.Running, 0, maxRunning-1)
		jobs = askFields(ctx, pipe, s.redis.Keys.Jobs, revision) // HGET of a missing field would be an error
		born = askFields(ctx, pipe, s.redis.Keys.Ledger(TimerJobs), "born")
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("looking at what runs and what is due: %w", err)
	}
	newest, err := ofJobs.end(ctx, s, at.UnixMilli())
	if err != nil {
		return Snapshot{}, fmt.Errorf("looking at what is due: %w", err)
	}

	var seen Snapshot
	for _, z := range running.Val() {
		member, _ := z.Member.(string)
		if r, ok := lock.ParseRunning(member, z.Score); ok {
			seen.Runs = append(seen.Runs, r)
		} else {
			seen.UndecodableRuns++
		}
	}
	seen.Next, _ = seen.add(ofJobs, newest, at.UnixMilli())
	seen.NextTimer, seen.Undecodable = seen.add(ofTimers, nil, at.UnixMilli())
	dynamic, _ := jobs()
	ledger, _ := born()
	seen.Jobs, seen.Born = rds.Number(dynamic[revision]), readLedger(TimerJobs, ledger, at).Born
	return seen, nil
}
