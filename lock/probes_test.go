//go:build !race

package lock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/rds"
)

// prober asks one question after the other, where a walk does not look: of times that end, of nudges, of ledgers that
// are new or were lost.
type prober struct {
	*walk
	nudges *redis.PubSub
}

// probe asks all that a prober has to ask.
func probe(rdb redis.UniversalClient, scripts walkScripts) (err error) {
	p := &prober{walk: newWalk(rdb, scripts.clocked(), 1)}
	defer func() {
		if r := recover(); r != nil {
			err = brokenBy(r)
		}
	}()
	p.do("FLUSHDB")
	p.nudges = rdb.Subscribe(context.Background(), p.keys.Events)
	defer p.nudges.Close()
	if _, err := p.nudges.Receive(context.Background()); err != nil {
		return err
	}
	for _, f := range []func(){
		p.probeLedger, p.probeReturn, p.probeLoss, p.probeLossAtLeastOnce, p.probeClaimsInPauses, p.probeBesideHand, p.probeCancelledAs, p.probeCancelWaiting, p.probePauses,
		p.probePausesOver, p.probeLease, p.probeToken, p.probeEvidence, p.probeRunsThatWereLost, p.probeHistory, p.probeFates, p.probeSince, p.probeAgeOfHistory, p.probeEvidenceAndFate, p.probeNudges,
		p.probeListInAPause, p.probeTwoPauses, p.probeClaimsInTwoPauses, p.probeReleases, p.probeAsking, p.probeGaps, p.probeBooking,
		p.probeTwice, p.probeLimit, p.probeHanded, p.probeDropping, p.probeListPassedOver, p.probeFullQueue, p.probeQueueOfDue, p.probeEndOfARun, p.probeBrokenEnd, p.probeOpenTicks, p.probeHolders,
		p.probeDisplacedOfBefore, p.probeActs, p.probeCancel, p.probeMarks, p.probeCancelInFullMemory, p.probeOverlaps, p.probeRefusedWrites,
		p.probeManyRefused, p.probeManyOlder, p.probeManyTriggers, p.probeBounds, // the slow ones last: few mutants need them
	} {
		p.do("FLUSHDB")
		p.at(walkStart)
		f()
		p.forget()
	}
	return nil
}

// forget hears of all nudges so far.
func (p *prober) forget() {
	p.do("PUBLISH", p.keys.Events, "end")
	for {
		m, err := p.nudges.ReceiveMessage(context.Background())
		p.demand(err == nil, "heard %v", err)
		if m.Payload == "end" {
			return
		}
	}
}

// told demands that these nudges have come, and no more; that a run began counts only if it is wanted.
func (p *prober) told(want ...string) {
	p.do("PUBLISH", p.keys.Events, "end")
	for _, nudge := range append(want, "end") {
		m, err := p.nudges.ReceiveMessage(context.Background())
		for err == nil && isRun(m.Payload) && !slices.ContainsFunc(want, isRun) {
			m, err = p.nudges.ReceiveMessage(context.Background())
		}
		p.demand(err == nil && m.Payload == nudge, "heard %v, %v; want %q", m, err, nudge)
	}
}

func isRun(nudge string) bool { return strings.HasPrefix(nudge, "run") }

// ran is the nudge that tells of a claim of a tick of the table, made now.
func (p *prober) ran(c Claim) string {
	return fmt.Sprintf("run %s %d %s %s %s %d", walkJob, c.Tick.UnixMilli(), p.field("born"), c.Replica, c.Run, p.clock+walkTTL.Milliseconds())
}

// claims is a claim of tick n of the table.
func (p *prober) claims(policy Policy, n int64) Claim {
	p.counter++
	c := Claim{Job: walkJob, Tick: rds.FromMillis(nominal(n)), Run: fmt.Sprintf("u%04d", p.counter), Replica: "r", TTL: walkTTL, Policy: policy,
		Attempt: 1}
	prepared(&c)
	return c
}

func (p *prober) asks(c Claim, until int64) Answer {
	keys, args := p.question(&c, until)
	a, err := parseAnswer(p.eval(p.scripts.acquire, keys, args...))
	p.demand(err == nil, "%s: %v", c.Run, err)
	return a
}

func (p *prober) isTold(c Claim, want Code) Answer {
	a := p.asks(c, farFuture)
	p.demand(a.Code == want, "%s of %s was told %s, want %s", c.Policy, p.name(rds.Millis(c.Tick)), a.Code, want)
	return a
}

// missed are the gaps of missed ticks; other are the rest.
func (p *prober) missed() string { return p.gapsOf(func(fate bool) bool { return !fate }) }
func (p *prober) other() string  { return p.gapsOf(func(fate bool) bool { return fate }) }

func (p *prober) gapsOf(wanted func(fate bool) bool) (gaps string) {
	for gap := range strings.FieldsSeq(p.field("gaps")) {
		if wanted(strings.Contains(gap, ":")) {
			gaps += gap + " "
		}
	}
	return gaps
}

// settles ends a run.
func (p *prober) settles(c Claim, verb, again string, more ...any) []any {
	keys := p.settleKeys(&fiber{claim: c})
	entry := ""
	if verb == "reap" {
		entry = "e"
	}
	args := append([]any{verb, c.Run, c.Job, 0, entry, again}, more...)
	return p.eval(p.scripts.settle, keys, p.whole(&fiber{claim: c}, args)...)
}

func (p *prober) field(name string) string { return p.text("HGET", p.ledger(), name) }

func (p *prober) open() opened    { return openIn(p.field("open")) }
func (p *prober) isDue() []string { return p.list("ZRANGE", p.keys.DueJobs, 0, -1) }

// older is a ledger that has settled nothing yet.
func (p *prober) older() { p.do("HSET", p.ledger(), "born", 1, "since", 1, "tick", walkStart) }

// lasts demands that a key ends after so long.
func (p *prober) lasts(key string, d time.Duration) {
	ttl, _ := p.do("PTTL", key).(int64)
	p.demand(ttl > d.Milliseconds()-10_000 && ttl <= d.Milliseconds(), "%s lasts %d ms, want %s", key, ttl, d)
}

func (p *prober) registers(args ...any) (n [5]int64) {
	if len(args) > 4 { // of one who knew the ledger
		args = slices.Insert(slices.Clone(args), 5, any(p.keys.Events), 0, "")
	}
	return p.registersAll(args)
}

// registersAll is registers with all arguments.
func (p *prober) registersAll(args []any) (n [5]int64) {
	for i, v := range p.registration(args...) {
		n[i] = millisOf(v)
	}
	return n
}

func (p *prober) registration(args ...any) []any {
	return p.eval(p.scripts.register, p.registerKeys(), args...)
}

func (p *prober) registerKeys() []string {
	return []string{p.ledger(), p.keys.DueJobs, p.keys.History(walkJob), p.keys.Failures(walkJob), p.keys.Prefix + "runs"}
}

func (p *prober) probeLedger() {
	now := p.clock
	p.isTold(p.claims(Forbid, 1), unknown)
	first := p.registers("a", farFuture)
	p.demand(first == [5]int64{now, now, now + 1000, now + 1000}, "a new ledger is %v", first)
	p.lasts(p.ledger(), 90*24*time.Hour)
	p.at(now + 2000)
	p.demand(p.asks(p.claims(Forbid, 1), longPast).Code == Stale, "a copy that came too late was looked at")
	c := p.claims(Forbid, 1)
	for _, early := range []struct {
		ms   int64
		want Code
	}{{now + 1000, Fired}, {p.clock + 1001, Early}, {p.clock + 1000, Won}} {
		c.Tick = rds.FromMillis(early.ms)
		p.isTold(c, early.want)
	}
	p.do("HSET", p.ledger(), "since", 1)
	same := p.registers("a", farFuture)
	p.demand(same == [5]int64{p.clock, now, 1, now + 3000}, "registered again: %v", same)
	p.do("HSET", p.ledger(), "gaps", "100-200 300-302 400-500:paused 600-602:overlapped 700-703 ")
	p.registers("a", farFuture)
	p.demand(len(p.field("gaps")) == 58, "registered again, what is uncounted is %q", p.field("gaps"))
	changed := p.registers("b", farFuture)
	p.demand(p.field("gaps") == "300-302 600-602:overlapped ", "with another fingerprint, what is uncounted is %q", p.field("gaps"))
	p.demand(changed == [5]int64{p.clock, now, p.clock, now + 3000}, "with another fingerprint: %v", changed)
	late := p.registration("a", longPast)
	p.demand(fmt.Sprint(late) == fmt.Sprintf("[%d STALE]", p.clock) && p.field("schedule") == "b", "a copy that came too late: %v", late)
	p.at(now + 3000)
	behind := p.registers("a", farFuture, now, now+3000, 0)
	p.demand(behind == [5]int64{now + 3000, now, now + 2000, now + 3000} && p.field("schedule") == "b",
		"by one who is behind in a rollout, %s: %v", p.field("schedule"), behind)
	for _, known := range []struct{ as, want string }{{"a", "b"}, {"b", "c"}} {
		on := p.registersAll([]any{"c", farFuture, now, now + 3000, 0, p.keys.Events, 0, known.as})
		p.demand(on == behind && p.field("schedule") == known.want, "by one whose ticks go on from %s, %s: %v", known.as, p.field("schedule"), on)
	}
	old := p.keys.Prefix + "runs"
	p.do("XADD", old, "*", "run", "r")
	err := p.rdb.EvalSha(context.Background(), p.scripts.register.SHA, p.registerKeys(), "d", farFuture).Err()
	p.demand(err != nil && err.Error() == "OLDKEYS "+old+" is of a version before 0.1.0" && p.field("schedule") == "c",
		"beside old keys: %v", err)
	p.do("DEL", old)
}

// probeReturn has a job leave and come back.
func (p *prober) probeReturn() {
	p.registers("a", farFuture)
	p.at(walkStart + 5000)
	p.registers(NoTicks, farFuture)
	p.lasts(p.ledger(), 7*24*time.Hour)
	p.demand(p.field("tick") == rds.Itoa(walkStart+1000) && p.field("back") == "0", "it has left, and the ledger is %v",
		p.list("HGETALL", p.ledger()))
	p.at(walkStart + 8000)
	for range 2 {
		got := p.registers("a", farFuture)
		p.demand(got == [5]int64{walkStart + 8000, walkStart, walkStart + 8000, walkStart + 8000, walkStart + 8000}, "it is back: %v", got)
	}
	p.registers(NoTicks, farFuture)
	p.do("HSET", p.ledger(), "tick", walkStart+9000) // claimed early
	p.registers("a", farFuture)
	p.demand(p.field("tick") == rds.Itoa(walkStart+9000), "it is back, and the ledger's tick is %s", p.field("tick"))
	p.at(walkStart + 10000)
	for range 2 { // by one that ran it without a claim, and told nobody
		got := p.registersAll([]any{"a", farFuture, 0, 0, 0, p.keys.Events, 0, NoTicks})
		p.demand(got == [5]int64{p.clock, walkStart, p.clock, p.clock, walkStart + 8000}, "every replica ran it, and another one had it back: %v", got)
		p.at(p.clock + 1000)
	}
	got := p.registersAll([]any{"a", farFuture, walkStart, 0, 0, p.keys.Events, 0, NoTicks})
	p.demand(got[3] == p.clock-1000, "one that has told that every replica ran it tells it again: %v", got)
	got = p.registersAll([]any{"b", farFuture, 0, 0, 0, p.keys.Events, 0, NoTicks})
	p.demand(got == [5]int64{p.clock, walkStart, p.clock, p.clock, p.clock}, "the first who has it back: %v", got)
	p.registers(NoTicks, farFuture)
	p.at(p.clock + 1000)
	got = p.registersAll([]any{"b", farFuture, 0, 0, 0, p.keys.Events, 0, NoTicks})
	p.demand(got == [5]int64{p.clock, walkStart, p.clock, p.clock, p.clock}, "the first who has back what had left: %v", got)
}

// probeLoss has Redis lose its data under at-most-once.
func (p *prober) probeLoss() {
	p.at(nominal(5))
	p.registers("a", farFuture) // by one who knew nothing
	p.told()
	got := p.registers("a", farFuture, walkStart, nominal(2), 0)
	p.demand(got == [5]int64{p.clock, p.clock, p.clock + 1000, p.clock + 1000}, "after the loss: %v", got)
	gap := fmt.Sprintf("%d-%d ", nominal(2), p.clock+1001)
	p.demand(p.field("gaps") == gap, "the gap is %q, want %q", p.field("gaps"), gap)
	p.told("due")
	p.registers("a", farFuture, walkStart, nominal(1), 0)
	p.registers("a", farFuture, p.clock, nominal(1), 0)
	p.demand(p.field("gaps") == gap && len(p.isDue()) == 0, "another one says what is missing: %q", p.field("gaps"))
	p.do("DEL", p.ledger())
	p.registers("a", farFuture)
	p.registers("a", farFuture, p.clock, nominal(1), 0)
	p.demand(p.field("gaps") == "", "one who knew this ledger says that %q is missing", p.field("gaps"))
	p.registers("a", farFuture, walkStart, 0, 0)
	p.demand(p.field("gaps")+p.field("late") == "", "one who has missed nothing says that %q is missing", p.field("gaps"))
	p.do("HSET", p.ledger(), "gaps", "1-3 ")
	p.registers("a", farFuture, walkStart, nominal(2), 0)
	p.demand(p.field("gaps") == "1-3 "+gap, "behind a gap: %q", p.field("gaps"))
	p.do("DEL", p.ledger())
	got = p.registers("a", farFuture, walkStart, nominal(2), 0) // by one who knew it
	p.demand(got == [5]int64{p.clock, p.clock, p.clock + 1000, p.clock + 1000}, "who was first after the loss has registered %v", got)

	// The schedule changes before one who knew the lost ledger comes: what came meanwhile was claimed in the new one.
	for again, settled := range map[int]int64{0: 1000, 1: 0} {
		p.do("DEL", p.ledger())
		p.at(nominal(5))
		p.registers("a", farFuture, 0, 0, again) // by one who knew nothing
		p.at(nominal(8))
		p.registers("b", farFuture, walkStart, nominal(2), again)
		gap = fmt.Sprintf("%d-%d ", nominal(2), nominal(5)+settled+1)
		p.demand(p.field("gaps") == gap, "before the change: %q, want %q", p.field("gaps"), gap)
	}

	// Some have reloaded a table that keeps the newest ticks, and some have not.
	for _, order := range [][]string{{"b", "a"}, {"a", "b"}} {
		p.do("DEL", p.ledger())
		p.at(nominal(5))
		for i, as := range order {
			p.at(p.clock + int64(i))
			p.registersAll([]any{as, farFuture, walkStart, nominal(2), 0, p.keys.Events, 0, "a"})
		}
		gap = fmt.Sprintf("%d-%d ", nominal(2), nominal(5)+1001)
		p.demand(p.field("gaps") == gap && p.field("since") == rds.Itoa(nominal(5)+1000) && p.field("schedule") == "b",
			"amid a rollout, %v: %q since %s", order, p.field("gaps"), p.field("since"))
	}
}

// probeLossAtLeastOnce has Redis lose its data, and those who knew it come one after the other.
func (p *prober) probeLossAtLeastOnce() {
	owed := func(ns ...int64) (members []any) {
		for _, n := range ns {
			members = append(members, Due{Tick: rds.FromMillis(nominal(n)), Job: walkJob, Kind: "catchup", Attempt: 1, Nonce: "n"}.Member())
		}
		return members
	}
	now := nominal(9) + 5
	for _, c := range []struct {
		what  string
		first []any // by one who knew nothing of ticks
		known int64
		owed  []any
		since int64
		gap   string
		due   []any
	}{
		{"it owes the newest", nil, nominal(2), owed(9), nominal(9), fmt.Sprintf("%d-%d ", nominal(2), nominal(9)), owed(9)},
		{"it owes all", nil, nominal(7), owed(8, 9), nominal(9), fmt.Sprintf("%d-%d ", nominal(7), nominal(8)), owed(8, 9)},
		{"it owes none", nil, nominal(9), nil, nominal(9), "", nil},
		{"it owes what it knew", nil, nominal(8), owed(8, 9), nominal(9), fmt.Sprintf("%d-%d ", nominal(8), nominal(9)), owed(9)},
		{"another was first", []any{0, 0, 1}, nominal(7), owed(8, 9), nominal(9), fmt.Sprintf("%d-%d ", nominal(7), nominal(8)), owed(8, 9)},
		{"another was first, and it owes none", []any{0, 0, 1}, nominal(7), nil, now, fmt.Sprintf("%d-%d ", nominal(7), now+1), nil},
		{"another was first, and it owes what came since", []any{0, 0, 1}, nominal(7), owed(10), now,
			fmt.Sprintf("%d-%d ", nominal(7), now+1), nil},
		{"it owes what came after another", []any{0, nominal(8), 1}, nominal(7), owed(8, 9), nominal(8),
			fmt.Sprintf("%d-%d ", nominal(7), nominal(8)), owed(8)},
		{"another knew more", []any{0, nominal(8), 1}, nominal(6), owed(7), nominal(8),
			fmt.Sprintf("%d-%d %d-%d ", nominal(7), nominal(8)+1, nominal(6), nominal(7)), owed(7)},
		{"it skips what it missed", nil, nominal(7), nil, nominal(7), "", nil},
	} {
		p.do("DEL", p.ledger(), p.keys.DueJobs)
		p.at(now)
		if c.first != nil {
			p.registers(append([]any{"a", farFuture}, c.first...)...)
			p.do("HSET", p.ledger(), "open", " 1=u:0") // and runs one
		}
		for range 2 { // two who knew the same
			got := p.registers(append([]any{"a", farFuture, walkStart, c.known, 1}, c.owed...)...)
			p.demand(got == [5]int64{now, now, c.since, c.since}, "%s: %v", c.what, got)
			p.demand(p.field("gaps") == c.gap, "%s: the gap is %q, want %q", c.what, p.field("gaps"), c.gap)
			p.demand(fmt.Sprint(p.isDue()) == fmt.Sprint(c.due), "%s: %q is due", c.what, p.isDue())
			open := p.open()
			p.demand(len(strings.Fields(open.due)) == len(c.due) && (open.runs != "") == (c.first != nil), "%s: open is %v", c.what, open)
			if c.due != nil {
				p.demand(p.number("ZSCORE", p.keys.DueJobs, c.due[0]) == now, "%s: it is not due now", c.what)
				p.do("ZREM", p.keys.DueJobs, "what has been taken")
			}
		}
	}
	p.do("DEL", p.ledger(), p.keys.DueJobs)
	p.demand(p.registers("a", farFuture, 0, 0, 1) == [5]int64{now, now, now, now}, "who knew nothing registers it as %v",
		p.list("HGETALL", p.ledger()))
	p.do("HSET", p.ledger(), "tick", nominal(10)) // claimed early: what is settled stays that
	got := p.registers(append([]any{"a", farFuture, walkStart, nominal(5), 1}, owed(7, 8)...)...)
	gap := fmt.Sprintf("%d-%d %d-%d ", nominal(8), now+1, nominal(5), nominal(7))
	p.demand(got == [5]int64{now, now, now, nominal(10)}, "behind a claim: %v", got)
	p.demand(p.field("gaps") == gap, "behind a claim the gap is %q, want %q", p.field("gaps"), gap)
	p.do("DEL", p.ledger())
	p.registers("a", farFuture, 0, 0, 1)
	got = p.registers(append([]any{"a", farFuture, walkStart, nominal(5), 0}, owed(7)...)...) // its table says at-most-once
	p.demand(got == [5]int64{now, now, now, now}, "behind one who knew nothing, at-most-once registers %v", got)
	p.told(slices.Repeat([]string{"due"}, 12)...)
	p.probeOlderLedger()
}

// probeOlderLedger registers a job by callers who know of a claim that its ledger may have forgotten.
func (p *prober) probeOlderLedger() {
	for _, c := range []struct {
		what                 string
		born, again, claimed int64
		want                 int64
	}{
		{"a newer claim", p.clock, 0, nominal(6), nominal(6)},
		{"a newer claim, under at-least-once", p.clock, 1, nominal(6), nominal(5)},
		{"an older claim", p.clock, 0, nominal(4), nominal(5)},
		{"a newer claim, after the birth", p.clock, 0, nominal(11), nominal(11)},
		{"a newer claim of another ledger", p.clock - 1, 0, nominal(6), nominal(6)},
		{"a newer claim of another ledger, under at-least-once", p.clock - 1, 1, nominal(6), nominal(5)},
		{"an early claim of another ledger", p.clock - 1, 0, p.clock + 1000, p.clock + 1000},
		{"a claim of another ledger, by a clock that was ahead", p.clock - 1, 0, p.clock + 1001, nominal(5)},
	} {
		for _, known := range []int64{0, nominal(1)} { // of another than the first who tells of a loss, and of that one
			p.do("DEL", p.ledger(), p.keys.DueJobs)
			p.registers("a", farFuture)
			p.do("HSET", p.ledger(), "tick", nominal(5))
			if known == 0 {
				p.do("HSET", p.ledger(), "late", 1)
			}
			got := p.registersAll([]any{"a", farFuture, c.born, known, c.again, p.keys.Events, c.claimed})
			p.demand(got[3] == c.want && p.field("tick") == fmt.Sprint(c.want), "%s: the ledger is at %d, in Redis %s, want %d", c.what,
				got[3], p.field("tick"), c.want)
		}
	}
}

func (p *prober) probeClaimsInPauses() {
	p.at(walkStart + 100_000)
	now := p.clock
	due := func(kind string) string {
		return Due{Job: walkJob, Tick: rds.FromMillis(5), Kind: kind, Nonce: "n"}.Member()
	}
	score := int64(1)
	ask := func(note string, tick int64, member string) Answer {
		p.do("FLUSHDB")
		p.at(now)
		p.do("HSET", p.ledger(), "born", 1, "since", 1, "tick", 0, "paused", note)
		if member != "" && score >= 0 {
			p.do("ZADD", p.keys.DueJobs, score, member)
		}
		c := p.claims(Forbid, 1)
		c.Tick, c.Due, c.Member, c.Before = rds.FromMillis(tick), rds.FromMillis(tick), member, rds.FromMillis(tick-1)
		return p.asks(c, farFuture)
	}
	past, later := rds.Itoa(now-1000)+" 50 x", rds.Itoa(now+60_000)+" 50 x"
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
		{"a tick of a pause that has yet to come", later, now + 20, "", Early},
		{"a handover of such a tick", later, now + 20, due("handover"), Paused},
		{"a handover after a pause", past, 5, due("handover"), Won},
		{"a trigger from before a pause", later, 5, due("manual"), Paused},
		{"a backfill from before a pause", "0 2 x", 5, due("backfill"), Paused},
		{"a backfill in a pause", "0 1 x", 5, due("backfill"), Won},
		{"a backfill after a pause", past, 5, due("backfill"), Won},
	} {
		got := ask(c.note, c.tick, c.member)
		p.demand(got.Code == c.want, "%s: %s, want %s", c.what, got.Code, c.want)
	}
	score = 0 // a trigger is due whatever becomes of Redis' clock, and its tick tells when it was asked for
	p.demand(ask("0 5 x", 5, due("manual")).Code == Won, "a trigger in a pause waits")
	p.demand(ask("0 6 x", 5, due("manual")).Code == Paused, "a trigger from before a pause runs")
	score = -1 // another replica has taken it
	p.demand(ask("0 6 x", 5, due("manual")).Code == Gone, "a trigger that is gone waits for the end of a pause")
	score = 1
	p.demand(rds.Millis(ask(later, now, "").Until) == now+60_000, "a pause whose end is not told")
	ended := rds.Millis(ask(past, now, "").PausedTo)
	p.demand(ended == now-1001, "a pause whose last instant was %d ended at %d", now-1001, ended)
	gaps := fmt.Sprintf("1-50 %d-%d ", now-1001, now) // before the pause, and since
	p.demand(p.missed() == gaps, "the gaps around a pause are %q, want %q", p.missed(), gaps)
	p.demand(p.other() == fmt.Sprintf("49-%d:paused ", now-1000), "of the pause itself: %q", p.other())
	early := ask(rds.Itoa(now+200)+" 50 x", now+500, "")
	p.demand(early.Code == Won && rds.Millis(early.PausedTo) == now, "ahead of a pause's end: %s, paused until %s", early.Code, early.PausedTo)
	ask(rds.Itoa(now-1000)+" "+rds.Itoa(now-500)+" x", now, "") // it began by a clock that was wrong
	gaps = fmt.Sprintf("1-%d %d-%d ", now-1000, now-1001, now)
	p.demand(p.missed() == gaps, "the gaps around a pause that began after its end are %q, want %q", p.missed(), gaps)
	p.do("HSET", p.ledger(), "paused", past, "pausedTo", 20, "tick", 0, "gaps", "")
	p.do("DEL", p.keys.Running)
	p.do("HDEL", p.ledger(), "open")
	c := p.claims(Allow, 1)
	c.Tick, c.Due = rds.FromMillis(now), rds.FromMillis(now)
	p.isTold(c, Won)
	p.demand(p.missed() == "20-50 ", "behind another pause the gap is %q", p.missed())
}

// probeTwice has a tick asked for by hand that runs.
func (p *prober) probeTwice() {
	p.older()
	p.at(nominal(3))
	p.isTold(p.claims(Allow, 1), Won)
	c := p.claims(Allow, 1)
	c.Member = Due{Tick: c.Tick, Job: walkJob, Kind: "backfill", Attempt: 1, Nonce: "n"}.Member()
	p.do("ZADD", p.keys.DueJobs, 1, c.Member)
	p.isTold(c, Held)
	p.demand(len(p.isDue()) == 1, "it is not due any more")
}

func (p *prober) probeLease() {
	p.older()
	p.at(nominal(3))
	c := p.claims(Forbid, 1)
	x := &fiber{claim: c, stage: finishing, outcome: "ok"}
	entry := func() int64 { return p.number("ZSCORE", p.keys.Running, c.Run+" "+walkJob) }
	age := func() { // as if most of the lease were over
		p.do("PEXPIRE", p.lockOf(&c), 5000)
		p.at(p.clock + 1000)
	}
	renewed := func(by string) {
		p.lasts(p.lockOf(&c), walkTTL)
		p.demand(entry() == p.clock+walkTTL.Milliseconds(), "%s: the entry lasts until %d", by, entry())
	}
	p.isTold(c, Won)
	renewed("claim")
	age()
	p.isTold(c, Won)
	renewed("asked again")
	age()
	p.extend(x)
	renewed("extension")
	p.do("DEL", p.lockOf(&c))
	p.extend(x)
	renewed("extension of what had expired")
	p.do("DEL", p.keys.Running) // by hand, say
	p.extend(x)
	renewed("extension of what was deleted")
	p.do("DEL", p.lockOf(&c))
	p.isTold(c, Won)
	renewed("asked again for what had expired")
	p.eval(p.scripts.settle, p.settleKeys(x), "finish", c.Run, walkJob, 20_000, p.keys.Events, "", 500, "")
	p.lasts(p.lockOf(&c), 20*time.Second)
	p.demand(p.text("GET", p.lockOf(&c)) == c.Run, "the lock does not linger")
	p.isTold(p.claims(Forbid, 2), Won)

	odd := p.claims(Allow, 3)
	odd.TTL = 29_999 * time.Millisecond // the lock lives for whole seconds
	keys, args := p.question(&odd, farFuture)
	began := time.Now()
	p.demand(p.eval(p.scripts.acquire, keys, args...)[0] == string(Won), "it is not claimed")
	ttl, _ := p.do("PTTL", p.lockOf(&odd)).(int64)
	p.demand(ttl+time.Since(began).Milliseconds() >= odd.TTL.Milliseconds(), "the lock ends in %d ms, ahead of its lease", ttl)
	timer := p.claims(Allow, 4)
	timer.Job, timer.Kind, timer.Member = "timer:a", "timer", fmt.Sprintf("%d timer:a timer 1 0 0 n", nominal(4))
	p.do("ZADD", p.keys.DueJobs, 1, timer.Member)
	runs := p.open().runs
	for range 2 {
		p.isTold(timer, Won)
	}
	p.demand(p.open().runs == runs, "a timer is one of the runs %q", p.open().runs)
}

func (p *prober) probeToken() {
	p.older()
	p.at(nominal(9))
	p.do("HSET", p.ledger(), "token", 5) // from before a loss
	ends := func(c Claim) int64 {
		token := p.isTold(c, Won).Token
		p.settles(c, "finish", "")
		return token
	}
	p.demand(ends(p.claims(Forbid, 1)) == p.clock, "a token from before a loss")
	p.demand(ends(p.claims(Allow, 2)) == p.clock+1, "a second token in the same millisecond")
	// Redis' clock was set back by years: the token goes on.
	p.do("HSET", p.ledger(), "token", 5_000_000_000_000)
	token := ends(p.claims(Forbid, 3))
	p.demand(token == 5_000_000_000_001, "token %d after 5000000000000", token)
}

// probeEvidence is of more runs than a ledger could name.
func (p *prober) probeEvidence() {
	p.older()
	p.at(nominal(60))
	var all []Claim
	for n := int64(1); n <= 40; n++ {
		c := p.claims(Allow, n)
		p.isTold(c, Won)
		p.settles(c, "reap", "", 0, p.clock+walkTTL.Milliseconds())
		all = append(all, c)
	}
	for _, c := range all {
		p.lasts(p.keys.Memo(c.Run), 24*time.Hour)
		for _, want := range []string{"LATE", "NONE"} { // the answer to the first was lost, and what it made due is taken
			got := p.settles(c, "abandon", c.due().Member(), 7)
			score := p.number("ZSCORE", p.keys.DueJobs, c.due().Member())
			n, _ := p.do("ZREM", p.keys.DueJobs, c.due().Member()).(int64)
			p.demand(got[0] == want && (n == 1) == (want == "LATE") && (n == 0 || score == p.clock+7),
				"abandoning a reaped run: %v, %d due, at %d", got, n, score)
		}
	}
	c := p.claims(Forbid, 50)
	p.isTold(c, Won)
	p.settles(c, "reap", c.takeover(1)+"x", 0, p.clock+walkTTL.Milliseconds())
	p.demand(strings.HasPrefix(p.text("GET", p.keys.Memo(c.Run)), "taken "), "a run that is run again leaves evidence")

	keys := p.settleKeys(&fiber{claim: p.claims(Forbid, 51)}) // a claim that broke off, and left no record
	p.do("ZADD", p.keys.Running, 7, "u9 j")
	got := p.eval(p.scripts.settle, keys, "reap", "u9", "j", 0, p.keys.Events, "", 500, "", 7, "w")
	p.demand(got[0] == "OK" && p.text("ZSCORE", p.keys.Running, "u9 j") == "", "what has no record is not cleaned up: %v", got)
}

// probeRunsThatWereLost are those whose replica went on when Redis had lost its data.
func (p *prober) probeRunsThatWereLost() {
	p.older()
	p.at(nominal(2))
	c := p.claims(Forbid, 1)
	again := Due{Tick: c.Tick, Job: walkJob, Kind: "takeover", Attempt: 2, Nonce: c.Run}.Member()
	p.demand(p.settles(c, "requeue", again, 0, 0, 1)[0] == "NONE" && len(p.isDue()) == 0, "a run that was settled is run again")
	p.do("HSET", p.ledger(), "open", " 1=u:0")
	open := fmt.Sprintf(" 1=u:0 %d~:", nominal(1))
	for i, want := range []int{1, 0} {
		got := p.settles(c, "requeue", again, 5, 0, nominal(1))
		p.demand(p.field("open") == open, "requeued %d times after a loss: open is %q", i+1, p.field("open"))
		p.demand(got[0] == "NONE" && len(p.isDue()) == want, "requeued %d times after a loss: %v, %q due", i+1, got, p.isDue())
		p.demand(want == 0 || p.number("ZSCORE", p.keys.DueJobs, again) == p.clock+5, "it is due at once")
		p.do("ZREM", p.keys.DueJobs, again)
	}
	p.lasts(p.keys.Memo(c.Run), 24*time.Hour)
}

func (p *prober) probeHistory() {
	p.older()
	p.at(nominal(2))
	for i, failed := range []string{"", "failed"} {
		c := p.claims(Forbid, int64(i+1))
		p.isTold(c, Won)
		p.eval(p.scripts.settle, p.settleKeys(&fiber{claim: c}), "finish", c.Run, walkJob, 0, p.keys.Events, "entry "+c.Run, 500, "", 0, 0, 0, failed)
		runs, _ := p.do("XLEN", p.keys.History(walkJob)).(int64)
		failures, _ := p.do("XLEN", p.keys.Failures(walkJob)).(int64)
		p.demand(runs == int64(i+1) && failures == int64(i), "%d runs and %d failures", runs, failures)
		if p.lasts(p.keys.History(walkJob), 90*24*time.Hour); failed != "" {
			p.lasts(p.keys.Failures(walkJob), 90*24*time.Hour)
		}
		newest := fmt.Sprint(p.do("XREVRANGE", p.keys.History(walkJob), "+", "-", "COUNT", 1))
		p.demand(strings.Contains(newest, "[run entry "+c.Run+"]"), "the history has %s", newest)
		p.demand(p.field("done") == "entry "+c.Run, "the last one is %q", p.field("done"))
	}
	p.at(nominal(4))
	for i, again := range []string{"handed on", ""} { // that ends no tick, and the last one does
		last, c := p.field("done"), p.claims(Forbid, int64(i+3))
		p.isTold(c, Won)
		if again != "" {
			again = c.due().Member()
		}
		p.eval(p.scripts.settle, p.settleKeys(&fiber{claim: c}), "handover", c.Run, walkJob, 0, p.keys.Events, "entry "+c.Run, 500, "", 0, 0, 0, "", again)
		p.demand((p.field("done") == last) == (again != ""), "after a handover to %q the last one is %q", again, p.field("done"))
	}
}

func (p *prober) probeNudges() {
	p.older()
	p.at(nominal(9))
	run := p.claims(Forbid, 1)
	p.isTold(run, Won)
	p.isTold(p.claims(Forbid, 2), Overlap)
	p.isTold(p.claims(Queue, 3), Queued)
	p.told(p.ran(run))
	p.isTold(p.claims(Replace, 4), Queued)
	p.told("stop " + walkJob)
	list := p.claims(Queue, 5)
	list.Older = []Past{{list.Tick, list.Due}}
	p.isTold(list, Queued)
	p.told("due")
	p.settles(run, "requeue", "")
	p.told("due")
	for _, wait := range []int{0, 1} {
		c := p.claims(Allow, int64(6+wait))
		p.isTold(c, Won)
		p.settles(c, "handover", c.due().Member(), wait)
		p.told(p.ran(c), "due")
		p.demand(p.number("ZSCORE", p.keys.DueJobs, c.due().Member()) == p.clock+int64(wait), "it does not wait for %d ms", wait)
	}
	runs := []Claim{p.claims(Allow, 8), p.claims(Allow, 9)}
	runs[1].Replica = "q"
	for _, c := range runs {
		p.isTold(c, Won)
	}
	for wait, c := range runs {
		p.settles(c, "reap", "", 0, p.clock+walkTTL.Milliseconds())
		p.settles(c, "abandon", c.due().Member(), wait)
	}
	p.told(p.ran(runs[0]), p.ran(runs[1]), "due", "due")
	for n := range int64(2) { // of due members, the first run alone is told, and no tick of the table is claimed
		c := p.claims(Allow, 5+n)
		c.Member = Due{Tick: c.Tick, Job: walkJob, Kind: "backfill", Attempt: 1, Nonce: "n"}.Member()
		p.do("ZADD", p.keys.DueJobs, 1, c.Member)
		p.isTold(c, Won)
	}
	p.told("run")
}

// probeHolders: who asks for a lease while another holds it leaves nothing behind.
func (p *prober) probeHolders() {
	p.older()
	p.at(nominal(9))
	holder := p.claims(HeldByOne, 1)
	p.isTold(holder, Won)
	before := p.number("HLEN", p.ledger())
	p.demand(p.isTold(p.claims(HeldByOne, 2), Held).Holder == "r", "it is told another holder")
	p.demand(p.number("HLEN", p.ledger()) == before && p.number("HGET", p.ledger(), "tick") == nominal(1), "the ledger has changed")
	p.settles(holder, "finish", "")
	p.do("HSET", p.ledger(), "paused", fmt.Sprintf("%d %d x", nominal(2), nominal(1))) // which is over
	p.isTold(p.claims(HeldByOne, 3), Won)
}

// probeEndOfARun: a run of which Redis hears late was in nobody's way after its end.
func (p *prober) probeEndOfARun() {
	p.older()
	run := p.claims(Forbid, 1)
	p.at(nominal(1))
	p.isTold(run, Won)
	for _, n := range []int64{2, 3} {
		p.at(nominal(n))
		p.isTold(p.claims(Forbid, n), Overlap)
	}
	p.at(nominal(3) + 2000)
	said := p.settles(run, "finish", "", 0, 0, 1, 7000) // it ended 7 s ago, between T2 and T3
	p.demand(p.field("overlap") == rds.Itoa(nominal(2)) && len(p.isDue()) == 1, "settled as %v, overlap %s, due %v", said, p.field("overlap"),
		p.isDue())
}

// probeDisplacedOfBefore: a tick that waits is none of a job that has come back since.
func (p *prober) probeDisplacedOfBefore() {
	for _, since := range []int64{nominal(2) - 1, nominal(2)} {
		p.do("FLUSHDB")
		p.older()
		p.at(nominal(1))
		p.isTold(p.claims(Replace, 1), Won)
		p.at(nominal(2))
		p.isTold(p.claims(Replace, 2), Queued)
		p.do("HSET", p.ledger(), "since", since)
		p.at(nominal(3))
		p.isTold(p.claims(Replace, 3), Queued)
		p.demand((p.field("gaps") != "") == (since < nominal(2)), "since %d, the gaps are %q", since, p.field("gaps"))
	}
}
