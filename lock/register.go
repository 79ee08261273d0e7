package lock

import (
	"context"
	"fmt"
	"time"
)

// Ledger is what Redis remembers of a job's ticks.
type Ledger struct {
	Born  time.Time // when it was made; ticks up to a second later, which may have been claimed early, count as settled
	Since time.Time // when the job's series of ticks last changed; nothing before was missed
	Tick  time.Time // newest tick claimed
}

// Register makes a job's ledger known to Redis. It belongs to the load of a table and not to a claim: a job whose ledger
// is new cannot fire a tick from before that moment, nor from the second after it. The fingerprint stands for the series
// of the job's ticks; another one than before starts the series anew. Calling it again changes nothing else and prolongs
// the ledger's life.
func (s *Store) Register(ctx context.Context, job, fingerprint string) (Ledger, error) {
	if err := oneWord("job", job); err != nil {
		return Ledger{}, fmt.Errorf("registering: %w", err)
	}
	parts, err := s.call(ctx, registerScript, 0, []string{s.keys.ledger(job)}, fingerprint, retention.Milliseconds())
	if err != nil {
		return Ledger{}, fmt.Errorf("registering job %q: %w", job, err)
	}
	var n [4]int64
	for i := range n {
		if n[i], err = integer(parts[min(i, len(parts)-1)]); err != nil {
			return Ledger{}, fmt.Errorf("registering job %q: %w", job, err)
		}
	}
	return Ledger{Born: fromMillis(n[1]), Since: fromMillis(n[2]), Tick: fromMillis(n[3])}, nil
}
