package service

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

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

// standingFields are the fields of the ledger that Standings reads; the counts of fates follow them.
var standingFields = []any{"lastSuccess", "lastFailure", "failingSince", "streak", "since", "paused", "pausedAll", "pausedTo"}

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
	ledgers := make([]*redis.Cmd, len(jobs))
	for i, job := range jobs {
		args := append([]any{"hmget", s.redis.Keys.Ledger(job)}, standingFields...)
		for _, fate := range Fates {
			args = append(args, "fate:"+fate)
		}
		ledgers[i] = pipe.Do(ctx, args...) // go-redis' own HMGet takes any number for the length of an array
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("reading how %d jobs fare: %w", len(jobs), err)
	}
	s.redis.Observe(sent, at.Val())
	all := make([]Standing, len(jobs))
	for i, ledger := range ledgers {
		values, ok := ledger.Val().([]any)
		if !ok || len(values) != len(standingFields)+len(Fates) {
			return nil, fmt.Errorf("reading how job %s fares: %w", jobs[i], rds.Unexpected(ledger.Val()))
		}
		all[i] = readStanding(values, at.Val())
	}
	return all, nil
}

func readStanding(values []any, now time.Time) Standing {
	text := func(i int) string {
		t, _ := values[i].(string)
		return t
	}
	number := func(i int) int64 { return max(rds.Number(text(i)), 0) }
	when := func(i int) time.Time { return rds.FromMillis(number(i)) }
	st := Standing{LastSuccess: when(0), LastFailure: when(1), FailingSince: when(2), Streak: number(3), Since: when(4), PausedTo: when(7)}
	if st.Streak == 0 { // the scripts leave the beginning of the last one
		st.FailingSince = time.Time{}
	}
	for _, i := range []int{5, 6} {
		note := text(i)
		switch p := parsePause(note); {
		case note == "":
		case p.Until.IsZero() || now.Before(p.Until):
			st.Paused = true
		case p.Until.After(st.PausedTo): // over, and no operator has resumed the job
			st.PausedTo = p.Until
		}
	}
	for i := range Fates {
		st.Fates[i] = number(len(standingFields) + i)
	}
	return st
}
