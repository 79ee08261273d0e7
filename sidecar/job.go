package sidecar

import (
	"sync"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// job is one row of the table at work.
type job struct {
	config.Job
	series   series
	executor execute.Executor

	mu         sync.Mutex
	taken      time.Time // newest tick that a wake of this replica took
	since      time.Time // when Redis first saw this series of ticks; zero = not known yet
	registered time.Time // when Redis was last told of the job
}

// wake is one reason to fire one tick: a timer's, or a due entry's.
type wake struct {
	job       *job
	tick      time.Time // nominal
	due       time.Time // when it came due: tick plus jitter
	kind      string
	attempt   int
	handovers int
	member    string // of the due set; "" for a tick of the table
}

// The kinds of wakes, as the job is told them.
const (
	kindSchedule = "schedule"
)

// take tells which tick a timer woke for, which gocron does not: the newest that is due at t and was not taken before. A late
// wake passes over older ticks, which the claim then counts as missed. A wake before its time, on a clock that was
// set back, takes the tick to come, and waits for it.
func (j *job) take(t time.Time) (wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	tick := j.series.newest(t)
	if !tick.After(j.taken) {
		if j.series.due(j.taken).After(t) {
			return wake{}, false
		}
		tick = j.series.schedule.Next(j.taken)
	}
	if tick.IsZero() {
		return wake{}, false
	}
	j.taken = tick
	return wake{job: j, tick: tick, due: j.series.due(tick), kind: kindSchedule, attempt: 1}, true
}

// safetyDelay is how long the lock outlives a run. A lock per tick, or none, has nothing to protect afterwards.
func (j *job) safetyDelay() time.Duration {
	if j.ConcurrencyPolicy == config.Allow || j.Guarantee == config.EveryReplica {
		return 0
	}
	return j.Lock.SafetyDelay
}

// dueWake is the wake of a member of the due set.
func (j *job) dueWake(d lock.Due) *wake {
	return &wake{job: j, tick: d.Tick, due: j.series.due(d.Tick), kind: d.Kind, attempt: d.Attempt, handovers: d.Handovers, member: d.Member()}
}

// overdue tells whether a tick that came due more than a glance ago was taken by no wake. back says that the clock was
// stepped back: what was taken lies in the future then, and only what is due by now counts as taken.
func (j *job) overdue(now time.Time, back bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if back && j.taken.After(now) {
		j.taken = j.series.newest(now)
	}
	return j.series.newest(now.Add(-glance)).After(j.taken)
}

// claim is the question that a wake asks Redis.
func (s *Sidecar) claim(w wake) lock.Claim {
	j := w.job
	return lock.Claim{
		Job: j.Name, Tick: w.tick, Replica: s.replica, TTL: j.Lock.TTL, Policy: lock.Policy(j.ConcurrencyPolicy),
		Period: j.series.period, Kind: w.kind, Attempt: w.attempt, Handovers: w.handovers, Fingerprint: j.Fingerprint, Member: w.member,
	}
}

// worthUntil is the instant after which a wake is not worth firing any more: its starting deadline, or the next tick,
// which takes its place. Zero when there is neither.
func (w *wake) worthUntil() time.Time {
	until := w.job.series.due(w.job.series.schedule.Next(w.tick))
	if d := w.job.StartingDeadline; d > 0 {
		if end := w.tick.Add(d); until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return until
}

// registerDue tells whether Redis should be told of the job: at first, and daily, since what nobody registers expires.
func (j *job) registerDue() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.Guarantee != config.EveryReplica && (j.registered.IsZero() || time.Since(j.registered) >= registerEvery)
}

func (j *job) registeredAs(l lock.Ledger) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.since, j.registered = l.Since, time.Now()
}

// forget makes registerDue say yes.
func (j *job) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.registered = time.Time{}
}

// knownSince is when Redis first saw the job's present series of ticks; zero when Redis has not been told yet.
func (j *job) knownSince() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.since
}
