package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

const serviceName = "sim"

// world is one seed being played.
type world struct {
	plan      *Plan
	dice      dice
	tables    []*config.Table          // by version
	described map[*config.Job]*ticking // of the tables, as the plan means them
	began     time.Time                // the world's zero
	stepped   bool                     // Redis' clock is set in this world
	network   *network
	operator  *operator
	redis     *store

	mu         sync.Mutex
	replicas   []*replica
	present    map[int]*replica // at each place
	processes  map[int]int
	runs       []*run
	workers    []*worker
	asked      []*asking
	became     int                      // jobs of apps that ask, while something of them was due
	crew       sync.WaitGroup           // of the workers
	refused    map[string]time.Duration // when an app last refused to start a run
	outcomes   []outcome
	settled    map[finish]int
	trace      []note
	violations []violation
	spans      []span
	files      map[int]int // which version of the table's file each place has
	swapped    []swapped
	said       []saying
	instances  string         // directory of the instances; "" = none has been held
	met        map[string]int // what the checks met with, so that none of them can be empty unseen
}

// finish is what a replica said of the end of runs.
type finish struct {
	replica      *replica
	job, outcome string
}

// Result is what came of a seed.
type Result struct {
	Seed                  uint64
	Class                 string
	Violations            []string
	Lasted                time.Duration
	Ticks, Starts, Faults int
	Scripts               int
	Met                   map[string]int
	Story                 string // the plan and the trace around what was violated
	Whole                 string `json:"-"` // the plan and all of the trace
	Hash                  uint64 // of the trace
}

// Play plays a seed in a bubble of its own.
func Play(t *testing.T, seed uint64) (res Result) {
	t.Helper()
	redis.SetLogger(silent{})
	// The client pools timers, which belong to the bubble that they were made in: two collections leave none of the
	// last one.
	runtime.GC()
	runtime.GC()
	plan := NewPlan(seed)
	var tables []*config.Table
	for _, v := range plan.versions {
		table, err := config.Parse("table.yaml", []byte(plan.Table(v)),
			func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, plan)
		}
		tables = append(tables, table)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(plan.From)
		w := &world{
			described: plan.described(tables),
			plan:      plan, dice: dice(seed), tables: tables, began: time.Now(), stepped: plan.has(redisSteps),
			files:   map[int]int{},
			present: map[int]*replica{}, processes: map[int]int{}, settled: map[finish]int{},
			refused: map[string]time.Duration{},
			met:     map[string]int{},
		}
		w.network = newNetwork(w, w.dice, plan.Far)
		var err error
		if w.redis, err = newStore(w); err != nil {
			t.Fatal(err)
		}
		if w.operator, err = newOperator(w); err != nil {
			t.Fatal(err)
		}
		if plan.Behind > 0 {
			w.span(plan.Behind-1, 0, 2*plan.Lasts, "far behind")
		}
		w.play()
		res = w.result()
	})
	return res
}

// silent drops what the client logs of connections that are cut.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// now is the time since the world began.
func (w *world) now() time.Duration { return time.Since(w.began) }

func (w *world) play() {
	w.schedules()
	for _, e := range w.script() {
		time.Sleep(e.at - w.now())
		e.do()
	}
	w.mu.Lock()
	all := slices.Clone(w.replicas)
	w.mu.Unlock()
	w.end(all...)
	for _, r := range all {
		<-r.done
	}
	w.crew.Wait()
	time.Sleep(10 * time.Second) // copies of requests on their way arrive
	w.check()
	for _, r := range w.replicas {
		_ = r.client.Close()
	}
	_ = w.operator.client.Close()
	_ = w.redis.dials.Close()
	w.redis.mini.Close()
	if w.instances != "" {
		_ = os.RemoveAll(w.instances) // or it stays, and nothing depends on it
	}
	time.Sleep(3 * time.Second) // the client looks once a second whether a network that was away is back, and then ends
}

// end tells replicas to end. gocron waits for its jobs in a loop that spins until its processor is taken away from it;
// with a second one that takes microseconds instead of 10 ms for each replica.
func (w *world) end(rs ...*replica) {
	before := runtime.GOMAXPROCS(2)
	for _, r := range rs {
		r.stop()
		time.Sleep(time.Nanosecond)
	}
	runtime.GOMAXPROCS(before)
}

// started records the start of a job, and gives its number.
func (w *world) started(r *replica, e execute.Run) int {
	cl, known := w.redis.claims.of(e.ID)
	now := w.now()
	w.note(r, "START", e.Job, stamp(e.Tick), e.ID, fmt.Sprintf(" kind=%s attempt=%d token=%d",
		e.Kind, e.Attempt, e.Token))
	if e.Token != 0 && !r.stall.stands() && // which it has noticed, unless an app asked
		(!known || cl.trust <= now) {
		w.violated("3: trust", e.Job, "%s starts run %s of tick %s without a trusted lease",
			r.process, short(e.ID), stamp(e.Tick))
	}
	if e.Token != 0 && known && cl.token != e.Token {
		w.violated("6: tokens", e.Job, "run %s was told token %d, which is %d in Redis", short(e.ID), e.Token, cl.token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, &run{Run: e, replica: r, start: now})
	return len(w.runs) - 1
}

// refuses records that an app does not start a job.
func (w *world) refuses(e execute.Run, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[e.ID] = at
}

// canceled records that the context of a run has ended before the run.
func (w *world) canceled(n int, cause error) {
	w.mu.Lock()
	r := w.runs[n]
	if r.over == 0 {
		r.over, r.cause = w.now(), cause
	}
	w.mu.Unlock()
	if !cutOff(cause) && !w.gaveUp(r, cause) && !r.replica.isDead() {
		w.violated("6: accounts", r.Job, "the run of tick %s on %s was cut off: %v",
			stamp(r.Tick), r.replica.process, cause)
	}
	w.note(r.replica, "CANCELED", r.Job, stamp(r.Tick), r.ID, " "+fmt.Sprint(cause))
}

// cutOff reports whether a run's context may end for that: a reload is no reason.
func cutOff(cause error) bool {
	return errors.Is(cause, lock.ErrLost) || errors.Is(cause, lock.ErrReplaced) ||
		errors.Is(cause, lock.ErrCancelled) || strings.Contains(cause.Error(), "timeout") ||
		strings.Contains(cause.Error(), "grace")
}

// ended records the end of a run.
func (w *world) ended(n int, res execute.Result) {
	w.mu.Lock()
	r := w.runs[n]
	now := w.now()
	if r.over == 0 {
		r.over = now
	}
	r.gone = now
	if !r.replica.isDead() {
		r.end, r.status, r.code, r.reported = now, res.Status, res.Code, res.Reported
	}
	w.mu.Unlock()
	w.note(r.replica, "END", r.Job, stamp(r.Tick), r.ID, " "+res.Status.String())
}

func (w *world) outcome(o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes = append(w.outcomes, o)
}

func (w *world) finished(r *replica, job, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled[finish{r, job, what}]++
}
