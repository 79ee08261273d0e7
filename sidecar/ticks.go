package sidecar

import (
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// ticks is what a replica knows of a job's ticks. It belongs to one series of ticks: when the schedule changes, none
// of it holds any more. The job that owns it guards it.
type ticks struct {
	taken          time.Time // newest that a wake of this replica took
	knownTo        time.Time // newest whose fate this replica knows
	ledgerTick     time.Time // newest claimed, by Redis' last answer: after a failover it may be older
	maxLedgerTick  time.Time // newest claimed, by any answer of Redis
	overlappedTick time.Time // newest that this replica was refused for a run in its way
	pausedTick     time.Time // newest that this replica was refused for a pause
	pausedTo       time.Time // end of the last pause, by Redis' last answer
	born           time.Time // when Redis' memory of the job began
	since          time.Time // when Redis first saw this series; zero = not known yet
	back           time.Time // when the job came back after no replica had it; zero = it never did
	fingerprint    string    // that Redis has; NoTicks = every replica ran the job before; "" = none
	registered     time.Time // when Redis was last told of the job, on this machine's clock
	asking         int       // wakes for ticks of the table that are not closed yet
	next           upcoming
}

// upcoming is when the first tick after a taken one comes due. It saves a search through the calendar: all jobs are
// asked for it at each beat.
type upcoming struct {
	known bool
	taken time.Time // the tick before it
	due   time.Time // zero = no more ticks
}

// overdue reports whether a tick that came due by an instant was not taken.
func (t *ticks) overdue(s *series, at time.Time) bool {
	if !t.next.known || !t.next.taken.Equal(t.taken) {
		t.next = upcoming{true, t.taken, s.due(s.schedule.Next(t.taken))}
	}
	return !t.next.due.IsZero() && !t.next.due.After(at)
}

// follow returns the knowledge with which the next spec begins. No claim protects a tick that this replica fired
// under every-replica, so the next spec must not take it again, and Redis is told. If the clock was set back, such a
// tick may lie in the future. A tick that was only taken is free again: a wake may take its tick long before it is due.
func (t ticks) follow(before, next *spec, at time.Time) ticks {
	n := ticks{taken: next.series.newest(at)}
	if before == nil {
		return n
	}
	if !before.usesClaims() || t.fingerprint == lock.NoTicks {
		n.fingerprint = lock.NoTicks
	}
	tick := next.series.schedule.Last(t.knownTo)
	if !before.usesClaims() || !next.usesClaims() && tick.Equal(t.knownTo) {
		n.taken, n.knownTo = newestOf(n.taken, tick), t.knownTo
	}
	return n
}

// take returns the tick for a wake: the newest one that comes due up to an instant, unless it was taken before. A late
// wake passes over older ticks; its claim counts them as missed.
func (t *ticks) take(s *series, upTo time.Time) (time.Time, bool) {
	tick := s.newest(upTo)
	if !tick.After(t.taken) {
		return time.Time{}, false
	}
	t.taken = tick
	return tick, true
}

// missedTick reports whether the newest tick that was taken has come due, its fate is not known, and no wake asks for
// it.
func (t *ticks) missedTick(s *series, at time.Time) bool {
	return t.taken.After(t.knownTo) && t.taken.After(t.since) && t.taken.After(t.pausedTo) &&
		!t.registered.IsZero() && t.asking == 0 && !s.due(t.taken).After(at)
}

// close ends the question of a wake for a tick. known tells that the fate of the tick is known.
func (t *ticks) close(tick time.Time, known bool) {
	t.asking--
	if known {
		t.knownTo = newestOf(t.knownTo, tick)
	}
}

// observe records Redis' answer to the claim of a tick. fromTable tells that the claim was not for a due member. True
// if the answer comes from another ledger than the registered one: Redis has lost its data. In that case the replica
// keeps its knowledge until the job is registered again.
func (t *ticks) observe(tick time.Time, fromTable bool, a lock.Answer) (lost bool) {
	if !t.born.IsZero() && !a.Born.IsZero() && !a.Born.Equal(t.born) {
		t.registered = time.Time{}
		t.knownTo = newestOf(t.knownTo, tick)
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
	t.knownTo = newestOf(t.knownTo, t.ledgerTick)
	return false
}

// registeredAs records Redis' answer to a registration.
func (t *ticks) registeredAs(fingerprint string, l lock.Ledger) {
	t.fingerprint, t.registered = fingerprint, time.Now()
	t.born, t.since, t.back, t.ledgerTick = l.Born, l.Since, l.Back, l.Tick
	t.maxLedgerTick = newestOf(t.maxLedgerTick, l.Tick)
	t.knownTo = newestOf(t.knownTo, l.Tick)
}

// registration is what this replica knew of the job, which Redis is told in case it has lost its data. Under
// at-least-once that includes the ticks that came due since and have to be fired late.
func (t *ticks) registration(sp *spec, at time.Time) lock.Before {
	b := lock.Before{
		Born:    t.born,
		Tick:    newestOf(t.maxLedgerTick, t.overlappedTick, t.pausedTick, t.since, t.pausedTo),
		As:      t.fingerprint,
		Claimed: t.maxLedgerTick,
		Again:   sp.Guarantee == config.AtLeastOnce,
	}
	if sp.Suspend { // it has missed nothing
		b.Tick = time.Time{}
		return b
	}
	if !b.Again || b.Born.IsZero() || sp.Missed == config.Skip {
		return b
	}
	most := 1
	if sp.Missed == config.All {
		most = maxOlder
	}
	from := b.Tick
	if d := sp.StartingDeadline; d > 0 {
		from = newestOf(from, at.Add(-d))
	}
	b.Owed = sp.series.past(sp.series.between(from, sp.series.newest(at).Add(time.Nanosecond), most))
	return b
}
