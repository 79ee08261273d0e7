package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
)

// maxWaiting bounds how many members of the due set States and Timers read in addition to those they look for.
const maxWaiting = 1000

// JobState is what Redis knows of a job at one moment.
type JobState struct {
	Tick      time.Time // newest tick claimed or settled
	Token     int64     // of the newest run
	By        string    // replica that claimed last; "" = none did
	Paused    *Pause    // the job's own pause; nil = there is none
	PausedAll *Pause    // the pause of all jobs; nil = there is none
	PausedTo  time.Time // end of the last pause; zero = there was none
	Running   []RunState
	Waiting   []lock.Due // ticks to fire besides the table, by the time from which they are due; queued ticks last
	Last      *Entry     // the run that was settled last; nil = there is none

	// How the ticks of the schedule fare, leaving out runs by hand.
	Since        time.Time // when Redis first saw the present series of ticks
	Scheduled    *Entry    // the run that ended the newest tick; nil = none did
	Missed       *Entry    // the ticks that were last found missed; nil = there are none
	MissedToday  int64     // ticks that were found missed in the present day of UTC
	Streak       int64     // ticks in a row that failed; 0 = the newest did not
	FailingSince time.Time // when the first tick of the streak failed; zero = there is no streak
	LastSuccess  time.Time // zero = none is known to have succeeded
	LastFailure  time.Time // zero = none is known to have failed
}

// IsPaused tells whether a pause holds the job back, its own or the pause of all jobs.
func (s JobState) IsPaused() bool { return s.Paused != nil || s.PausedAll != nil }

// Pause is one of the two pauses that a job can have.
type Pause struct {
	Until  time.Time // zero = until it is resumed
	At     time.Time // when it was paused
	Reason string    // one line
	By     string    // who paused it; "" = not known
}

// OwnRuns is what a replica itself ran of a job.
type OwnRuns struct {
	Running []RunState // without the ends of their leases
	Last    *Entry     // the run that ended last; nil = none did
}

// RunState is one run that is not settled. Its replica may have died: then a takeover follows LeaseEnd.
type RunState struct {
	Run      string
	Since    time.Time // when it was claimed
	LeaseEnd time.Time // when its lease ends unless it is renewed
	lock.Record
}

// States reads, in one round trip, what Redis knows of the jobs. The map leaves out jobs that Redis does not know.
// States reads the first thousand due members; timers do not count among them. Times are Redis'.
func (s *Store) States(ctx context.Context, jobs []string) (map[string]JobState, error) {
	ctx, cancel := context.WithTimeout(ctx, s.redis.Timeout())
	defer cancel()
	rdb, err := s.redis.Server(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the state of %d jobs: %w", len(jobs), err)
	}
	pipe := rdb.Pipeline()
	sent := s.redis.Boottime()
	at := pipe.Time(ctx)
	// The pipeline reads the due set before the runs: if a tick is claimed in between, States sees it twice, not never.
	due := pipe.ZRange(ctx, s.redis.Keys.DueJobs, 0, maxWaiting-1)
	running := pipe.ZRangeWithScores(ctx, s.redis.Keys.Running, 0, -1)
	ledgers := make(map[string]*redis.MapStringStringCmd, len(jobs))
	for _, job := range jobs {
		ledgers[job] = pipe.HGetAll(ctx, s.redis.Keys.Ledger(job))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("reading the state of %d jobs: %w", len(jobs), err)
	}
	s.redis.Observe(sent, at.Val())

	states := map[string]JobState{}
	for job, ledger := range ledgers {
		if fields := ledger.Val(); fields["born"] != "" {
			states[job] = readLedger(job, fields, at.Val())
		}
	}
	addWaiting(states, due.Val())
	addRunning(states, running.Val(), ledgers)
	for job, state := range states {
		if _, entry, ok := strings.Cut(ledgers[job].Val()["behind"], "+"); ok { // the tick that waits for the end of the runs
			tick, _, _ := strings.Cut(entry, "@")
			state.Waiting = append(state.Waiting, lock.Due{Tick: rds.FromMillis(rds.Number(tick)), Job: job, Kind: "catchup", Attempt: 1})
			states[job] = state
		}
	}
	return states, nil
}

// readLedger makes a state of the fields of the ledger.
func readLedger(job string, fields map[string]string, now time.Time) JobState {
	state := JobState{Tick: rds.FromMillis(rds.Number(fields["tick"])), Token: rds.Number(fields["token"]), By: fields["by"],
		PausedTo: rds.FromMillis(rds.Number(fields["pausedTo"]))}
	for field, held := range map[string]**Pause{"paused": &state.Paused, "pausedAll": &state.PausedAll} {
		note, ok := fields[field]
		switch p := parsePause(note); {
		case !ok:
		case p.Until.IsZero() || now.Before(p.Until):
			*held = &p
		case p.Until.After(state.PausedTo): // over, and no operator has resumed the job
			state.PausedTo = p.Until
		}
	}
	state.Last = readEntry(job, fields["done"])
	state.Scheduled = readEntry(job, fields["scheduled"])
	state.Missed = readEntry(job, fields["lastMissed"])
	day, count, _ := strings.Cut(fields["missedToday"], " ")
	if rds.Number(day) == now.UnixMilli()/(24*time.Hour).Milliseconds() {
		state.MissedToday = rds.Number(count)
	}
	at := func(field string) time.Time { return rds.FromMillis(rds.Number(fields[field])) }
	state.Since, state.LastSuccess, state.LastFailure = at("since"), at("lastSuccess"), at("lastFailure")
	if state.Streak = rds.Number(fields["streak"]); state.Streak > 0 { // the scripts leave the beginning of the last one
		state.FailingSince = at("failingSince")
	}
	return state
}

// readEntry reads an entry that the ledger keeps; nil if there is none. Entries that a script writes do not name the job.
func readEntry(job, text string) *Entry {
	e, err := parseEntry(text)
	if err != nil {
		return nil
	}
	e.Job = job
	return &e
}

// parsePause reads `<end ms, 0 = none> <at ms> <reason>` and, behind a line feed, who paused.
func parsePause(note string) Pause {
	end, rest, _ := strings.Cut(note, " ")
	at, rest, _ := strings.Cut(rest, " ")
	reason, by, _ := strings.Cut(rest, "\n")
	return Pause{Until: rds.FromMillis(rds.Number(end)), At: rds.FromMillis(rds.Number(at)), Reason: text.OneLine(reason), By: text.OneLine(by)}
}

// addWaiting adds due members to the states of their jobs. It leaves alone what another version wrote.
func addWaiting(states map[string]JobState, members []string) {
	for _, member := range members {
		d, err := lock.ParseDue(member)
		if state, ok := states[d.Job]; err == nil && ok {
			state.Waiting = append(state.Waiting, d)
			states[d.Job] = state
		}
	}
}

// addRunning adds the runs to the states of their jobs, oldest first.
func addRunning(states map[string]JobState, running []redis.Z, ledgers map[string]*redis.MapStringStringCmd) {
	for _, z := range running {
		member, _ := z.Member.(string)
		run, job, _ := strings.Cut(member, " ")
		state, ok := states[job]
		if !ok {
			continue
		}
		record, err := lock.ParseRecord(ledgers[job].Val()["r:"+run])
		if err != nil { // it has ended meanwhile
			continue
		}
		state.Running = append(state.Running, RunState{Run: run, Since: record.Claimed, LeaseEnd: rds.FromMillis(int64(z.Score)), Record: record})
		slices.SortStableFunc(state.Running, func(a, b RunState) int { return a.Since.Compare(b.Since) })
		states[job] = state
	}
}
