package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

// A walk plays a few replicas that fire the first ticks of one job, each step drawn at random: wakes, answers,
// extensions, and among them stalls beyond the lease, crashes, copies of requests that arrive late or twice, refused
// starts, takeovers, pauses and thieves. Two policies may be in force at once, as in a rollout. The scripts are the
// real ones, and so is Redis or at least miniredis; time is not: the scripts read a clock that the walk sets, and a
// lease ends when the walk says so. The promises are checked at every step, and that no tick was lost when all has come
// to rest.

const (
	walkJob    = "j"
	walkClock  = "clock"           // key of the walk's clock
	walkStart  = 1_000_000_000_000 // ms; tick n is n periods later
	walkPeriod = 10_000
	walkTTL    = 30 * time.Second
	farFuture  = 9_999_999_999_999 // an `until` that does not pass
	longPast   = 1
	thief      = "a thief"
)

// scripts by name, so that a walk can be given broken ones.
type walkScripts struct{ acquire, extend, settle, release, register, book, drop, ask, pause, cancel *rds.Script }

func realScripts() walkScripts {
	return walkScripts{acquireScript, extendScript, settleScript, releaseScript, registerScript, bookScript, dropScript,
		serviceScript("ask"), serviceScript("pause"), serviceScript("cancel")}
}

// serviceScript is one of the package service, which imports this one.
func serviceScript(name string) *rds.Script {
	source, err := os.ReadFile("../sidecar/service/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return rds.NewScript(string(source), rds.Unconfirmed)
}

func (s *walkScripts) all() []**rds.Script {
	return []**rds.Script{&s.acquire, &s.extend, &s.settle, &s.release, &s.register, &s.book, &s.drop, &s.ask, &s.pause, &s.cancel}
}

// clocked are the scripts with the walk's clock instead of Redis'.
func (s walkScripts) clocked() walkScripts {
	for _, sc := range s.all() {
		*sc = rds.NewScript(strings.ReplaceAll((*sc).Source, "redis.call('TIME')", "redis.call('HMGET', '"+walkClock+"', 's', 'us')"), rds.Unconfirmed)
	}
	return s
}

type stage string

const (
	asking     stage = "asking"
	claimed    stage = "claimed" // and not started yet
	inRun      stage = "running"
	finishing  stage = "finishing"
	handing    stage = "handing over"
	abandoning stage = "abandoning"
	over       stage = "over"
)

// fiber is one run, or the attempt to get one, of one replica.
type fiber struct {
	claim       Claim
	replica     int
	attempt     int // the newest that was begun in this run
	stage       stage
	outcome     string // ok | cut short | replaced
	trusted     bool
	copied      bool // a second copy of its claim is under way
	open        bool // it gave up before the windows of its copies were over
	dead        bool
	won         bool
	token, prev int64
}

func (x *fiber) tick() int64    { return rds.Millis(x.claim.Tick) }
func (x *fiber) String() string { return x.claim.Run }

// stray is a request that is still under way.
type stray struct {
	of     *fiber
	claim  bool
	settle []any
}

// booking is one request to count missed ticks.
type booking struct {
	id      string
	args    []any // the gaps first, then how many missed ticks lie in them
	counted bool  // it has counted them
}

type set map[int64]bool

type walk struct {
	rdb     redis.UniversalClient
	scripts walkScripts
	keys    rds.Keys
	rng     *rand.Rand
	trace   []string

	policies    [2]Policy // of which each claim has one
	atLeastOnce bool
	all         bool // `missed: all`: older ticks go to the due set in the claim
	ticks       int64
	jitter      map[int64]int64
	alive       []bool
	known       []int64 // newest tick claimed, as each replica last heard

	clock    int64 // Redis', ms
	budget   map[string]int
	fibers   []*fiber
	strays   []*stray
	bookings []*booking
	woken    map[[2]int64]bool
	counter  int

	started     map[int64][]int // attempts by tick
	begun       set             // ticks of which a run was settled for good
	finished    set             // ticks that are not to be run again
	overlapped  set
	touched     set        // ticks that were claimed or refused
	pauses      [][2]int64 // first and last instant
	gaps        []Interval // all that were ever in the ledger
	evidence    map[string]bool
	newestToken int64
}

// wrong is a broken promise.
type wrong struct{ what string }

func (w wrong) Error() string { return w.what }

// brokenBy is what has ended a walk or a probe: a broken promise, or an answer of which nobody had thought.
func brokenBy(p any) error {
	if broken, ok := p.(wrong); ok {
		return broken
	}
	return wrong{fmt.Sprintf("%v\n%s", p, debug.Stack())}
}

func (w *walk) demand(ok bool, format string, args ...any) {
	if !ok {
		panic(wrong{fmt.Sprintf(format, args...)})
	}
}

func (w *walk) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// do runs a command that must not fail.
func (w *walk) do(args ...any) any {
	v, err := w.rdb.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(wrong{fmt.Sprintf("%v: %v", args, err)})
	}
	return v
}

func (w *walk) text(args ...any) string {
	s, _ := w.do(args...).(string)
	return s
}

func (w *walk) number(args ...any) int64 { return rds.Number(w.text(args...)) }

func (w *walk) list(args ...any) []string {
	items, _ := w.do(args...).([]any)
	var out []string
	for _, i := range items {
		s, _ := i.(string)
		out = append(out, s)
	}
	return out
}

// at sets the clock.
func (w *walk) at(ms int64) {
	w.clock = ms
	w.do("HSET", walkClock, "s", ms/1000, "us", ms%1000*1000)
}

// nominal is tick n of the schedule, and due when it comes due.
func nominal(n int64) int64             { return walkStart + n*walkPeriod }
func (w *walk) due(tick int64) int64    { return tick + w.jitter[tick] }
func (w *walk) ofTable(tick int64) bool { return (tick-walkStart)%walkPeriod == 0 }

// name is how a trace calls a tick.
func (w *walk) name(tick int64) string {
	if n := (tick - walkStart) / walkPeriod; w.ofTable(tick) {
		return "T" + rds.Itoa(n)
	}
	return rds.Itoa(tick)
}

func (w *walk) ledger() string         { return w.keys.Ledger(walkJob) }
func (w *walk) lockOf(c *Claim) string { return w.keys.Lock(walkJob, c.slot()) }
func (w *walk) lives(uuid string) bool { return w.text("HGET", w.ledger(), "r:"+uuid) != "" }
func (w *walk) owner(x *fiber) string  { return w.text("GET", w.lockOf(&x.claim)) }
func (w *walk) eval(sc *rds.Script, keys []string, args ...any) []any {
	cmd := []any{"EVALSHA", sc.SHA, len(keys)}
	for _, k := range keys {
		cmd = append(cmd, k)
	}
	parts, _ := w.do(append(cmd, args...)...).([]any)
	return parts
}

// run runs a script for a fiber and watches the lock meanwhile: nobody deletes, changes or extends what is another's.
func (w *walk) run(x *fiber, sc *rds.Script, keys []string, args ...any) []any {
	ownerBefore := w.owner(x)
	livedBefore := w.lives(ownerBefore)
	parts := w.eval(sc, keys, args...)
	owner := w.owner(x)
	switch {
	case ownerBefore == owner:
	case owner == "" && w.lives(x.claim.Run):
		w.demand(false, "%s deleted the lock of its live run", x)
	case ownerBefore == thief:
		w.demand(false, "%s changed a foreign lock to %q", x, owner)
	case ownerBefore != x.claim.Run && livedBefore:
		w.demand(false, "%s changed the lock of the live run %s to %q", x, ownerBefore, owner)
	case owner == "":
		w.demand(ownerBefore == x.claim.Run, "%s deleted the lock of %s", x, ownerBefore)
	default:
		w.demand(owner == x.claim.Run && w.lives(owner), "%s changed the lock of %q to %q", x, ownerBefore, owner)
	}
	return parts
}

// question is what a claim asks.
func (w *walk) question(c *Claim, until int64) (keys []string, args []any) {
	args = []any{c.Run, c.Job, rds.Millis(c.Tick), until, c.TTL.Milliseconds(), c.tolerance().Milliseconds(), c.policy(), c.record()}
	return []string{w.lockOf(c), w.ledger(), w.keys.Running, w.keys.DueJobs, w.keys.Events}, append(args, c.rest()...)
}

// acquire asks once, and takes the answer down.
func (w *walk) acquire(x *fiber, until int64) Code {
	c := &x.claim
	keys, args := w.question(c, until)
	ask := func() Answer {
		a, err := parseAnswer(w.run(x, w.scripts.acquire, keys, args...))
		w.demand(err == nil, "%s: %v", x, err)
		return a
	}
	before := w.look(x)
	a := ask()
	after := w.look(x)
	prev := rds.Millis(a.Prev)
	w.note("%d %s of r%d asks %s for %s (%s): %s, newest %s, token %d, gaps %q", w.clock-walkStart, x, x.replica, c.Policy, w.name(x.tick()),
		c.Member,
		a.Code, w.name(prev), a.Token, a.Gaps)
	want := w.expected(x, until, before)
	w.demand(a.Code == want, "%s was told %s, want %s", x, a.Code, want)
	w.demand(a.Gaps == after.fields["gaps"], "%s was told of the gaps %q, of %q", x, a.Gaps, after.fields["gaps"])
	w.follows(x, a, before, after)
	w.check(after)
	if until == farFuture && w.rng.IntN(3) == 0 { // the reply is lost, and the next copy is answered
		again := ask()
		waits := a.Code == Queued && (again.Code == Waits || again.Code == Fired)
		settled := a.Code == Overlap && again.Code == Fired && rds.Millis(again.Overlap) == x.tick()
		w.demand(again.Code == a.Code || waits || settled, "%s was told %s, and then %s", x, a.Code, again.Code)
		now := w.look(x)
		w.demand(now.text == after.text, "%s asked again, and changed\n%s\nto\n%s", x, after.text, now.text)
		w.demand(waits || settled || again.Prev.Equal(a.Prev) && again.Token == a.Token, "%s was told that %s was the newest tick, and then %s",
			x, a.Prev, again.Prev)
	}
	w.hears(x, a)
	return a.Code
}

// hears is what a replica remembers of an answer, and does about the gaps in it.
func (w *walk) hears(x *fiber, a Answer) {
	if a.Code == Stale {
		return
	}
	w.known[x.replica] = max(w.known[x.replica], rds.Millis(a.Prev))
	if x.claim.Member == "" && (a.Code == Won || a.Code == Queued) {
		w.known[x.replica] = max(w.known[x.replica], x.tick())
	}
	if a.Gaps != "" && len(w.bookings) < 40 {
		w.counter++
		w.bookings = append(w.bookings, &booking{id: fmt.Sprintf("b%04d", w.counter), args: w.bookingOf(a.Gaps)})
	}
}

// bookingOf are the arguments by which the ticks in gaps are counted.
func (w *walk) bookingOf(gaps string) []any {
	all, err := ParseGaps(gaps)
	w.demand(err == nil, "%v", err)
	args := []any{gaps, 0, 500}
	missed := 0
	for _, g := range all {
		n := 0
		for t := int64(1); t <= w.ticks; t++ {
			if nominal(t) > rds.Millis(g.From) && nominal(t) < rds.Millis(g.To) {
				n++
			}
		}
		if n > 0 {
			args = append(args, g.Fate, n, "an entry")
		}
		if g.Fate == Missed || g.Fate == Displaced {
			missed += n
		}
	}
	args[1] = missed
	return args
}

// takeWin takes down what a win says.
func (w *walk) takeWin(x *fiber, a Answer) {
	prev := rds.Millis(a.Prev)
	if x.won {
		w.demand(a.Token == x.token && prev == x.prev, "%s was told token %d and %s, and before %d and %s", x, a.Token, w.name(prev), x.token,
			w.name(x.prev))
		return
	}
	w.demand(a.Token > w.newestToken, "token %d of %s after %d", a.Token, x, w.newestToken)
	w.newestToken = a.Token
	x.won, x.token, x.prev = true, a.Token, prev
	if !w.ofTable(x.tick()) {
		delete(w.begun, x.tick())
	}
}

// countedMissed is how many ticks are counted that no replica claimed.
func (w *walk) countedMissed() int64 {
	return w.number("HGET", w.ledger(), "fate:"+Missed) + w.number("HGET", w.ledger(), "fate:"+Displaced)
}

// book has missed ticks counted, by whoever was told of them.
func (w *walk) book(b *booking) {
	counted := w.countedMissed()
	gaps := w.text("HGET", w.ledger(), "gaps")
	ours, _ := w.eval(w.scripts.book, []string{w.ledger(), w.keys.History(walkJob), w.keys.Memo(b.id)}, b.args...)[2].(int64)
	read, _ := b.args[0].(string)
	w.note("%s counts %v: %d", b.id, b.args, ours)
	more := w.countedMissed() - counted
	fits := !b.counted && strings.HasPrefix(gaps, read)
	w.demand((ours == 1) == (b.counted || fits), "%s was told %d of the gaps %q", b.id, ours, gaps)
	if !fits {
		w.demand(more == 0, "%s has counted %d ticks more", b.id, more)
		return
	}
	b.counted = true
	w.demand(fmt.Sprint(more) == fmt.Sprint(b.args[1]) && w.text("HGET", w.ledger(), "gaps") == gaps[len(read):],
		"%s has counted %d of %d, and leaves %q of %q", b.id, more,
		b.args[1], w.text("HGET", w.ledger(), "gaps"), gaps)
}

// dropDue drops a member whose tick is not worth a run any more.
func (w *walk) dropDue(m string) {
	d, err := ParseDue(m)
	w.demand(err == nil, "%v", err)
	t, fate := rds.Millis(d.Tick), Missed
	switch {
	case !w.ofTable(t):
		fate = ""
	case len(w.started[t]) > 0 || w.begun[t]:
		fate = "interrupted"
	}
	gaps, counted := w.text("HGET", w.ledger(), "gaps"), openIn(w.text("HGET", w.ledger(), "open")).counted
	parts := w.eval(w.scripts.drop, []string{w.ledger(), w.keys.DueJobs}, m, fate)
	w.note("%d %q is dropped: %v", w.clock-walkStart, m, parts)
	switch {
	case strings.Contains(counted, rds.Itoa(t)+" "): // it had a fate before it became due again
		w.begun[t] = true
	case fate == Missed:
		gaps += fmt.Sprintf("%d-%d ", t-1, t+1)
	case fate != "":
		gaps += fmt.Sprintf("%d-%d:%s ", t-1, t+1, fate)
	}
	w.demand(parts[2] == int64(1) && parts[3] == gaps && w.text("ZSCORE", w.keys.DueJobs, m) == "", "dropped %q: %v, want the gaps %q", m, parts,
		gaps)
	again := w.eval(w.scripts.drop, []string{w.ledger(), w.keys.DueJobs}, m, fate)
	w.demand(again[2] == int64(0) && again[3] == gaps, "dropped again: %v", again)
	w.finished[t] = true
	w.check(w.look(nil))
}

// play walks from a seed to rest.
func play(rdb redis.UniversalClient, scripts walkScripts, seed uint64) (trace []string, err error) {
	w := newWalk(rdb, scripts.clocked(), seed)
	defer func() {
		trace = w.trace
		if p := recover(); p != nil {
			err = brokenBy(p)
			trace = append(trace, fmt.Sprint("ledger ", w.list("HGETALL", w.ledger())), fmt.Sprint("due ", w.list("ZRANGE", w.keys.DueJobs, 0, -1)))
		}
	}()
	w.do("FLUSHDB")
	w.at(walkStart + 1)
	w.do("HSET", w.ledger(), "born", 1, "since", 1, "tick", walkStart)
	for range 15 + w.rng.IntN(90) {
		w.step(false)
	}
	w.calms()
	for steps := 0; w.step(true); steps++ {
		w.demand(steps < 600, "it does not come to rest")
	}
	w.checkRest()
	return w.trace, nil
}

// calms ends what is no step of a replica: the thief, the pauses, and the time until the last tick.
func (w *walk) calms() {
	for t := int64(0); t <= w.ticks; t++ {
		for _, p := range w.policies {
			c := Claim{Job: walkJob, Tick: rds.FromMillis(nominal(t)), Policy: p}
			if w.text("GET", w.lockOf(&c)) == thief {
				w.do("DEL", w.lockOf(&c))
			}
		}
	}
	for _, which := range bothPauses {
		if w.text("HGET", w.ledger(), which) != "" {
			w.resume(which)
		}
	}
	w.at(max(w.clock, w.due(nominal(w.ticks))) + 2000)
	for n := int64(1); n <= w.ticks; n++ { // who asked just before a pause was ended heard of that
		delete(w.woken, [2]int64{0, nominal(n)})
	}
}

func newWalk(rdb redis.UniversalClient, scripts walkScripts, seed uint64) *walk {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &walk{rdb: rdb, scripts: scripts, keys: rds.NewKeys("walk"), rng: rng, ticks: 5, alive: []bool{true, true, true},
		known: []int64{walkStart, walkStart, walkStart}, jitter: map[int64]int64{}, woken: map[[2]int64]bool{}, started: map[int64][]int{},
		begun: set{}, finished: set{}, overlapped: set{}, touched: set{}, evidence: map[string]bool{}}
	all := []Policy{Forbid, Queue, Replace, Allow}
	w.policies[0] = all[rng.IntN(4)]
	w.policies[1] = w.policies[0]
	if rng.IntN(2) == 0 {
		w.policies[1] = all[rng.IntN(4)]
	}
	for t := int64(1); t <= w.ticks; t++ {
		w.jitter[nominal(t)] = []int64{0, 0, 1500, 6000}[rng.IntN(4)]
	}
	w.atLeastOnce = rng.IntN(5) < 2
	w.all = rng.IntN(3) == 0
	w.budget = map[string]int{
		"crash": rng.IntN(3), "copy": rng.IntN(5), "stall": rng.IntN(3), "refuse": rng.IntN(3), "release": 3, "lapse": 2,
		"hasty reap": 1, "give up": rng.IntN(3), "look": rng.IntN(3), "drop": rng.IntN(4) / 3, "pause": rng.IntN(3) / 2 * 3,
		"trigger": rng.IntN(3) / 2,
	}
	if rng.IntN(4) == 0 {
		w.budget["steal"] = 1
	}
	w.note("policies %v, at least once %v, all missed %v, %v", w.policies, w.atLeastOnce, w.all, slices.Sorted(maps.Keys(w.budget)))
	return w
}

// millisOf reads a number of an answer.
func millisOf(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// prepared fills in what a claim leaves out.
func prepared(c *Claim) {
	if err := c.prepare(); err != nil {
		panic(err)
	}
}
