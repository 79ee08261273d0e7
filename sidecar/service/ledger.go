package service

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
)

const (
	maxWaiting = 1000   // bounds the due members that States reads
	maxRunning = 10_000 // bounds the runs that are read at once: those whose leases end first, which may be dead
)

// Ledger is what Redis knows of a job at one moment. Each of its readers fills in what it tells of.
type Ledger struct {
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
	Born         time.Time // when the ledger was made; zero = Redis does not know the job
	Since        time.Time // when Redis first saw the present series of ticks
	Scheduled    *Entry    // the run that ended the newest tick; nil = none did
	Missed       *Entry    // the ticks that were last found missed; nil = there are none
	MissedToday  int64     // ticks that were found missed in the present day of UTC
	Streak       int64     // ticks in a row that failed; 0 = the newest did not
	FailingSince time.Time // when the first tick of the streak failed; zero = there is no streak
	LastSuccess  time.Time // zero = none is known to have succeeded
	LastFailure  time.Time // zero = none is known to have failed
	Behind       []Behind
	Gaps         []lock.Interval   // what no replica has counted yet
	Counts       [len(Fates)]int64 // ticks by fate, in the order of the names

	// Of the ledger of all timers.
	Timers int64         // how many wait, without the times of schedules that have come
	Late   time.Duration // since when the oldest one that has come waits for a replica; 0 = none has come
}

// Behind is a tick that came due while a run of its job lived.
type Behind struct {
	Tick  time.Time
	Waits bool // it is run when the run ends; otherwise only if the run turns out to have been dead
}

// IsPaused reports whether a pause holds the job back, its own or the pause of all jobs.
func (l Ledger) IsPaused() bool { return l.Paused != nil || l.PausedAll != nil }

// Pause is one of the two pauses that a job can have.
type Pause struct {
	Until  time.Time // zero = until it is resumed
	At     time.Time // when it was paused
	Reason string    // one line
	By     string    // who paused it; "" = not known
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
func (s *Store) States(ctx context.Context, jobs []string) (map[string]Ledger, error) {
	var due *redis.StringSliceCmd
	var running *redis.ZSliceCmd
	ledgers := make(map[string]*redis.MapStringStringCmd, len(jobs))
	now, err := s.pipelined(ctx, func(pipe redis.Pipeliner) {
		// The pipeline reads the due set before the runs: if a tick is claimed in between, States sees it twice, not
		// never.
		due = pipe.ZRange(ctx, s.redis.Keys.DueJobs, 0, maxWaiting-1)
		running = pipe.ZRangeWithScores(ctx, s.redis.Keys.Running, 0, maxRunning-1)
		for _, job := range jobs {
			ledgers[job] = pipe.HGetAll(ctx, s.redis.Keys.Ledger(job))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the state of %d jobs: %w", len(jobs), err)
	}
	waiting, live := map[string][]lock.Due{}, map[string][]RunState{}
	for _, member := range due.Val() {
		if d, err := lock.ParseDue(member); err == nil { // else another version wrote it
			waiting[d.Job] = append(waiting[d.Job], d)
		}
	}
	for _, z := range running.Val() {
		member, _ := z.Member.(string)
		run, job, _ := strings.Cut(member, " ")
		job = rds.SeriesJob(job)
		if ledgers[job] == nil {
			continue
		}
		if r, err := lock.ParseRecord(ledgers[job].Val()["r:"+run]); err == nil { // else it has ended meanwhile
			live[job] = append(live[job], RunState{run, r.Claimed, rds.FromMillis(int64(z.Score)), r})
		}
	}
	states := map[string]Ledger{}
	for job, ledger := range ledgers {
		if ledger.Val()["born"] == "" {
			continue
		}
		l := readLedger(job, ledger.Val(), now)
		l.Running, l.Waiting = live[job], waiting[job]
		sort.SliceStable(l.Running, func(i, j int) bool { return l.Running[i].Since.Before(l.Running[j].Since) })
		for _, b := range l.Behind {
			if b.Waits {
				l.Waiting = append(l.Waiting, lock.Due{Tick: b.Tick, Job: job, Kind: "catchup", Attempt: 1})
			}
		}
		states[job] = l
	}
	return states, nil
}

// Standings reads how the jobs fare, in one round trip: their pauses, streaks and counts, and of TimerJobs how many
// timers wait. A job that Redis does not know has the zero Ledger.
func (s *Store) Standings(ctx context.Context, jobs []string) (map[string]Ledger, error) {
	want := []string{"lastSuccess", "lastFailure", "ended", "since", "paused", "pausedAll", "pausedTo"}
	for _, fate := range Fates {
		want = append(want, "fate:"+fate)
	}
	asked := make(map[string]fields, len(jobs))
	waiting := func(*Ledger, time.Time) {}
	now, err := s.pipelined(ctx, func(pipe redis.Pipeliner) {
		for _, job := range jobs {
			asked[job] = askFields(ctx, pipe, s.redis.Keys.Ledger(job), want...)
			if job == TimerJobs {
				waiting = s.askTimers(ctx, pipe)
			}
		}
	})
	standings := make(map[string]Ledger, len(jobs))
	for job, answer := range asked {
		fields, bad := answer()
		l := readLedger(job, fields, now)
		if job == TimerJobs {
			waiting(&l, now)
		}
		err, standings[job] = cmp.Or(err, bad), l
	}
	if err != nil {
		return nil, fmt.Errorf("reading how %d jobs fare: %w", len(jobs), err)
	}
	return standings, nil
}

// askTimers adds a question for the timers that wait to a pipeline. It reads the first thousand whose time has come.
func (s *Store) askTimers(ctx context.Context, pipe redis.Pipeliner) (answer func(of *Ledger, now time.Time)) {
	all := pipe.ZCard(ctx, s.redis.Keys.DueTimers)
	until, _ := s.Now()
	come := pipe.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: s.redis.Keys.DueTimers, ByScore: true, Start: 0,
		Stop: until.UnixMilli(), Count: maxWaiting})
	return func(of *Ledger, now time.Time) {
		of.Timers = all.Val()
		for i, z := range come.Val() {
			if i == 0 {
				of.Late = max(now.Sub(rds.FromMillis(int64(z.Score))), 0)
			}
			member, _ := z.Member.(string)
			if d, err := lock.ParseDue(member); err == nil && rds.IsOccurrence(d.Job) {
				of.Timers--
			}
		}
	}
}

// fields returns the fields of a hash that were asked for, when Redis has answered.
type fields func() (map[string]string, error)

// askFields adds a question for fields of a hash to a pipeline. A field that is missing is "".
func askFields(ctx context.Context, pipe redis.Pipeliner, key string, names ...string) fields {
	args := []any{"hmget", key}
	for _, name := range names {
		args = append(args, name)
	}
	cmd := pipe.Do(ctx, args...) // go-redis' own HMGet takes any number for the length of an array
	return func() (map[string]string, error) {
		values, _ := cmd.Val().([]any)
		if len(values) != len(names) {
			return nil, rds.Unexpected(cmd.Val())
		}
		read := make(map[string]string, len(names))
		for i, value := range values {
			read[names[i]], _ = value.(string)
		}
		return read, nil
	}
}

// readLedger reads those fields of the ledger of a job that are there.
func readLedger(job string, fields map[string]string, now time.Time) Ledger {
	number := func(field string) int64 { return max(rds.Number(fields[field]), 0) }
	at := func(field string) time.Time { return rds.FromMillis(number(field)) }
	entry := func(field string) *Entry { // nil if there is none
		e, err := parseEntry(fields[field])
		if err != nil {
			return nil
		}
		e.Job = job // which a script that writes an entry does not name
		return &e
	}
	l := Ledger{Tick: at("tick"), Token: number("token"), By: fields["by"], Last: entry("done"), Born: at("born"),
		Since: at("since"), Scheduled: entry("scheduled"), Missed: entry("lastMissed"),
		PausedTo: at("pausedTo"), LastSuccess: at("lastSuccess"), LastFailure: at("lastFailure")}
	for field, held := range map[string]**Pause{"paused": &l.Paused, "pausedAll": &l.PausedAll} {
		switch p := parsePause(fields[field]); {
		case fields[field] == "":
		case p.Until.IsZero() || now.Before(p.Until):
			*held = &p
		case p.Until.After(l.PausedTo): // over, and no operator has resumed the job
			l.PausedTo = p.Until
		}
	}
	if day, count, _ := strings.Cut(fields["missedToday"], " "); rds.Number(day) == now.Unix()/86400 {
		l.MissedToday = rds.Number(count)
	}
	if f := strings.Fields(fields["ended"]); len(f) > 2 && rds.Number(f[1]) > 0 { // else that of the last one is left
		l.Streak, l.FailingSince = rds.Number(f[1]), rds.FromMillis(rds.Number(f[2]))
	}
	for entry := range strings.FieldsSeq(fields["open"]) {
		if tick, how, _ := strings.Cut(entry, "~"); how != "" && how[0] != ':' { // not one that is due
			l.Behind = append(l.Behind, Behind{rds.FromMillis(rds.Number(tick)), how[0] == '+'})
		}
	}
	l.Gaps, _ = lock.ParseGaps(fields["gaps"]) // what another version wrote is left alone
	for i, fate := range Fates {
		l.Counts[i] = number("fate:" + fate)
	}
	return l
}

// parsePause reads `<end ms, 0 = none> <at ms> <reason>` and, behind a line feed, who paused.
func parsePause(note string) Pause {
	end, rest, _ := strings.Cut(note, " ")
	at, rest, _ := strings.Cut(rest, " ")
	why, by, _ := strings.Cut(rest, "\n")
	return Pause{rds.FromMillis(rds.Number(end)), rds.FromMillis(rds.Number(at)), text.OneLine(why), text.OneLine(by)}
}
