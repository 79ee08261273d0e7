package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A timer walk plays callers that set and delete two timers, and replicas that fire them, each step drawn at random: with
// lost requests, lost replies, copies that arrive when their sender has given them up, refused starts, crashes, takeovers,
// and cleaning up at any time. The scripts are the real ones. A model of what a timer is, in the words of its users, is
// played beside them, and every answer is compared with it.

// timerScripts is what a walk can be given broken.
type timerScripts struct{ timer, dynamic *script }

func realTimerScripts() timerScripts { return timerScripts{timerScript, dynamicScript} }

// shot is one setting of a timer that was taken: it is to be fired once, unless it is replaced or deleted before.
type shot struct {
	id, source, request string
	created             int64
	state               string // waiting | in hand | gone
	starts              []int  // attempts
	ended, crashed      bool
}

// request is one call that sets or deletes.
type request struct {
	verb, id, uuid, at, source string
	shot                       *shot // set: what it made; delete: what it took
	copies                     int
	over                       bool
}

// shooter is one run, or the attempt to get one.
type shooter struct {
	uuid, member, source string
	of                   *shot
	attempt              int
	stage                stage
	dead, settled        bool
}

type timerWalk struct {
	rdb         redis.UniversalClient
	scripts     timerScripts
	keys        keys
	rng         *rand.Rand
	atLeastOnce bool
	trace       []string

	current  map[string]*shot // what an id stands for; nil = free
	newest   map[string]*shot // what it stood for last, as far as Redis may know
	members  map[string]*shot // due members, by whom they are for
	shots    []*shot
	requests []*request
	strays   []*request // copies whose window is over
	shooters []*shooter
	count    int
}

func (w *timerWalk) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *timerWalk) demand(ok bool, format string, args ...any) {
	if !ok {
		panic(wrong{fmt.Sprintf(format, args...)})
	}
}

func (w *timerWalk) do(args ...any) any {
	v, err := w.rdb.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		panic(wrong{fmt.Sprintf("%v: %v", args, err)})
	}
	return v
}

func (w *timerWalk) run(sc *script, keys []string, args ...any) (code string, n int64) {
	cmd := []any{"EVALSHA", sc.sha, len(keys)}
	for _, k := range keys {
		cmd = append(cmd, k)
	}
	parts, _ := w.do(append(cmd, args...)...).([]any)
	w.demand(len(parts) > 2, "%v: %v", args, parts)
	code, _ = parts[0].(string)
	n, _ = parts[2].(int64)
	return code, n
}

func (w *timerWalk) timer(verb, id string, args ...any) (string, int64) {
	job := TimerJob(id)
	keys := []string{w.keys.timers, w.keys.due, w.keys.ledger(job), w.keys.lock(job, timerSlot(id))}
	return w.run(w.scripts.timer, keys, append([]any{verb, id}, args...)...)
}

func (w *timerWalk) name(kind string) string {
	w.count++
	return fmt.Sprintf("%s%04d", kind, w.count)
}

// entry is the source that Redis keeps for an id; "" = none.
func (w *timerWalk) entry(id string) string {
	text, _ := w.do("HGET", w.keys.timers, id).(string)
	t, _, _ := parseTimer(id, text)
	return string(t.Source)
}

func (w *timerWalk) due() []string {
	items, _ := w.do("ZRANGE", w.keys.due, 0, -1).([]any)
	var members []string
	for _, i := range items {
		m, _ := i.(string)
		members = append(members, m)
	}
	return members
}

// ask sends one copy of a request, and compares the answer with what its caller may expect.
func (w *timerWalk) ask(q *request, until int64) {
	now := w.current[q.id]
	again := q.shot != nil && q.shot == w.newest[q.id] && (now == nil || now == q.shot && q.verb == "set")
	q.copies++
	copied := fmt.Sprintf("%s.%d", q.uuid, q.copies)
	idle := w.idle(now)
	var code string
	var n int64
	if q.verb == "set" {
		code, n = w.timer("set", q.id, copied, until, q.at, q.source, 100, w.keys.events)
	} else {
		code, n = w.timer("delete", q.id, copied, until)
	}
	w.note("%s %s %s %s (until %d): %s %d", copied, q.verb, q.id, q.source, until, code, n)
	is := func(wantCode string, wantN int64) {
		w.demand(code == wantCode && n == wantN, "%s to %s %s was answered %s %d, want %s %d", q.uuid, q.verb, q.id, code, n, wantCode, wantN)
	}
	switch {
	case again && q.verb == "set":
		is("SET", q.shot.created)
	case again:
		is("DELETED", 0)
	case q.verb == "set" && now != nil && now.state == "waiting" && now.source == q.source:
		if code != "STALE" || until == farFuture {
			is("SET", 0)
		}
	case until != farFuture:
		w.demand(code == "STALE" || code == "FIRED" && now != nil && now.state != "waiting", "%s came late and was answered %s", q.uuid, code)
	case q.verb == "delete" && (now == nil || now.state != "waiting"):
		is("NONE", 0)
	case q.verb == "delete":
		is("DELETED", 0)
		q.shot, now.state, w.current[q.id] = now, "gone", nil
	case now != nil && now.state != "waiting":
		is("FIRED", 0)
		now.ended = now.ended || idle
	default:
		made := &shot{id: q.id, source: q.source, request: q.uuid, state: "waiting", created: 1}
		if now != nil {
			made.created, now.state = 0, "gone"
		}
		is("SET", made.created)
		q.shot, w.current[q.id], w.newest[q.id] = made, made, made
		w.shots = append(w.shots, made)
		member := Due{Tick: fromMillis(number(q.at)), Job: TimerJob(q.id), Kind: "timer", Attempt: 1, Nonce: copied}.Member()
		w.demand(w.members[member] == nil, "%q is not new", member)
		w.members[member] = made
	}
}

// check compares what Redis holds with the model.
func (w *timerWalk) check() {
	seen := map[*shot]bool{}
	for _, m := range w.due() {
		s := w.members[m]
		w.demand(s != nil, "%q is due, and nobody's", m)
		w.demand(!seen[s] && s.state != "gone", "%q is due, of %s, which is %s", m, s.request, s.state)
		seen[s] = true
	}
	for id, s := range w.current {
		if s == nil {
			w.demand(w.entry(id) == "", "%s was deleted, and has the source %s", id, w.entry(id))
			continue
		}
		w.demand(s.state != "waiting" || seen[s], "%s of %s waits, and is not due", id, s.request)
		w.demand(s.ended || w.entry(id) == s.source, "%s of %s has the source %q", id, s.request, w.entry(id))
	}
}

// claim asks for a member, as one who has read the source before.
func (w *timerWalk) claim(x *shooter) Code {
	d, err := ParseDue(x.member)
	w.demand(err == nil, "%v", err)
	c := w.claimOf(x, d)
	keys := []string{w.keys.lock(c.Job, c.slot()), w.keys.ledger(c.Job), w.keys.running, w.keys.due}
	args := []any{c.Run, c.Job, millis(c.Tick), farFuture, 30_000, 1000, string(c.Policy), c.record()}
	code, _ := w.run(acquireScript, keys, append(args, c.rest()...)...)
	w.note("%s asks for %q: %s", x.uuid, x.member, code)
	if code == string(Won) {
		s := w.members[x.member]
		w.demand(s != nil && s.state != "gone", "%s got %q", x.uuid, x.member)
		w.demand(x.source == s.source || s.ended, "%s got %q, and has read %q, want %q", x.uuid, x.member, x.source, s.source)
		x.of, s.state = s, "in hand"
	}
	return Code(code)
}

func (w *timerWalk) claimOf(x *shooter, d Due) *Claim {
	c := Claim{Job: d.Job, Tick: d.Tick, Run: x.uuid, TTL: 30 * time.Second, Kind: d.Kind, Attempt: d.Attempt, Handovers: d.Handovers,
		Again: w.atLeastOnce, Member: x.member}
	c.setDefaults()
	return &c
}

// settle ends a run in one of the ways that there are, and says what it answered.
func (w *timerWalk) settle(x *shooter, verb string, score any) string {
	d, _ := ParseDue(x.member)
	c := w.claimOf(x, d)
	again := ""
	switch verb {
	case "handover":
		next := c.due()
		next.Handovers++
		again = next.Member()
	case "abandon":
		again = c.due().Member()
	case "finish":
		again = c.takeover()
	case "reap", "requeue":
		if d.Attempt <= 2 {
			again = c.takeover()
		}
	}
	if again != "" {
		w.members[again] = x.of
	}
	keys := []string{w.keys.lock(c.Job, c.slot()), w.keys.ledger(c.Job), w.keys.running, w.keys.due, w.keys.runs}
	code, _ := w.run(settleScript, keys, verb, c.Run, c.Job, c.slot(), 0, "", again, 0, score)
	w.note("%s of %s: %s: %s", x.uuid, c.Job, verb, code)
	x.settled = true
	return code
}

// step takes one step at random; false when there is none. In quiet nobody sets or deletes, and there are no faults.
func (w *timerWalk) step(quiet bool) bool {
	var steps []func()
	if !quiet {
		steps = append(steps, w.begin, w.clean, w.day)
	}
	for _, q := range w.requests {
		if !q.over {
			steps = append(steps, func() { w.send(q, quiet) })
		}
	}
	for i, q := range w.strays {
		steps = append(steps, func() {
			w.strays = slices.Delete(w.strays, i, i+1)
			w.ask(q, longPast)
		})
	}
	for _, m := range w.due() {
		busy := slices.ContainsFunc(w.shooters, func(x *shooter) bool { return x.member == m && x.stage == asking })
		if !busy {
			steps = append(steps, func() {
				w.shooters = append(w.shooters, &shooter{uuid: w.name("u"), member: m, stage: asking})
			})
		}
	}
	for _, x := range w.shooters {
		steps = append(steps, w.stepsOf(x, quiet)...)
	}
	if len(steps) == 0 {
		return false
	}
	steps[w.rng.IntN(len(steps))]()
	w.check()
	return true
}

func (w *timerWalk) begin() {
	q := &request{verb: []string{"set", "set", "delete"}[w.rng.IntN(3)], id: []string{"a", "b"}[w.rng.IntN(2)], uuid: w.name("q")}
	q.at = itoa(1 + w.rng.Int64N(2))
	q.source = "{\n" + q.at + "}"
	w.requests = append(w.requests, q)
}

// send sends a request's next copy when the one before it can have no effect any more.
func (w *timerWalk) send(q *request, quiet bool) {
	switch fate := w.rng.IntN(6); {
	case quiet || fate < 3:
		w.ask(q, farFuture)
		q.over = true
	case fate == 3: // its reply is lost
		w.ask(q, farFuture)
		q.over = w.rng.IntN(4) == 0 // and its sender gives up
	default: // it comes late
		w.strays = append(w.strays, q)
		q.over = w.rng.IntN(4) == 0
	}
}

// clean is somebody who finds a timer that looks old, when those have given up who may still hand it on.
func (w *timerWalk) clean() {
	id := []string{"a", "b"}[w.rng.IntN(2)]
	s := w.current[id]
	if slices.ContainsFunc(w.shooters, func(x *shooter) bool { return x.of == s && x.stage == abandoning }) {
		return
	}
	idle := w.idle(s)
	_, n := w.timer("clean", id)
	w.note("clean %s: %d", id, n)
	w.demand((n == 1) == idle, "%s was cleaned up: %d", id, n)
	if idle {
		s.ended = true
	}
}

// idle tells whether a shot is kept although nobody deals with it.
func (w *timerWalk) idle(s *shot) bool {
	idle := s != nil && s.state == "in hand" && w.entry(s.id) != ""
	for _, x := range w.shooters {
		idle = idle && (x.of != s || x.settled)
	}
	for _, m := range w.due() {
		idle = idle && w.members[m] != s
	}
	return idle
}

// day lets a day pass, when no request is under way that could be asked again.
func (w *timerWalk) day() {
	if slices.ContainsFunc(w.requests, func(q *request) bool { return !q.over }) {
		return
	}
	for _, id := range []string{"a", "b"} {
		key := w.keys.lock(TimerJob(id), timerSlot(id))
		mark, _ := w.do("GET", key).(string)
		if strings.HasPrefix(mark, "fired ") || strings.HasPrefix(mark, "deleted ") {
			w.do("DEL", key)
			w.newest[id] = nil
		}
		if s := w.current[id]; s != nil && s.ended && w.entry(id) == "" && strings.HasPrefix(mark, "fired ") {
			s.state, w.current[id] = "gone", nil
		}
	}
	w.note("a day passes")
}

func (w *timerWalk) stepsOf(x *shooter, quiet bool) []func() {
	var steps []func()
	entry := x.uuid + " " + w.jobOf(x)
	score := w.do("ZSCORE", w.keys.running, entry)
	if score != nil && (x.dead || !quiet && x.of != nil && x.stage == inRun && w.rng.IntN(8) == 0) { // dead, or it seems so
		steps = append(steps, func() {
			w.demand(w.settle(x, "reap", score) == "OK", "%s was not reaped", x.uuid)
			x.of.crashed = true
		})
	}
	if x.dead {
		return steps
	}
	switch x.stage {
	case asking:
		if x.source == "" {
			return append(steps, func() {
				x.source = w.entry(strings.TrimPrefix(w.jobOf(x), timerPrefix))
				if x.source == "" {
					x.source = "none"
				}
			})
		}
		steps = append(steps, func() { w.asks(x, quiet) })
	case claimed:
		steps = append(steps, func() { w.begins(x, quiet) })
	case inRun:
		steps = append(steps, func() { w.ends(x, quiet) })
	case handing:
		steps = append(steps, func() { w.forgets(x) })
	case abandoning:
		steps = append(steps, func() {
			w.settle(x, "abandon", 0)
			x.stage = over
		})
	}
	return steps
}

func (w *timerWalk) jobOf(x *shooter) string {
	d, _ := ParseDue(x.member)
	return d.Job
}

func (w *timerWalk) asks(x *shooter, quiet bool) {
	code := w.claim(x)
	switch {
	case code == Won && !quiet && w.rng.IntN(6) == 0:
		x.stage = abandoning // it did not hear of it
	case code == Won:
		x.stage = claimed
	case code == Locked: // the re-run of what a late end has ended
		w.demand(w.members[x.member].ended, "%q is locked", x.member)
		w.do("ZREM", w.keys.due, x.member)
		x.stage = over
	default:
		w.demand(code == Gone || code == Held, "%q: %s", x.member, code)
		x.stage = over
	}
}

func (w *timerWalk) begins(x *shooter, quiet bool) {
	d, _ := ParseDue(x.member)
	switch fate := w.rng.IntN(8); {
	case quiet || fate < 6:
		w.note("%s starts %s of %s, attempt %d", x.uuid, x.of.id, x.of.request, d.Attempt)
		w.demand(!slices.Contains(x.of.starts, d.Attempt), "attempt %d of %s was started twice", d.Attempt, x.of.request)
		w.demand(w.atLeastOnce || len(x.of.starts) == 0, "%s was started twice", x.of.request)
		x.of.starts = append(x.of.starts, d.Attempt)
		x.stage = inRun
	case fate == 6:
		w.settle(x, "handover", 0)
		x.stage = over
	default:
		x.dead, x.of.crashed = true, true
	}
}

func (w *timerWalk) ends(x *shooter, quiet bool) {
	switch fate := w.rng.IntN(8); {
	case !quiet && fate == 0:
		x.dead = true
	case !quiet && fate == 1 && w.atLeastOnce:
		w.settle(x, "requeue", 0)
		x.stage = over
	default:
		w.settle(x, "finish", 0)
		x.of.ended = true
		x.stage = handing // the timer to oblivion
		x.dead = !quiet && fate == 2
	}
}

func (w *timerWalk) forgets(x *shooter) {
	code, n := w.timer("forget", x.of.id)
	w.note("%s forgets %s: %s %d", x.uuid, x.of.id, code, n)
	w.demand(n == 0 || w.current[x.of.id] == x.of, "%s forgot another's timer", x.uuid)
	x.stage = over
}

// playTimers walks from a seed to rest.
func playTimers(rdb redis.UniversalClient, scripts timerScripts, seed uint64) (trace []string, err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &timerWalk{rdb: rdb, scripts: scripts, keys: newKeys("walk"), rng: rng, atLeastOnce: rng.IntN(2) == 0,
		current: map[string]*shot{}, newest: map[string]*shot{}, members: map[string]*shot{}}
	defer func() {
		trace = w.trace
		if p := recover(); p != nil {
			broken, ok := p.(wrong)
			if !ok {
				panic(p)
			}
			err = broken
			trace = append(trace, fmt.Sprint("due ", w.due()), fmt.Sprint("timers ", w.do("HGETALL", w.keys.timers)))
		}
	}()
	w.do("FLUSHDB")
	w.do("HSET", w.keys.ledger(TimerJobs), "born", 1, "tick", 0)
	for range 20 + rng.IntN(100) {
		w.step(false)
	}
	for steps := 0; w.step(true); steps++ {
		w.demand(steps < 1000, "it does not come to rest")
	}
	for _, s := range w.shots {
		w.demand(s.state == "gone" || len(s.starts) > 0 || s.crashed, "%s of %s was not fired", s.id, s.request)
	}
	return w.trace, nil
}

func TestRandomWalksOfTimersBreakNoPromise(t *testing.T) {
	for name, client := range map[string]func(*testing.T) redis.UniversalClient{"miniredis": miniClient, "redis": realClient} {
		t.Run(name, func(t *testing.T) {
			rdb := client(t)
			load(t, rdb, realScripts())
			loadTimers(t, rdb, realTimerScripts())
			n, end := *walks, time.Now().Add(time.Hour)
			if n == 0 {
				n, end = 300, time.Now().Add(walkTime)
			}
			done := 0
			for ; done < n && time.Now().Before(end); done++ {
				seed := *walkFrom + uint64(done)
				if trace, err := playTimers(rdb, realTimerScripts(), seed); err != nil {
					t.Fatalf("%v\n  %s\nagain: go test ./lock -run '%s' -walk.from=%d -walks=1", err, strings.Join(trace, "\n  "), t.Name(), seed)
				}
			}
			t.Logf("%d walks from seed %d", done, *walkFrom)
		})
	}
}

func loadTimers(t *testing.T, rdb redis.UniversalClient, s timerScripts) {
	t.Helper()
	for _, sc := range []*script{s.timer, s.dynamic} {
		if err := rdb.ScriptLoad(context.Background(), sc.source).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
