package service

import (
	"context"
	"slices"
	"time"
)

// TickFates are what became of the newest ticks of a job, in the order in which that was decided.
type TickFates []Entry

// TickFates reads them. States reads the ledger before: then a tick that ends meanwhile is in both.
func (s *Store) TickFates(ctx context.Context, job string) (TickFates, error) {
	ended := func(all []*stored) ([]*stored, func(*stored) bool) {
		all = slices.DeleteFunc(slices.Clone(all), func(e *stored) bool { return !e.tick })
		return all, func(*stored) bool { return len(all) < 10_000 }
	}
	found, err := s.read(ctx, backwards{}, []string{s.redis.Keys.History(job)}, ended)
	fates := make(TickFates, 0, len(found))
	for _, e := range slices.Backward(found) {
		fates = append(fates, e.Entry)
	}
	return fates, err
}

// Fate returns what became of a tick: the entry of its last run or, if it had none, that of the shortest interval in
// which it lies. An operator's run of the tick is not among them: see Again. It returns nil if nothing is known.
func (t TickFates) Fate(tick time.Time) *Entry {
	var found *Entry
	for i := range t {
		e := &t[i]
		switch {
		case e.Kind == "backfill", tick.After(e.Tick), tick.Before(e.Tick) && (e.Count == 0 || tick.Before(e.First)):
		case e.Count == 0, found == nil, found.Count > 0 && e.Tick.Sub(e.First) < found.Tick.Sub(found.First):
			found = e
		}
	}
	return found
}

// Again returns the runs of a tick that an operator asked for, in the order in which they ended.
func (t TickFates) Again(tick time.Time) (runs []Entry) {
	for _, e := range t {
		if e.Kind == "backfill" && e.Tick.Equal(tick) {
			runs = append(runs, e)
		}
	}
	return runs
}

// Run returns the entry of a run; nil if it is not among the newest.
func (t TickFates) Run(id string) *Entry {
	for i := range t {
		if t[i].Run == id && t[i].Count == 0 {
			return &t[i]
		}
	}
	return nil
}
