package lock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// releasedWithin is how long a release waits for others at most: they go together, in one call.
	releasedWithin = 20 * time.Millisecond
	// maxReleases bounds them: while the script runs, all other clients wait.
	maxReleases = 500
)

// releases are those to come, by the moment at which they go: Boottime in units of releasedWithin.
type releases struct {
	mu sync.Mutex
	at map[time.Duration]*releasing
}

// releasing are releases that go together.
type releasing struct {
	locks, ledgers []string
	runs           []any
	err            error         // valid when done is closed
	done           chan struct{} // closed when Redis has answered, or has not
}

// Release has the lock deleted after the safety delay, in one call with others. It does not wait for that; wait does,
// until its context ends. Correctness does not depend on it: Finish made the lock expire after that delay, mostly a
// moment before.
func (l *Lease) Release(delay time.Duration) (wait func(context.Context) error) {
	c, s := &l.claim, l.store
	in := delay + releasedWithin
	at := (s.redis.Boottime() + in) / releasedWithin
	s.releases.mu.Lock()
	defer s.releases.mu.Unlock()
	r := s.releases.at[at]
	if r == nil || len(r.runs) == maxReleases {
		r = &releasing{done: make(chan struct{})}
		s.releases.at[at] = r
		time.AfterFunc(in, func() { s.release(at, r) })
	}
	r.locks = append(r.locks, s.redis.Keys.Lock(c.Job, c.slot()))
	r.ledgers, r.runs = append(r.ledgers, s.redis.Keys.Ledger(c.Job)), append(r.runs, c.Run)
	return func(ctx context.Context) error {
		select {
		case <-r.done:
			return r.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// release has Redis delete locks.
func (s *Store) release(at time.Duration, r *releasing) {
	defer close(r.done)
	s.releases.mu.Lock()
	if s.releases.at[at] == r {
		delete(s.releases.at, at)
	}
	s.releases.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.redis.Timeout())
	defer cancel()
	if _, err := s.redis.Run(ctx, releaseScript, append(r.locks, r.ledgers...), r.runs...); err != nil {
		r.err = fmt.Errorf("releasing locks: %w", err)
	}
}
