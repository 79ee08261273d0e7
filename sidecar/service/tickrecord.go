package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

// TickRecord is what Redis knows of the ticks of a job at one moment.
type TickRecord struct {
	Ledger         // Born, Since, Tick, Behind and Gaps alone
	Fates  []Entry // of the newest ticks, in the order in which they were decided
}

// TickRecord reads what Redis knows of a job's ticks.
func (s *Store) TickRecord(ctx context.Context, job string) (*TickRecord, error) {
	if err := rds.OneWord("job", job); err != nil {
		return nil, fmt.Errorf("reading the ticks: %w", err)
	}
	var ledger fields
	_, err := s.pipelined(ctx, func(pipe redis.Pipeliner) {
		ledger = askFields(ctx, pipe, s.redis.Keys.Ledger(job), "born", "since", "tick", "behind", "gaps")
	})
	var known map[string]string
	if err == nil {
		known, err = ledger()
	}
	t, next := &TickRecord{Ledger: readLedger(job, known, time.Time{})}, &Entry{}
	fates := []*page{{key: s.redis.Keys.Fates(job), next: "+", oldest: "-", size: historyPage}}
	for err == nil && len(t.Fates) < maxHistory {
		if next, err = s.newest(ctx, fates); next == nil {
			break
		}
		next.Job = job // scripts do not name it
		t.Fates = append(t.Fates, *next)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ticks of job %q: %w", job, err)
	}
	slices.Reverse(t.Fates)
	return t, nil
}

// Fate returns what became of a tick: the entry of its last run or, if it had none, that of the shortest interval in
// which it lies. An operator's run of the tick is not among them: see Again. It returns nil if nothing is known.
func (t *TickRecord) Fate(tick time.Time) *Entry {
	var found *Entry
	for i := range t.Fates {
		e := &t.Fates[i]
		switch {
		case e.Kind == "backfill" || tick.After(e.Tick) || tick.Before(e.Tick) && (e.Count == 0 || tick.Before(e.First)):
		case e.Count == 0, found == nil, found.Count > 0 && e.Tick.Sub(e.First) < found.Tick.Sub(found.First):
			found = e
		}
	}
	return found
}

// Again returns the runs of a tick that an operator asked for, in the order in which they ended.
func (t *TickRecord) Again(tick time.Time) (runs []Entry) {
	for _, e := range t.Fates {
		if e.Kind == "backfill" && e.Tick.Equal(tick) {
			runs = append(runs, e)
		}
	}
	return runs
}

// Run returns the entry of a run; nil if it is not among the newest.
func (t *TickRecord) Run(id string) *Entry {
	for i := range t.Fates {
		if t.Fates[i].Run == id && t.Fates[i].Count == 0 {
			return &t.Fates[i]
		}
	}
	return nil
}
