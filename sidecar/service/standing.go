package service

import (
	"context"
	"fmt"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// Standing is how a job fares in the cluster, as the scripts record it in the ledger. Times are Redis'.
type Standing struct {
	LastSuccess  time.Time         // when a tick's run last succeeded; zero = none is known to have
	LastFailure  time.Time         // when a tick's run last failed; zero = none is known to have
	FailingSince time.Time         // when the first tick of the streak failed; zero = there is no streak
	Streak       int64             // ticks in a row that failed; 0 = the newest did not
	Fates        [len(Fates)]int64 // ticks by fate, in the order of the names
	Since        time.Time         // when Redis first saw the present series of ticks; zero = Redis does not know the job
	Paused       bool              // a pause holds the job back, its own or the pause of all jobs
	PausedTo     time.Time         // end of the last pause; zero = there was none
}

// standingFields are the fields of the ledger that Standings reads.
var standingFields = func() []string {
	names := []string{"lastSuccess", "lastFailure", "failingSince", "streak", "since", "paused", "pausedAll", "pausedTo"}
	for _, fate := range Fates {
		names = append(names, "fate:"+fate)
	}
	return names
}()

// Standings reads how the jobs fare, in one round trip. A job that Redis does not know has the zero Standing.
func (s *Store) Standings(ctx context.Context, jobs []string) ([]Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, s.redis.Timeout())
	defer cancel()
	rdb, err := s.redis.Server(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading how %d jobs fare: %w", len(jobs), err)
	}
	pipe := rdb.Pipeline()
	sent := s.redis.Boottime()
	at := pipe.Time(ctx)
	ledgers := make([]func() (map[string]string, error), len(jobs))
	for i, job := range jobs {
		ledgers[i] = s.askLedger(ctx, pipe, job, standingFields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("reading how %d jobs fare: %w", len(jobs), err)
	}
	s.redis.Observe(sent, at.Val())
	all := make([]Standing, len(jobs))
	for i, ledger := range ledgers {
		fields, err := ledger()
		if err != nil {
			return nil, fmt.Errorf("reading how job %s fares: %w", jobs[i], err)
		}
		l := readLedger(jobs[i], fields, at.Val())
		all[i] = Standing{LastSuccess: l.LastSuccess, LastFailure: l.LastFailure, FailingSince: l.FailingSince, Streak: l.Streak, Since: l.Since,
			Paused: l.IsPaused(), PausedTo: l.PausedTo}
		for f, fate := range Fates {
			all[i].Fates[f] = max(rds.Number(fields["fate:"+fate]), 0)
		}
	}
	return all, nil
}
