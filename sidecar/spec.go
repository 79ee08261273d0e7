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

// spec is a row of the table, or a timer, ready for work. Once in force it does not change.
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

// The kinds of wakes, as the job is told them.
const (
	kindSchedule = "schedule"
	kindCatchup  = "catchup"
	kindTakeover = "takeover"
	kindManual   = "manual"
	kindBackfill = "backfill"
)

// usesClaims reports whether the job's ticks are claimed: not so when every replica fires them.
func (sp *spec) usesClaims() bool { return sp.Guarantee != config.EveryReplica }

// asks reports whether the job's own app asks for its ticks, and no replica starts it by itself.
func (sp *spec) asks() bool { return sp.Claim != nil && !sp.observed }

// now is the time by which the job's ticks are judged: whether one is still worth starting, and how long it may wait.
// It is the slower one of the cluster clock and Redis' clock, because Redis lets no tick be claimed before its own
// clock has reached it. The ticks of a job that claims none come by the cluster clock alone.
func (sp *spec) now(c *clock) time.Time {
	now := c.Now()
	if at, ok := c.redis(); ok && sp.usesClaims() && at.Before(now) {
		return at
	}
	return now
}

// fingerprint stands for the job's claimed ticks in Redis.
func (sp *spec) fingerprint() string {
	if !sp.usesClaims() {
		return lock.NoTicks
	}
	return sp.Fingerprint
}

// sameTicks reports whether two specs have the same ticks, and both claim them or both do not. Then what the replica
// knows of one's ticks holds for the other's.
func (sp *spec) sameTicks(other *spec) bool {
	return sp.Fingerprint == other.Fingerprint && sp.usesClaims() == other.usesClaims()
}

// instants is a key for the instants at which a job comes due. If they depend on the job's name, by jitter or an H in
// its schedule, no other job has the same key.
func (sp *spec) instants() string {
	if sp.Jitter > 0 || sp.Schedule.ByName() {
		return sp.Fingerprint + " " + sp.Name
	}
	return sp.Fingerprint
}

// continues reports whether the claimed ticks up to an instant were the same before. It compares the newest hundred.
func (sp *spec) continues(before *spec, claimed, upTo time.Time) bool {
	from, to := time.Time{}, upTo.Add(time.Nanosecond)
	now, then := sp.series.between(from, to, maxOlder), before.series.between(from, to, maxOlder)
	return sp.usesClaims() && before.usesClaims() && sp.Suspend == before.Suspend && sp.Jitter == before.Jitter &&
		slices.EqualFunc(now, then, time.Time.Equal) && (len(now) < maxOlder || !now[0].After(claimed))
}

// hasRoom reports whether a run of the job may begin beside others that live.
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

// safetyDelay is how long the lock outlives a run. A lock per tick has nothing to protect afterwards.
func (sp *spec) safetyDelay() time.Duration {
	if sp.ConcurrencyPolicy == config.Allow {
		return 0
	}
	return sp.Lock.SafetyDelay
}

// mayRepeat reports whether an attempt that failed may be made again. If the app answered, the table decides. If no
// answer came, or it broke off, the job may have run: then only the job's guarantee may allow a repetition.
func (sp *spec) mayRepeat(r execute.Result) bool {
	switch {
	case sp.Exec != nil, r.Status == execute.NotStarted, r.Reported && r.Status == execute.Failed:
		return true
	case r.Code >= 0 && !sp.HTTP.Succeeds(r.Code): // a success that failed has broken off
		return sp.Retry.After(r.Code)
	}
	return sp.Guarantee != config.AtMostOnce
}

// countsAsFailed reports whether an outcome means that the run failed. The log's level, the history's `failed`, and the
// metric failures_total go by it, and through these the page, alerts and notifications. A run that the shutdown cut
// off has not failed if another replica runs it again, and neither has a lease that passes to another app.
func (sp *spec) countsAsFailed(o outcome) bool {
	switch o {
	case succeeded, declined, observed, replaced, cancelled, handedOver:
		return false
	case shutdown, lostLock, wasInterrupted:
		return !sp.Schedule.IsLease() && (o != shutdown || sp.Guarantee != config.AtLeastOnce)
	}
	return true
}

// failsAs is countsAsFailed for a job that may have left the table.
func (sp *spec) failsAs(o outcome) bool { return o != cancelled && (sp == nil || sp.countsAsFailed(o)) }

// hasFates reports whether Redis knows what becomes of the job's ticks.
func (sp *spec) hasFates() bool { return sp.usesClaims() && sp.label != service.TimerJobs }

// successDue is when the second tick comes due since the job last succeeded; if it never has, since Redis knows it.
// Ticks that the job did not have to take do not count: those of another schedule, in a pause, and outside of start and
// end. Zero = the job need not succeed: it is paused, suspended, observed or over, or Redis does not know it.
func (sp *spec) successDue(st *service.Ledger, now time.Time) time.Time {
	from := newestOf(st.LastSuccess, st.Since, st.PausedTo)
	if from.IsZero() || sp.Suspend || sp.observed || st.IsPaused() || sp.series.schedule == nil {
		return time.Time{}
	}
	from = oldestOf(from, now) // Redis' clock may have been set back
	first := sp.series.after(newestOf(from, sp.Start.Add(-time.Nanosecond)))
	if first.IsZero() {
		return first
	}
	second := sp.series.schedule.Next(first)
	if !sp.End.IsZero() && !second.Before(sp.End) {
		return time.Time{}
	}
	return sp.series.due(second)
}
