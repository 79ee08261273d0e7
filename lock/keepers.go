package lock

import (
	"sync"
	"time"
)

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
			select {
			case l.nudged <- struct{}{}:
			default: // it is about to ask
			}
			if kept.begin.Stop() {
				go kept.keep()
			}
		}
	}
}
