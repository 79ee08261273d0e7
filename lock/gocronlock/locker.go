// Package gocronlock makes gocron's jobs fire each tick once over all processes. It has a package of its own, so that
// package lock does without gocron.
package gocronlock

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/solotick/solotick/lock"
)

// Locker makes gocron's jobs fire each tick once over all processes that share a lock.Store's service. gocron tells a
// locker the name of a job and not the tick it woke for. TickOf supplies the tick, and so keeps a fast clock from
// firing it twice.
//
// gocron does not stop a job whose lock is lost. A job that must stop needs a lock.Lease of its own.
type Locker struct {
	Store *lock.Store
	// TickOf returns the nominal tick that a job wakes for at `now`, Redis' time: for a job every minute,
	// now.Round(time.Minute). It must be equal in all processes.
	TickOf func(job string, now time.Time) time.Time
	// TTL is the ttl of the locks; longer than lock.Margin. They are renewed while a job runs.
	TTL time.Duration
	// SafetyDelay is how long a lock outlives its job.
	SafetyDelay time.Duration
	// Replica is the name of this process for the others; "" is none.
	Replica string
}

var _ gocron.Locker = (*Locker)(nil)

// Register makes jobs known before their first tick. A job that is registered by its first Lock does not fire that
// tick.
func (l *Locker) Register(ctx context.Context, jobs ...string) error {
	for _, job := range jobs {
		if _, err := l.Store.Register(ctx, job, ""); err != nil {
			return err
		}
	}
	return nil
}

// Lock claims the present tick of a job. If it returns an error, which tells why this process must not run the job,
// gocron skips the run.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	now, ok := l.Store.Now()
	if !ok {
		if err := l.Store.Sync(ctx); err != nil {
			return nil, err
		}
		now, _ = l.Store.Now()
	}
	tick := l.TickOf(job, now)
	ctx, cancel := context.WithTimeout(ctx, l.TTL)
	defer cancel()
	lease, a, err := l.Store.Acquire(ctx, lock.Claim{Job: job, Tick: tick, TTL: l.TTL, Replica: l.Replica})
	if err != nil {
		return nil, err
	}
	if lease == nil {
		return nil, fmt.Errorf("job %q, tick %s: %s by %s", job, tick.Format(time.RFC3339), a.Code, a.Holder)
	}
	_, stop := lease.Keep(context.Background())
	return &lockedJob{lease: lease, stop: stop, ttl: l.TTL, delay: l.SafetyDelay}, nil
}

type lockedJob struct {
	lease      *lock.Lease
	stop       func()
	ttl, delay time.Duration
}

// Unlock settles the run. The lock expires by itself after the safety delay. When a scheduler stops, gocron's context
// ends, and a release must not fail because of that.
func (u *lockedJob) Unlock(ctx context.Context) error {
	defer u.stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.ttl)
	defer cancel()
	_, err := u.lease.Finish(ctx, u.delay, lock.Ending{})
	return err
}
