package lock

import "sync"

// CheckLeases renews the kept leases of a job at once; with "", those of all jobs. A run whose lock Redis has lost, or
// that a newer run replaces, then ends now, and not at its next renewal.
func (s *Store) CheckLeases(job string) { s.kept.nudge(job) }

// keepers are the leases that are being kept, so that other goroutines can reach their keepers.
type keepers struct {
	mu     sync.Mutex
	leases map[*Lease]bool
}

func (k *keepers) add(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases == nil {
		k.leases = map[*Lease]bool{}
	}
	k.leases[l] = true
}

func (k *keepers) remove(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.leases, l)
}

// has tells whether the lease of a run is being kept.
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
	for l := range k.leases {
		if job == "" || l.claim.Job == job {
			select {
			case l.nudged <- struct{}{}:
			default: // it is about to ask
			}
		}
	}
}
