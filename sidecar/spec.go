package sidecar

import (
	"context"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// spec is what a table says of a job, ready for work. Once put in force it does not change.
type spec struct {
	config.Job
	label    string // of its series in the metrics: its name; one for all timers
	series   series
	era      int // number of the series of ticks within the job, written by put: specs of one era share what is known of ticks
	executor execute.Executor
	life     context.Context // ends when another spec takes its place, or the job leaves the table
	end      context.CancelFunc
}

// claims tells whether the job's ticks are claimed: not so when every replica fires them.
func (sp *spec) claims() bool { return sp.Guarantee != config.EveryReplica }

// fingerprint stands for the job's claimed ticks in Redis.
func (sp *spec) fingerprint() string {
	if !sp.claims() {
		return lock.NoTicks
	}
	return sp.Fingerprint
}

// sameTicks tells whether what is known of the ticks of one spec holds for those of another: both have the same, and claim
// them or do not.
func (sp *spec) sameTicks(other *spec) bool {
	return sp.Fingerprint == other.Fingerprint && sp.claims() == other.claims()
}

// safetyDelay is how long the lock outlives a run. A lock per tick, or none, has nothing to protect afterwards.
func (sp *spec) safetyDelay() time.Duration {
	if sp.ConcurrencyPolicy == config.Allow || !sp.claims() {
		return 0
	}
	return sp.Lock.SafetyDelay
}

func isTimer(job string) bool {
	_, ok := service.TimerID(job)
	return ok
}
