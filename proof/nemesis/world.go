package nemesis

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/rig"
)

const (
	// grace is for a replica to end in order.
	grace = 2 * time.Minute
	// patience is for what must come, on a busy machine.
	patience = time.Minute
)

// world is a service under attack: replicas, each with a door of the app and a path to Redis of its own.
type world struct {
	t        testing.TB
	rng      *rand.Rand
	dir      string // takes tables and logs
	binary   string
	jobs     []job
	slots    int // of each replica; 0 = enough
	app      *rig.App
	record   *record
	replicas []*replica
	store    store
	memory   memory
	table    func(r *replica, listen string) string // of a replica, which listens there
	series   []series
	operator *operator // sets them; nil = there are none
	attacked time.Time // until then
	unjudged int       // findings on a machine that does not keep time
}

// store is the Redis of a world.
type store interface {
	client() redis.UniversalClient
	// table is the value of the table's key redis, for a replica that reaches Redis at addr.
	table(addr string) string
}

// replica is one of them, over several lives of its process.
type replica struct {
	name    string
	path    path
	door    *rig.Door
	process *rig.Replica
	logs    []string
	state   string // its state directory; "" = it has none
	admin   string // address of its API, the same in all lives: who asked the process before asks the next one
}

// newWorld starts one replica for each path.
func newWorld(t testing.TB, binary string, jobs []job, s store, m memory, paths ...path) *world {
	t.Helper()
	return prepare(t, binary, jobs, s, m, paths...).populate()
}

// populate starts the replicas, each in a place of its own.
func (w *world) populate() *world {
	w.t.Helper()
	for _, r := range w.replicas {
		r.state = w.t.TempDir()
	}
	w.start(w.replicas...)
	return w
}

// prepare makes a world whose replicas have not been started yet.
func prepare(t testing.TB, binary string, jobs []job, s store, m memory, paths ...path) *world {
	t.Helper()
	w := &world{t: t, dir: t.ArtifactDir(), binary: binary, jobs: jobs, store: s, memory: m}
	w.record = &record{began: time.Now()}
	w.table = w.tableOfJobs
	t.Cleanup(w.needsTime)
	pulse(t, w.record.still)
	var err error
	if w.app, err = rig.StartApp(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.app.Close)
	sockets := t.TempDir() // whose paths may not be long
	for i, p := range paths {
		r := &replica{name: fmt.Sprintf("r%d", i+1), path: p}
		// A socket is reached from every network namespace.
		if r.door, err = w.app.Open("unix", filepath.Join(sockets, r.name+".sock")); err != nil {
			t.Fatal(err)
		}
		r.door.Reach = p.reach
		port, err := rig.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		r.admin = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		w.replicas = append(w.replicas, r)
		t.Cleanup(func() {
			if r.process != nil {
				r.process.Kill()
			}
		})
	}
	return w
}

// tableOfJobs is the table of a replica that has the world's jobs.
func (w *world) tableOfJobs(r *replica, listen string) string {
	clock := cmp.Or(r.path.clock, "redis")
	return table(w.jobs, w.store.table(r.path.redis), clock, listen, r.admin, w.slots, func(j job) string {
		if j.exec {
			return fmt.Sprintf("exec: {command: [%q, %q, %q]}", os.Args[0], callArg, w.app.URL(j.name, j.take))
		}
		if j.asks {
			return fmt.Sprintf("claim: {heartbeat: %s, timeout: 1m}", j.heartbeat())
		}
		url, more := r.door.URL(j.name, j.take)+fmt.Sprintf("&fail=%d", j.fails), ""
		if j.async {
			url, more = url+"&async=true", fmt.Sprintf(", async: {heartbeat: %s, timeout: 1m}", j.heartbeat())
		}
		return fmt.Sprintf("http: {url: %q%s}", url, more)
	})
}

// start begins a life of replicas, and returns when they are ready.
func (w *world) start(all ...*replica) {
	w.t.Helper()
	for _, r := range all {
		log := fmt.Sprintf("%s-%d.log", r.name, len(r.logs)+1)
		o := rig.ReplicaOptions{Binary: w.binary, Name: r.name, Dir: w.dir, Log: log, Under: r.path.under,
			Host: r.path.host, Skew: r.path.skew, State: r.state}
		process, err := rig.StartReplica(o, func(listen string) string { return w.table(r, listen) })
		if err != nil {
			w.t.Fatal(err)
		}
		r.process, r.logs = process, append(r.logs, process.Log)
	}
	for _, r := range all {
		if err := r.process.Ready(patience); err != nil {
			w.t.Fatal(err)
		}
	}
}

// class is a kind of faults: strike goes on until the instant, and leaves everything whole.
type class struct {
	name   string
	strike func(w *world, until time.Time)
}

// maxPhase is how long one class goes on before the next one has its turn.
const maxPhase = 20 * time.Second

// attack lets the classes take turns for so long, in an order that the seed gives, and judges what came of it.
func (w *world) attack(length time.Duration, seed uint64, classes ...class) *verdict {
	w.t.Helper()
	history := newHistorian(w.store.client())
	ctx, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { history.run(ctx) })
	defer background.Wait()
	defer stop()
	asking, silence := context.WithCancel(ctx)
	defer silence()

	time.Sleep(recovery) // the second after a ledger's birth is settled, and fires nothing
	from := time.Now()
	gone, ordered := w.ask(asking, seed), func() {}
	if w.operator != nil {
		ordered = w.operator.operate(asking, seed)
	}
	end := from.Add(length)
	turn := min(length/time.Duration(2*len(classes)), maxPhase) // a strike that has begun is not cut short
	classes = slices.Clone(classes)
	order := rand.New(rand.NewPCG(seed, 0))
	for n := uint64(0); n < uint64(len(classes)) || time.Now().Before(end); n++ {
		at := int(n) % len(classes)
		if at == 0 {
			order.Shuffle(len(classes), func(i, j int) { classes[i], classes[j] = classes[j], classes[i] })
		}
		w.t.Logf("%s %s", clock(time.Now()), classes[at].name)
		w.record.enter(classes[at].name)
		w.rng = rand.New(rand.NewPCG(seed, n+1)) // what one phase draws does not depend on how long another one took
		classes[at].strike(w, time.Now().Add(turn))
	}
	to := time.Now()
	w.attacked = to
	time.Sleep(w.calm())
	// A tick without a deadline goes last where slots are scarce, and behind newer runs of a job that always runs.
	_ = rig.Until(2*patience, "all that is due", func() bool { // else it is left behind
		due, err := waiting(ctx, w.store.client(), to)
		return err == nil && len(due) == 0
	})
	told := time.Now()
	silence()
	ordered()
	w.end()
	gone()
	if err := history.read(ctx); err != nil {
		w.t.Fatal(err)
	}
	left, err := leftovers(ctx, w.store.client(), to)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range left {
		w.wrong("left behind in Redis: %s", l)
	}
	kept, err := ledgers(ctx, w.store.client(), w.jobs)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, odd := range w.app.Odd() {
		w.t.Error(odd)
	}
	requests := slices.DeleteFunc(w.app.Seen(), func(q rig.Request) bool { return ofTimers(q.Job) })
	ends := slices.DeleteFunc(slices.Clone(history.all()), func(e entry) bool { return ofTimers(e.job) })
	t := trial{jobs: w.jobs, requests: requests, questions: w.app.Asked(), history: ends,
		ledgers: kept, record: w.record, from: from, to: to, left: told, memory: w.memory, slots: w.slots, withoutAnswer: w.withoutAnswer()}
	for _, r := range w.replicas {
		t.replicas, t.local = append(t.replicas, r.name), t.local || r.path.clock == "local"
	}
	v := judge(t)
	w.explain(t, v)
	w.blame(v)
	return v
}

// gaveUp is how a replica says that it drained, or gave up asking Redis, before it knew who had a tick of the schedule.
var gaveUp = regexp.MustCompile(`"skipped","job":"([^"]*)","tick":"([^"]*)","reason":"(?:draining|redis_error)"`)

// withoutAnswer tells of which ticks a replica says so. It gives back what it may have won, once Redis hears of that.
func (w *world) withoutAnswer() func(job string, tick time.Time) bool {
	said := sync.OnceValue(func() map[[2]string]bool { // an hour's logs are read once
		all := map[[2]string]bool{}
		for _, r := range w.replicas {
			for _, log := range r.logs {
				text, err := os.ReadFile(log)
				if err != nil {
					w.t.Error(err)
				}
				for _, m := range gaveUp.FindAllSubmatch(text, -1) {
					all[[2]string{string(m[1]), string(m[2])}] = true
				}
			}
		}
		return all
	})
	return func(job string, tick time.Time) bool { return said()[[2]string{job, stamp(tick)}] }
}

// calm is how long nothing is struck at the end: the longest lease, its takeover, and the ticks that waited for it.
func (w *world) calm() time.Duration {
	longest := ttl
	for _, j := range w.jobs {
		longest = max(longest, j.lease())
	}
	if w.operator != nil {
		longest = max(longest, timerLease)
	}
	return longest + dying + recovery
}

// end stops the replicas in order.
func (w *world) end() {
	w.t.Helper()
	var all []*rig.Process
	for _, r := range w.replicas {
		all = append(all, r.process.Process)
	}
	if err := rig.StopAll(grace, all...); err != nil {
		w.t.Error(err)
	}
}
