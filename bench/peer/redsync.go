package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// gocron runs the jobs by gocron, and a locker decides which replica runs them.
func (r *replica) gocron(locker gocron.Locker) (func() error, error) {
	task := func(j job) error { return r.call(context.Background(), j, j.tick(), 0) }
	return r.schedule(task, gocron.WithDistributedLocker(locker))
}

// schedule calls task at each tick of each job.
func (r *replica) schedule(task func(job) error, options ...gocron.SchedulerOption) (func() error, error) {
	s, err := gocron.NewScheduler(options...)
	if err != nil {
		return nil, err
	}
	for _, j := range r.jobs {
		at := gocron.CronJob(cmp.Or(j.Schedule, fmt.Sprintf("%d-59/%d * * * * *", j.Offset, j.Every)), true)
		if _, err := s.NewJob(at, gocron.NewTask(task, j), gocron.WithName(j.Name)); err != nil {
			return nil, err
		}
	}
	s.Start()
	return s.Shutdown, nil
}

func newRedsync(client *redis.Client) *redsync.Redsync { return redsync.New(goredis.NewPool(client)) }

// plainLocker is redsync behind gocron's interface: one try, one key for each job, released when the job is over.
type plainLocker struct{ rs *redsync.Redsync }

func (l plainLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	m := l.rs.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(lease))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return plainLock{m}, nil
}

type plainLock struct{ m *redsync.Mutex }

func (l plainLock) Unlock(ctx context.Context) error {
	_, err := l.m.UnlockContext(ctx)
	return err
}

// hold is how long a heldLocker keeps a lock at least: above the differences of clocks that one expects, below a
// period.
const hold = time.Second

// heldLocker keeps each lock for a while, so that a replica whose clock is a little behind finds it taken.
type heldLocker struct{ rs *redsync.Redsync }

func (l heldLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	m := l.rs.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(lease))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return heldLock{m, time.Now()}, nil
}

type heldLock struct {
	m     *redsync.Mutex
	since time.Time
}

func (l heldLock) Unlock(context.Context) error {
	time.AfterFunc(time.Until(l.since.Add(hold)), func() {
		_, _ = l.m.Unlock() // if it fails, the lock ends by itself
	})
	return nil
}

// keyedLocker has a key for each tick, which is never released: it ends by itself.
type keyedLocker struct {
	rs   *redsync.Redsync
	jobs map[string]job
}

func newKeyedLocker(r *replica) keyedLocker {
	l := keyedLocker{newRedsync(r.redis), map[string]job{}}
	for _, j := range r.jobs {
		l.jobs[j.Name] = j
	}
	return l
}

func (l keyedLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	m := l.rs.NewMutex(fmt.Sprintf("%s:%d", key, l.jobs[key].tick().Unix()), redsync.WithTries(1),
		redsync.WithExpiry(lease))
	return kept{}, m.LockContext(ctx)
}

type kept struct{}

func (kept) Unlock(context.Context) error { return nil }
