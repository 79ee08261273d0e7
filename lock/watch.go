package lock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Running is one entry of the set of runs.
type Running struct {
	Run      string
	Job      string
	leaseEnd int64 // Redis' milliseconds; only ever compared with itself
}

// Renewed tells when a lease of length ttl was last renewed, by Redis' clock of that moment.
func (r Running) Renewed(ttl time.Duration) time.Time { return fromMillis(r.leaseEnd).Add(-ttl) }

// Sight is what one Look saw.
type Sight struct {
	Runs      []Running
	Due       []Due     // what is due: timers last, the oldest first otherwise
	Next      time.Time // when the first of the others that are no timers' comes due, by Redis' time; zero = there is none
	NextTimer time.Time // when the first timer that is not due comes due, likewise
	// Strange is how many members it passed over among the timers that it read: another version wrote them.
	Strange int64
	Jobs    int64 // revision of the dynamic jobs; it grows with every change, and is 0 while there never was one
	// Born is when the ledger that all timers share was made; zero when Redis knows none. Another time than Register answered
	// for TimerJobs means that Redis has lost its data since: the sooner all jobs are registered again, the fewer ticks
	// that costs.
	Born time.Time
}

// Look reads Redis' time, all runs, what is due, when the next comes due, and how old Redis' memory and the dynamic jobs
// are, in one round trip, or two (see dueQueue). Of the timers that are due it reads the oldest, and so many: one at least.
func (s *Store) Look(ctx context.Context, timers int64) (Sight, error) {
	// Due members are asked for by the latest that Redis' time can be, so that what somebody was nudged for is not missed
	// by a millisecond, and looked through by the time that comes with them, so that nothing is taken before its own.
	_, latest, ok := s.clock.between(s.boottime())
	if !ok {
		if err := s.Sync(ctx); err != nil {
			return Sight{}, err
		}
		_, latest, _ = s.clock.between(s.boottime())
	}
	ctx, cancel := context.WithTimeout(ctx, s.burst.timeout)
	defer cancel()
	rdb, err := s.burst.server(ctx)
	if err != nil {
		return Sight{}, fmt.Errorf("looking at what runs and what is due: %w", err)
	}
	until := latest.UnixMilli() + 1

	pipe := rdb.Pipeline()
	sent := s.boottime()
	at := pipe.Time(ctx)
	running := pipe.ZRangeWithScores(ctx, s.keys.running, 0, -1)
	ofJobs := askDue(ctx, pipe, s.keys.dueJobs, longestWait.Milliseconds(), until, maxDue)
	ofTimers := askDue(ctx, pipe, s.keys.dueTimers, math.MaxInt64, until, max(timers, 1))
	// HGET of what is not there would be an error; and go-redis' own HMGet takes any number for the length of an array.
	jobs := pipe.Do(ctx, "hmget", s.keys.jobs, revision)
	born := pipe.Do(ctx, "hmget", s.keys.ledger(TimerJobs), "born")
	if _, err := pipe.Exec(ctx); err != nil {
		return Sight{}, fmt.Errorf("looking at what runs and what is due: %w", err)
	}
	s.clock.observe(sent, s.boottime(), at.Val(), time.Microsecond)
	newest, err := ofJobs.end(ctx, rdb, until)
	if err != nil {
		return Sight{}, fmt.Errorf("looking at what is due: %w", err)
	}

	var seen Sight
	for _, z := range running.Val() {
		member, _ := z.Member.(string)
		if run, job, ok := strings.Cut(member, " "); ok {
			seen.Runs = append(seen.Runs, Running{Run: run, Job: job, leaseEnd: int64(z.Score)})
		}
	}
	now := at.Val().UnixMilli()
	seen.Next, _ = seen.add(ofJobs, newest, now)
	seen.NextTimer, seen.Strange = seen.add(ofTimers, nil, now)
	seen.Jobs, seen.Born = number(field(jobs)), fromMillis(number(field(born)))
	return seen, nil
}

// field is the only one that was asked for; "" if it is not there.
func field(cmd *redis.Cmd) string {
	if fields, ok := cmd.Val().([]any); ok && len(fields) == 1 {
		text, _ := fields[0].(string)
		return text
	}
	return ""
}

// Watcher finds runs whose replica is gone: those whose lease it saw unchanged for a whole ttl on its own clock. Redis'
// clock has no say, since a step of it, or a failover to a server that is ahead, would end all leases at once.
type Watcher struct {
	store *Store
	seen  map[string]sighting // by run
}

type sighting struct {
	leaseEnd int64
	since    time.Duration // Boottime
}

// NewWatcher makes a Watcher that has seen nothing yet.
func (s *Store) NewWatcher() *Watcher { return &Watcher{store: s, seen: map[string]sighting{}} }

// Unchanged takes what Look saw, and returns the runs whose lease has not moved for at least ttl(job). Those that this process
// keeps are not among them: it may be about to settle them itself, Redis having been away.
func (w *Watcher) Unchanged(runs []Running, ttl func(job string) time.Duration) []Running {
	now := w.store.boottime()
	next := make(map[string]sighting, len(runs))
	var old []Running
	for _, r := range runs {
		s, ok := w.seen[r.Run]
		if !ok || s.leaseEnd != r.leaseEnd {
			s = sighting{leaseEnd: r.leaseEnd, since: now}
		}
		if now-s.since >= ttl(r.Job) && !w.store.kept.has(r.Run) {
			old = append(old, r)
		}
		next[r.Run] = s
	}
	w.seen = next
	return old
}

// unchangedFor tells for how long this watcher has seen a run's lease as it is in r; zero if it has not.
func (w *Watcher) unchangedFor(r Running) time.Duration {
	s, ok := w.seen[r.Run]
	if !ok || s.leaseEnd != r.leaseEnd {
		return 0
	}
	return w.store.boottime() - s.since
}

// Record is what Redis keeps of a run while it lasts.
type Record struct {
	Tick    time.Time
	Token   int64
	Prev    time.Time // newest tick claimed before
	Claimed time.Time
	Policy  Policy
	TTL     time.Duration
	Kind    string
	Key     string // of the Due by which it is run again
	Attempt int
	Retries int
	Rounds  int
	Deaths  int
	Again   bool // it is to be run again when it was cut short
	Replica string
}

var errNoRecord = errors.New("no record of the run")

// record reads what is known of a run; errNoRecord when it is over, or its claim was never completed.
func (s *Store) record(ctx context.Context, r Running) (Record, error) {
	reply, err := s.burst.do(ctx, "hget", s.keys.ledger(r.Job), "r:"+r.Run)
	if errors.Is(err, redis.Nil) {
		return Record{}, errNoRecord
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the record of run %s of %q: %w", r.Run, r.Job, err)
	}
	text, _ := reply.(string)
	return parseRecord(text)
}

func parseRecord(text string) (Record, error) {
	f := strings.SplitN(text, " ", 13)
	if len(f) != 13 {
		return Record{}, fmt.Errorf("reading the record %.100q: it has %d fields", text, len(f))
	}
	var n [13]int64
	for _, i := range []int{0, 1, 2, 3, 5, 7, 8, 9, 10, 11} {
		v, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return Record{}, fmt.Errorf("reading the record %.100q: %w", text, err)
		}
		n[i] = v
	}
	kind, key, _ := strings.Cut(f[6], ":")
	return Record{
		Tick: fromMillis(n[0]), Token: n[1], Prev: fromMillis(n[2]), Claimed: fromMillis(n[3]), Policy: Policy(f[4]),
		TTL: time.Duration(n[5]) * time.Millisecond, Kind: kind, Key: key, Attempt: int(n[7]), Retries: int(n[8]),
		Rounds: int(n[9]), Deaths: int(n[10]), Again: n[11] == 1, Replica: f[12],
	}, nil
}

// Reap ends a run whose replica is gone, as far as this watcher can see, and sets free what waited behind it. A run of a
// claim with Again is due again, as its next attempt. entry makes the history entry from the run's record. False when the
// run ended or went on by itself, another watcher was faster, or the run's own ttl, which its record tells, is not over
// yet; and when the reply that it succeeded was lost, in which case only the history knows.
func (w *Watcher) Reap(ctx context.Context, r Running, entry func(Record) Entry) (Record, bool, error) {
	s := w.store
	rec, err := s.record(ctx, r)
	if err != nil && !errors.Is(err, errNoRecord) {
		return Record{}, false, err
	}
	known := err == nil
	if d := w.unchangedFor(r); d == 0 || known && d < rec.TTL {
		return Record{}, false, nil
	}
	c := Claim{Job: r.Job, Run: r.Run, Tick: rec.Tick, Policy: rec.Policy, Kind: rec.Kind, Key: rec.Key, Attempt: rec.Attempt,
		Retries: rec.Retries, Deaths: rec.Deaths, Again: rec.Again}
	var e *Entry
	if known {
		made := entry(rec)
		made.Job, made.Tick, made.Run, made.Replica, made.Kind, made.Attempt = r.Job, rec.Tick, r.Run, rec.Replica, rec.Kind, rec.Attempt
		e = &made
	}
	ctx, cancel := context.WithTimeout(ctx, 4*s.burst.timeout)
	defer cancel()
	settled, err := s.settle(ctx, &c, settlement{verb: "reap", entry: e, again: c.takeover(1), leaseEnd: r.leaseEnd})
	return rec, known && settled == OK, err
}
