package lock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// releasedWithin is how long a release waits for others: they go together, in one call.
	releasedWithin = 20 * time.Millisecond
	// maxReleases bounds them: while the script runs, all other clients wait.
	maxReleases = 500
)

// releases are those that go next.
type releases struct {
	mu   sync.Mutex
	next *releasing // nil = there are none
}

// releasing are releases that go together.
type releasing struct {
	locks, ledgers []string
	runs           []any
	err            error         // valid when done is closed
	done           chan struct{} // closed when Redis has answered, or has not
}

// Release deletes the lock; the caller waits for the safety delay itself. Correctness does not depend on it: Finish
// made the lock expire after that delay, mostly a moment before. It goes with the releases of the next few
// milliseconds, even if ctx ends.
func (l *Lease) Release(ctx context.Context) error {
	c, s := &l.claim, l.store
	s.releases.mu.Lock()
	r := s.releases.next
	if r == nil || len(r.runs) == maxReleases {
		r = &releasing{done: make(chan struct{})}
		s.releases.next = r
		time.AfterFunc(releasedWithin, func() { s.release(r) })
	}
	r.locks = append(r.locks, s.redis.Keys.Lock(c.Job, c.slot()))
	r.ledgers, r.runs = append(r.ledgers, s.redis.Keys.Ledger(c.Job)), append(r.runs, c.Run)
	s.releases.mu.Unlock()
	var err error
	select {
	case <-r.done:
		err = r.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("releasing the lock of %q: %w", c.Job, err)
	}
	return nil
}

// release has Redis delete locks.
func (s *Store) release(r *releasing) {
	defer close(r.done)
	s.releases.mu.Lock()
	if s.releases.next == r {
		s.releases.next = nil
	}
	s.releases.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.redis.Timeout())
	defer cancel()
	_, r.err = s.redis.Run(ctx, releaseScript, append(r.locks, r.ledgers...), r.runs...)
}
