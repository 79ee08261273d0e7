package lock

import (
	"context"
	"fmt"
	"time"
)

// Settled is what became of a settlement.
type Settled string

const (
	OK    Settled = "OK"
	Late  Settled = "LATE"  // the run had been taken over before
	None  Settled = "NONE"  // nothing is known of the run: settled before, or lost with Redis' data
	moved Settled = "MOVED" // not reaped: its lease was extended meanwhile
)

// Finish writes down that the run is over: outcome into the history (entry: field, value, …), lease gone, what waited
// behind the run set free. The lock lives on for delay, and needs nobody for its end. A Finish whose answer was lost is
// repeated; the error, when Redis stays away until ctx ends, leaves the run to a takeover.
func (l *Lease) Finish(ctx context.Context, delay time.Duration, entry ...any) (Settled, error) {
	if l.claim.Policy == Allow {
		delay = 0 // a lock per tick protects nothing afterwards
	}
	return l.settle(ctx, "finish", delay, "", 0, entry...)
}

// Handover gives the tick to another replica, because the run could not even be started; this one stands back first. The
// tick becomes due after wait.
func (l *Lease) Handover(ctx context.Context, wait time.Duration, entry ...any) (Settled, error) {
	d := l.due()
	d.Kind = "handover"
	d.Handovers++
	d.Avoid = l.claim.Replica
	return l.settle(ctx, "handover", 0, d.Member(), wait, entry...)
}

// abandon gives back what a copy of the claim that was never answered may have claimed.
func (l *Lease) abandon(ctx context.Context) error {
	limit := l.claim.TTL
	if l.store.ending.Err() != nil {
		limit = l.store.burst.timeout // one more try
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := l.settle(ctx, "abandon", 0, l.due().Member(), 0)
	return err
}

// Release deletes the lock before its safety delay has run out; the delay itself is the caller's. Not needed for
// correctness: Finish made the lock expire.
func (l *Lease) Release(ctx context.Context) error {
	c, s := &l.claim, l.store
	if _, err := s.run(ctx, releaseScript, []string{s.keys.lock(c.Job, c.slot()), s.keys.ledger(c.Job)}, c.Run, c.slot()); err != nil {
		return fmt.Errorf("releasing the lock of %q: %w", c.Job, err)
	}
	return nil
}

// due is this run's tick as a member of the due set.
func (l *Lease) due() Due {
	c := &l.claim
	return Due{Tick: c.Tick, Job: c.Job, Kind: c.Kind, Attempt: c.Attempt, Handovers: c.Handovers, Nonce: c.Run}
}

func (l *Lease) settle(ctx context.Context, verb string, delay time.Duration, again string, wait time.Duration, entry ...any) (Settled, error) {
	return l.store.settle(ctx, &l.claim, verb, delay, again, wait, 0, entry)
}

// settle repeats a settlement until it is answered or ctx ends. Each verb is harmless when it is run twice.
func (s *Store) settle(ctx context.Context, c *Claim, verb string, delay time.Duration, again string, wait time.Duration,
	leaseEnd int64, entry []any) (Settled, error) {
	waiting := Due{Job: c.Job, Kind: "catchup", Attempt: 1, Nonce: c.Run}
	args := append([]any{verb, c.Run, c.Job, c.slot(), delay.Milliseconds(), again, wait.Milliseconds(), waiting.suffix(), leaseEnd}, entry...)
	keys := []string{s.keys.lock(c.Job, c.slot()), s.keys.ledger(c.Job), s.keys.running, s.keys.due, s.keys.runs}
	for try := 0; ; try++ {
		parts, err := s.call(ctx, settleScript, 1, keys, args...)
		if err == nil {
			code, _ := parts[0].(string)
			return Settled(code), nil
		}
		if !pause(ctx, backoff(try)) {
			return "", fmt.Errorf("settling (%s) the run of %q: %w: %w", verb, c.Job, ErrNoAnswer, err)
		}
	}
}
