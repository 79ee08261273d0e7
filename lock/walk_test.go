package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A walk plays a few replicas that fire the first ticks of one job, each step drawn at random: wakes, answers, extensions,
// and among them stalls beyond the lease, crashes, copies of requests that arrive late or twice, refused starts, takeovers
// and thieves. The scripts are the real ones, and so is Redis or at least miniredis; time is not: a lease ends when the
// walk says so. The promises are checked at every step, and that no tick was lost when all has come to rest.

const (
	walkJob   = "j"
	farFuture = 9_999_999_999_999 // an `until` that does not pass
	longPast  = 1
	thief     = "a thief"
)

// scripts by name, so that a walk can be given broken ones.
type walkScripts struct{ acquire, extend, settle, release, register *script }

func realScripts() walkScripts {
	return walkScripts{acquireScript, extendScript, settleScript, releaseScript, registerScript}
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
	uuid        string
	replica     int
	tick        int64
	attempt     int
	member      string // due member that is its authority
	stage       stage
	outcome     string // ok | cut short | replaced
	trusted     bool
	copied      bool // a second copy of its claim is under way
	open        bool // it gave up before the windows of its copies were over
	dead        bool
	won         bool
	token, prev int64
}

// stray is a request that is still under way.
type stray struct {
	of     *fiber
	claim  bool
	settle []any
}

type set map[int64]bool

type walk struct {
	rdb     redis.UniversalClient
	scripts walkScripts
	keys    keys
	rng     *rand.Rand
	trace   []string

	policy      Policy
	atLeastOnce bool
	all         bool // `missed: all`: older ticks go to the due set in the claim
	ticks       int64
	alive       []bool
	known       []int64 // newest tick claimed, as each replica last heard

	now                                   int64 // ticks that have come
	budget                                map[string]int
	fibers                                []*fiber
	strays                                []*stray
	woken                                 map[[2]int64]bool
	started                               map[int64][]int // attempts by tick
	finished, overlapped, crashed, missed set
	superseded, everClaimed, refused      set
	lastQueued                            int64
	told                                  bool // the run is to end, for ticks that are due
	newestToken                           int64
}

// wrong is a broken promise.
type wrong struct{ what string }

func (w wrong) Error() string { return w.what }

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

func (w *walk) number(args ...any) int64 {
	n, _ := strconv.ParseInt(w.text(args...), 10, 64)
	return n
}

func (w *walk) list(args ...any) []string {
	items, _ := w.do(args...).([]any)
	var out []string
	for _, i := range items {
		s, _ := i.(string)
		out = append(out, s)
	}
	return out
}

func (w *walk) slot(tick int64) string {
	if w.policy == Allow {
		return ":" + itoa(tick)
	}
	return ""
}

func (w *walk) ledger() string             { return w.keys.ledger(walkJob) }
func (w *walk) lockOf(tick int64) string   { return w.keys.lock(walkJob, w.slot(tick)) }
func (w *walk) holderOf(tick int64) string { return w.text("HGET", w.ledger(), "run"+w.slot(tick)) }

// run runs a script for a fiber and watches the lock meanwhile: nobody deletes, changes or extends what is another's.
func (w *walk) run(x *fiber, sc *script, keys []string, args ...any) []any {
	ownerBefore, holderBefore := w.text("GET", w.lockOf(x.tick)), w.holderOf(x.tick)
	cmd := []any{"EVALSHA", sc.sha, len(keys)}
	for _, k := range keys {
		cmd = append(cmd, k)
	}
	reply := w.do(append(cmd, args...)...)
	owner, holder := w.text("GET", w.lockOf(x.tick)), w.holderOf(x.tick)
	switch {
	case ownerBefore == owner:
	case owner == "" && holder == x.uuid:
		w.demand(false, "%s deleted the lock of its live run", x.uuid)
	case ownerBefore == thief:
		w.demand(false, "%s changed a foreign lock to %q", x.uuid, owner)
	case ownerBefore != "" && ownerBefore != x.uuid && ownerBefore == holderBefore:
		w.demand(false, "%s changed the lock of the live run %s to %q", x.uuid, ownerBefore, owner)
	case owner == "":
		w.demand(ownerBefore == x.uuid, "%s deleted the lock of %s", x.uuid, ownerBefore)
	default:
		w.demand(owner == x.uuid && holder == x.uuid, "%s changed the lock of %q to %q, the ledger says %q", x.uuid, ownerBefore, owner, holder)
	}
	parts, _ := reply.([]any)
	return parts
}

func (w *walk) due(tick int64, attempt int, nonce string) string {
	return itoa(tick) + Due{Job: walkJob, Kind: "x", Attempt: attempt, Nonce: nonce}.suffix()
}

// acquire asks once, and takes the answer down.
func (w *walk) acquire(x *fiber, until int64) Code {
	var older []any
	olderThan := ""
	if w.all && x.member == "" {
		for t := w.known[x.replica] + 1; t < x.tick; t++ {
			older = append(older, w.due(t, 0, x.uuid))
		}
		if len(older) > 0 {
			olderThan = itoa(w.known[x.replica])
			older = append(older, w.due(x.tick, 0, x.uuid))
		}
	}
	owner, holder := w.text("GET", w.lockOf(x.tick)), w.holderOf(x.tick)
	args := []any{x.uuid, walkJob, x.tick, until, 30_000, 1000, string(w.policy),
		fmt.Sprintf("%s 30000 x %d 0 0 r%d", w.policy, x.attempt, x.replica), w.slot(x.tick), x.member, olderThan}
	parts := w.run(x, w.scripts.acquire, []string{w.lockOf(x.tick), w.ledger(), w.keys.running, w.keys.due}, append(args, older...)...)
	a, err := parseAnswer(parts)
	w.demand(err == nil, "%s: %v", x.uuid, err)
	prev := millis(a.Prev)
	w.note("%s of r%d asks for T%d: %s, newest T%d, token %d", x.uuid, x.replica, x.tick, a.Code, prev, a.Token)
	if until == farFuture && holder == x.uuid && (owner == "" || owner == x.uuid) {
		w.demand(a.Code == Won, "%s holds the run, asked again and was told %s", x.uuid, a.Code)
	}
	if a.Code != stale && a.Code != Won {
		w.known[x.replica] = max(w.known[x.replica], prev)
	}
	switch a.Code {
	case Overlap:
		w.refused[x.tick] = true
	case Won:
		w.takeWin(x, a.Token, prev, len(older) > 0)
	case Queued:
		switch {
		case len(older) > 0: // all of them are due
			w.told = w.told || w.policy == Replace && holder != ""
		case w.policy == Replace && w.lastQueued != 0:
			w.demand(millis(a.Waited) == w.lastQueued, "T%d took the place of T%d, and was told T%d", x.tick, w.lastQueued, millis(a.Waited))
			w.superseded[w.lastQueued] = true
			w.lastQueued = x.tick
		default:
			w.lastQueued = x.tick
		}
		w.everClaimed[x.tick] = true
		w.skipTo(prev, x.tick, len(older) > 0)
	}
	return a.Code
}

func (w *walk) takeWin(x *fiber, token, prev int64, olderDue bool) {
	if x.won {
		w.demand(token == x.token && prev == x.prev, "%s was told token %d and T%d, and before %d and T%d", x.uuid, token, prev, x.token, x.prev)
		return
	}
	w.demand(token > w.newestToken, "token %d of %s after %d", token, x.uuid, w.newestToken)
	w.newestToken = token
	x.won, x.token, x.prev = true, token, prev
	w.everClaimed[x.tick] = true
	if x.member == "" {
		w.skipTo(prev, x.tick, olderDue)
	}
}

// skipTo takes down what became of the ticks between two that were claimed: missed, or due.
func (w *walk) skipTo(prev, tick int64, due bool) {
	for t := prev + 1; t < tick; t++ {
		if due {
			w.everClaimed[t] = true
		} else if !w.overlapped[t] {
			w.missed[t] = true
		}
	}
}

func (w *walk) extend(x *fiber) string {
	owner, holder := w.text("GET", w.lockOf(x.tick)), w.holderOf(x.tick)
	parts := w.run(x, w.scripts.extend, []string{w.lockOf(x.tick), w.ledger(), w.keys.running}, x.uuid, walkJob, 30_000, w.slot(x.tick))
	want := "OK"
	switch {
	case holder != x.uuid || owner != "" && owner != x.uuid:
		want = "LOST"
	case w.policy == Replace && w.lastQueued != 0 || w.told:
		want = "REPLACED"
	}
	w.note("%s extends: %v", x.uuid, parts[0])
	w.demand(parts[0] == want, "%s extended: %v, want %s", x.uuid, parts[0], want)
	return want
}

// settle sends a settlement for the first time, or a copy of it, and demands that an overlap is settled by the end of a
// run, and by nothing else, for good.
func (w *walk) settle(x *fiber, args []any) []any {
	overlap, stop := w.number("HGET", w.ledger(), "overlap"), w.text("HGET", w.ledger(), "stop")
	parts := w.run(x, w.scripts.settle, []string{w.lockOf(x.tick), w.ledger(), w.keys.running, w.keys.due, w.keys.runs}, args...)
	w.note("%s of T%d: %s: %v", x.uuid, x.tick, args[0], parts)
	ended := args[0] == "finish" || args[0] == "requeue"
	w.demand(ended || w.number("HGET", w.ledger(), "overlap") == overlap, "%s of %s counted an overlap", args[0], x.uuid)
	freed, _ := parts[2].(int64)
	w.demand(!ended || freed == 0 || freed == w.lastQueued, "%s of %s set the overlapped T%d free", args[0], x.uuid, freed)
	w.takeDue()
	w.takeFreed(parts)
	again, _ := args[6].(string)
	isDue := again != "" && w.text("ZSCORE", w.keys.due, again) != ""
	w.demand(args[0] != "finish" || !isDue, "T%d is finished, and due again", x.tick)
	if cutShort := args[0] == "reap" || args[0] == "requeue"; cutShort && parts[0] == "OK" && stop != "" {
		w.demand(!isDue, "T%d is replaced, and due again", x.tick)
		w.finished[x.tick], w.superseded[x.tick] = true, true
	}
	return parts
}

// takeDue takes down what is due: claimed, and once.
func (w *walk) takeDue() {
	due := set{}
	for _, m := range w.list("ZRANGE", w.keys.due, 0, -1) {
		d, err := ParseDue(m)
		w.demand(err == nil, "%v", err)
		t := millis(d.Tick)
		w.demand(!due[t], "T%d is due twice", t)
		due[t], w.everClaimed[t] = true, true
	}
}

func (w *walk) takeFreed(parts []any) {
	if w.text("HGET", w.ledger(), "queued") == "" {
		w.lastQueued = 0
	}
	if w.text("HGET", w.ledger(), "run") == "" {
		w.told = false
	}
	freed, _ := parts[2].(int64)
	w.everClaimed[freed] = true
	for t := int64(1); t < freed; t++ {
		if !w.everClaimed[t] && !w.overlapped[t] {
			w.demand(!w.refused[t], "T%d was refused behind a run that was none, and is not due", t)
			w.missed[t] = true
		}
	}
}

// settlement is what a fiber sends when it comes to its end.
func (w *walk) settlement(x *fiber) []any {
	verb, again, delay := "finish", "", 60_000
	retry := w.due(x.tick, x.attempt+1, x.uuid)
	switch {
	case x.stage == handing:
		verb, again, delay = "handover", w.due(x.tick, x.attempt, x.uuid), 0
	case x.stage == abandoning:
		verb, again, delay = "abandon", w.due(x.tick, x.attempt, x.uuid), 0
	case !w.atLeastOnce:
	case x.outcome == "ok":
		again = retry // should a takeover have added it, it is not needed any more
	case x.outcome == "cut short" && x.attempt < 2:
		verb, again = "requeue", retry
	}
	if w.policy == Allow {
		delay = 0
	}
	return []any{verb, x.uuid, walkJob, w.slot(x.tick), delay, "an entry", again, 0}
}

func (w *walk) reap(x *fiber, score string) {
	again := ""
	if w.atLeastOnce && x.attempt < 2 {
		again = w.due(x.tick, x.attempt+1, x.uuid)
	}
	parts := w.settle(x, []any{"reap", x.uuid, walkJob, w.slot(x.tick), 0, "", again, 0, score})
	if parts[0] == "OK" && again == "" {
		w.finished[x.tick] = true
	}
}

// reapHastily is the reap of a watcher whose last look is older than the lease.
func (w *walk) reapHastily(x *fiber) {
	parts := w.run(x, w.scripts.settle, []string{w.lockOf(x.tick), w.ledger(), w.keys.running, w.keys.due, w.keys.runs},
		"reap", x.uuid, walkJob, w.slot(x.tick), 0, "", "", 0, 12345)
	w.demand(parts[0] == "MOVED", "%s was reaped for a lease that had moved: %v", x.uuid, parts)
}

// release is never in order while a run lasts, and never needed.
func (w *walk) release(x *fiber) {
	w.run(x, w.scripts.release, []string{w.lockOf(x.tick), w.ledger()}, x.uuid, w.slot(x.tick))
}

// takeOverlaps takes down what was settled as overlapped.
func (w *walk) takeOverlaps() {
	for t := int64(1); t <= w.number("HGET", w.ledger(), "overlap"); t++ {
		if !w.everClaimed[t] && !w.missed[t] {
			w.overlapped[t] = true
		}
	}
}

// step takes one step at random; false when there is none. In quiet the faults are over, and all comes to rest.
// spend is a fault as long as there are some left of its kind.
// arrive lets a request arrive that was under way.
// takeovers are the runs that a watcher may have seen unchanged for a ttl, and locks whose time is over.
// advance takes a fiber one step on its way.
// play walks from a seed to rest.
func play(rdb redis.UniversalClient, scripts walkScripts, seed uint64) (trace []string, err error) {
	w := newWalk(rdb, scripts, seed)
	defer func() {
		trace = w.trace
		if p := recover(); p != nil {
			broken, ok := p.(wrong)
			if !ok {
				panic(p)
			}
			err = broken
			trace = append(trace, fmt.Sprint("ledger ", w.list("HGETALL", w.ledger())), fmt.Sprint("due ", w.list("ZRANGE", w.keys.due, 0, -1)))
		}
	}()
	w.do("FLUSHDB")
	w.do("HSET", w.ledger(), "born", 1, "tick", 0)
	for range 10 + w.rng.IntN(71) {
		w.step(false)
	}
	for t := int64(1); t <= w.ticks; t++ {
		if w.text("GET", w.lockOf(t)) == thief {
			w.do("DEL", w.lockOf(t))
		}
	}
	w.now = w.ticks
	for steps := 0; w.step(true); steps++ {
		w.demand(steps < 400, "it does not come to rest")
	}
	for t := int64(1); t <= w.ticks; t++ {
		if len(w.started[t]) > 0 {
			w.demand(!w.atLeastOnce || w.finished[t], "T%d was started, and neither finished nor run again", t)
			continue
		}
		w.demand(w.overlapped[t] || w.crashed[t] || w.superseded[t] || w.missed[t], "T%d is lost", t)
	}
	w.demand(len(w.list("ZRANGE", w.keys.due, 0, -1)) == 0, "something is still due")
	w.demand(len(w.list("ZRANGE", w.keys.running, 0, -1)) == 0, "something still runs")
	for _, field := range w.list("HKEYS", w.ledger()) {
		w.demand(!strings.HasPrefix(field, "r"), "the ledger keeps %q", field)
	}
	return w.trace, nil
}

func newWalk(rdb redis.UniversalClient, scripts walkScripts, seed uint64) *walk {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &walk{rdb: rdb, scripts: scripts, keys: newKeys("walk"), rng: rng, ticks: 4, alive: []bool{true, true, true}, known: make([]int64, 3),
		woken: map[[2]int64]bool{}, started: map[int64][]int{}, finished: set{}, overlapped: set{}, crashed: set{}, missed: set{},
		superseded: set{}, everClaimed: set{}, refused: set{}}
	w.policy = []Policy{Forbid, Queue, Replace, Allow}[rng.IntN(4)]
	w.atLeastOnce = rng.IntN(5) < 2
	w.all = rng.IntN(3) == 0
	w.budget = map[string]int{"crash": rng.IntN(3), "copy": rng.IntN(5), "stall": rng.IntN(3), "refuse": rng.IntN(3), "release": 3, "lapse": 2,
		"hasty reap": 1, "give up": rng.IntN(3)}
	if rng.IntN(4) == 0 {
		w.budget["steal"] = 1
	}
	w.note("policy %s, at least once %v, all missed %v, %v", w.policy, w.atLeastOnce, w.all, slices.Sorted(maps.Keys(w.budget)))
	return w
}
