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
	{"settle", "a timer that is handed on is forgotten", "over and timer and forget() or ''", "timer and forget() or ''"},
	{"settle", "what was fired keeps its entry", "over and timer and", "again == '' and timer and"},
	{"settle", "what is given up keeps its entry", "over and timer and", "(verb == 'finish' or verb == 'reap' and again == '') and timer and"},
	{"settle", "what is reaped keeps its entry", "over and timer and", "(verb == 'finish' or verb ~= 'reap' and again == '') and timer and"},
	{"settle", "what a late finish has taken back keeps its entry", "      if timer then forget() end\n      endTick", "      endTick"},
	{"settle", "what is forgotten keeps its entry", "redis.call('SET', timer, 'fired - ' .. setBy .. ' ' .. new, 'PX', day)", ""},
	{"settle", "what is forgotten leaves no mark",
		"redis.call('SET', timer, 'fired - ' .. setBy .. ' ' .. new, 'PX', day)", "redis.call('DEL', timer)"},
	{"settle", "the mark of what has fired stays for ever", "new, 'PX', day)", "new)"},
	{"settle", "the source of what is forgotten is counted", "  weigh(-#source)\n", ""},
	{"settle", "there are fewer bytes than none",
		"math.max((tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more, 0)",
		"(tonumber(redis.call('HGET', ledger, 'bytes')) or 0) + more"},
	{"settle", "evidence that it never started finds no entry", "ARGV[10] .. ' ' .. kept", "ARGV[10]"},
	{"settle", "evidence that it never started brings back no entry", "    if kept ~= '' then\n", "    if false then\n"},
	{"settle", "what evidence has brought back is gone in a day", "  redis.call('SET', timer, kept)\n", "  redis.call('SET', timer, kept, 'PX', day)\n"},
	{"settle", "the source that evidence has brought back is not counted", "  weigh(#string.match(kept, '^%d+ %S+ [01] (.*)$'))\n", ""},
	{"settle", "a timer that is due again nudges nobody", "if nudge then redis.pcall('PUBLISH', ARGV[5], 'due') end\nreturn", "return"},
	{"timer", "set again, asked anew", "if verb == 'set' and request(setBy) == request(copy) then return {'SET', now, tonumber(new), tonumber(setAt)} end", ""},
	{"timer", "set again, another answer", "then return {'SET', now, tonumber(new), ", "then return {'SET', now, 0, "},
	{"timer", "set again when it has fired, or was deleted",
		"if verb == 'set' and request(setOnce) == request(copy) then return {'SET', now, tonumber(was), tonumber(at)} end", ""},
	{"timer", "set again when it has fired, another answer", "then return {'SET', now, tonumber(was), ", "then return {'SET', now, 0, "},
	{"timer", "deleted again, another answer", "if verb == 'delete' and deletedBy == request(copy) then return {'DELETED', now, tonumber(newest)} end", ""},
	{"timer", "a late copy has an effect", "if now > tonumber(ARGV[4]) then return {'STALE', now, 0} end", ""},
	{"timer", "what does not wait is deleted",
		"if not waits then return {'NONE'", "if not setAt then return {'NONE'"},
	{"timer", "a deleted timer is due", "redis.call('ZREM', due, member(before, setAt, setBy))    -- first", "-- first"},
	{"timer", "a deleted timer keeps its entry",
		"redis.call('SET', timer, 'deleted ' .. request(copy)", "redis.call('GET', 'deleted ' .. request(copy)"},
	{"timer", "a deletion is not remembered",
		"  weigh(-#setTo)\n", "  weigh(-#setTo)\n  redis.call('DEL', timer)\n"},
	{"timer", "a deletion is remembered for ever", "newest, 'PX', newest == '0' and 600000 or 86400000)", "newest)"},
	{"timer", "the times of what was deleted are forgotten in ten minutes", "newest == '0' and 600000 or 86400000", "600000"},
	{"timer", "the same is set anew", "if isDue and setTo == source and (setAt == at or series) then", "if false then"},
	{"timer", "another time is the same", "setTo == source and (setAt == at or series)", "setTo == source"},
	{"timer", "another source is the same", "setTo == source and (setAt == at or", "(setAt == at or"},
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
	{"timer", "a timer is not due", "redis.call('ZADD', due, at, member(kind, at, copy))", ""},
	{"timer", "a timer is due at once",
		"redis.call('ZADD', due, at, member(kind, at, copy))", "redis.call('ZADD', due, now, member(kind, at, copy))"},
	{"timer", "a member is made due twice",
		"redis.call('ZADD', due, at, member(kind, at, copy))",
		"redis.call('ZADD', due, at, member(kind, at, request(copy)))"},
	{"timer", "what was replaced is due", "if waits then redis.call('ZREM', due, member(before, setAt, setBy)) end", ""},
	{"timer", "a timer has no entry", "redis.call('SET', timer, (kind ==", "redis.call('GET', (kind =="},
	{"timer", "what was replaced counts as new", "(waits and ' 0 ' or ' 1 ')", "' 1 '"},
	{"timer", "nobody is told", "redis.pcall('PUBLISH', ARGV[8], 'due')", ""},
	{"timer", "all are told of what is far away", "tonumber(at) < now + 31000 and first", "first"},
	{"timer", "all are told of what is not the next", "first == member(kind, at, copy) then redis.pcall", "true then redis.pcall"},
	{"timer", "what was set in the place of another and deleted was new",
		"' ' .. setBy .. ' ' .. new .. ' ' .. newest, 'PX', newest",
		"' ' .. setBy .. ' 1 ' .. newest, 'PX', newest"},
	{"timer", "what takes the place of a deleted one was there", "(waits and ' 0 ' or ' 1 ')", "(entry ~= '' and ' 0 ' or ' 1 ')"},
	{"settle", "what was set in the place of another and has fired was new", "setBy .. ' ' .. new, 'PX', day", "setBy .. ' 1', 'PX', day"},
	{"settle", "one time of a schedule leaves a mark", "if string.find(job, '@', 1, true) then", "if false then"},
	{"timer", "a schedule that is not due stays so", "if isDue and setTo == source", "if setTo == source"},
	{"timer", "a schedule that is not due cannot be deleted", "isDue or setAt and series", "isDue"},
	{"timer", "a schedule of another version is overwritten", "isDue or setAt and series", "isDue or series"},
	{"timer", "a time that has come is lost", "tonumber(setAt) <= now then at = setAt end", "false then at = setAt end"},
	{"timer", "a time to come is kept", "isDue and tonumber(setAt) <= now then", "isDue then"},
	{"timer", "a time is kept for one without a schedule", "if series and kind == 'series' and isDue", "if series and isDue"},
	{"timer", "a time of one without a schedule is kept", "if series and kind == 'series' and isDue", "if kind == 'series' and isDue"},
	{"timer", "a time that was lost is kept", "and isDue and tonumber(setAt) <= now", "and tonumber(setAt) <= now"},
	{"timer", "a schedule that is set again, the same, begins anew", "(setAt == at or series)", "setAt == at"},
	{"timer", "what is set again is told its own time", "return {'SET', now, 2, tonumber(setAt)}", "return {'SET', now, 2, tonumber(at)}"},
	{"timer", "what is set again, the same, is told as a change", "{'SET', now, 2,", "{'SET', now, 0,"},
	{"timer", "asked again, told its own time", "tonumber(new), tonumber(setAt)}", "tonumber(new), tonumber(at)}"},
	{"timer", "what is set is not told its time", "waits and 0 or 1, tonumber(at)}", "waits and 0 or 1}"},
	{"timer", "a schedule is set as a timer of one time", "(kind == 'series' and", "(kind == 'other' and"},
	{"timer", "a schedule comes due as a timer of one time", "due, at, member(kind, at, copy))  ", "due, at, member('timer', at, copy))  "},
	{"timer", "a schedule is not known again", "local before = series and", "local before = nil and"},
	{"timer", "what replaces a schedule repeats its times", "newest = newest or tonumber", "newest = not series and tonumber"},
	{"timer", "what was deleted and is set anew repeats its times", "newest = newest or tonumber(last) and last or '0'", "newest = newest or '0'"},
	{"timer", "who deletes a schedule is not told of its newest time", "  return {'DELETED', now, tonumber(newest)}", "  return {'DELETED', now, 0}"},
	{"timer", "who deletes it again is not told of its newest time", "then return {'DELETED', now, tonumber(newest)} end", "then return {'DELETED', now, 0} end"},
	{"timer", "who deletes what has ended is not told of its newest time", "{'NONE', now, tonumber(newest)}", "{'NONE', now, 0}"},
	{"spring", "another time than the one that was read", "member == at .. ' ' .. job", "member == string.match(member, '^%d+') .. ' ' .. job"},
	{"spring", "another one than the one that was read", "' series 1 0 0 ' .. copy and", "' series 1 0 0 ' .. string.match(member, '%S+$') and"},
	{"spring", "what is not due any more goes on", "and redis.call('ZREM', due, member) == 1 then", "and redis.call('ZREM', due, member) then"},
	{"spring", "the time before stays due", "and redis.call('ZREM', due, member) == 1 then", "and redis.call('ZSCORE', due, member) then"},
	{"spring", "nobody is told of what is missed", "then keep(missed) end", "then local told = missed end"},
	{"spring", "all are told of nothing missed", "if missed ~= '' and code ~= 'PAST' then", "if code ~= 'PAST' then"},
	{"spring", "all are told again of what is past", "if missed ~= '' and code ~= 'PAST' then", "if missed ~= '' then"},
	{"spring", "a time is made due again", "tonumber(tick) <= tonumber(newest) and 'PAST' or 'DUE'", "'DUE'"},
	{"spring", "the newest time is made due again", "tonumber(tick) <= tonumber(newest)", "tonumber(tick) < tonumber(newest)"},
	{"spring", "times are compared as texts", "tonumber(tick) <= tonumber(newest)", "tick <= newest"},
	{"spring", "runs overlap", "for n = 2, code == 'DUE' and 3 or 0 do", "for n = 2, code == 'DUE' and 2 or 0 do"},
	{"spring", "what is not over is overwritten", "for n = 2, code", "for n = 3, code"},
	{"spring", "what is past takes the time before away", "code == 'DUE' and 3 or 0 do", "3 do"},
	{"spring", "a time that no replica has claimed is in the way", "if since then", "if false then"},
	{"spring", "a run is replaced", "if since then", "if was then since = since or tick"},
	{"spring", "what was replaced is due", "        redis.call('ZREM', due, before)\n", ""},
	{"spring", "what replaces another loses its place", "more - #source, since", "more - #source, at"},
	{"spring", "the newest time that has come waits longer", "'GONE', at", "'GONE', tick"},
	{"spring", "what was replaced keeps its entry", "        redis.call('DEL', KEYS[3 * i + 3 + n])\n", ""},
	{"spring", "the source of what was replaced is counted", "'REPLACED' or code, more - #source,", "'REPLACED' or code, more,"},
	{"spring", "nobody is told of what was replaced", "        keep(string.format(", "        tostring(string.format("},
	{"spring", "a replaced time hides one that runs", "more, place = code == 'DUE' and 'REPLACED' or code,", "more, place = 'REPLACED',"},
	{"spring", "nobody is told that a time was replaced", "more, place = code == 'DUE' and 'REPLACED' or code,", "more, place = code,"},
	{"spring", "a mark is in the way", "or '', '^%d') then", "or '', '^.') then"},
	{"spring", "what another version has made is not in the way", "elseif string.find(kept[3 * i + n] or '', '^%d') then", "elseif was then"},
	{"spring", "nobody is told of what overlapped", "then keep(overlapped) end", "then local told = tick end"},
	{"spring", "all are told of each overlap", "code == 'OVERLAPPED' and told == '' then", "code == 'OVERLAPPED' then"},
	{"spring", "an overlap is not known to be told", "(code == 'OVERLAPPED' and '+ ' or ' ')", "' '"},
	{"spring", "an overlap is told of the first run alone", "(code == 'OVERLAPPED' and '+ ' or ' ')", "(code == 'OVERLAPPED' and '+ ' or told .. ' ')"},
	{"spring", "all are told that what is due overlapped", "if code == 'OVERLAPPED' and told == '' then", "if told == '' then"},
	{"spring", "what overlapped was made due", "if code == 'OVERLAPPED' and told", "if code == 'OVERLAPPED' then newest = tick end if code == 'OVERLAPPED' and told"},
	{"timer", "a time that was told is not known", "'^series (%d+)%+? (.*)$'", "'^series (%d+) (.*)$'"},
	{"spring", "what is replaced is not made due", "if code == 'DUE' or code == 'REPLACED' then", "if code == 'DUE' then"},
	{"spring", "the newest time is not noted", "newest, more = tick, more + #set - 2", "more = more + #set - 2"},
	{"spring", "the source of a time is not counted", "newest, more = tick, more + #set - 2", "newest, more = tick, more"},
	{"spring", "a time has no entry", "redis.call('SET', occurrence, tick", "redis.call('GET', tick"},
	{"spring", "a time is not due", "redis.call('ZADD', due, place, tick", "redis.call('ZSCORE', due, tick"},
	{"spring", "a time that is late is due as if it were not", "redis.call('ZADD', due, place, tick", "redis.call('ZADD', due, now, tick"},
	{"spring", "what has ended is kept", "if following == '0' then ", "if false then "},
	{"spring", "what has ended leaves no mark",
		"redis.call('SET', timer, 'deleted - ' .. copy .. ' ' .. string.sub(set, 1, 1) .. ' ' .. newest, 'PX', 86400000)", "redis.call('DEL', timer)"},
	{"spring", "what has ended leaves its mark for ever", "newest, 'PX', 86400000)", "newest)"},
	{"spring", "what has ended forgets its newest time", "string.sub(set, 1, 1) .. ' ' .. newest, 'PX'", "string.sub(set, 1, 1) .. ' 0', 'PX'"},
	{"spring", "what was set in the place of another and has ended was new", "'deleted - ' .. copy .. ' ' .. string.sub(set, 1, 1)", "'deleted - ' .. copy .. ' 1'"},
	{"spring", "the source of what has ended is counted", "      more = more - #set + 2\n", ""},
	{"spring", "the entry keeps its time", "or ' ') .. following ..", "or ' ') .. at .."},
	{"spring", "the entry keeps its newest time", "'series ' .. newest ..", "'series 0' .."},
	{"spring", "the next time does not come", "redis.call('ZADD', due, following, following", "redis.call('ZSCORE', due, following"},
	{"spring", "the next time comes at once", "redis.call('ZADD', due, following, following", "redis.call('ZADD', due, now, following"},
	{"spring", "no byte is counted", "if more ~= 0 then", "if false then"},
	{"spring", "there are fewer bytes than none", "math.max(bytes + more, 0)", "bytes + more"},
	{"spring", "the history grows for ever", "'XADD', history, 'MAXLEN', '~', ARGV[1], '*'", "'XADD', history, '*'"},
	{"spring", "the others of a call are left out", "answer[i + 3] = code\n", "answer[i + 3] = code\n  if true then break end\n"},
}

func (s *timerScripts) named(name string) **rds.Script {
	return map[string]**rds.Script{"timer": &s.timer, "spring": &s.spring, "settle": &s.settle}[name]
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
	w := &timerWalk{rdb: rdb, scripts: scripts, keys: rds.NewKeys("walk"), members: map[string]*shot{}, sprung: map[string]int64{}}
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
	w.probeSchedules()
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

// probeSchedules has times of schedules come.
func (w *timerWalk) probeSchedules() {
	w.do("FLUSHDB")
	now := w.now()
	springs := func(id, copied string, at, tick, next, newest int64, missed, overlapped, want string) {
		member := w.member(&shot{id: id, at: at, copy: copied}, Series)
		keys := []string{w.keys.DueTimers, w.keys.Ledger(rds.TimerJobs), w.keys.History(rds.TimerJobs)}
		for _, n := range []string{id, occurrence(id, tick), occurrence(id, newest)} {
			keys = append(keys, w.keys.Timer(rds.TimerJob(n)))
		}
		parts := w.parts(w.scripts.spring, keys, 3, member, tick, next, missed, overlapped)
		w.demand(parts[2] == want, "%d of %s at %d: %v, want %s", tick, id, at, parts, want)
	}
	history := func(want int64, last string) {
		n, _ := w.do("XLEN", w.keys.History(rds.TimerJobs)).(int64)
		all, _ := w.do("XREVRANGE", w.keys.History(rds.TimerJobs), "+", "-", "COUNT", 1).([]any)
		w.demand(n == want && (n == 0 || strings.Contains(fmt.Sprint(all), last)), "the history has %d entries, the newest %v", n, all)
	}
	set := func(copied string, at int64, source, want string) {
		code, n := w.timer("set", "a", copied, farFuture, at, source, 9, w.keys.Events, 100, Series)
		w.demand(fmt.Sprint(code, " ", n, " ", w.waits) == want, "%s: %s %d %d, want %s", copied, code, n, w.waits, want)
	}
	score := func(member string, want int64) {
		text, _ := w.do("ZSCORE", w.keys.DueTimers, member).(string)
		w.demand(rds.Number(text) == want, "%s is due at %s", member, text)
	}
	claimed := func(tick int64) { // by a replica
		m := Due{Tick: rds.FromMillis(tick), Job: rds.TimerJob(occurrence("a", tick)), Kind: "timer", Attempt: 1, Nonce: "q1"}.Member()
		w.demand(w.do("ZREM", w.keys.DueTimers, m) == int64(1), "%s is not due: %v", m, w.due())
	}
	set("q1", 9_000, "{}", "SET 1 9000")
	springs("a", "q1", 9_000, 9_000, 10_000, 0, "", "", "DUE")
	history(0, "")
	set("q1.1", 8_000, "{}", "SET 1 10000")
	set("q2", 8_000, "{}", "SET 2 10000")
	springs("a", "q1", 9_000, 9_000, 10_000, 0, "", "", "GONE")
	springs("a", "q1", 10_000, 10_000, 11_000, 9_000, "", "", "REPLACED")
	history(1, fmt.Sprintf(`{"job":"timer:a","first":9000,"tick":9000,"count":1,"outcome":"missed","ended":%d`, now/100_000))
	w.demand(w.entry("a@9000") == "" && len(w.due()) == 2, "what was replaced is there: %v", w.due())
	score("10000 timer:a@10000 timer 1 0 0 q1", 9_000) // it keeps its place in the queue
	claimed(10_000)
	springs("a", "q1", 11_000, 11_000, 12_000, 10_000, "", "over", "OVERLAPPED")
	history(2, "over")
	w.do("SET", w.keys.Timer("timer:a@10000"), "10000 of another version")
	springs("a", "q1", 12_000, 12_000, 13_000, 10_000, "", "over again", "OVERLAPPED")
	history(2, "over")
	set("q2", 8_000, "{}", "SET 2 13000")
	w.do("SET", w.keys.Timer("timer:a@10000"), "deleted d0 q1 1 0")
	springs("a", "q1", 13_000, 14_000, now+60_000, 10_000, "told", "over", "DUE")
	history(3, "told")
	whole, _ := w.do("GET", w.keys.Timer("timer:a")).(string)
	w.demand(strings.HasPrefix(whole, "series 14000 "), "the entry: %s", whole)
	score("14000 timer:a@14000 timer 1 0 0 q1", 13_000)
	score(w.member(&shot{id: "a", at: now + 60_000, copy: "q1"}, Series), now+60_000)
	set("q3", 14_000, "{3}", "SET 0 14000") // by a clock that is behind
	springs("a", "q3", 14_000, 14_000, 15_000, 14_000, "told again", "", "PAST")
	history(3, "told")
	score("14000 timer:a@14000 timer 1 0 0 q1", 13_000)
	set("q4", now+60_000, "{4}", "SET 0 15000") // for which it waits
	score(w.member(&shot{id: "a", at: 15_000, copy: "q4"}, Series), 15_000)
	w.do("ZREM", w.keys.DueTimers, w.member(&shot{id: "a", at: 15_000, copy: "q4"}, Series))
	springs("a", "q4", 15_000, 15_000, 16_000, 14_000, "", "", "GONE")
	set("q5", 16_000, "{4}", "SET 0 16000") // though it does not wait
	score(w.member(&shot{id: "a", at: 16_000, copy: "q5"}, Series), 16_000)
	for _, stray := range []*shot{{id: "a", at: 16_001, copy: "q5"}, {id: "a", at: 16_000, copy: "q1"}} {
		w.do("ZADD", w.keys.DueTimers, stray.at, w.member(stray, Series))
		springs("a", stray.copy, stray.at, stray.at, 17_000, 14_000, "", "", "GONE")
	}
	for range 300 { // Redis trims it by pages of 100
		w.do("XADD", w.keys.History(rds.TimerJobs), "*", "x", "y")
	}
	w.do("HSET", w.keys.Ledger(rds.TimerJobs), "bytes", 0)       // its ledger was forgotten
	w.do("SET", w.keys.Timer("timer:a@16000"), "16000 run 1 {}") // and it is not over
	springs("a", "q5", 16_000, 16_000, 0, 14_000, "", "", "OVERLAPPED")
	w.demand(w.do("HGET", w.keys.Ledger(rds.TimerJobs), "bytes") == "0", "its bytes: %v", w.do("HGET", w.keys.Ledger(rds.TimerJobs), "bytes"))
	if n, _ := w.do("XLEN", w.keys.History(rds.TimerJobs)).(int64); n > 200 {
		w.demand(false, "the history has %d entries", n)
	}
	w.lasts("a", 24*time.Hour)
	set("q5.1", 20_000, "{4}", "SET 0 20000")
	code, n := w.timer("delete", "a", "d1", farFuture)
	w.demand(code == "NONE" && n == 14_000, "deleted after the end: %s %d", code, n)
	set("q6", 20_000, "{6}", "SET 1 20000")
	code, n = w.timer("delete", "a", "d2", farFuture)
	w.demand(code == "DELETED" && n == 14_000, "deleted: %s %d", code, n)
	w.lasts("a", 24*time.Hour) // a run may last that long
	w.probeKept(set)
}

// probeKept replaces timers whose time has come, and some that do not wait though they should.
func (w *timerWalk) probeKept(set func(copied string, at int64, source, want string)) {
	w.do("FLUSHDB")
	now := w.now()
	set("q1", now+60_000, "{1}", "SET 1 "+rds.Itoa(now+60_000))
	set("q2", now+50_000, "{2}", "SET 0 "+rds.Itoa(now+50_000))
	w.sets("a", "q3", 5_000, "{3}", "SET 0")
	set("q4", 7_000, "{4}", "SET 0 7000")
	w.sets("a", "q5", 8_000, "{5}", "SET 0")
	w.demand(w.waits == 8_000, "a timer without a schedule waits for %d", w.waits)
	set("q6", 9_000, "{6}", "SET 0 9000")
	w.do("DEL", w.keys.DueTimers)
	set("q7", now+60_000, "{7}", "SET 0 "+rds.Itoa(now+60_000))
	w.do("DEL", w.keys.DueTimers)
	code, _ := w.timer("delete", "a", "d1", farFuture)
	w.demand(code == "DELETED" && w.entry("a") == "", "what does not wait is deleted: %s", code)
	w.do("SET", w.keys.Timer("timer:a"), "series 5 of another version")
	set("q8", 9_000, "{8}", "FIRED 0 0")
}
