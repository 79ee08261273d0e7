package sim

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/results"
)

var (
	from  = flag.Uint64("from", 1, "first `seed`")
	seeds = flag.Uint64("seeds", some, "how many seeds")
	only  = flag.String("class", "", "play only the seeds that are made for this `class`, of those that are given")
	lasts = flag.Duration("for", 0, "play seeds for so long, however many they are")
	long  = flag.Bool("long", false, "build the quicker binary, say every 30 s how far it is, and go on after seeds that failed")
)

// shown is how many seeds that failed are told of in full.
const shown = 3

// TestSeeds plays seeds and expects that every promise was kept.
func TestSeeds(t *testing.T) {
	if *seeds == 1 && *long {
		quickly(t, *from)
		return
	}
	if *seeds == 1 {
		once(t, *from)
		return
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if *long {
		binary = build(t, nil)
	}
	last, how := *from+*seeds-1, fmt.Sprintf("-seeds=%d", *seeds)
	if *lasts > 0 {
		last, how = math.MaxInt64, fmt.Sprintf("-for=%s", *lasts)
	}
	if *long {
		how += " -long"
	}
	run := results.Of(t, fmt.Sprintf("go -C proof test ./sim -run TestSeeds -v -timeout 0 -from=%d %s", *from, how))
	sum, failed, said := &tally{met: map[string]int{}}, 0, time.Now()
	began := time.Now()
	shards(t, binary, *only, *from, last, func(r Result) bool {
		sum.add(r)
		if len(r.Violations) > 0 {
			if *long { // a run that is ended early shows no errors
				fmt.Printf("seed %d: %s\n", r.Seed, strings.Join(r.Violations, "\n"))
			}
			if failed++; failed <= shown {
				t.Errorf("seed %d\n%s\n%s\n%s", r.Seed, strings.Join(r.Violations, "\n"), r.Story, again(r.Seed))
			} else {
				t.Errorf("seed %d: %s", r.Seed, strings.Join(r.Violations, "\n"))
			}
		}
		if *long && time.Since(said) > 30*time.Second {
			said = time.Now()
			fmt.Printf("%s: %s; %d failed\n", time.Since(began).Round(time.Second), sum, failed)
		}
		over := *lasts > 0 && time.Since(began) > *lasts
		return (*long || failed < shown) && !over
	})
	sum.tell(run)
	t.Logf("%s in %s", sum, time.Since(began).Round(time.Second))
	if failed == 0 { // the last lines of a log are those that are read
		t.Log(sum.encounters())
	}
	for _, m := range must {
		if sum.seeds >= 800 && *only == "" && failed == 0 && sum.met[m] == 0 {
			t.Errorf("no seed met with %q: the check of it proves nothing", m)
		}
	}
	for excuse, share := range most {
		limit := share * sum.met["ticks"] / 100_000
		limit = max(fewest, limit+2*int(math.Sqrt(float64(limit)))) // by chance some thousand seeds meet with more
		if n := sum.met[excuse]; sum.seeds >= 800 && *only == "" && n > limit {
			t.Errorf("%d of %d ticks are excused by %q, and at most %d may be", n, sum.met["ticks"], excuse, limit)
		}
	}
}

// once plays one seed here, and tells all of it with -v.
func once(t *testing.T, seed uint64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := Play(t, seed)
	if len(r.Violations) > 0 || testing.Verbose() {
		t.Log(r.Whole)
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
}

// quickly plays one seed with the quicker binary, whose bubbles know of a wait that would stop their time here.
func quickly(t *testing.T, seed uint64) {
	cmd := exec.Command(build(t, nil), "-test.run=^TestSeeds$", "-test.v", fmt.Sprintf("-from=%d", seed), "-seeds=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

// tally sums up results.
type tally struct {
	seeds, faults, ticks, starts, scripts int
	lasted                                time.Duration
	met                                   map[string]int
}

func (s *tally) add(r Result) {
	s.seeds++
	s.faults += r.Faults
	s.ticks += r.Ticks
	s.starts += r.Starts
	s.scripts += r.Scripts
	s.lasted += r.Lasted
	for k, n := range r.Met {
		s.met[k] += n
	}
}

func (s *tally) String() string {
	return fmt.Sprintf("%d seeds, %.1f simulated hours, %d faults, %d ticks, %d starts, %d scripts", s.seeds, s.lasted.Hours(), s.faults,
		s.ticks, s.starts, s.scripts)
}

// tell puts the sums into the record of the run.
func (s *tally) tell(run *results.Run) {
	run.Add(s.seeds, "seeds")
	run.Add(int(s.lasted.Hours()), "simulated hours")
	run.Add(s.faults, "faults")
	run.Add(s.ticks, "ticks")
	run.Add(s.starts, "starts")
	run.Add(s.scripts, "scripts")
	run.Details = s.met
}

func (s *tally) encounters() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.met)) {
		fmt.Fprintf(&b, "%7d %s\n", s.met[k], k)
	}
	return b.String()
}

// must be met with in a few hundred seeds, or a check has lost its object.
var must = []string{"ticks", "overlap", "queued", "run again", "tried again", "triggered", "runs that ended by reap",
	"waited behind a run that ended by reap", "wakes in good times", "handed over in good times", "replaced in good times",
	"taken over in good times", "registered anew", "ticks after a reload", "messages that a standing Redis took", "writes that were denied",
	"answers to WAIT of too few", "failovers with waitReplicas", "claimed from the table", "skipped for good", "waited for the end of a run",
	"to be replaced", "overlapped", "ticks while apps refuse", "asked again", "left and returned", "timers", "timers that repeat", "times of timers that repeat", "owed after a loss",
	"ended while it drained", "failed while it drained", "run by hand again", "ticks of every replica", "fate: fired", "fate: overlapped",
	"fate: missed", "fate: paused", "fate: not started", "ticks in good times", "pauses that somebody was told of",
	"taken over in place", "instances that were not held", "impostors in a copy of the place",
	"impostors in the place, restored from a backup", "waited for watchers that are restarted",
	"commands that ignored their end, and were killed after the trust in their lease", "apps that worked", "apps that outlived their replicas", "apps that worked on when their runs were to end",
	"apps that worked and whose answer was lost", "apps that died", "waited in place for the lease of an app",
	"async runs that took too long", "run again for the last time", "reports that were taken", "successes that were recorded",
	"reports of the end that came before the answer",
	"told since when", "told again since when", "told the same after a newer success", "jobs whose ticks begin at midnight",
	"jobs whose ticks end at midnight", "ticks on which two schedules agree", "runs that were taken over", "rows of failures that began or ended", "requests that shared an id",
	"ticks of jobs that were just resumed", "waited for slots", "skipped for good beside as many runs as may",
	"apps that died before their first heartbeat", "askers that were held back, as their clocks were fast",
	"askers that were refused since others had asked", "askers that left as the tick came", "apps that asked for the tick of now",
	"apps that stopped: stood still", "jobs that became those of apps that ask while something was due",
	"askers for excluded ticks", "holders of leases", "waits for a lease in good times", "leases whose holders fell silent",
	"holders that woke after their time and were refused",
	"jobs that were leases all the time"}

// most bounds what the checks may excuse, in ticks of 100,000: about twice what 20,000 seeds met with. A check that
// excuses more than that has lost its object.
var most = map[string]int{"fate: born": 25, "fate: changed": 800, "fate: open": 2500,
	"fate: lost with all data while it waited": 120, "fate: lost with all data before it was counted": 50,
	"fates that a failover forgot": 100, "fates that were counted by who knew less than was lost": 25,
	"held by the wrong time of Redis' clock": 200, "queued, and forgotten by a failover": 100,
	"doubles that a failover excuses": 300, "doubles of a ledger that was born behind": 15,
	"fired again after a loss of data": 20, "fired by two lines of runs after a loss of data": 20,
	"successes whose replicas did not reach Redis in time": 90, "successes whose replicas died before they told Redis": 10,
	"fired again by a job that left and came back before a clock that was set back had caught up": 20,
	"told of no success, since a newer tick has succeeded":                                        2400, "told since when anew after a loss of data": 450,
	"told since when anew after it was taken for dead": 1300, "told since when anew after another run of the tick": 80,
	"settled by a pause": 5200, "waited for a takeover whose answers were lost": 10,
	"claimed twice by one run, with a loss of data between":                                 50,
	"told that a tick is another's which had been set free by the end of a run, and missed": 5,
	"apps together after their leases were lost with all data":                              10,
	"successes of runs that were lost with all data":                                        10,
	"successes of runs that a failover forgot":                                              10,
	"holders of a lease that Redis had forgotten":                                           20,
	"apps together after a failover forgot a claim":                                         10}

// fewest is the smallest bound: some hundred seeds meet with a rare excuse by chance.
const fewest = 15

// TestASeedIsPlayedTheSameWayAgain compares traces. Goroutines that wake at the same instant have no order, and the
// chance in a backoff is no matter of the seed, so some seeds differ somewhere; what the checks say of them may not.
func TestASeedIsPlayedTheSameWayAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	differ := 0
	for seed := uint64(1); seed <= twice; seed++ {
		a, b := Play(t, seed), Play(t, seed)
		if a.Hash != b.Hash {
			differ++
		}
		if len(a.Violations) != len(b.Violations) {
			t.Errorf("seed %d: %v, and then %v", seed, a.Violations, b.Violations)
		}
	}
	t.Logf("%d of %d seeds were played differently the second time", differ, twice)
}
