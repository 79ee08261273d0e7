package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/rds"
)

// Running is one entry of the set of runs.
type Running struct {
	Run      string
	Job      string
	leaseEnd int64 // Redis' milliseconds; only ever compared with itself
}

// Renewed tells when a lease of length ttl was last renewed, by Redis' clock of that moment.
func (r Running) Renewed(ttl time.Duration) time.Time { return rds.FromMillis(r.leaseEnd).Add(-ttl) }

// ParseRunning reads a member of the set of runs with its score; false when another version wrote it.
func ParseRunning(member string, score float64) (Running, bool) {
	run, job, ok := strings.Cut(member, " ")
	return Running{Run: run, Job: job, leaseEnd: int64(score)}, ok
}

// Watcher finds runs whose replica is gone: it knows of no change of their lease for a whole ttl on its own clock, or
// knows that their process is dead. It ignores Redis' clock: a step of that clock, or a failover to a server that is
// ahead, would end all leases at once.
type Watcher struct {
	// Dead tells of runs whose process is certainly dead; nil = of none. Nothing must be said of a process on a mere
	// timeout: one that lives on would run beside the repetition of its run. Set it before the first use.
	Dead func(run string) bool
	// Lacks tells of jobs that only others may have: their runs are left to those for one lease more. Set it as Dead.
	Lacks func(job string) bool

	store   *Store
	id      string              // by which Redis knows that it asks again
	seen    map[string]sighting // by run
	heard   sync.Map            // of Running: when it was heard of, by Boottime
	looked  time.Duration       // when Unchanged was last called, by Boottime
	learned bool                // of what other watchers have seen
	told    map[string]int64    // the lease ends, by run, that may stand in Redis as seen
	asked   sync.Map            // of which Running Redis has not told whether it is taken over, and its Record
}

type sighting struct {
	leaseEnd int64
	since    time.Duration // Boottime
}

// NewWatcher makes a Watcher that has seen nothing yet.
func (s *Store) NewWatcher() *Watcher {
	return &Watcher{Lacks: func(string) bool { return false }, store: s, id: uuid.NewString(),
		seen: map[string]sighting{}, told: map[string]int64{}}
}

// Hear has the next Unchanged count the lease of a claim from when it was heard of. It may be called at any time.
func (w *Watcher) Hear(h Heard) { w.heard.Store(h.Running, h.Since) }

// Unchanged gets the runs that a Look saw, and returns those whose lease has not moved for at least ttl(job), those
// that are Dead, and those of which Redis has not answered whether Reap has ended them. It leaves out the runs whose
// leases this process keeps: if Redis was away, this process may be about to settle them itself.
func (w *Watcher) Unchanged(runs []Running, ttl func(job string) time.Duration) []Running {
	now := w.store.redis.Boottime()
	next := make(map[string]sighting, len(runs))
	var old []Running
	for r := range w.asked.Range {
		old = append(old, r.(Running))
	}
	for _, r := range runs {
		s, ok := w.seen[r.Run]
		if !ok || s.leaseEnd != r.leaseEnd {
			s = sighting{leaseEnd: r.leaseEnd, since: now}
			if since, told := w.heard.Load(r); told && !ok { // ok: a failover brought it back
				s.since = since.(time.Duration)
			}
		}
		stale := now-s.since >= ttl(r.Job) || w.isDead(r)
		if _, asked := w.asked.Load(r); !asked && stale && !w.store.kept.has(r.Run) {
			old = append(old, r)
		}
		next[r.Run] = s
	}
	for r, since := range w.heard.Range { // this look has seen what was heard of before the last one
		if since.(time.Duration) < w.looked {
			w.heard.Delete(r)
		}
	}
	w.seen, w.looked = next, now
	return old
}

func (w *Watcher) isDead(r Running) bool { return w.Dead != nil && w.Dead(r.Run) && !w.Lacks(r.Job) }

// unchangedFor is for how long this watcher has seen a run's lease as it is in r; zero if it has not.
func (w *Watcher) unchangedFor(r Running) time.Duration {
	s, ok := w.seen[r.Run]
	if !ok || s.leaseEnd != r.leaseEnd {
		return 0
	}
	return w.store.redis.Boottime() - s.since
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
	Again   bool // the run must be run again if it is cut short
	// Cancelled tells, of a run that is taken over, that an operator has cancelled it.
	Cancelled bool
	Replica   string
}

var errNoRecord = errors.New("no record of the run")

// record reads the record of a run; errNoRecord if the run is over, or its claim was never completed.
func (s *Store) record(ctx context.Context, r Running) (Record, error) {
	reply, err := s.redis.Do(ctx, "hmget", s.redis.Keys.Ledger(r.Job), "r:"+r.Run, "x:"+r.Run)
	if err != nil {
		return Record{}, fmt.Errorf("reading the record of run %s of %q: %w", r.Run, r.Job, err)
	}
	fields, _ := reply.([]any)
	if len(fields) != 2 {
		return Record{}, fmt.Errorf("reading the record of run %s of %q: %w", r.Run, r.Job, rds.Unexpected(reply))
	}
	text, ok := fields[0].(string)
	if !ok {
		return Record{}, errNoRecord
	}
	rec, err := ParseRecord(text)
	rec.Cancelled = fields[1] == "CANCELLED"
	return rec, err
}

// ParseRecord reads what the ledger keeps of a run.
func ParseRecord(text string) (Record, error) {
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
		Tick: rds.FromMillis(n[0]), Token: n[1], Prev: rds.FromMillis(n[2]), Claimed: rds.FromMillis(n[3]),
		Policy: Policy(f[4]), TTL: time.Duration(n[5]) * time.Millisecond, Kind: kind, Key: key,
		Attempt: int(n[7]), Retries: int(n[8]), Rounds: int(n[9]), Deaths: int(n[10]), Again: n[11] == 1,
		Replica: f[12],
	}, nil
}

// Reaped is a run that Reap has ended.
type Reaped struct {
	Record
	Streak Streak
}

// Reap ends a run whose replica is gone, as far as this watcher can see, and sets free what waited behind it. If the
// run's claim had Again, its next attempt becomes due. ending makes the Ending from the run's record, with an Entry
// that is not empty.
//
// Reap returns false if the run ended or went on by itself, if another watcher was faster, or if the run is not Dead,
// and its own ttl, which its record tells, is not over yet. After an error that wraps ErrNoAnswer, Unchanged returns
// the run again: Redis tells this watcher the same until it has heard it.
func (w *Watcher) Reap(ctx context.Context, r Running, ending func(Record) Ending) (Reaped, bool, error) {
	s := w.store
	rec, err := s.record(ctx, r)
	if err != nil && !errors.Is(err, errNoRecord) {
		return Reaped{}, false, err
	}
	known, ttl := err == nil, rec.TTL
	if w.Lacks(r.Job) {
		ttl *= 2
	}
	if told, asked := w.asked.Load(r); asked { // its record may be gone, with the run
		rec, known = told.(Record), true
	} else if d := w.unchangedFor(r); !w.isDead(r) && (d == 0 || known && d < ttl) {
		return Reaped{}, false, nil
	}
	c := Claim{Job: r.Job, Run: r.Run, Tick: rec.Tick, Policy: rec.Policy, Kind: rec.Kind, Key: rec.Key,
		Attempt: rec.Attempt, Retries: rec.Retries, Deaths: rec.Deaths, Again: rec.Again}
	var e Ending
	if known {
		if e = ending(rec); e.Entry == "" { // an empty entry stands for a watcher that saw no record
			return Reaped{Record: rec}, false, fmt.Errorf("taking over run %s of %q: its ending has no entry", r.Run,
				r.Job)
		}
		w.asked.Store(r, rec)
	}
	// A replica that ends tells what it took over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*s.redis.Timeout())
	defer cancel()
	settled, err := s.settle(ctx, &c, settlement{verb: "reap", ending: e, again: c.takeover(1), leaseEnd: r.leaseEnd,
		compared: w.id})
	if err == nil {
		w.asked.Delete(r)
		rec.Cancelled = rec.Cancelled || settled.Cancelled
	}
	return Reaped{rec, settled.Streak}, known && settled.Verdict == OK, err
}
