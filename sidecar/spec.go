package sidecar

import (
	"context"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// spec is a row of the table, or a dynamic job, ready for work. Once in force it does not change.
type spec struct {
	*config.Job
	label    string // of its series in the metrics: its name; one for all timers
	series   series
	era      int // number of the series of ticks within the job, written by put: specs of one era share job.ticks
	executor execute.Executor
	observed bool            // nothing is called
	life     context.Context // ends when another spec replaces this one, or the job leaves the table
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

// sameTicks tells whether two specs have the same ticks, and both claim them or both do not. Then what the replica
// knows of one's ticks holds for the other's.
func (sp *spec) sameTicks(other *spec) bool {
	return sp.Fingerprint == other.Fingerprint && sp.claims() == other.claims()
}

// continues tells whether the claimed ticks up to an instant were the same before, as far as they may be fired late or counted.
func (sp *spec) continues(before *spec, claimed, upTo time.Time) bool {
	from, to := time.Time{}, upTo.Add(time.Nanosecond)
	now, then := sp.series.between(from, to, maxOlder), before.series.between(from, to, maxOlder)
	return sp.claims() && before.claims() && sp.Suspend == before.Suspend && sp.Jitter == before.Jitter &&
		slices.EqualFunc(now, then, time.Time.Equal) && (len(now) < maxOlder || !now[0].After(claimed))
}

// hasRoom tells whether a run of the job may begin beside others that live.
func (sp *spec) hasRoom(living int) bool {
	if sp.ConcurrencyPolicy == config.Allow {
		return sp.Concurrency == 0 || living < sp.Concurrency
	}
	return living == 0
}

// keptFree is how many of the runs that may live at once a due member of a kind leaves to the schedule.
func (sp *spec) keptFree(kind string) int {
	if kind == kindBackfill && sp.ConcurrencyPolicy == config.Allow && sp.Concurrency > 1 {
		return 1
	}
	return 0
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
