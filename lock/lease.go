package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"

	"github.com/google/uuid"
)

// Lease is the right to run one job for one tick, until its trust window ends.
type Lease struct {
	store *Store
	claim Claim
	// Token is the fencing token, which acquire.lua makes: greater than that of every earlier run of the job, even
	// after Redis lost its data. The system that the job writes to should refuse a token smaller than one it has seen.
	Token int64
	// Since is the newest tick of the schedule that had succeeded when the run's tick was claimed for the first time:
	// all runs of the tick have the same. It is zero if none is known that is older than the tick.
	Since time.Time

	born   time.Time     // when the ledger was born, as the claim saw it
	trust  atomic.Int64  // Boottime in nanoseconds at which the window closes
	nudged chan struct{} // the keeper must ask now whether a newer run replaces this one
}

func newLease(s *Store, c Claim) *Lease {
	return &Lease{store: s, claim: c, nudged: make(chan struct{}, 1)}
}

// Run is the run's UUID, the value of the lock.
func (l *Lease) Run() string { return l.claim.Run }

// Trusted reports whether the caller can still rely on the lease: less than ttl-Margin has passed since the last
// answered request was sent, time in suspend included.
func (l *Lease) Trusted() bool { return l.remaining() > 0 }

// TrustedFor reports whether the caller can rely on the lease for at least d from now, even if it is not renewed.
func (l *Lease) TrustedFor(d time.Duration) bool { return l.remaining() >= d }

func (l *Lease) remaining() time.Duration {
	return time.Duration(l.trust.Load()) - l.store.redis.Boottime()
}

// Verify compares and extends the lease in one round trip. Nil means that the lease is ours and trusted: its window has
// begun anew at the time the request was sent. ErrReplaced means the same, and that the run must end for a newer tick;
// ErrCancelled, that it must end because an operator has cancelled it.
// After ErrLost the caller must not use the lease any more. Any other error (ErrNoAnswer) says nothing about the lease.
func (l *Lease) Verify(ctx context.Context) error {
	c, s := &l.claim, l.store
	sent := s.redis.Boottime()
	keys := []string{s.redis.Keys.Lock(c.Job, c.slot()), s.redis.Keys.Ledger(c.Job), s.redis.Keys.Running}
	parts, err := s.redis.Call(ctx, extendScript, 1, keys, c.Run, c.Job, c.TTL.Milliseconds())
	if err != nil {
		return fmt.Errorf("extending the lease of %q: %w: %w", c.Job, ErrNoAnswer, err)
	}
	code, _ := parts[0].(string)
	if code != "OK" && code != "REPLACED" && code != "CANCELLED" {
		l.trust.Store(0)
		return ErrLost
	}
	l.trust.Store(int64(sent + c.TTL - Margin)) // counted from the sending, however late the reply was
	switch {
	case code == "REPLACED":
		return ErrReplaced
	case code == "CANCELLED":
		return ErrCancelled
	case !l.Trusted():
		return fmt.Errorf("extending the lease of %q: %w: it came after the lease", c.Job, ErrNoAnswer)
	}
	return nil
}

// renewal is the time between two extensions: a third of the ttl, or less if the margin is most of a short ttl.
func (l *Lease) renewal() time.Duration { return min(l.claim.TTL/3, (l.claim.TTL-Margin)/2) }

// Keep extends the lease every third of its ttl until the caller calls stop. The context that it returns ends with
// parent. It ends with ErrLost as its cause when trust runs out, which is before the lease ends, with ErrReplaced when
// a newer tick takes this run's place, and with ErrCancelled when an operator has cancelled the run. A run that was
// told to end keeps its lease until stop, or until trust runs out, which only Trusted tells then. Until stop, no
// Watcher of this process takes the run over: the caller settles it first. stop waits for the keeper to end.
func (l *Lease) Keep(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	keeping, end := context.WithCancel(context.WithoutCancel(parent))
	done := make(chan struct{})
	// The first renewal is counted from the beginning of the window, which may lie well before that of the keeper.
	first := time.Duration(l.trust.Load()) - (l.claim.TTL - Margin) + l.renewal()
	begun := l.store.kept.add(l, min(first-l.store.redis.Boottime(), rds.ClockCheckEvery), func() {
		defer close(done)
		l.keep(keeping, first, cancel)
	})
	return ctx, sync.OnceFunc(func() {
		end()
		if begun() {
			<-done
		}
		cancel(context.Canceled)
	})
}

// keep extends the lease until ctx ends, for the first time at a Boottime.
func (l *Lease) keep(ctx context.Context, next time.Duration, lose context.CancelCauseFunc) {
	try := 0
	for {
		now := l.store.redis.Boottime()
		left := l.remaining()
		if left <= 0 {
			lose(fmt.Errorf("%w: not renewed within %s", ErrLost, l.claim.TTL-Margin))
			return
		}
		if wait := min(next-now, left, rds.ClockCheckEvery); wait > 0 {
			switch nudged, ok := l.wait(ctx, wait); {
			case !ok:
				return
			case nudged:
				next = now
			}
			continue
		}
		// An answer after the window is of no use, and the run must end then.
		tryCtx, cancel := context.WithTimeout(ctx, left)
		err := l.Verify(tryCtx)
		cancel()
		switch {
		case err == nil:
			next, try = now+l.renewal(), 0
		case errors.Is(err, ErrReplaced), errors.Is(err, ErrCancelled):
			lose(err) // and renew on
			next, try = now+l.renewal(), 0
		case errors.Is(err, ErrLost):
			lose(err)
			return
		default:
			next = l.store.redis.Boottime() + min(rds.Backoff(try), soon)
			try++
		}
	}
}

// wait waits for d or a nudge; not ok when ctx ended first.
func (l *Lease) wait(ctx context.Context, d time.Duration) (nudged, ok bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.nudged:
		return true, true
	case <-t.C:
		return false, true
	case <-ctx.Done():
		return false, false
	}
}

// CheckLeases renews the kept leases of a job at once; with "", those of all jobs. A run whose lock Redis has lost, or
// that a newer run replaces, then ends now, and not at its next renewal.
func (s *Store) CheckLeases(job string) { s.kept.nudge(job) }

// keepers are the leases that are being kept, so that other goroutines can reach their keepers.
type keepers struct {
	mu     sync.Mutex
	leases map[*Lease]*keeper
}

// keeper keeps one lease. Most runs have ended before their lease has to be extended, so it begins when there is
// something to do.
type keeper struct {
	keep  func()
	begin *time.Timer
}

// add has keep begin in a goroutine after a wait, or with the first nudge. It returns a function that removes the lease
// and reports whether keep has begun. If it has not, it never will.
func (k *keepers) add(l *Lease, wait time.Duration, keep func()) (begun func() bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases == nil {
		k.leases = map[*Lease]*keeper{}
	}
	begin := time.AfterFunc(wait, keep)
	k.leases[l] = &keeper{keep, begin}
	return func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.leases, l)
		return !begin.Stop()
	}
}

// has reports whether the lease of a run is being kept.
func (k *keepers) has(run string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for l := range k.leases {
		if l.claim.Run == run {
			return true
		}
	}
	return false
}

// nudge has the keepers of a job ask Redis at once; with "", those of all jobs.
func (k *keepers) nudge(job string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for l, kept := range k.leases {
		if job == "" || l.claim.Job == job {
			beat.Kick(l.nudged)
			if kept.begin.Stop() {
				go kept.keep()
			}
		}
	}
}

// nodeDigits is the length of the last part of a UUID, its node.
const nodeDigits = 12

// NewRun returns a random UUID for a run of the process that has this UUID; "" = of no process in particular. The node
// of the run is that of its process. So the run alone tells its process, and Redis keeps nothing more for it.
func NewRun(process string) string {
	run, node := uuid.NewString(), Node(process)
	return run[:len(run)-len(node)] + node
}

// Node returns the node of the UUID of a process or a run; "" if that is no UUID.
func Node(id string) string {
	if uuid.Validate(id) != nil {
		return ""
	}
	return id[len(id)-nodeDigits:]
}
