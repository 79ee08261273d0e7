package service

import (
	"context"
	"fmt"
	"math"
	"slices"
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

	// Born is when the ledger that all timers share was made; zero when Redis knows none. If Register answered another
	// time for TimerJobs, Redis has lost its data since. The replica should then register all jobs again soon: until
	// then each job may lose ticks.
	Born time.Time
}

// Look reads Redis' time, the runs, all due members, and when the next ones come due. It also reads when Redis' memory
// begins. It takes one round trip, or two (see dueQueue). It reads the oldest of the due timers, at most as many as
// timers says, and at least one; if that is less than zero, it reads nothing of what is due, or will be.
func (s *Store) Look(ctx context.Context, timers int64) (Snapshot, error) {
	now, err := s.redis.Time(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	soon := now.Add(100 * time.Millisecond) // Redis may be ahead of the estimate
	var ofJobs, ofTimers dueQueue
	var running *redis.ZSliceCmd
	var born fields
	at, err := s.pipelined(ctx, func(pipe redis.Pipeliner) {
		if timers >= 0 {
			ofJobs = askDue(ctx, pipe, s.redis.Keys.DueJobs, longestWait.Milliseconds(), maxDue)
			ofTimers = askDueBy(ctx, pipe, s.redis.Keys.DueTimers, soon, max(timers, 1))
		}
		// After the due members: if a run takes one of them meanwhile, the others are seen to wait for it.
		running = pipe.ZRangeWithScores(ctx, s.redis.Keys.Running, 0, maxRunning-1)
		born = askFields(ctx, pipe, s.redis.Keys.Ledger(TimerJobs), "born") // HGET of a missing field would be an error
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
	ledger, _ := born()
	seen.Born = readLedger(TimerJobs, ledger, at).Born
	return seen, nil
}

const (
	// longestWait is longer than a due member of a job is ever kept back. If a member seems to be kept back for longer,
	// it was added before Redis' clock was set back, and is due.
	longestWait = 2 * time.Minute
	// maxDue bounds how many members of jobs a look reads from the front.
	maxDue = 5000
	// newestDue is how many members a look reads from the back if there are more than maxDue.
	newestDue = 1000
)

// dueQueue is the part that a look reads of one of the two sets of due members. Jobs and timers have a set each, so
// that neither hides the other, however many there are.
//
// A million timers may wait, and after an outage all of them are due. But each is as good as the next, none waits for
// another, and a timer that was taken is gone. So it is enough to read the oldest, as many as the replica can take.
//
// Members of jobs may have to stay in the set: the job runs, is paused, or is unknown here. If a look read only the
// first few, they would hide newer ones, so it reads all. The writers bound the set: ask.lua bounds requests by
// operators, and a claim adds at most a hundred missed ticks. If many of these together exceed maxDue, a look also
// reads the newest members, such as a trigger or a tick that was handed on. A few thousand ticks between the two wait
// until those before them are done.
type dueQueue struct {
	key     string
	longest int64              // how long a member can be kept back, in milliseconds
	count   int64              // of those that are due
	reads   []*redis.ZSliceCmd // those that are due, or will be, the oldest first
}

// askDue adds the read of a queue to a pipeline: the first members, one more than count.
func askDue(ctx context.Context, pipe redis.Pipeliner, key string, longest, count int64) dueQueue {
	args := redis.ZRangeArgs{Key: key, Start: 0, Stop: "+inf", ByScore: true, Count: count + 1}
	return dueQueue{key, longest, count, []*redis.ZSliceCmd{pipe.ZRangeArgsWithScores(ctx, args)}}
}

// askDueBy does so where many members may come due soon: it adds the reads of those until then, and of the next one.
func askDueBy(ctx context.Context, pipe redis.Pipeliner, key string, until time.Time, count int64) dueQueue {
	by := rds.Itoa(until.UnixMilli())
	due := redis.ZRangeArgs{Key: key, Start: 0, Stop: by, ByScore: true, Count: count}
	next := redis.ZRangeArgs{Key: key, Start: "(" + by, Stop: "+inf", ByScore: true, Count: 1}
	reads := []*redis.ZSliceCmd{pipe.ZRangeArgsWithScores(ctx, due), pipe.ZRangeArgsWithScores(ctx, next)}
	return dueQueue{key, math.MaxInt64, count, reads}
}

// oldest are at most count members that are due by until, and the first one that is not, if there are fewer.
func (q *dueQueue) oldest(until int64) (all []redis.Z) {
	for _, r := range q.reads {
		all = append(all, r.Val()...)
	}
	if n := int64(len(all)); n > q.count && int64(all[q.count].Score) <= until {
		return all[:q.count]
	}
	return all
}

// end reads the newest members of a queue that has more than maxDue due by until, and returns those that were not read
// yet.
func (q *dueQueue) end(ctx context.Context, s *Store, until int64) ([]redis.Z, error) {
	have := q.oldest(until)
	if len(q.reads) == 0 || len(have) > maxDue || len(q.reads[0].Val()) <= maxDue {
		return nil, nil
	}
	// With Rev, Redis expects the higher end first, and go-redis passes Start and Stop on as they are.
	args := redis.ZRangeArgs{Key: q.key, Start: until, Stop: 0, ByScore: true, Rev: true, Count: newestDue}
	newest, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) ([]redis.Z, error) {
		return rdb.ZRangeArgsWithScores(ctx, args).Result()
	})
	slices.Reverse(newest)
	last := have[len(have)-1]
	return slices.DeleteFunc(newest, func(z redis.Z) bool {
		return z.Score < last.Score || z.Score == last.Score && z.Member.(string) <= last.Member.(string)
	}), err
}

// add adds the members of a queue that are due at a time, and returns when the next one comes due. It skips members
// that another version wrote; strange is their number.
func (seen *Snapshot) add(q dueQueue, newest []redis.Z, now int64) (next time.Time, strange int64) {
	refusals := 0
	all := append(q.oldest(now), newest...)
	seen.Due = slices.Grow(seen.Due, len(all))
	for _, z := range all { // by their times
		at := int64(z.Score)
		if at > now && at-now < q.longest {
			return rds.FromMillis(at), strange
		}
		at = min(at, now)
		member, _ := z.Member.(string)
		d, err := lock.ParseDue(member)
		if err != nil || refusals+len(d.Refused) > 300_000 { // another client may have written millions
			strange++
			continue
		}
		refusals += len(d.Refused)
		if at == 0 { // asked for by hand, and due at once even if Redis' clock is set
			at = min(rds.Millis(d.Tick), now)
		}
		d.Age = time.Duration(now-at) * time.Millisecond
		seen.Due = append(seen.Due, d)
	}
	return time.Time{}, strange
}
