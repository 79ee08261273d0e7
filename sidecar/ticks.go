package sidecar

import (
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// ticks is what a replica knows of a job's ticks. It belongs to one series of them: when the schedule changes, nothing of it
// holds any more. The job that has it guards it.
type ticks struct {
	taken          time.Time // newest that a wake of this replica took
	settled        time.Time // newest of which this replica knows what became of it
	ledgerTick     time.Time // newest claimed, as Redis last said: a failover may forget
	maxLedgerTick  time.Time // newest that Redis ever said to be claimed
	overlappedTick time.Time // newest that this replica was refused for a run in its way
	pausedTick     time.Time // newest that this replica was refused for a pause
	pausedTo       time.Time // end of the last pause, as Redis last said
	born           time.Time // when Redis' memory of the job began
	since          time.Time // when Redis first saw this series; zero = not known yet
	back           time.Time // when the job came back after no replica had it; zero = it never did
	registered     time.Time // when Redis was last told of the job, on this machine's clock
	returns        bool      // every replica ran the job before, and Redis has perhaps not been told
	asking         int       // wakes for ticks of the table that are not closed yet
}

// follow is the knowledge with which the next spec begins. No claim protects a tick that every replica has fired for itself, so the
// next spec must not take it again; on a clock that was set back, such a tick may lie in the future. A tick that was only taken is
// free again: a wake may take its tick long before it is due.
func (t ticks) follow(before, next *spec, at time.Time) ticks {
	n := ticks{taken: next.series.newest(at)}
	if before == nil {
		return n
	}
	n.returns = next.claims() && (t.returns || !before.claims())
	tick := next.series.schedule.Last(t.settled)
	if !before.claims() || !next.claims() && tick.Equal(t.settled) {
		n.taken, n.settled = newestOf(n.taken, tick), t.settled
	}
	return n
}

// take tells which tick is due at an instant: the newest that was not taken before. A late wake passes over older ticks, which
// the claim then counts as missed. A wake before its time, on a clock that was set back, takes the tick to come, and waits for it.
func (t *ticks) take(s *series, at time.Time) (time.Time, bool) {
	tick := s.newest(at)
	if !tick.After(t.taken) {
		if s.due(t.taken).After(at) {
			return time.Time{}, false
		}
		tick = s.schedule.Next(t.taken)
	}
	if tick.IsZero() {
		return time.Time{}, false
	}
	t.taken = tick
	return tick, true
}

// owe tells whether the newest tick that was taken has come due, nothing is known of it, and no wake asks for it any more.
func (t *ticks) missedTick(s *series, at time.Time) bool {
	return !t.registered.IsZero() && t.asking == 0 && t.taken.After(newestOf(t.settled, t.since, t.pausedTo)) && !s.due(t.taken).After(at)
}

// close ends the asking of a wake for a tick. known says that it is clear what became of it.
func (t *ticks) close(tick time.Time, known bool) {
	t.asking--
	if known {
		t.settled = newestOf(t.settled, tick)
	}
}

// heard records Redis' answer to the claim of a tick. fromTable tells that the claim was not for a due member. True when the answer
// comes from another ledger than the registered one: Redis has lost its data. The knowledge from before stays until
// the job is registered again.
func (t *ticks) observe(tick time.Time, fromTable bool, a lock.Answer) (lost bool) {
	if !t.born.IsZero() && !a.Born.IsZero() && !a.Born.Equal(t.born) {
		t.registered = time.Time{}
		t.settled = newestOf(t.settled, tick)
		return true
	}
	if !a.Prev.IsZero() {
		t.ledgerTick = a.Prev
	}
	if fromTable && (a.Code == lock.Won || a.Code == lock.Queued) {
		t.ledgerTick = tick
	}
	switch {
	case a.Code == lock.Overlap:
		t.overlappedTick = newestOf(t.overlappedTick, tick)
	case a.Code == lock.Paused && fromTable:
		t.pausedTick = newestOf(t.pausedTick, tick)
	}
	t.pausedTo = newestOf(t.pausedTo, a.PausedTo)
	t.maxLedgerTick = newestOf(t.maxLedgerTick, t.ledgerTick)
	t.settled = newestOf(t.settled, t.ledgerTick)
	return false
}

// registeredAs records what Redis answered when it was told of the job.
func (t *ticks) registeredAs(l lock.Ledger) {
	t.born, t.since, t.back, t.registered, t.ledgerTick, t.returns = l.Born, l.Since, l.Back, time.Now(), l.Tick, false
	t.maxLedgerTick = newestOf(t.maxLedgerTick, l.Tick)
	t.settled = newestOf(t.settled, l.Tick)
}

// owes is what Redis is told of the job besides its fingerprint, in case it has lost its data: what this replica knew, and
// under at-least-once the ticks that came due since and are to be fired late.
func (t *ticks) before(sp *spec, at time.Time) lock.Before {
	b := lock.Before{
		Born:  t.born,
		Tick:  newestOf(t.maxLedgerTick, t.overlappedTick, t.pausedTick, t.since, t.pausedTo),
		Again: sp.Guarantee == config.AtLeastOnce,
	}
	if sp.Suspend { // it has missed nothing
		b.Born = time.Time{}
	}
	if !b.Again || b.Born.IsZero() {
		return b
	}
	most := 1
	switch sp.Missed {
	case config.All:
		most = maxOlder
	case config.Skip:
		return b
	}
	from := b.Tick
	if d := sp.StartingDeadline; d > 0 {
		from = newestOf(from, at.Add(-d))
	}
	b.Owed = sp.series.past(sp.series.between(from, sp.series.newest(at).Add(time.Nanosecond), most))
	return b
}
