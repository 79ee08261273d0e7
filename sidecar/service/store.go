package service

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// Store gives access to what a service keeps in Redis: Locks speaks the protocol of locks, and the methods handle all
// else. It is safe for concurrent use.
type Store struct {
	Locks  *lock.Store
	redis  *rds.Redis
	author Author // of the requests by hand

	*state
}

// state is what copies of a Store share.
type state struct {
	Resting    atomic.Bool // the caller of Looks needs none beyond those that it makes at rest: Listen costs less
	listens    atomic.Bool // see Listens
	reportGone atomic.Bool // Redis has no report of this replica
}

// New makes a Store over a client of lock.NewClient. Options and errors are those of lock.New.
func New(client redis.UniversalClient, name string, o lock.Options) (*Store, error) {
	r, err := rds.Open(client, name, rds.Options(o))
	if err != nil {
		return nil, err
	}
	s := &Store{Locks: lock.Over(r), redis: r, state: &state{}}
	r.Unanswered = s.Doubt
	return s, nil
}

// Now, Reached and Steady are Redis' time as rds.Redis estimates it from the answers so far; false if there was none.
func (s *Store) Now() (time.Time, bool) { return s.redis.Now() }

// Reached is the time that Redis' clock has certainly reached.
func (s *Store) Reached() (time.Time, bool) { return s.redis.Reached() }

// Steady is Reached for scheduling: it follows a step of Redis' clock later.
func (s *Store) Steady() (time.Time, bool) { return s.redis.Steady() }

// Sync asks Redis for its time once. Every other call refines the estimate too, to the millisecond that scripts see.
func (s *Store) Sync(ctx context.Context) error { return s.redis.Sync(ctx) }

// onServer asks the server of the service's keys, within the time that a request may take.
func onServer[T any](ctx context.Context, s *Store,
	ask func(context.Context, redis.UniversalClient) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.redis.Timeout())
	defer cancel()
	rdb, err := s.redis.Server(ctx)
	if err != nil {
		return answer, err
	}
	return ask(ctx, rdb)
}

// scanned is about how many keys or members Redis looks at for one step of a scan. Other clients wait for that long.
const scanned = 1000

// eachKeys calls what for the service's keys with a prefix, some at a time. In a Cluster it scans the master of their
// slot, and no other server. A key that is there all the time comes at least once, and can come again.
func (s *Store) eachKeys(ctx context.Context, prefix string, what func(keys []string) error) error {
	return s.eachStep(ctx, func(ctx context.Context, rdb redis.UniversalClient, cursor uint64) *redis.ScanCmd {
		return rdb.Scan(ctx, cursor, prefix+"*", scanned)
	}, what)
}

// eachStep calls what for each part of the answer to a scan.
func (s *Store) eachStep(ctx context.Context, step func(context.Context, redis.UniversalClient, uint64) *redis.ScanCmd,
	what func(found []string) error) error {
	for cursor := uint64(0); ; {
		found, err := onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) (page []string, err error) {
			page, cursor, err = step(ctx, rdb, cursor).Result()
			return page, err
		})
		if err == nil {
			err = what(found)
		}
		if err != nil || cursor == 0 {
			return err
		}
	}
}

// pipelined asks for Redis' time, and in the same round trip for what is added to the pipeline.
func (s *Store) pipelined(ctx context.Context, add func(redis.Pipeliner)) (time.Time, error) {
	return onServer(ctx, s, func(ctx context.Context, rdb redis.UniversalClient) (time.Time, error) {
		pipe, sent := rdb.Pipeline(), s.redis.Boottime()
		at := pipe.Time(ctx)
		add(pipe)
		_, err := pipe.Exec(ctx)
		if err == nil {
			s.redis.Observe(sent, at.Val())
		}
		return at.Val(), err
	})
}
