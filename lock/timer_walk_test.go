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

	"github.com/solotick/solotick/internal/rds"
)

// A timer walk plays callers that set and delete two timers, some with a schedule, and replicas that fire them, each step
// drawn at random: with lost requests, lost replies, copies that arrive when their sender has given them up, refused
// starts, crashes, and takeovers. The scripts are the real ones. A model of what a timer is, in the words of its users, is played beside
// them, and every answer is compared with it.

// timerScripts is what a walk can be given broken.
type timerScripts struct{ timer, spring, settle *rds.Script }

func realTimerScripts() timerScripts {
	return timerScripts{serviceScript("timer"), serviceScript("spring"), settleScript}
}

// shot is one setting of a timer that was taken: it is to be fired once, unless it is replaced or deleted before.
type shot struct {
	id, source, request string
	created             int64
	state               string // waiting | in hand | gone
	starts              []int  // attempts
	forgotten, crashed  bool

	// Of one with a schedule: the time for which it waits, and who set it so. Each of its times is a shot of its own.
	at   int64
	copy string
}

// series reports whether it has a schedule.
func (s *shot) series() bool { return s.copy != "" }

// over reports whether nothing is left of it.
func (s *shot) over() bool { return s == nil || s.forgotten || s.state == "gone" }

// request is one call that sets or deletes.
type request struct {
	verb, id, uuid, at, source string
	kind                       string // set: timer | series
	shot                       *shot  // set: what it made; delete: what it took
	copies                     int
	over                       bool
}

// shooter is one run, or the attempt to get one.
type shooter struct {
	uuid, member, source string
	of                   *shot
	stage                stage
	dead, settled        bool
}

type timerWalk struct {
	rdb         redis.UniversalClient
	scripts     timerScripts
	keys        rds.Keys
	rng         *rand.Rand
	atLeastOnce bool
	trace       []string

	current  map[string]*shot // what an id stands for; nil = free
	newest   map[string]*shot // what it stood for last, as far as Redis may know
	members  map[string]*shot // due members, by whom they are for
	sprung   map[string]int64 // by id, the newest time of a schedule that was made due, as far as Redis may know
	springs  []*spring
	shots    []*shot
	requests []*request
	strays   []*request // copies whose window is over
	shooters []*shooter
	count    int
	waits    int64 // the time that the last answer to set told
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

func (w *timerWalk) run(sc *rds.Script, keys []string, args ...any) (code string, n int64) {
	parts := w.parts(sc, keys, args...)
	code, _ = parts[0].(string)
	n, _ = parts[2].(int64)
	return code, n
}

func (w *timerWalk) parts(sc *rds.Script, keys []string, args ...any) []any {
	cmd := []any{"EVALSHA", sc.SHA, len(keys)}
	for _, k := range keys {
		cmd = append(cmd, k)
	}
	parts, _ := w.do(append(cmd, args...)...).([]any)
	w.demand(len(parts) > 2, "%v: %v", args, parts)
	return parts
}

func (w *timerWalk) timer(verb, id string, args ...any) (string, int64) {
	keys := []string{w.keys.Timer(rds.TimerJob(id)), w.keys.DueTimers, w.keys.Ledger(rds.TimerJobs)}
	parts := w.parts(w.scripts.timer, keys, append([]any{verb, id}, args...)...)
	n, _ := parts[2].(int64)
	if w.waits = 0; len(parts) > 3 {
		w.waits, _ = parts[3].(int64)
	}
	return fmt.Sprint(parts[0]), n
}

func (w *timerWalk) name(kind string) string {
	w.count++
	return fmt.Sprintf("%s%04d", kind, w.count)
}

// entry is the source that Redis keeps for an id; "" = none.
func (w *timerWalk) entry(id string) string {
	text, _ := w.do("GET", w.keys.Timer(rds.TimerJob(id))).(string)
	if strings.HasPrefix(text, "fired ") || strings.HasPrefix(text, "deleted ") {
		return ""
	}
	n := 4
	if strings.HasPrefix(text, "series ") {
		n = 6
	}
	f := strings.SplitN(text, " ", n)
	return f[len(f)-1]
}

func (w *timerWalk) due() []string {
	items, _ := w.do("ZRANGE", w.keys.DueTimers, 0, -1).([]any)
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
	var code string
	var n int64
	if q.verb == "set" {
		code, n = w.timer("set", q.id, copied, until, q.at, q.source, 100, w.keys.Events, 1000, q.kind)
	} else {
		code, n = w.timer("delete", q.id, copied, until)
	}
	w.note("%s %s %s %s (until %d): %s %d", copied, q.verb, q.id, q.source, until, code, n)
	is := func(wantCode string, wantN int64) {
		w.demand(code == wantCode && n == wantN, "%s to %s %s was answered %s %d, want %s %d", q.uuid, q.verb, q.id, code, n, wantCode, wantN)
	}
	if code == "SET" && now != nil && now.series() && now.source == q.source {
		w.demand(w.waits == now.at, "%s waits for %d, and is told %d", q.id, now.at, w.waits)
	}
	switch {
	case again && q.verb == "set":
		is("SET", q.shot.created)
	case again:
		is("DELETED", w.sprung[q.id])
	case q.verb == "set" && now != nil && now.state == "waiting" && now.source == q.source:
		if code != "STALE" || until == farFuture {
			is("SET", 2)
		}
	case until != farFuture:
		w.demand(code == "STALE" || code == "FIRED" && now != nil && now.state != "waiting", "%s came late and was answered %s", q.uuid, code)
	case q.verb == "delete" && (now == nil || now.state != "waiting"):
		is("NONE", w.sprung[q.id])
	case q.verb == "delete":
		is("DELETED", w.sprung[q.id])
		now.state, w.current[q.id] = "gone", nil
		q.shot = now
		if last := w.current[occurrence(q.id, n)]; last != nil {
			w.requests = append(w.requests, &request{verb: "delete", id: last.id, uuid: w.name("q")})
		}
	case now != nil && now.state != "waiting":
		is("FIRED", 0)
	default:
		made := &shot{id: q.id, source: q.source, request: q.uuid, state: "waiting", created: 1}
		if now != nil {
			made.created, now.state = 0, "gone"
		}
		is("SET", made.created)
		made.at, made.copy = rds.Number(q.at), copied
		if now != nil && now.series() && q.kind == Series { // its time has come
			made.at = now.at
		}
		w.demand(w.waits == made.at, "%s waits for %d, and is told %d", q.id, made.at, w.waits)
		q.shot, w.current[q.id], w.newest[q.id] = made, made, made
		w.shots = append(w.shots, made)
		member := w.member(made, q.kind)
		if q.kind == "timer" {
			made.copy, w.sprung[q.id] = "", 0
		}
		w.demand(w.members[member] == nil, "%q is not new", member)
		w.members[member] = made
	}
}

func occurrence(id string, tick int64) string {
	return rds.TimerID(rds.OccurrenceJob(rds.TimerJob(id), tick))
}

// member is the due member of a timer that waits.
func (w *timerWalk) member(s *shot, kind string) string {
	return Due{Tick: rds.FromMillis(s.at), Job: rds.TimerJob(s.id), Kind: kind, Attempt: 1, Nonce: s.copy}.Member()
}

// spring is one that is about to move a timer with a schedule on, as it has read it.
type spring struct {
	member string
	newest int64
}

// reads reads a timer with a schedule whose time has come.
func (w *timerWalk) reads(member string) {
	d, _ := ParseDue(member)
	text, _ := w.do("GET", w.keys.Timer(d.Job)).(string)
	f := strings.SplitN(text, " ", 6)
	w.demand(len(f) == 6 && f[0] == "series" && f[2] == rds.Itoa(rds.Millis(d.Tick)) && f[3] == d.Nonce, "%q has the entry %q", member, text)
	w.springs = append(w.springs, &spring{member, rds.Number(strings.TrimSuffix(f[1], "+"))})
}

// spring moves timers with schedules on, all in one call. In quiet they end.
func (w *timerWalk) spring(all []*spring, quiet bool) {
	keys := []string{w.keys.DueTimers, w.keys.Ledger(rds.TimerJobs), w.keys.History(rds.TimerJobs)}
	args := []any{100}
	var want []string
	for _, p := range all {
		d, _ := ParseDue(p.member)
		id, tick, next, missed := rds.TimerID(d.Job), rds.Millis(d.Tick), int64(0), ""
		if w.rng.IntN(4) == 0 { // some have passed
			tick, missed = tick+1, "missed"
		}
		if !quiet && w.rng.IntN(6) > 0 {
			next = tick + 1 + w.rng.Int64N(2)
		}
		at := occurrence(id, tick)
		keys = append(keys, w.keys.Timer(d.Job), w.keys.Timer(rds.TimerJob(at)), w.keys.Timer(rds.TimerJob(occurrence(id, p.newest))))
		args = append(args, p.member, tick, next, missed, "overlapped")
		s := w.members[p.member]
		if s.state != "waiting" || s.at != rds.Millis(d.Tick) {
			want = append(want, "GONE")
			continue
		}
		code := "DUE"
		if tick <= w.sprung[id] {
			code = "PAST"
		} else {
			code = w.replaces(at, w.replaces(occurrence(id, w.sprung[id]), code))
		}
		want = append(want, code)
		if code == "DUE" || code == "REPLACED" {
			made := &shot{id: at, source: s.source, request: s.request, state: "waiting", at: tick, copy: s.copy}
			member := w.member(made, "timer")
			w.demand(w.members[member] == nil, "%q is not new", member)
			made.copy = ""
			w.members[member], w.current[at], w.newest[at], w.sprung[id] = made, made, made, tick
			w.shots = append(w.shots, made)
		}
		if s.at = next; next == 0 {
			s.state, w.current[id] = "gone", nil
		} else {
			w.members[w.member(s, "series")] = s
		}
	}
	parts := w.parts(w.scripts.spring, keys, args...)
	w.note("spring %v: %v, want %v", args, parts, want)
	for i, code := range want {
		w.demand(len(parts) == 2+len(want) && parts[2+i] == code, "spring %v was answered %v, want %v", args, parts, want)
	}
}

// replaces is the answer about a newer time than one of the same schedule, which it replaces unless a replica has it.
func (w *timerWalk) replaces(id, code string) string {
	s := w.current[id]
	switch {
	case s.over():
	case s.state != "waiting":
		code = "OVERLAPPED"
	default:
		s.state, w.current[id] = "gone", nil
		if code == "DUE" {
			code = "REPLACED"
		}
	}
	return code
}

// check compares what Redis holds with the model.
func (w *timerWalk) check() {
	seen := map[*shot]bool{}
	for _, m := range w.due() {
		s := w.members[m]
		w.demand(s != nil, "%q is due, and nobody's", m)
		w.demand(w.entry(s.id) == s.source, "%q is due, and has the source %q", m, w.entry(s.id))
		w.demand(!seen[s] && s.state != "gone", "%q is due, of %s, which is %s", m, s.request, s.state)
		seen[s] = true
	}
	for id, s := range w.current {
		if s == nil {
			w.demand(w.entry(id) == "", "%s was deleted, and has the source %s", id, w.entry(id))
			continue
		}
		w.demand(s.state != "waiting" || seen[s], "%s of %s waits, and is not due", id, s.request)
		want := s.source
		if s.forgotten {
			kept := w.do("GET", w.keys.Timer(rds.TimerJob(id)))
			w.demand(kept == nil || !strings.Contains(id, "@"), "a time of a schedule has left %q", kept)
			want = ""
		}
		w.demand(w.entry(id) == want, "%s of %s has the source %q, want %q", id, s.request, w.entry(id), want)
	}
	w.demand(w.do("HGET", w.keys.Ledger(rds.TimerJobs), "open") == nil, "timers are open ticks")
	bytes, _ := w.do("HGET", w.keys.Ledger(rds.TimerJobs), "bytes").(string)
	var sources []string
	for id := range w.current {
		sources = append(sources, w.entry(id))
	}
	w.demand(rds.Number(bytes) == int64(len(strings.Join(sources, ""))), "the sources %q have %s bytes", sources, bytes)
}

// claim asks for a member, as one who has read the source before.
func (w *timerWalk) claim(x *shooter) Code {
	d, err := ParseDue(x.member)
	w.demand(err == nil, "%v", err)
	c := w.claimOf(x, d)
	keys := []string{w.keys.Lock(c.Job, c.slot()), w.keys.Ledger(c.Job), w.keys.Running, w.keys.DueTimers, w.keys.Events}
	args := []any{c.Run, c.Job, rds.Millis(c.Tick), farFuture, 30_000, 1000, c.policy(), c.record()}
	code, _ := w.run(acquireScript, keys, append(args, c.rest()...)...)
	w.note("%s asks for %q: %s", x.uuid, x.member, code)
	if code == string(Won) {
		s := w.members[x.member]
		w.demand(s != nil && s.state != "gone", "%s got %q", x.uuid, x.member)
		w.demand(x.source == s.source, "%s got %q, and has read %q, want %q", x.uuid, x.member, x.source, s.source)
		x.of, s.state = s, "in hand"
	}
	return Code(code)
}

func (w *timerWalk) claimOf(x *shooter, d Due) *Claim {
	c := Claim{Job: d.Job, Tick: d.Tick, Run: x.uuid, TTL: 30 * time.Second, Kind: d.Kind, Attempt: d.Attempt, Retries: 2, Rounds: d.Rounds,
		Deaths: d.Deaths, Refused: d.Refused, Replica: "r", Again: w.atLeastOnce, Member: x.member}
	prepared(&c)
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
		next.Refused = append(slices.Clone(next.Refused), x.uuid)
		again = next.Member()
	case "abandon":
		again = c.due().Member()
	case "give up":
		verb = "handover"
	case "finish", "reap":
		again = c.takeover(1)
	case "requeue":
		again = c.takeover(0)
	}
	if again != "" {
		w.members[again] = x.of
	}
	keys := []string{w.keys.Lock(c.Job, c.slot()), w.keys.Ledger(c.Job), w.keys.Running, w.keys.DueTimers, w.keys.History(c.Job), w.keys.Memo(c.Run),
		w.keys.Failures(c.Job), w.keys.Timer(c.Job)}
	takenBack := verb == "finish" && slices.Contains(w.due(), again)
	entry := ""
	if verb == "reap" {
		entry = "e"
	}
	code, _ := w.run(w.scripts.settle, keys, verb, c.Run, c.Job, 0, w.keys.Events, entry, 500, "", score, 1, 0, "", again)
	w.note("%s of %s: %s: %s", x.uuid, c.Job, verb, code)
	x.settled = true
	switch {
	case code == string(OK) && (verb == "finish" || again == ""), takenBack:
		x.of.forgotten = true
	case code == string(Late) && again != "" && (verb == "handover" || verb == "abandon"): // evidence that it never started
		x.of.forgotten = false
	}
	return code
}

// playTimers walks from a seed to rest.
func playTimers(rdb redis.UniversalClient, scripts timerScripts, seed uint64) (trace []string, err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &timerWalk{rdb: rdb, scripts: scripts, keys: rds.NewKeys("walk"), rng: rng, atLeastOnce: rng.IntN(2) == 0,
		current: map[string]*shot{}, newest: map[string]*shot{}, members: map[string]*shot{}, sprung: map[string]int64{}}
	defer func() {
		trace = w.trace
		if p := recover(); p != nil {
			broken, ok := p.(wrong)
			if !ok {
				panic(p)
			}
			err = broken
			trace = append(trace, fmt.Sprint("due ", w.due()), fmt.Sprint("a ", w.do("GET", w.keys.Timer("timer:a"))),
				fmt.Sprint("b ", w.do("GET", w.keys.Timer("timer:b"))))
		}
	}()
	w.do("FLUSHDB")
	w.do("HSET", w.keys.Ledger(rds.TimerJobs), "born", 1, "tick", 0)
	for range 20 + rng.IntN(100) {
		w.step(false)
	}
	for steps := 0; w.step(true); steps++ {
		w.demand(steps < 1000, "it does not come to rest")
	}
	for _, s := range w.current {
		w.demand(s == nil || s.forgotten, "what has been dealt with is kept")
	}
	for _, s := range w.shots {
		w.demand(s.state == "gone" || s.series() || len(s.starts) > 0 || s.crashed, "%s of %s was not fired", s.id, s.request)
	}
	return w.trace, nil
}

func TestRandomWalksOfTimersBreakNoPromise(t *testing.T) {
	for name, client := range map[string]func(*testing.T) redis.UniversalClient{"miniredis": miniClient, "redis": realClient} {
		t.Run(name, func(t *testing.T) {
			rdb := client(t)
			load(t, rdb, realScripts())
			loadTimers(t, rdb, realTimerScripts())
			for n := range *walks {
				seed := *walkFrom + uint64(n)
				if trace, err := playTimers(rdb, realTimerScripts(), seed); err != nil {
					t.Fatalf("%v\n  %s\nagain: go test ./lock -run '%s' -walk.from=%d -walks=1", err, strings.Join(trace, "\n  "), t.Name(), seed)
				}
			}
		})
	}
}

func loadTimers(t *testing.T, rdb redis.UniversalClient, s timerScripts) {
	t.Helper()
	for _, sc := range []*rds.Script{s.timer, s.spring, s.settle} {
		if err := rdb.ScriptLoad(context.Background(), sc.Source).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
