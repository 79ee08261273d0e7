package service

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/lock"
)

// TickRecord is what Redis knows of the ticks of a job at one moment, besides its JobState.
type TickRecord struct {
	Born   time.Time // when the job's ledger was made; zero = Redis does not know the job
	Since  time.Time // when its schedule last changed
	Newest time.Time // newest tick that was claimed or settled
	Behind []Behind
	Gaps   []lock.Interval // what no replica has counted yet
	Fates  []Entry         // of the newest ticks, in the order in which they were decided
}

// Behind is a tick that came due while a run of its job lived.
type Behind struct {
	Tick  time.Time
	Waits bool // it is run when the run ends; otherwise only if the run turns out to have been dead
}

// TickRecord reads, in one round trip, what Redis knows of a job's ticks.
func (s *Store) TickRecord(ctx context.Context, job string) (*TickRecord, error) {
	if err := rds.OneWord("job", job); err != nil {
		return nil, fmt.Errorf("reading the ticks: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.redis.Timeout())
	defer cancel()
	rdb, err := s.redis.Server(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the ticks of job %q: %w", job, err)
	}
	pipe := rdb.Pipeline()
	ledger := pipe.Do(ctx, "hmget", s.redis.Keys.Ledger(job), "born", "since", "tick", "behind", "gaps") // HMGet takes any number for a length
	fates := pipe.XRevRangeN(ctx, s.redis.Keys.Fates(job), "+", "-", maxHistory)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("reading the ticks of job %q: %w", job, err)
	}
	values, ok := ledger.Val().([]any)
	if !ok || len(values) != 5 {
		return nil, fmt.Errorf("reading the ticks of job %q: %w", job, rds.Unexpected(ledger.Val()))
	}
	field := func(i int) string {
		text, _ := values[i].(string)
		return text
	}
	at := func(i int) time.Time { return rds.FromMillis(rds.Number(field(i))) }
	t := &TickRecord{Born: at(0), Since: at(1), Newest: at(2)}
	for entry := range strings.FieldsSeq(field(3)) {
		tick, _, _ := strings.Cut(entry[1:], "@")
		t.Behind = append(t.Behind, Behind{rds.FromMillis(rds.Number(tick)), entry[0] == '+'})
	}
	t.Gaps, _ = lock.ParseGaps(field(4)) // what another version wrote is left alone
	all := fates.Val()
	for i := range all {
		text, _ := all[len(all)-1-i].Values["run"].(string)
		if e, err := parseEntry(text); err == nil {
			e.Job = job
			t.Fates = append(t.Fates, e)
		}
	}
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
