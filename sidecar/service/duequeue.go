package service

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

const (
	// longestWait is longer than what is due of a job is ever kept back. What seems to be kept back for longer was added before
	// Redis' clock was set back, and is due.
	longestWait = 2 * time.Minute
	// maxDue bounds how many members that are no timers' a look reads, from the front.
	maxDue = 5000
	// newestDue is how many it reads from the back when those were not all.
	newestDue = 1000
)

// dueQueue is what a look reads of one of the two sets of due members, that of jobs and that of timers: so neither hides the
// other, however many there are.
//
// Timers may be a million, and after an outage all of them are due. But any of them is as good as the next, none waits
// for another, and one that is taken is gone: it is enough to see the oldest, as many as can be taken.
//
// Members of jobs may have to stay in the set: the job runs, is paused, or is unknown here. Reading only the first few would
// let them hide newer ones, so a look reads all. The writers bound the set: ask.lua bounds requests by operators, and a claim
// adds at most a hundred missed ticks. If many of these together exceed maxDue, a look also reads the newest members, such as
// a trigger or a tick that was handed on. A few thousand ticks between the two wait until those before them are done.
type dueQueue struct {
	key      string
	longest  int64            // for which a member can be kept back, in milliseconds
	due      *redis.ZSliceCmd // the oldest that may be due
	upcoming *redis.ZSliceCmd // the first that is not
}

// askDue adds to a pipeline what is to be known of a queue: up to count members that are due by a time.
func askDue(ctx context.Context, pipe redis.Pipeliner, key string, longest, until, count int64) dueQueue {
	return dueQueue{
		key:      key,
		longest:  longest,
		due:      pipe.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: key, Start: 0, Stop: until, ByScore: true, Count: count}),
		upcoming: pipe.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: key, Start: "(" + rds.Itoa(until), Stop: "+inf", ByScore: true, Count: 1}),
	}
}

// end reads the end of a queue of which maxDue members were not all, as far as these were not part of it.
func (q *dueQueue) end(ctx context.Context, rdb redis.Cmdable, until int64) ([]redis.Z, error) {
	have := q.due.Val()
	if len(have) < maxDue {
		return nil, nil
	}
	// Under Rev Redis wants the higher end first, and go-redis hands on Start and Stop as they are.
	newest, err := rdb.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: q.key, Start: until, Stop: 0, ByScore: true, Rev: true, Count: newestDue}).Result()
	slices.Reverse(newest)
	last := have[len(have)-1]
	return slices.DeleteFunc(newest, func(z redis.Z) bool {
		return z.Score < last.Score || z.Score == last.Score && z.Member.(string) <= last.Member.(string)
	}), err
}

// add adds what a queue has at a time, and tells when the next comes due. What another version wrote is left to it; there
// are so many strange ones.
func (seen *Snapshot) add(q dueQueue, newest []redis.Z, now int64) (next time.Time, strange int64) {
	for _, z := range slices.Concat(q.due.Val(), newest, q.upcoming.Val()) { // by their times
		at := int64(z.Score)
		if at > now && at-now < q.longest {
			return rds.FromMillis(at), strange
		}
		at = min(at, now)
		member, _ := z.Member.(string)
		d, err := lock.ParseDue(member)
		if err != nil {
			strange++
			continue
		}
		if at == 0 { // asked for by hand, and due at once whatever becomes of Redis' clock
			at = min(rds.Millis(d.Tick), now)
		}
		d.Age = time.Duration(now-at) * time.Millisecond
		seen.Due = append(seen.Due, d)
	}
	return time.Time{}, strange
}
