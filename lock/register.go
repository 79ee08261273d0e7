package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/rds"
)

// Ledger is what Redis remembers of a job's ticks.
type Ledger struct {
	Born  time.Time // when it was made; ticks up to a second later, which may have been claimed early, count as settled
	Since time.Time // when the job's series of ticks last changed; nothing before was missed
	Tick  time.Time // newest tick claimed
	Back  time.Time // when the job came back after no replica had it; zero = never. Earlier ticks are not fired
}

// Before is what a replica knew of a job's ledger before it registers the job. If Redis has lost its data since, the
// replica's knowledge is all that is left of the ledger. The zero value stands for a replica that knew nothing.
type Before struct {
	Born    time.Time // when the ledger that it knew was made
	Tick    time.Time // newest tick that it knows to be settled; zero = nothing was missed
	As      string    // fingerprint that it had registered: the newest ticks are the same under the new one
	Claimed time.Time // newest tick that Redis called claimed: at-most-once keeps it, even if Redis has forgotten it
	Again   bool      // at-least-once: ticks may be fired again, and none may be lost
	Owed    []Past    // at-least-once: the ticks since Tick that must be fired late, in order
}

// NoTicks is the fingerprint of a job whose ticks no replica claims: the job has left the table, or runs on every
// replica. If replicas claim its ticks again later, the job has missed nothing in between, and no replica fires a tick
// that was due before.
const NoTicks = "none"

// Register makes a job's ledger known to Redis. A replica calls it when it loads a table, and not when it claims: a job
// whose ledger is new cannot fire a tick from before that moment, nor from the second after it. The fingerprint stands
// for the series of the job's ticks; a changed fingerprint starts the series anew. A repeated call changes nothing else
// and prolongs the ledger's life.
func (s *Store) Register(ctx context.Context, job, fingerprint string) (Ledger, error) {
	return s.RegisterAgain(ctx, job, fingerprint, Before{})
}

// RegisterAgain is Register for a replica that may have known the job's ledger. If Redis has lost that one, the ticks
// since known.Tick become a gap, which is counted as missed, but those in known.Owed become due, once for all replicas.
// If Redis still has it, its series of ticks stays as it is: in a rollout, another replica has registered a newer one.
//
// A copy that comes late changes nothing: it must not begin the ticks anew that another replica has registered since.
func (s *Store) RegisterAgain(ctx context.Context, job, fingerprint string, known Before) (l Ledger, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("registering job %q: %w", job, err)
		}
	}()
	if err := rds.OneWord("job", job); err != nil {
		return l, err
	}
	args := []any{fingerprint, nil}
	if known.Again || !known.Born.IsZero() || known.As != "" {
		args = append(args, rds.Millis(known.Born), rds.Millis(known.Tick), known.Again, s.redis.Keys.Events,
			rds.Millis(known.Claimed), known.As)
		nonce := uuid.NewString()
		for _, p := range known.Owed {
			args = append(args, Due{Tick: p.Tick, Job: job, Kind: "catchup", Attempt: 1, Nonce: nonce}.Member())
		}
	}
	keys := []string{s.redis.Keys.Ledger(job), s.redis.Keys.DueJobs, s.redis.Keys.History(job),
		s.redis.Keys.Failures(job), s.redis.Keys.Prefix + "runs"}
	for try := 0; ; try++ {
		at, err := s.redis.Time(ctx)
		if err != nil {
			return l, err
		}
		args[1] = rds.Millis(at.Add(2 * s.redis.Timeout())) // as long as a copy can take to be sent and answered
		parts, err := s.redis.Call(ctx, registerScript, 0, keys, args...)
		if err != nil {
			return l, err
		}
		if parts[len(parts)-1] != string(Stale) {
			return parseLedger(parts)
		}
		if !beat.Sleep(ctx, rds.Backoff(try)) { // the estimate of Redis' clock was wrong; this answer corrected it
			return l, context.Cause(ctx)
		}
	}
}

// parseLedger reads the answer to a registration.
func parseLedger(parts []any) (l Ledger, err error) {
	if len(parts) != 5 {
		return l, rds.Unexpected(parts)
	}
	for i, at := range []*time.Time{new(time.Time), &l.Born, &l.Since, &l.Tick, &l.Back} {
		n, err := rds.Integer(parts[i])
		if err != nil {
			return Ledger{}, err
		}
		*at = rds.FromMillis(n)
	}
	return l, nil
}
