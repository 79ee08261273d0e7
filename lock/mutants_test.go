package lock

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A mutant is a script with one thought left out. Each has to be noticed, or what notices the rest is worth nothing.
type mutant struct{ script, what, text, instead string }

var mutants = []mutant{
	{"acquire", "a new ledger is not asked for", "if not h[1] then return answer('UNKNOWN') end", ""},
	{"acquire", "a late copy has an effect", "if now > tonumber(ARGV[4]) then return answer('STALE') end", ""},
	{"acquire", "asked again, another answer", "if held == uuid then", "if false then"},
	{"acquire", "asked again, the thief's lock is taken", "if owner and owner ~= uuid then return answer('LOST') end", ""},
	{"acquire", "asked again, the entry is not renewed",
		"  redis.call('ZADD', running, leaseEnd, uuid .. ' ' .. job)\n  redis.call('SET', lock, uuid, 'PX', ARGV[5])",
		"  redis.call('SET', lock, uuid, 'PX', ARGV[5])"},
	{"acquire", "asked again, the lock is not renewed",
		"  redis.call('SET', lock, uuid, 'PX', ARGV[5])\n  return answer('WON', t", "  return answer('WON', t"},
	{"acquire", "asked again, another token", "return answer('WON', tonumber(itsToken))", "return answer('WON', tonumber(itsToken) + 1)"},
	{"acquire", "asked again, another previous tick", "tonumber(previous) or claimed", "claimed"},
	{"acquire", "a due member is not asked for", "if not redis.call('ZSCORE', due, member) then return answer('GONE') end", ""},
	{"acquire", "a due member does not wait for the run", "if held then return waiting('HELD') end", ""},
	{"acquire", "a paused job is claimed", "and not over then", "and false then"},
	{"acquire", "a pause has no end", "and not over then", "then"},
	{"acquire", "a pause is over at once", "ends ~= 0 and ", ""},
	{"acquire", "a pause settles by the clock", "math.max(asked and now or 0, tick)", "now"},
	{"acquire", "a pause lets pass what is due", "asked ~= 'manual' and", "not asked and"},
	{"acquire", "a pause keeps back what was asked for", "asked ~= 'manual' and asked ~= 'backfill' and ", ""},
	{"acquire", "ticks of a pause are missed", "pausedTo = math.max(pausedTo, math.min(ends - 1, now))", ""},
	{"acquire", "an early claim", "if tick > now + tonumber(ARGV[6]) then return answer('EARLY') end", ""},
	{"acquire", "a claimed tick is claimed again", "if member == '' and tick <= claimed and held ~= uuid then return answer('FIRED') end", ""},
	{"acquire", "an old gap list is believed", "if older ~= '' and tonumber(older) ~= claimed then return answer('GAP') end", ""},
	{"acquire", "a run in the way is not seen", "if held and not waits then", "if false then"},
	{"acquire", "an overlap is not written down", "if all ~= pend then redis.call('HSET', ledger, 'pend', string.sub(all, -1400)) end", ""},
	{"acquire", "an older overlap is forgotten", "all = all .. ' ' .. refused", "all = ' ' .. refused"},
	{"acquire", "a foreign lock is taken", "if owner and not held and owner ~= last then return answer('LOCKED') end", ""},
	{"acquire", "a lingering lock is in the way", "owner ~= last then return answer('LOCKED')", "true then return answer('LOCKED')"},
	{"acquire", "older ticks are not made due", "> pausedTo then redis.call('ZADD', due, now, ARGV[i]) end", "> pausedTo then end"},
	{"acquire", "older ticks are claimed, and the newest runs at once", "if listed then                                             -- claimed now", "if false then                                             -- claimed now"},
	{"acquire", "a queued tick is not written down", "'queued', ARGV[3], ", ""},
	{"acquire", "nobody is told to end", "redis.call('HSET', ledger, 'stop', 1)", ""},
	{"acquire", "the queue holds two", "policy == 'Queue' and not queued", "policy == 'Queue'"},
	{"acquire", "the token stands still", "math.max(token + 1, now)", "math.max(token, now)"},
	{"acquire", "the token falls back with the clock", "math.max(token + 1, now)", "now"},
	{"acquire", "the token falls back after a loss", "math.max(token + 1, now)", "token + 1"},
	{"acquire", "no entry in running", "redis.call('ZADD', running, leaseEnd, uuid .. ' ' .. job)  -- first", "-- first"},
	{"acquire", "the lock has no end", "'NX', 'EX', math.ceil(ttl / 1000)", "'NX'"},
	{"acquire", "a due member stays", "  redis.call('ZREM', due, member)\n", ""},
	{"acquire", "a due member moves the ledger's tick", "redis.call('ZREM', due, member)",
		"redis.call('ZREM', due, member) redis.call('HSET', ledger, 'tick', ARGV[3])"},
	{"acquire", "the tick is not claimed", "'tick', member == '' and ARGV[3] or h[2] or 0", "'tick', claimed"},
	{"extend", "no compare", "if h[1] ~= uuid or owner and owner ~= uuid then return {'LOST', now} end", ""},
	{"extend", "no compare of the lock", "or owner and owner ~= uuid then", "then"},
	{"extend", "no compare of the run", "if h[1] ~= uuid or owner and owner ~= uuid then", "if owner and owner ~= uuid then"},
	{"extend", "nobody is told to end", "h[2] and 'REPLACED' or 'OK'", "'OK'"},
	{"extend", "the entry is not renewed", "redis.call('ZADD', running, 'XX', now + ttl, uuid .. ' ' .. job)", ""},
	{"extend", "the lock is not renewed", "if owner then redis.call('PEXPIRE', lock, ttl)", "if owner then"},
	{"extend", "a missing lock is not restored", "else redis.call('SET', lock, uuid, 'PX', ttl) end", "end"},
	{"settle", "a lease that moved is reaped", "~= tonumber(ARGV[9]) then return {'MOVED', now, 0} end", "== 0 then return end"},
	{"settle", "another run is settled", "elseif not mine then", "elseif false then"},
	{"settle", "a late finish leaves the re-run due", "if again ~= '' then redis.call('ZREM', due, again) end", ""},
	{"settle", "late evidence is not believed", "    enqueue(again, wait)\n  end\n  if at", "  end\n  if at"},
	{"settle", "late evidence is believed twice", "  if at then\n", "  if false then\n"},
	{"settle", "a re-run that the takeover has added is added again", "elseif at and verb ~= 'requeue' and", "elseif verb ~= 'handover' and"},
	{"settle", "a queued tick sleeps on", "enqueue(queued .. waited, 0)", ""},
	{"settle", "an overlap is not settled", "redis.call('HSET', ledger, 'tick', newest, 'overlap', newest)", ""},
	{"settle", "an overlap with a run that never was is counted", "if verb == 'finish' or verb == 'requeue' then ", "if true then "},
	{"settle", "an overlap with a run that ended is fired", "if verb == 'finish' or verb == 'requeue' then ", "if false then "},
	{"settle", "a tick set free is not due", "enqueue(refused .. waited, 0)", ""},
	{"settle", "a tick set free can be claimed from the table too", "      redis.call('HSET', ledger, 'tick', newest)\n", ""},
	{"settle", "the tick is not handed on", "then enqueue(again, wait) end\nif verb == 'reap'", "then end\nif verb == 'reap'"},
	{"settle", "a finished run is run again", "if again ~= '' and verb ~= 'finish' and", "if again ~= '' and"},
	{"settle", "a replaced run is run again", "and not stop then", "then"},
	{"settle", "a reaped run is not remembered", "if verb == 'reap' and again == '' and not stop then  ", "if false then"},
	{"settle", "a run that is run again already leaves evidence", "if verb == 'reap' and again == '' and not stop then  ", "if verb == 'reap' then  "},
	{"settle", "the entry stays", "redis.call('ZREM', running, member)", ""},
	{"settle", "another's lock is deleted", "if redis.call('GET', lock) == uuid then", "if true then"},
	{"acquire", "the lingering lock is not known", "'last', uuid, ", ""},
	{"settle", "the lock lingers for its whole ttl", "redis.call('PEXPIRE', lock, ARGV[5])", ""},
	{"settle", "the lock stays", "redis.call('DEL', lock) else", "local kept = true else"},
	{"settle", "the record stays", "if mine then redis.call('HDEL', ledger, 'r:' .. uuid, ", "if mine then redis.call('HDEL', ledger, "},
	{"settle", "the run stays", "'r:' .. uuid, 'run' .. slot, 'stop')", "'r:' .. uuid, 'stop')"},
	{"settle", "what told the run to end tells the next one", "'run' .. slot, 'stop')", "'run' .. slot)"},
	{"settle", "no history", "redis.pcall('XADD', runs, ", "redis.pcall('XADD', failures or due, "},
	{"release", "no compare of the lock", "redis.call('GET', lock) ~= uuid or ", ""},
	{"release", "a live run's lock is deleted", " or redis.call('HGET', ledger, 'run' .. ARGV[2]) == uuid", ""},
	{"register", "an old ledger is born again", "if not born then", "if true then"},
	{"register", "ticks before the birth are open", "'tick', tick, ", "'tick', 0, "},
	{"register", "ticks claimed early are open", "now + 1000, false", "now, false"},
	{"register", "another schedule has missed ticks", "  since = now\n  redis.call('HSET', ledger, 'since', now, ", "  redis.call('HSET', ledger, "},
	{"register", "a ledger lives for ever", "redis.call('PEXPIRE', ledger, ARGV[2])", ""},
}

func (s *walkScripts) named(name string) **script {
	return map[string]**script{"acquire": &s.acquire, "extend": &s.extend, "settle": &s.settle, "release": &s.release,
		"register": &s.register}[name]
}

func TestEveryMutantIsNoticed(t *testing.T) {
	rdb := mutantClient(t)
	everyMutantIsNoticed(t, mutants, realScripts, (*walkScripts).named, func(s walkScripts) { load(t, rdb, s) },
		func(s walkScripts) string { return noticed(rdb, s) })
}

// everyMutantIsNoticed loads sets of scripts with one mutant each, after the real ones, which nothing must notice.
func everyMutantIsNoticed[S any](t *testing.T, mutants []mutant, scripts func() S, named func(*S, string) **script, load func(S),
	noticed func(S) string) {
	t.Helper()
	load(scripts())
	if by := noticed(scripts()); by != "" {
		t.Fatalf("the scripts themselves: %s", by)
	}
	unnoticed := 0
	for _, m := range mutants {
		broken := scripts()
		target := named(&broken, m.script)
		source := strings.Replace((*target).source, m.text, m.instead, 1)
		if source == (*target).source {
			t.Errorf("%s: %s: its text is not in the script any more", m.script, m.what)
			continue
		}
		*target = newScript(source)
		load(broken)
		by := noticed(broken)
		if by == "" {
			t.Errorf("%s: %s: not noticed", m.script, m.what)
			unnoticed++
		}
		t.Logf("%s: %s: %s", m.script, m.what, by)
	}
	t.Logf("%d mutants, %d not noticed", len(mutants), unnoticed)
}

// mutantClient is a real Redis where there is one, since it is faster.
func mutantClient(t *testing.T) redis.UniversalClient {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return miniClient(t)
	}
	return realClient(t)
}

// noticed says what noticed the mutant: a probe or a walk; "" if nothing did.
func noticed(rdb redis.UniversalClient, scripts walkScripts) string {
	if err := probe(rdb, scripts); err != nil {
		return "probe: " + err.Error()
	}
	for seed := uint64(1); seed <= 500; seed++ {
		if _, err := play(rdb, scripts, seed); err != nil {
			return fmt.Sprintf("walk %d: %v", seed, err)
		}
	}
	return ""
}

// probe checks what walks do not see, since they know no time: one question each, in order.
func probe(rdb redis.UniversalClient, scripts walkScripts) (err error) {
	w := newWalk(rdb, scripts, 1)
	w.policy, w.all, w.atLeastOnce = Forbid, false, false
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
	w.probeLedger()
	w.probeLease()
	w.probeLateEvidence()
	return nil
}

func (w *walk) probeLedger() {
	x := &fiber{uuid: "u0000", tick: 1, won: true} // whatever it is told, it must not win
	w.demand(w.acquire(x, farFuture) == unknown, "a job without a ledger was claimed")
	register := func(fingerprint string) [4]int64 {
		var n [4]int64
		for i, p := range w.run(x, w.scripts.register, []string{w.ledger()}, fingerprint, 1000_000)[:4] {
			n[i], _ = p.(int64)
		}
		return n
	}
	first := register("a")
	now := first[0]
	w.demand(first == [4]int64{now, now, now, now + 1000}, "a new ledger is %v", first)
	ttl, _ := w.do("PTTL", w.ledger()).(int64)
	w.demand(ttl > 0, "a ledger without an end")
	x.tick = now + 1001
	w.demand(w.acquire(x, longPast) == stale, "a copy that came too late was looked at")
	x.tick = now + 1000
	w.demand(w.acquire(x, farFuture) == Fired, "a tick from before the ledger was claimed")
	x.tick = now + 1_000_000
	w.demand(w.acquire(x, farFuture) == Early, "an early tick was claimed")
	w.do("HSET", w.ledger(), "since", 1)
	same := register("a")
	w.demand(same[1] == first[1] && same[2] == 1 && same[3] == first[3], "registered again: %v", same)
	changed := register("b")
	w.demand(changed[1] == first[1] && changed[2] > 1 && changed[3] == first[3], "with another fingerprint: %v", changed)
	w.do("HSET", w.ledger(), "tick", 0)
	w.probePause(now)
}

func (w *walk) probePause(now int64) {
	ask := func(note string, tick int64, member string) Answer {
		x := &fiber{uuid: "u0009", tick: tick}
		w.do("DEL", w.keys.due, w.keys.running, w.lockOf(tick))
		w.do("HDEL", w.ledger(), "run", "r:"+x.uuid, "token")
		w.do("HSET", w.ledger(), "paused", note, "tick", 0)
		if member != "" {
			w.do("ZADD", w.keys.due, 1, member)
		}
		a, err := parseAnswer(w.run(x, w.scripts.acquire, []string{w.lockOf(tick), w.ledger(), w.keys.running, w.keys.due},
			x.uuid, walkJob, tick, farFuture, 30_000, 1000, "Forbid", "Forbid 30000 x 1 0 0 r0", "", member))
		w.demand(err == nil, "asked in a pause: %v", err)
		return a
	}
	due := func(kind string) string {
		return Due{Job: walkJob, Tick: fromMillis(5), Kind: kind, Nonce: "n"}.Member()
	}
	past, later := itoa(now-1000)+" 1 x", itoa(now+60_000)+" 1 x"
	for _, c := range []struct {
		what, note string
		tick       int64
		member     string
		want       Code
	}{
		{"a job paused until it is resumed", "0 1 x", now, "", Paused},
		{"a job paused until later", later, now, "", Paused},
		{"a tick of a pause that is over", past, now - 1001, "", Paused},
		{"the first tick after a pause", past, now - 1000, "", Won},
		{"a handover in a pause", later, 5, due("handover"), Paused},
		{"a handover after a pause", past, 5, due("handover"), Won},
		{"a trigger in a pause", later, 5, due("manual"), Won},
		{"a backfill in a pause", "0 1 x", 5, due("backfill"), Won},
	} {
		got := ask(c.note, c.tick, c.member)
		w.demand(got.Code == c.want, "%s: %s, want %s", c.what, got.Code, c.want)
	}
	ended := millis(ask(past, now, "").PausedTo)
	w.demand(ended == now-1001, "a pause whose last instant was %d ended at %d", now-1001, ended)
	w.do("DEL", w.keys.due, w.keys.running, w.lockOf(now))
	w.do("HDEL", w.ledger(), "paused", "run", "r:u0009", "token")
	w.do("HSET", w.ledger(), "tick", 0)
}

func (w *walk) probeLease() {
	x := &fiber{uuid: "u0001", tick: 1}
	lockEnd := func() int64 { n, _ := w.do("PTTL", w.lockOf(1)).(int64); return n }
	entry := func() int64 { return w.number("ZSCORE", w.keys.running, x.uuid+" "+walkJob) }
	age := func() { // as if most of the lease were over
		w.do("PEXPIRE", w.lockOf(1), 5000)
		w.do("ZADD", w.keys.running, 1, x.uuid+" "+walkJob)
	}
	renewed := func(by string) {
		w.demand(lockEnd() > 20_000 && entry() > 1, "%s: lock for %d ms, entry until %d", by, lockEnd(), entry())
	}
	w.newestToken = 1000
	w.demand(w.acquire(x, farFuture) == Won && x.token > 1_000_000_000_000, "the first token is %d: not above one from before a loss", x.token)
	renewed("claim")
	age()
	w.demand(w.acquire(x, farFuture) == Won, "asked again")
	renewed("asked again")
	age()
	w.extend(x)
	renewed("extension")
	w.do("DEL", w.lockOf(1))
	w.extend(x)
	w.demand(w.text("GET", w.lockOf(1)) == x.uuid, "an extension did not restore its own lock")
	x.stage, x.outcome = finishing, "ok"
	args := w.settlement(x)
	args[4] = 1000
	w.settle(x, args)
	w.demand(lockEnd() > 0 && lockEnd() <= 1000, "the lock lingers for %d ms", lockEnd())
	n, _ := w.do("XLEN", w.keys.runs).(int64)
	w.demand(n == 1, "%d history entries", n)
	// Redis' clock was set back by years: the token goes on.
	w.do("HSET", w.ledger(), "token", 5_000_000_000_000)
	y := &fiber{uuid: "u0002", tick: 2}
	w.demand(w.acquire(y, farFuture) == Won && y.token == 5_000_000_000_001, "token %d after 5000000000000", y.token)
	y.stage, y.outcome = finishing, "ok"
	w.settle(y, w.settlement(y))
}

func (w *walk) probeLateEvidence() {
	x := &fiber{uuid: "u0003", tick: 3}
	w.demand(w.acquire(x, farFuture) == Won, "T3")
	w.reap(x, w.text("ZSCORE", w.keys.running, x.uuid+" "+walkJob))
	x.stage = abandoning
	for _, want := range []string{"LATE", "NONE"} { // the answer to the first was lost, and what it made due is taken
		got := w.settle(x, w.settlement(x))[0]
		n, _ := w.do("ZREM", w.keys.due, w.due(x.tick, x.attempt, x.uuid)).(int64)
		w.demand(got == want && (n == 1) == (want == "LATE"), "abandoning a reaped run: %v, %d due", got, n)
	}
}
