package sidecar

import (
	"time"

	"github.com/solotick/solotick/lock"
)

// held is the right to run a job for a tick.
type held struct {
	*lock.Lease        // nil: every replica has that right
	run         string // UUID
	token       int64
	since       time.Time // see lock.Lease.Since
}

// Trusted is that of the lease.
func (h *held) Trusted() bool { return h.Lease == nil || h.Lease.Trusted() }

// TrustedFor is that of the lease.
func (h *held) TrustedFor(d time.Duration) bool { return h.Lease == nil || h.Lease.TrustedFor(d) }
