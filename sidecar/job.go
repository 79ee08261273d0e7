package sidecar

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// job is all that a replica keeps under one name, from the table that adds the name to the one that drops it. A
// reload swaps its spec.
type job struct {
	name  string
	heard atomic.Pointer[lock.Heard] // the newest claim of a tick of the table that was heard of; nil = none was

	mu     sync.Mutex
	spec   *spec             // in force; nil once the job has left the table
	ticks  ticks             // for the ticks of that spec
	pauses [2]*service.Pause // of every-replica alone: its own, and that of all jobs, at the last look; nil = none
}

// inForce is the spec in force; nil once the job has left the table, and of no job.
func (j *job) inForce() *spec {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spec
}

// put puts another spec in force, nil if the job leaves the table. True if the new spec has other ticks. If the newest
// ones up to at are the same, the job goes on with all that it knows. Else it does not take those that came due before
// at.
func (j *job) put(next *spec, at time.Time) (others bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.spec
	j.spec = next
	if before != nil {
		defer before.end()
	}
	switch {
	case next == nil:
		return false
	case before == nil:
	case next.sameTicks(before), next.continues(before, j.ticks.maxLedgerTick, newestOf(at, j.ticks.taken)):
		next.era = before.era
		j.ticks.next = upcoming{}
		return !next.sameTicks(before)
	default:
		next.era = before.era + 1
	}
	j.ticks = j.ticks.follow(before, next, at)
	return true
}

// sharesTicks reports whether the knowledge in ticks holds for a spec. The caller holds mu.
func (j *job) sharesTicks(sp *spec) bool { return j.spec != nil && j.spec.era == sp.era }

// start has ticks from at on be the job's to take.
func (j *job) start(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ticks.taken = j.spec.series.newest(at)
}

// setBack records that the clock was set back, to t or later. The newest tick that was taken then lies in the future,
// so only the ticks that came due before t count as taken. A job with the guarantee every-replica keeps what it took:
// no claim would stop a second run.
func (j *job) setBack(t time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spec != nil && j.spec.usesClaims() && j.ticks.taken.After(t) {
		j.ticks.taken = j.spec.series.newest(t)
	}
}

// overdue reports whether a tick that came due by t was taken by no wake.
func (j *job) overdue(t time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spec != nil && j.ticks.overdue(&j.spec.series, t)
}

// staysClaimed reports whether the job's ticks are claimed, and were so before its ticks last changed.
func (j *job) staysClaimed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spec.usesClaims() && j.ticks.fingerprint != lock.NoTicks
}

// registerEvery keeps the ledgers of the table's jobs from expiring.
const registerEvery = 24 * time.Hour

// registerDue reports whether Redis should be told of the job: at first, under each fingerprint, and daily, since Redis
// forgets a ledger that no replica registers.
func (j *job) registerDue(at time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return at.Sub(j.ticks.registered) >= registerEvery || j.spec != nil && j.ticks.fingerprint != j.spec.fingerprint()
}

// registration returns what Redis is told of the job; no spec if it has left the table.
func (j *job) registration(at time.Time) (sp *spec, known lock.Before) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spec != nil {
		known = j.ticks.registration(j.spec, at)
	}
	return j.spec, known
}

// registeredAs records Redis' answer to the registration of a spec.
func (j *job) registeredAs(sp *spec, l lock.Ledger) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sharesTicks(sp) {
		j.ticks.registeredAs(sp.fingerprint(), l)
	}
}

// forget has the next look register the job again.
func (j *job) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ticks.registered = time.Time{}
}

// bornAt is when Redis' memory of the job began.
func (j *job) bornAt() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ticks.born
}

// cameBack is when the job came back after no replica had it. Not ok: Redis has not been told of it yet.
func (j *job) cameBack() (at time.Time, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ticks.back, !j.ticks.registered.IsZero()
}

// isKnown reports whether Redis has been told of the job's present ticks.
func (j *job) isKnown() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.ticks.since.IsZero()
}

// known is the knowledge of a spec's ticks; nothing if the job has other ticks now.
func (j *job) known(sp *spec) ticks {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.sharesTicks(sp) {
		return ticks{}
	}
	return j.ticks
}

// mayHaveLedger reports whether Redis may believe that the job's ticks are claimed.
func (j *job) mayHaveLedger() bool { return j.inForce().usesClaims() || !j.isKnown() }

// setPauses records which pauses a job has.
func (j *job) setPauses(standing service.Ledger) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pauses = [2]*service.Pause{standing.Paused, standing.PausedAll}
}

// take tells which tick a timer woke for, which gocron does not: see ticks.take. The wake then has to be closed.
func (j *job) take(upTo time.Time) (wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spec == nil {
		return wake{}, false
	}
	tick, ok := j.ticks.take(&j.spec.series, upTo)
	if !ok {
		return wake{}, false
	}
	return j.tableWake(tick, upTo), true
}

// missedTick returns a wake for a tick that came due and whose fate this replica does not know: no replica was there,
// or Redis was not. Replicas check this continuously: a client that hides an outage also hides its end. The wake then
// has to be closed.
func (j *job) missedTick(at time.Time) (wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spec == nil || !j.ticks.missedTick(&j.spec.series, at) ||
		!j.spec.usesClaims() || j.spec.Missed == config.Skip || j.spec.asks() {
		return wake{}, false
	}
	w := j.tableWake(j.ticks.taken, at)
	w.kind = kindCatchup
	return w, true
}

// tableWake is a wake for a tick that comes due by an instant, or came due before. It is called with mu locked.
func (j *job) tableWake(tick, by time.Time) wake {
	j.ticks.asking++
	due, kind := j.spec.series.due(tick), kindSchedule
	if by.Sub(due) > punctual {
		kind = kindCatchup
	}
	return wake{job: j, spec: j.spec, tick: tick, due: due, kind: kind, attempt: 1, asking: true}
}

// dueWake is the wake for a member of the due set. A manual run is due at once: its tick is by Redis' clock, and only
// ticks of the table have jitter.
func (j *job) dueWake(sp *spec, d lock.Due, now time.Time) *wake {
	w := &wake{job: j, spec: sp, tick: d.Tick, due: sp.series.due(d.Tick), kind: d.Kind, attempt: d.Attempt,
		of: d, member: d.Member(), claimed: true}
	if w.byHand() {
		w.due = oldestOf(now, d.Tick)
	}
	return w
}
