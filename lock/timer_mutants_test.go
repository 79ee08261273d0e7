//go:build !race

package lock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

// timerMutants are the scripts of timers, each with one thought left out.
var timerMutants = []mutant{
	{"settle", "a timer that waits is forgotten",
		"  if redis.call('ZSCORE', due, setAt .. ' ' .. job .. ' timer 1 0 0 ' .. setBy) then return '' end -- set anew", "  -- set anew"},
	{"settle", "a timer that runs again is forgotten",
		"if again ~= '' and redis.call('ZREM', due, again) == 1 then", "redis.call('ZREM', due, again)\n    if true then"},
	{"settle", "a timer that is handed on is forgotten", "over and forget() or ''", "forget()"},
	{"settle", "what was fired keeps its entry", "over and forget()", "again == '' and forget()"},
	{"settle", "what is given up keeps its entry", "over and forget()", "(verb == 'finish' or verb == 'reap' and again == '') and forget()"},
	{"settle", "what is reaped keeps its entry", "over and forget()", "(verb == 'finish' or verb ~= 'reap' and again == '') and forget()"},
	{"settle", "what a late finish has taken back keeps its entry", "      forget()\n      endTick", "      endTick"},
	{"settle", "what is forgotten keeps its entry", "redis.call('SET', timer, 'fired - ' .. setBy .. ' ' .. new, 'PX', day)", ""},
	{"settle", "what is forgotten leaves no mark",
		"redis.call('SET', timer, 'fired - ' .. setBy .. ' ' .. new, 'PX', day)", "redis.call('DEL', timer)"},
	{"settle", "the mark of what has fired stays for ever", "new, 'PX', day)", "new)"},
	{"settle", "the source of what is forgotten is counted", "  weigh(-#source)\n", ""},
	{"settle", "there are fewer bytes than none",
		"math.max((tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more, 0)",
		"(tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more"},
	{"settle", "evidence that it never started finds no entry", "ARGV[10] .. ' ' .. kept", "ARGV[10]"},
	{"settle", "evidence that it never started brings back no entry", "    if kept ~= '' then recall(kept) end\n", ""},
	{"settle", "what evidence has brought back is gone in a day", "  redis.call('SET', timer, kept)\n", "  redis.call('SET', timer, kept, 'PX', day)\n"},
	{"settle", "the source that evidence has brought back is not counted", "  weigh(#string.match(kept, '^%d+ %S+ [01] (.*)$'))\n", ""},
	{"settle", "a timer that is due again nudges nobody", "if nudge then redis.pcall('PUBLISH', ARGV[5], 'due') end", ""},
	{"timer", "set again, asked anew", "if verb == 'set' and request(setBy) == request(copy) then return {'SET', now, tonumber(new)} end", ""},
	{"timer", "set again, another answer", "then return {'SET', now, tonumber(new)} end", "then return {'SET', now, 0} end"},
	{"timer", "set again when it has fired, or was deleted",
		"if verb == 'set' and request(setOnce) == request(copy) then return {'SET', now, tonumber(was)} end", ""},
	{"timer", "set again when it has fired, another answer", "then return {'SET', now, tonumber(was)} end", "then return {'SET', now, 0} end"},
	{"timer", "deleted again, another answer", "if verb == 'delete' and deletedBy == request(copy) then return {'DELETED', now, 0} end", ""},
	{"timer", "a late copy has an effect", "if now > tonumber(ARGV[4]) then return {'STALE', now, 0} end", ""},
	{"timer", "what does not wait is deleted",
		"if not waits then return {'NONE', now, 0} end", "if not setAt then return {'NONE', now, 0} end"},
	{"timer", "a deleted timer is due", "redis.call('ZREM', due, member(setAt, setBy))            -- first", "-- first"},
	{"timer", "a deleted timer keeps its entry",
		"redis.call('SET', timer, 'deleted ' .. request(copy) .. ' ' .. setBy .. ' ' .. new, 'PX', 600000)", ""},
	{"timer", "a deletion is not remembered",
		"redis.call('SET', timer, 'deleted ' .. request(copy) .. ' ' .. setBy .. ' ' .. new, 'PX', 600000)", "redis.call('DEL', timer)"},
	{"timer", "a deletion is remembered for ever", "new, 'PX', 600000)", "new)"},
	{"timer", "the same is set anew", "if setAt == at and setTo == source then return {'SET', now, 0} end", ""},
	{"timer", "another time is the same", "if setAt == at and setTo == source then", "if setTo == source then"},
	{"timer", "another source is the same", "if setAt == at and setTo == source then", "if setAt == at then"},
	{"timer", "what was handed on is set anew", "entry ~= '' and mark ~= 'deleted'", "mark == 'fired'"},
	{"timer", "what has fired is set anew", "entry ~= '' and mark ~= 'deleted'", "entry ~= '' and not mark"},
	{"timer", "what another version has set is overwritten", "entry ~= '' and mark ~= 'deleted'", "setAt or mark == 'fired'"},
	{"timer", "what was deleted is not set anew", "entry ~= '' and mark ~= 'deleted'", "entry ~= ''"},
	{"timer", "there is no end of timers", "return {'FULL', now, 0}", "local full = true"},
	{"timer", "one timer too many", ">= tonumber(ARGV[7])", "> tonumber(ARGV[7])"},
	{"timer", "there is no end of the sources of timers", "return {'LARGE', now, tonumber(ARGV[9])}", "local large = true"},
	{"timer", "a byte too many", "bytes(more) > tonumber(ARGV[9])", "bytes(more) > tonumber(ARGV[9]) + 1"},
	{"timer", "a byte too few", "bytes(more) > tonumber(ARGV[9])", "bytes(more) >= tonumber(ARGV[9])"},
	{"timer", "a source is counted beside the one that it replaces", "#source - (waits and #setTo or 0)", "#source"},
	{"timer", "no smaller source is taken when they are too large", "if more > 0 and bytes", "if bytes"},
	{"timer", "a source is not counted", "\nweigh(more)\n", "\n"},
	{"timer", "the source of what is deleted is counted", "  weigh(-#setTo)\n", ""},
	{"timer", "there are fewer bytes than none",
		"math.max((tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more, 0)",
		"(tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more"},
	{"timer", "a timer is not due", "redis.call('ZADD', due, at, member(at, copy))", ""},
	{"timer", "a timer is due at once",
		"redis.call('ZADD', due, at, member(at, copy))", "redis.call('ZADD', due, now, member(at, copy))"},
	{"timer", "a member is made due twice",
		"redis.call('ZADD', due, at, member(at, copy))",
		"redis.call('ZADD', due, at, member(at, request(copy)))"},
	{"timer", "what was replaced is due", "if waits then redis.call('ZREM', due, member(setAt, setBy)) end", ""},
	{"timer", "a timer has no entry", "redis.call('SET', timer, at ..", "redis.call('GET', at .."},
	{"timer", "what was replaced counts as new", "(waits and ' 0 ' or ' 1 ')", "' 1 '"},
	{"timer", "nobody is told", "redis.pcall('PUBLISH', ARGV[8], 'due')", ""},
	{"timer", "all are told of what is far away", "tonumber(at) < now + 31000 and first", "first"},
	{"timer", "all are told of what is not the next", "first == member(at, copy) then redis.pcall", "true then redis.pcall"},
	{"timer", "what was set in the place of another and deleted was new",
		"' ' .. setBy .. ' ' .. new, 'PX', 600000",
		"' ' .. setBy .. ' 1', 'PX', 600000"},
	{"timer", "what takes the place of a deleted one was there", "(waits and ' 0 ' or ' 1 ')", "(entry ~= '' and ' 0 ' or ' 1 ')"},
	{"settle", "what was set in the place of another and has fired was new", "setBy .. ' ' .. new, 'PX', day", "setBy .. ' 1', 'PX', day"},
}

func (s *timerScripts) named(name string) **rds.Script {
	return map[string]**rds.Script{"timer": &s.timer, "settle": &s.settle}[name]
}

func TestEveryMutantOfTimersIsNoticed(t *testing.T) {
	trial := func(t *testing.T, rdb redis.UniversalClient) func(timerScripts) string {
		load(t, rdb, realScripts())
		return func(s timerScripts) string {
			loadTimers(t, rdb, s)
			if err := probeTimers(rdb, s); err != nil {
				return "probe: " + err.Error()
			}
			for seed := uint64(1); seed <= 200; seed++ {
				if _, err := playTimers(rdb, s, seed); err != nil {
					return fmt.Sprintf("walk %d: %v", seed, err)
				}
			}
			return ""
		}
	}
	everyMutantIsNoticed(t, timerMutants, realTimerScripts, (*timerScripts).named, trial)
}

// probeTimers checks what walks do not see: time, numbers and nudges.
func probeTimers(rdb redis.UniversalClient, scripts timerScripts) (err error) {
	w := &timerWalk{rdb: rdb, scripts: scripts, keys: rds.NewKeys("walk"), members: map[string]*shot{}}
	defer func() {
		if p := recover(); p != nil {
			broken, ok := p.(wrong)
			if !ok {
				panic(p)
			}
			err = broken
		}
	}()
	w.do("FLUSHDB")
	nudges := rdb.Subscribe(context.Background(), w.keys.Events)
	defer nudges.Close()
	if _, err := nudges.Receive(context.Background()); err != nil {
		return err
	}
	// told demands that these nudges have come, and no more.
	told := func(want ...string) {
		w.do("PUBLISH", w.keys.Events, "end")
		for _, nudge := range append(want, "end") {
			m, err := nudges.ReceiveMessage(context.Background())
			for err == nil && m.Payload == "run" { // that a timer's run has begun
				m, err = nudges.ReceiveMessage(context.Background())
			}
			w.demand(err == nil && m.Payload == nudge, "heard %v, %v; want %q", m, err, nudge)
		}
	}
	w.probeTimes(told)
	w.probeSizes()
	w.probeForgetting(told)
	w.probeMemory()
	return nil
}

func (w *timerWalk) now() int64 {
	parts, _ := w.do("TIME").([]any)
	seconds, _ := rds.Integer(parts[0])
	micros, _ := rds.Integer(parts[1])
	return 1000*seconds + micros/1000
}

// sets is a request to set with a code and a number as its answer.
func (w *timerWalk) sets(id, copied string, at int64, source, want string) {
	code, n := w.timer("set", id, copied, farFuture, at, source, 3, w.keys.Events, 8)
	w.demand(fmt.Sprint(code, " ", n) == want, "%s set %s: %s %d, want %s", copied, id, code, n, want)
}

func (w *timerWalk) probeTimes(told func(...string)) {
	now := w.now()
	w.sets("a", "q1", now+60_000, "{}", "SET 1")
	told()
	w.sets("b", "q2", now+1_900, "{}", "SET 1")
	told("due")
	w.sets("c", "q3", now+1_950, "{}", "SET 1")
	told()
	w.sets("d", "q4", now, "{}", "FULL 0")
	for n, c := range []struct {
		copied string
		at     int64
		source string
	}{{"q5", now + 60_001, "{}"}, {"q6", now + 60_001, "{} "}} {
		w.sets("a", c.copied, c.at, c.source, "SET 0")
		w.sets("a", c.copied+".1", c.at, c.source, "SET 0")
		m := Due{Tick: rds.FromMillis(c.at), Job: "timer:a", Kind: "timer", Attempt: 1, Nonce: c.copied}.Member()
		score, _ := w.do("ZSCORE", w.keys.DueTimers, m).(string)
		w.demand(rds.Number(score) == c.at && w.entry("a") == c.source, "%d: %q is due at %s: %v", n, m, score, w.due())
	}
	w.demand(len(w.due()) == 3, "due: %v", w.due())
	for id, request := range map[string]string{"a": "d1", "b": "d2", "c": "d3"} {
		code, _ := w.timer("delete", id, request, farFuture)
		w.demand(code == "DELETED", "%s: %s", id, code)
	}
	w.lasts("a", 10*time.Minute)
}

// probeSizes has sources that are too large together.
func (w *timerWalk) probeSizes() {
	w.do("FLUSHDB")
	at := w.now() + 60_000
	w.sets("a", "s1", at, "12345", "SET 1")
	w.sets("b", "s2", at, "1234", "LARGE 8")
	w.demand(w.entry("b") == "" && len(w.due()) == 1, "it is too large, and was set: %v", w.due())
	w.sets("b", "s3", at, "123", "SET 1")
	w.sets("b", "s4", at, "1234", "LARGE 8")
	w.demand(w.entry("b") == "123", "it is too large, and has taken the place of %q", w.entry("b"))
	w.sets("a", "s5", at, "1234", "SET 0")
	w.sets("b", "s6", at, "1234", "SET 0")
	w.do("HSET", w.keys.Ledger(rds.TimerJobs), "bytes", 100) // another version's bound was another one
	w.sets("b", "s7", at, "123", "SET 0")
	w.do("HSET", w.keys.Ledger(rds.TimerJobs), "bytes", 0) // its ledger was forgotten
	code, _ := w.timer("delete", "a", "s8", farFuture)
	w.demand(code == "DELETED" && w.do("HGET", w.keys.Ledger(rds.TimerJobs), "bytes") == "0", "deleted: %s", code)
	w.do("FLUSHDB")
}

// lasts demands that the mark of a timer ends after so long.
func (w *timerWalk) lasts(id string, d time.Duration) {
	ttl, _ := w.do("PTTL", w.keys.Timer(rds.TimerJob(id))).(int64)
	w.demand(ttl > d.Milliseconds()-10_000 && ttl <= d.Milliseconds(), "the mark of %s lasts %d ms", id, ttl)
}

// probeForgetting ends runs of timers.
func (w *timerWalk) probeForgetting(told func(...string)) {
	w.do("FLUSHDB")
	w.do("HSET", w.keys.Ledger(rds.TimerJobs), "born", 1)
	now := w.now()
	bytes := func(want string) {
		got := w.do("HGET", w.keys.Ledger(rds.TimerJobs), "bytes")
		w.demand(got == want, "the sources have %v bytes, want %s", got, want)
	}
	runs := func(member string) *shooter {
		x := &shooter{uuid: w.name("u"), member: member}
		d, err := ParseDue(member)
		w.demand(err == nil, "%v", err)
		w.members[member] = &shot{id: strings.TrimPrefix(d.Job, "timer:"), source: "{}"}
		x.source = "{}"
		code := w.claim(x)
		w.demand(code == Won, "%q: %s", member, code)
		return x
	}
	w.sets("a", "q1", now, "{}", "SET 1")
	told("due")
	x := runs(w.due()[0])
	w.settle(x, "handover", 0)
	told("due")
	w.settle(runs(w.due()[0]), "give up", 0)
	w.demand(w.entry("a") == "" && len(w.due()) == 0, "given up, and it is there")
	bytes("0")
	w.lasts("a", 24*time.Hour)
	w.sets("a", "q1.1", now, "{}", "SET 1") // of which the first answer was lost
	w.sets("a", "q2", now, "{}", "FIRED 0")

	// Taken over under at-most-once, and its replica knows that it never started.
	w.sets("b", "q3", now, "{}", "SET 1")
	told("due")
	x = runs(w.due()[0])
	w.settle(x, "reap", w.do("ZSCORE", w.keys.Running, x.uuid+" timer:b"))
	w.demand(w.entry("b") == "", "reaped, and it is there")
	bytes("0")
	w.lasts("b", 24*time.Hour)
	w.settle(x, "abandon", 0)
	w.demand(w.entry("b") == "{}" && len(w.due()) == 1, "what never started is not there: %v", w.due())
	bytes("2")
	ttl, _ := w.do("PTTL", w.keys.Timer("timer:b")).(int64)
	w.demand(ttl == -1, "it is there for %d ms", ttl)
	told("due")

	// Redis loses its data, the run is to be run again, and somebody sets another timer of that id.
	w.atLeastOnce = true
	x = runs(w.due()[0])
	w.do("FLUSHDB")
	w.do("HSET", w.keys.Ledger(rds.TimerJobs), "born", 2)
	w.settle(x, "requeue", 0)
	told("due")
	again := w.due()[0]
	w.sets("b", "q4", now+60_000, "{}", "SET 1")
	told()
	w.settle(runs(again), "finish", 0)
	w.demand(w.entry("b") == "{}" && len(w.due()) == 1, "what was set anew is not there: %v", w.due())
	w.do("HSET", w.keys.Ledger(rds.TimerJobs), "bytes", 0) // its ledger was forgotten
	w.settle(runs(w.due()[0]), "finish", 0)
	bytes("0")

	w.sets("e", "q6", now, "{}", "SET 1")
	w.sets("e", "q7", now, "{7}", "SET 0")
	w.settle(runs(w.due()[0]), "finish", 0)
	w.sets("e", "q7.1", now, "{7}", "SET 0")

	w.do("SET", w.keys.Timer("timer:c"), "another version's")
	w.sets("c", "q5", now, "{}", "FIRED 0")
}

// probeMemory has requests arrive again, and late.
func (w *timerWalk) probeMemory() {
	w.do("FLUSHDB")
	now := w.now()
	code, _ := w.timer("set", "a", "q0", longPast, now, "{}", 3, w.keys.Events)
	w.demand(code == "STALE" && w.entry("a") == "", "set late: %s", code)
	w.sets("a", "q1", now, "{}", "SET 1")
	w.sets("a", "q1.1", now, "{}", "SET 1")
	code, _ = w.timer("delete", "a", "d0", longPast)
	w.demand(code == "STALE" && w.entry("a") != "", "deleted late: %s", code)
	for _, copied := range []string{"d1", "d1.1"} {
		code, _ := w.timer("delete", "a", copied, farFuture)
		w.demand(code == "DELETED" && w.entry("a") == "" && len(w.due()) == 0, "%s: %s", copied, code)
	}
	w.sets("a", "q1.2", now, "{}", "SET 1")
	w.demand(w.entry("a") == "", "a copy has undone what was deleted")
	w.sets("a", "q2", now, "{2}", "SET 1")
	w.sets("a", "q2.1", now, "{2}", "SET 1")
	w.sets("a", "q1.3", now, "{}", "SET 0") // beside others it takes its turn, with a member of its own
	w.demand(len(w.due()) == 1 && strings.HasSuffix(w.due()[0], " q1.3"), "due: %v", w.due())
	w.sets("b", "q3", now, "{}", "SET 1") // and was set anew, and deleted
	w.sets("b", "q4", now, "{4}", "SET 0")
	w.timer("delete", "b", "d2", farFuture)
	w.sets("b", "q4.1", now, "{4}", "SET 0")
}
