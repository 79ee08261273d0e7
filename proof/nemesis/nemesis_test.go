package nemesis

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/results"
	"github.com/solotick/solotick/internal/testing/rig"
)

var (
	length = flag.Duration("for", time.Minute, "how long the nemesis is at work")
	only   = flag.String("faults", "", "the one class of faults that is at work in the world always")
	seed   = flag.Uint64("seed", 12, "what the nemesis draws from")
	calm   = flag.Bool("calm", false, "strike nothing, and judge by the same rules")
	skews  = flag.String("skew", "0,0,0", "with -calm: by how much the wall clock of each replica is ahead; as many replicas as values")
	clocks = flag.String("clock", "redis", "with -calm: what the replicas follow, redis or local")
)

func TestNemesis(t *testing.T) {
	if testing.Short() {
		t.Skip("the nemesis kills real processes for a minute: not with -short")
	}
	t.Parallel()
	redis.SetLogger(quiet{})
	again := fmt.Sprintf("go -C proof test ./nemesis -run TestNemesis -v -timeout 3h -for %s -seed %d", *length, *seed)
	t.Log("again: " + again)
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "solotick")
	if err := rig.Build(root, rig.Package, binary); err != nil {
		t.Fatal(err)
	}
	if *calm {
		rest(t, root, binary)
		return
	}
	run := results.Of(t, again)
	var mu sync.Mutex
	var rows []row
	fates := map[string]account{}
	var repeated times
	judged := func(world string, v *verdict) {
		mu.Lock()
		defer mu.Unlock()
		rows = append(rows, v.rows(world)...)
		fates[world] = v.fates
	}
	t.Run("worlds", func(t *testing.T) {
		t.Run("always", func(t *testing.T) {
			t.Parallel()
			judged("always", surround(t, binary))
		})
		t.Run("everysec", func(t *testing.T) {
			t.Parallel()
			s := newSingle(t, "everysec")
			w := newWorld(t, binary, mix, s, forgets, path{redis: s.server.Addr()}, path{redis: s.server.Addr()}, path{redis: s.server.Addr()})
			judged("everysec", w.attack(*length/3, *seed, class{"Redis killed", s.killRedis}))
		})
		t.Run("slots", func(t *testing.T) {
			t.Parallel()
			judged("slots", crowd(t, binary))
		})
		t.Run("series", func(t *testing.T) {
			t.Parallel()
			v, sum := repeat(t, binary)
			judged("series", v)
			repeated = sum
		})
		t.Run("sentinel", func(t *testing.T) {
			t.Parallel()
			s := newWatched(t)
			w := newWorld(t, binary, mix, s, keepsClaims, path{}, path{}, path{})
			judged("sentinel", w.attack(*length/2, *seed,
				class{"master killed", s.failOver((*redistest.Server).Kill, (*redistest.Server).Restart)},
				class{"master stopped", s.failOver((*redistest.Server).Freeze, (*redistest.Server).Thaw)}))
		})
	})
	t.Logf("\n%s\n%s", figures(rows), fateFigures(fates))
	total(rows).tell(run)
	run.Add(repeated.times, "times of timers that repeat")
	run.Add(repeated.started, "started")
}

// crowd attacks a service whose replicas have one slot each.
func crowd(t *testing.T, binary string) *verdict {
	s := newSingle(t, "always")
	w := prepare(t, binary, scarce, s, keepsAll, path{redis: s.server.Addr()}, path{redis: s.server.Addr()}, path{redis: s.server.Addr()})
	w.slots = 1
	v := w.populate().attack(*length*2/3, *seed, class{"full replica killed", killHolders}, class{"full replica stopped", stopHolders},
		class{"full replicas' apps refuse", refuse})
	if sum := total(v.rows("")); sum.fired == 0 || sum.takeovers == 0 || sum.handovers == 0 {
		w.wrong("this run shows nothing of slots: %d ticks fired, %d takeovers, %d handovers", sum.fired, sum.takeovers, sum.handovers)
	}
	return v
}

// rest leaves a service alone that forgets nothing, and whose replicas may have wrong clocks.
func rest(t *testing.T, root, binary string) {
	s := newSingle(t, "always")
	var paths []path
	skewed := false
	for _, text := range strings.Split(*skews, ",") {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("-skew is a list of durations, as 0,2.5s,-2.5s: %v", err)
		}
		skewed = skewed || d != 0
		paths = append(paths, path{redis: s.server.Addr(), skew: d, clock: *clocks})
	}
	if skewed {
		if err := rig.BuildSkewed(root, rig.Package, binary, t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	launched := time.Now()
	w := newWorld(t, binary, calmMix, s, keepsAll, paths...)
	for _, r := range w.replicas {
		switch off, err := r.process.ClockError(launched); {
		case err != nil:
			t.Fatal(err)
		case (off - r.path.skew).Abs() > prompt:
			t.Fatalf("the clock of %s is off by %s, and should be by %s", r.name, off, r.path.skew)
		}
	}
	v := w.attack(*length, *seed, class{"none", (*world).leaveAlone})
	t.Logf("\n%s\n%s", figures(v.rows("calm")), fateFigures(map[string]account{"calm": v.fates}))
	for _, e := range v.excuses {
		t.Errorf("excused by %s, although nothing was struck: %s %s", e.cause, e.job, stamp(e.tick))
	}
}

// surround attacks a service on one Redis that forgets nothing, by all that can happen to it.
func surround(t *testing.T, binary string) *verdict {
	n, err := newNamespace(t.TempDir())
	var addrs []string
	if err != nil {
		t.Logf("no network namespace, so replicas are cut off by proxies alone: %v", err)
	} else {
		t.Cleanup(n.holder.Kill)
		addrs = []string{n.outerAddr}
	}
	s := newSingle(t, "always", addrs...)
	through, end, err := proxied(s.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	paths := []path{{redis: s.server.Addr()}, through, {redis: s.server.Addr()}}
	if n != nil {
		paths[2] = n.path(s.server.Port())
	}
	w := newWorld(t, binary, allMix, s, keepsAll, paths...)
	classes := []class{
		{"replica killed", killReplicas}, {"holder killed", killHolders}, {"holder stopped", stopHolders}, {"all killed", killAll}, {"app refuses", refuse},
		{"apps refuse", refuseMost}, {"Redis killed", s.killRedis}, {"Redis stopped", s.stopRedis}, {"drained while Redis is away",
			s.drainHolders},
		{"cut by proxy", cutOff(w.replicas[1])}, {"cut off, then killed", killCutOff},
	}
	if n != nil {
		classes = append(classes, class{"cut by network", cutOff(w.replicas[2])})
	}
	if *only != "" {
		if classes = slices.DeleteFunc(classes, func(c class) bool { return c.name != *only }); len(classes) == 0 {
			t.Fatalf("no class of faults is named %q", *only)
		}
		return w.attack(*length, *seed, classes...)
	}
	v := w.attack(*length, *seed, classes...)
	if sum := total(v.rows("")); sum.fired == 0 || sum.takeovers == 0 || sum.handovers == 0 || sum.late == 0 || sum.drained == 0 {
		w.wrong("this run shows nothing: %d ticks fired, %d late, %d takeovers, %d handovers, %d runs on a replica that drained", sum.fired,
			sum.late, sum.takeovers, sum.handovers, sum.drained)
	}
	if sum := total(v.rows("")); sum.stops == 0 || sum.reports == 0 {
		w.wrong("this run shows nothing of async: apps worked %d times, had to stop %d times, and reported %d successes", sum.works, sum.stops, sum.reports)
	}
	if sum := total(v.rows("")); sum.given == 0 || sum.held == 0 || sum.unasked == 0 || sum.died == 0 {
		w.wrong("this run shows nothing of claims: %d ticks given, %d leases held, %d ticks not asked for, %d deaths",
			sum.given, sum.held, sum.unasked, sum.died)
	}
	for _, fate := range []string{succeeded, overlapped, missed, interrupted} {
		if v.fates.byName[fate] == 0 {
			w.wrong("this run shows nothing of fates: no tick is %s", fate)
		}
	}
	return v
}

// repeat attacks a service with timers that have schedules.
func repeat(t *testing.T, binary string) (*verdict, times) {
	s := newSingle(t, "always")
	through, end, err := proxied(s.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	w := prepare(t, binary, beside, s, keepsAll, path{redis: s.server.Addr()}, through, path{redis: s.server.Addr()})
	w.series = manySeries
	w.operator = &operator{world: w, orders: map[string][]order{}}
	v := w.populate().attack(*length/2, *seed, class{"replica killed", killReplicas}, class{"holder killed", killHolders},
		class{"holder stopped", stopHolders}, class{"all killed", killAll}, class{"Redis killed", s.killRedis},
		class{"Redis stopped", s.stopRedis}, class{"cut by proxy", cutOff(w.replicas[1])})
	var sum times
	for _, d := range w.operator.dockets(t, w.attacked) {
		a := d.judge(func(what string, tick time.Time) {
			w.forbids(what)("%s: %s%s %s (%s)", what, timerPrefix, d.id, stamp(tick), w.record.classAt(tick))
			t.Log(d.story(tick))
		})
		t.Logf("%s: %+v", d.id, a)
		sum.add(a)
	}
	if sum.started == 0 || sum.overlapped == 0 || sum.orders < 3*len(manySeries) {
		w.wrong("this run shows nothing of timers that repeat: %+v", sum)
	}
	if most := max(20, sum.times/5); sum.takenBack > most {
		w.wrong("%d of %d times are taken back, want %d at most", sum.takenBack, sum.times, most)
	}
	return v, sum
}
