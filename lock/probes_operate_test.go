//go:build !race

package lock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// pausing sends an operator's request.
func (p *prober) pausing(args ...any) []any {
	p.counter++
	memo := p.keys.Memo(fmt.Sprint("p", p.counter))
	got := p.eval(p.scripts.pause, []string{p.ledger(), memo}, append([]any{p.keys.Events, walkJob, args[0], farFuture}, args[1:]...)...)
	if got[0] == "OK" {
		p.lasts(memo, 24*time.Hour)
	}
	return got
}

func (p *prober) probePauses() {
	p.demand(p.pausing("pause", 0, 0, "why")[0] == string(unknown), "a job without a ledger was paused")
	p.told("due") // whoever lives registers it
	p.older()
	late := p.eval(p.scripts.pause, []string{p.ledger(), p.keys.Memo("late")}, p.keys.Events, walkJob, "pause", longPast, 0, 0, "why")
	p.demand(late[0] == string(Stale) && p.field("paused") == "", "a copy that came too late is answered %v", late)
	p.at(nominal(3) + 5)
	p.demand(p.pausing("pause", 0, p.clock, "why")[0] == "PAST" && p.field("paused") == "", "a pause that is over: %q", p.field("paused"))
	p.demand(p.pausing("resume", 0)[2] == int64(0) && p.field("pausedTo") == "", "what is not paused was resumed")
	p.pausing("pause", 0, nominal(5), "one")
	p.at(nominal(4))
	p.pausing("pause", 0, nominal(6), "two words") // the job has stood still since the first
	note := fmt.Sprintf("%d %d two words", nominal(6), nominal(3)+5)
	p.demand(p.field("paused") == note, "the note is %q, want %q", p.field("paused"), note)
	p.told("due "+walkJob, "due "+walkJob)
	p.demand(p.pausing("resume", 0)[2] == int64(1) && p.field("paused") == "", "it was not resumed")
	p.told("due " + walkJob)
	gap := fmt.Sprintf("%d-%d ", walkStart, nominal(3)+5)
	p.demand(p.other() == fmt.Sprintf("%d-%d:paused ", nominal(3)+4, nominal(4)+1), "paused: %q", p.other())
	p.demand(p.missed() == gap && p.field("tick") == rds.Itoa(nominal(4)) && p.field("pausedTo") == rds.Itoa(nominal(4)), "resumed: %v",
		p.list("HGETALL", p.ledger()))

	// A refused tick is not missed, and a claimed one is not settled anew.
	p.do("HSET", p.ledger(), "open", fmt.Sprintf(" %d~<%d:", nominal(5), nominal(5)), "gaps", "")
	p.at(nominal(6))
	p.pausing("pause", 0, 0, "")
	p.pausing("resume", 0)
	gap = fmt.Sprintf("%d-%d ", nominal(5), nominal(6))
	p.demand(p.missed() == gap, "behind a refused tick the gap is %q, want %q", p.missed(), gap)
	p.do("HSET", p.ledger(), "tick", nominal(9), "pausedTo", nominal(8))
	p.pausing("pause", 0, 0, "")
	p.pausing("resume", 0)
	p.demand(p.field("tick") == rds.Itoa(nominal(9)) && p.field("pausedTo") == rds.Itoa(nominal(8)) && p.missed() == gap, "set back: %v",
		p.list("HGETALL", p.ledger()))

	// Between a claimed tick and a pause there may be no instant, and a pause may be over before it settles one.
	p.do("HSET", p.ledger(), "pausedTo", 0, "gaps", "", "open", "")
	p.at(nominal(9) + 1)
	p.pausing("pause", 0, 0, "")
	p.pausing("resume", 0)
	p.demand(p.missed() == "", "right behind a claimed tick %q was missed", p.missed())
	p.pausing("pause", 0, 0, "")
	p.do("HSET", p.ledger(), "tick", nominal(10), "gaps", "") // claimed early
	p.at(nominal(10))
	p.pausing("resume", 0)
	p.demand(p.field("gaps") == "", "a pause of no instant leaves %q", p.field("gaps"))
}

// probePausesOver are those that have ended of their own accord, and those that are resumed by the replicas' time.
func (p *prober) probePausesOver() {
	p.older()
	p.do("HSET", p.ledger(), "since", nominal(1))
	p.at(nominal(2))
	p.pausing("pause", 0, nominal(3), "one")
	p.at(nominal(5))
	p.pausing("pause", 0, nominal(7), "two")
	gaps := fmt.Sprintf("%d-%d ", nominal(1), nominal(2))
	note := fmt.Sprintf("%d %d two", nominal(7), nominal(5))
	p.demand(p.other() == fmt.Sprintf("%d-%d:paused ", nominal(2)-1, nominal(3)), "paused: %q", p.other())
	p.demand(p.missed() == gaps && p.field("tick") == rds.Itoa(nominal(3)-1) && p.field("paused") == note, "paused again: %v",
		p.list("HGETALL", p.ledger()))
	p.at(nominal(9))
	p.pausing("resume", 0)
	gaps += fmt.Sprintf("%d-%d ", nominal(3)-1, nominal(5))
	p.demand(p.field("tick") == rds.Itoa(nominal(7)-1) && p.field("pausedTo") == rds.Itoa(nominal(7)-1) && p.missed() == gaps,
		"resumed late: %v", p.list("HGETALL", p.ledger()))
	p.pausing("pause", nominal(7)+5, 0, "three") // Redis' clock is ahead
	p.demand(p.field("paused") == fmt.Sprintf("0 %d three", nominal(7)+5), "paused by the replicas' time: %q", p.field("paused"))
	p.pausing("resume", nominal(8))
	p.demand(p.field("tick") == rds.Itoa(nominal(8)), "resumed by the replicas' time at %s", p.field("tick"))
	gaps += fmt.Sprintf("%d-%d ", nominal(7)-1, nominal(7)+5)
	p.pausing("pause", 0, 0, "four") // it is believed, and then it is not
	p.pausing("resume", nominal(8)+5)
	gaps += fmt.Sprintf("%d-%d ", nominal(8), nominal(8)+5)
	p.demand(p.missed() == gaps, "before a pause that began after its end: %q, want %q", p.missed(), gaps)

	p.at(nominal(11)) // its clock is ahead: the ends of pauses are by the replicas' time, too
	p.pausing("pause", nominal(8)+6, nominal(9), "five")
	note = fmt.Sprintf("%d %d five", nominal(9), nominal(8)+6)
	p.demand(p.field("paused") == note, "paused until a time that Redis' clock has passed: %q", p.field("paused"))
	p.pausing("pause", nominal(8)+9, 0, "six")
	note = fmt.Sprintf("0 %d six", nominal(8)+6)
	p.demand(p.field("tick") == rds.Itoa(nominal(8)+5) && p.field("paused") == note, "paused again by the replicas' time: %v",
		p.list("HGETALL", p.ledger()))
}

// probeTwoPauses has a job held by its own pause and by that of all jobs: each is set, replaced and lifted by itself.
func (p *prober) probeTwoPauses() {
	for _, which := range [][2]string{{"", "All"}, {"All", ""}} {
		one, two := which[0], which[1]
		p.do("FLUSHDB")
		p.older()
		p.at(nominal(1))
		p.pausing("pause"+one, 0, nominal(3), "one")
		p.at(nominal(2))
		p.pausing("pause"+two, 0, 0, "two")
		p.at(nominal(4)) // the first has ended of its own accord
		first, second := fmt.Sprintf("%d %d one", nominal(3), nominal(1)), fmt.Sprintf("0 %d two", nominal(2))
		p.demand(p.field("paused"+one) == first && p.field("paused"+two) == second, "twice: %v", p.list("HGETALL", p.ledger()))
		p.pausing("pause"+one, 0, nominal(6), "three")
		p.demand(p.field("paused"+two) == second, "the other pause is %q", p.field("paused"+two))
		gaps := fmt.Sprintf("%d-%d ", walkStart, nominal(1))
		p.demand(p.missed() == gaps && p.field("tick") == rds.Itoa(nominal(3)-1), "paused again: %v", p.list("HGETALL", p.ledger()))
		p.at(nominal(5))
		p.demand(p.pausing("resume"+two, 0)[2] == int64(1) && p.field("paused"+two) == "" && p.field("paused"+one) != "",
			"resumed: %v", p.list("HGETALL", p.ledger()))
		p.demand(p.pausing("resume"+two, 0)[2] == int64(0), "resumed twice")
		p.demand(p.missed() == gaps && p.field("pausedTo") == rds.Itoa(nominal(5)), "one goes on: %v", p.list("HGETALL", p.ledger()))

		p.at(nominal(8)) // the third has ended, and between it and the fourth the job ran
		p.pausing("pause"+two, 0, 0, "four")
		p.at(nominal(9))
		p.pausing("resume"+two, 0)
		gaps += fmt.Sprintf("%d-%d ", nominal(6)-1, nominal(8))
		p.demand(p.missed() == gaps, "between two pauses the gaps are %q, want %q", p.missed(), gaps)
	}
}

// probeClaimsInTwoPauses has a job that is held by both, or was.
func (p *prober) probeClaimsInTwoPauses() {
	p.at(walkStart + 100_000)
	now := p.clock
	ask := func(own, all string, tick int64) Answer {
		p.do("FLUSHDB")
		p.at(now)
		p.do("HSET", p.ledger(), "born", 1, "since", 1, "tick", 0, "paused", own, "pausedAll", all)
		c := p.claims(Forbid, 1)
		c.Tick, c.Due, c.Before = rds.FromMillis(tick), rds.FromMillis(tick), rds.FromMillis(tick-1)
		return p.asks(c, farFuture)
	}
	note := func(from, to int64) string { return fmt.Sprintf("%d %d x", to, from) }
	past, soon, later, lasting := note(50, now-1000), note(60, now+5000), note(70, now+9000), note(80, 0)
	for _, c := range []struct {
		what, one, two string
		until          int64
	}{
		{"one is over", past, later, now + 9000},
		{"one ends before the other", soon, later, now + 9000},
		{"one lasts", soon, lasting, 0},
		{"both last", lasting, lasting, 0},
		{"there is one", "", soon, now + 5000},
	} {
		for _, both := range [][2]string{{c.one, c.two}, {c.two, c.one}} {
			got := ask(both[0], both[1], now)
			p.demand(got.Code == Paused && rds.Millis(got.Until) == c.until, "%s (%q, %q): %s until %d, want %d",
				c.what, both[0], both[1], got.Code, rds.Millis(got.Until), c.until)
		}
	}
	late := fmt.Sprintf("%d-%d ", now-1001, now)
	for _, c := range []struct{ one, two, gaps, paused string }{
		{note(50, 60), note(now-3000, now-1000), fmt.Sprintf("1-50 59-%d ", now-3000) + late,
			fmt.Sprintf("49-60:paused %d-%d:paused ", now-3001, now-1000)},
		{note(50, 60), note(55, now-1000), "1-50 " + late, fmt.Sprintf("49-60:paused 59-%d:paused ", now-1000)}, // one begins in the other
	} {
		for _, both := range [][2]string{{c.one, c.two}, {c.two, c.one}} {
			got := ask(both[0], both[1], now)
			p.demand(got.Code == Won && rds.Millis(got.PausedTo) == now-1001, "after both: %s, paused until %s", got.Code, got.PausedTo)
			p.demand(p.missed() == c.gaps, "the gaps around two pauses are %q, want %q", p.missed(), c.gaps)
			p.demand(p.other() == c.paused, "of the two pauses: %q, want %q", p.other(), c.paused)
		}
	}
}

func (p *prober) asking(id string, args ...any) []any {
	return p.eval(p.scripts.ask, []string{p.ledger(), p.keys.DueJobs, p.keys.Memo(id)},
		append([]any{" j manual 1 0 0 " + id, p.keys.Events}, args...)...)
}

func (p *prober) probeAsking() {
	p.demand(p.asking("a")[0] == string(unknown), "a job without a ledger was triggered")
	p.told("due") // whoever lives registers it
	p.older()
	p.at(nominal(1))
	last := int64(0)
	for i := range 12 { // none of which a schedule could have
		got := millisOf(p.asking(fmt.Sprint("a", i))[2])
		p.demand(got > last && got >= p.clock && got%10 != 0 && got < p.clock+20, "trigger %d has the tick %d, after %d", i, got, last)
		p.demand(p.number("ZSCORE", p.keys.DueJobs, fmt.Sprintf("%d j manual 1 0 0 a%d", got, i)) == 0 && len(p.isDue()) == i+1,
			"it is not due at once: %q", p.isDue())
		p.told("due")
		last = got
	}
	p.at(walkStart) // Redis' clock goes back
	p.demand(millisOf(p.asking("b")[2]) > last, "a tick that there was before")
	p.do("DEL", p.keys.DueJobs)
	p.demand(millisOf(p.asking("a3")[2]) == nominal(1)+4 && len(p.isDue()) == 0, "asked again, %q is due", p.isDue())
	p.lasts(p.keys.Memo("a3"), 24*time.Hour)
	p.told("due")
	p.demand(p.asking("b", nominal(7))[0] == "OTHER" && len(p.isDue()) == 0, "another request with the id of a trigger: %q is due", p.isDue())

	got := p.asking("c", nominal(7), nominal(8))
	p.do("SET", p.keys.Memo("older"), "7") // of a version that did not say what was asked
	p.demand(p.asking("older")[0] == "OK", "a request of an older version is another one")
	p.demand(p.asking("c", nominal(7), nominal(8))[2] == int64(2) && p.asking("c", nominal(8))[0] == "OTHER", "asked again for two ticks, or for another")
	p.demand(got[2] == int64(2) && len(p.isDue()) == 2 && p.number("ZSCORE", p.keys.DueJobs, p.isDue()[0]) == p.clock, "backfilled: %v, %q", got,
		p.isDue())
	p.demand(p.field("tick") == rds.Itoa(walkStart) && rds.Number(p.field("manual")) > last, "the ledger is %v", p.list("HGETALL", p.ledger()))
	p.told("due")
}

// probeManyTriggers has more asked for than may wait.
func (p *prober) probeManyTriggers() {
	p.older()
	p.at(nominal(1))
	full := func(got []any, bound int64) {
		p.demand(got[0] == "FULL" && got[2] == bound, "answered %v, want that %d wait", got, bound)
	}
	for i := range 100 {
		p.demand(p.asking(fmt.Sprint("a", i))[0] == "OK", "trigger %d is refused", i)
	}
	full(p.asking("b"), 100)
	p.demand(p.asking("a7")[0] == "OK" && len(p.isDue()) == 100, "asked again, %d are due", len(p.isDue()))
	p.demand(p.text("GET", p.keys.Memo("b")) == "", "what was refused is remembered")
	p.told(slices.Repeat([]string{"due"}, 20)...)
	p.do("ZPOPMIN", p.keys.DueJobs)
	p.demand(p.asking("b")[0] == "OK", "there is room again, and it is refused")

	p.do("DEL", p.keys.DueJobs)
	for i := range 999 {
		p.do("ZADD", p.keys.DueJobs, 0, fmt.Sprintf("%d jj manual 1 0 0 n%d", walkStart, i)) // its name begins as the job's does
	}
	p.do("ZADD", p.keys.DueJobs, 1, fmt.Sprintf("%d other manual 1 0 0 handed", walkStart)) // is no trigger that waits to be begun
	p.demand(p.asking("c")[0] == "OK", "the thousandth trigger is refused")
	p.told("due")
	full(p.asking("d"), 1000)
	p.demand(p.asking("e", nominal(2))[0] == "OK", "a backfill is refused for the triggers that wait")
	p.told("due")

	p.do("DEL", p.keys.DueJobs)
	for i := range 4998 {
		p.do("ZADD", p.keys.DueJobs, i, fmt.Sprintf("%d other backfill 1 0 0 n%d", walkStart, i))
	}
	full(p.asking("f", nominal(2), nominal(3), nominal(4)), 5000)
	p.demand(p.do("ZCARD", p.keys.DueJobs) == int64(4998), "refused, and added")
	p.demand(p.asking("f", nominal(2), nominal(3))[0] == "OK", "five thousand are too many")
	p.told("due")
}

// probeBooking counts what was missed, and asks again when others have counted more.
func (p *prober) probeBooking() {
	p.do("HSET", p.ledger(), "born", 1, "gaps", "10-20 30-40 ")
	book := func(id, gaps string, ticks, want int) {
		got := p.eval(p.scripts.book, []string{p.ledger(), p.keys.History(walkJob), p.keys.Memo(id)}, gaps, ticks, 500, Missed, ticks, "an entry",
			PausedTick, 1, "another")
		p.demand(got[0] == "OK" && got[2] == int64(want), "%s counts %q: %v, want %d", id, gaps, got, want)
	}
	book("a", "", 7, 0)
	book("a", "10-20 ", 2, 1)
	book("b", "10-20 ", 2, 0)
	book("b", "30-40 ", 4, 1)
	book("a", "10-20 ", 2, 1)
	p.demand(p.field("gaps") == "", "%q is left", p.field("gaps"))
	p.demand(p.field("fate:missed") == "6" && p.field("fate:paused") == "2", "the fates are %s missed and %s paused", p.field("fate:missed"), p.field("fate:paused"))
	kept := fmt.Sprint(p.do("XRANGE", p.keys.History(walkJob), "-", "+"))
	p.demand(strings.Count(kept, "[tick an entry]") == 2 && strings.Count(kept, "[tick another]") == 2, "kept %s", kept)
	p.lasts(p.keys.Memo("a"), 24*time.Hour)

	const day = 86_400_000
	today := func(want int64) {
		p.demand(p.field("missedToday") == fmt.Sprintf("%d %d", p.clock/day, want), "missed today: %q, want %d", p.field("missedToday"), want)
	}
	today(6)
	p.demand(p.field("lastMissed") == "an entry", "missed last: %q", p.field("lastMissed"))
	p.at((p.clock/day + 1) * day)
	p.do("HSET", p.ledger(), "gaps", "50-60 ")
	book("c", "50-60 ", 5, 1)
	today(5)
}

func (p *prober) probeDropping() {
	p.do("HSET", p.ledger(), "born", 1, "gaps", "1-3 ")
	gaps := "1-3 "
	for i, c := range []struct {
		fate  string
		there int
		gap   string
	}{{"", 1, ""}, {Missed, 1, "%d-%d "}, {Missed, 0, ""}, {"interrupted", 1, "%d-%d:interrupted "}} {
		m := fmt.Sprintf("%d j catchup 1 0 0 n", nominal(int64(i)))
		if c.there == 1 {
			p.do("ZADD", p.keys.DueJobs, 1, m)
		}
		got := p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, m, c.fate)
		if c.gap != "" {
			gaps += fmt.Sprintf(c.gap, nominal(int64(i))-1, nominal(int64(i))+1)
		}
		p.demand(got[0] == "OK" && got[2] == int64(c.there) && got[3] == gaps && p.field("gaps") == gaps && len(p.isDue()) == 0,
			"dropped %q: %v, want the gaps %q", m, got, gaps)
	}
	m := fmt.Sprintf("%d j catchup 1 0 0 gone", nominal(9)) // another took it, and its tick is due again
	p.do("HSET", p.ledger(), "open", fmt.Sprintf(" %d~:1!", nominal(9)))
	before := fmt.Sprint(p.look(nil).fields)
	for _, fate := range []string{Missed, ""} {
		p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, m, fate)
		after := fmt.Sprint(p.look(nil).fields)
		p.demand(after == before, "what was gone is dropped: %s, was %s", after, before)
	}
	for kind, stands := range map[string][2]string{"catchup": {"*", "~"}, "manual": {"~", "*"}, "backfill": {"~", "*"}} { // two of a tick wait
		other, m := fmt.Sprintf(" %d%s:", nominal(9), stands[0]), fmt.Sprintf("%d j %s 1 0 0 n", nominal(9), kind)
		p.do("HSET", p.ledger(), "open", fmt.Sprintf("%s %d%s:", other, nominal(9), stands[1]))
		p.do("ZADD", p.keys.DueJobs, 1, m)
		p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, m, "")
		p.demand(p.field("open") == other, "of two that waited, %s was dropped, and left is %q", kind, p.field("open"))
	}
}

// probeActs: a request that had an effect is written down, once, and not at the cost of the request.
func (p *prober) probeActs() {
	p.older()
	kept := p.kept
	pause := func(id string, args ...any) []any {
		return p.eval(p.scripts.pause, []string{p.ledger(), p.keys.Memo(id), p.keys.Acts}, append([]any{p.keys.Events, walkJob, args[0], farFuture}, args[1:]...)...)
	}
	ask := func(id string, args ...any) []any {
		return p.eval(p.scripts.ask, []string{p.ledger(), p.keys.DueJobs, p.keys.Memo(id), p.keys.Acts},
			append([]any{" j manual 1 0 0 " + id, p.keys.Events}, args...)...)
	}
	for range 2 {
		pause("a", "pause", 0, 0, "why", "one")
		pause("b", "resume", 0, "two")
		ask("d", nominal(1), nominal(2), "three")
	}
	pause("c", "resume", 0, "of what is not paused")
	p.demand(len(p.isDue()) == 2, "the act is a tick: %q", p.isDue())
	kept("one", "two", "three2")
	tick := millisOf(ask("e", "four")[2])
	kept("one", "two", "three2", "four"+rds.Itoa(tick))
	for range 1500 {
		p.do("XADD", p.keys.Acts, "*", "act", "many")
	}
	p.at(nominal(1))
	pause("f", "pause", 0, 0, "why", "five")
	p.demand(p.do("XLEN", p.keys.Acts).(int64) <= 1200, "a pause leaves too many acts")
	for range 500 {
		p.do("XADD", p.keys.Acts, "*", "act", "many")
	}
	ask("g", "six")
	p.demand(p.do("XLEN", p.keys.Acts).(int64) <= 1200, "a trigger leaves too many acts")

	p.do("SET", p.keys.Acts, "no stream")
	p.demand(pause("h", "resume", 0, "six")[0] == "OK" && ask("i", "seven")[0] == "OK", "a request fails when its act cannot be kept")
	p.lasts(p.keys.Memo("i"), 24*time.Hour)
}

// kept demands that these acts are kept, each with what its script made.
func (p *prober) kept(want ...string) {
	var got []string
	entries, _ := p.do("XRANGE", p.keys.Acts, "-", "+").([]any)
	for _, e := range entries {
		fields, _ := e.([]any)[1].([]any)
		act := fmt.Sprint(fields[1])
		if len(fields) > 3 {
			act += fmt.Sprint(fields[3])
		}
		got = append(got, act)
	}
	p.demand(slices.Equal(got, want), "the acts are %q, want %q", got, want)
}

// cancelling has an operator cancel runs of the job.
func (p *prober) cancelling(id, act string, runs ...Claim) []any {
	args := []any{p.keys.Events, walkJob}
	for _, c := range runs {
		args = append(args, c.Run)
	}
	return p.eval(p.scripts.cancel, []string{p.ledger(), p.keys.Memo(id), p.keys.Acts}, append(args, act)...)
}

// verified is what the keeper of a run is told.
func (p *prober) verified(c Claim) any {
	return p.eval(p.scripts.extend, []string{p.lockOf(&c), p.ledger(), p.keys.Running}, c.Run, walkJob, walkTTL.Milliseconds())[0]
}

// probeCancel: a cancelled run ends for good, whoever ends it, and no other does.
func (p *prober) probeCancel() {
	p.demand(p.cancelling("a", "act", p.claims(Forbid, 1))[0] == string(unknown), "runs of a job without a ledger were cancelled")
	p.told("due") // whoever lives registers it
	p.older()
	p.at(nominal(60))
	over := p.claims(Allow, 1)
	p.isTold(over, Won)
	p.settles(over, "finish", "")
	p.demand(p.cancelling("a", "act", over)[2] == "" && p.field("x:"+over.Run) == "", "a run that is over was cancelled")
	p.kept()
	p.told()
	for n, verb := range []string{"finish", "requeue", "handover", "abandon", "reap", "reap"} {
		c, other := p.claims(Allow, int64(2+2*n)), p.claims(Allow, int64(3+2*n))
		p.isTold(c, Won)
		p.isTold(other, Won)
		again := c.due().Member()
		if n == 5 {
			again = ""
		}
		id := fmt.Sprint("b", n)
		for range 2 {
			p.demand(p.cancelling(id, "act"+id, over, c)[2] == c.Run, "the answer does not name the run")
		}
		p.told("stop " + walkJob)
		p.lasts(p.keys.Memo(id), 24*time.Hour)
		p.do("PEXPIRE", p.lockOf(&c), 5000)
		p.demand(p.verified(c) == "CANCELLED" && p.verified(other) == "OK", "told %v and %v", p.verified(c), p.verified(other))
		p.lasts(p.lockOf(&c), walkTTL)
		p.demand(p.settles(c, verb, again, 0, p.number("ZSCORE", p.keys.Running, c.Run+" "+walkJob))[0] == "OK", "%s fails", verb)
		p.demand(len(p.isDue()) == 0 && p.field("x:"+c.Run) == "" && p.field("r:"+c.Run) == "", "%s of a cancelled run leaves %v, due %q", verb,
			p.list("HGETALL", p.ledger()), p.isDue())
		p.demand(!strings.HasPrefix(p.text("GET", p.keys.Memo(c.Run)), "dead "), "%s of a cancelled run leaves evidence", verb)
		p.demand(p.cancelling(id, "act"+id, over, c)[2] == c.Run, "asked again, another answer")
		if verb != "finish" { // of the other run nothing is known but that it goes on
			p.settles(other, "handover", other.due().Member(), 0)
			p.demand(len(p.isDue()) == 1, "another run was cancelled too")
			p.do("DEL", p.keys.DueJobs)
			p.forget()
		}
	}
	p.demand(p.do("XLEN", p.keys.Acts) == int64(6), "%v acts", p.do("XLEN", p.keys.Acts))
	for i, kind := range []string{"manual", "backfill", "timer"} {
		c := p.claims(Allow, int64(30+i))
		c.Kind, c.Member = kind, fmt.Sprintf("%d j %s 1 0 0 m", nominal(int64(30+i)), kind)
		p.do("ZADD", p.keys.DueJobs, 1, c.Member)
		p.isTold(c, Won)
		p.cancelling(kind, "act", c)
		p.settles(c, "abandon", c.due().Member())
	}
	p.demand(p.field("fate:cancelled") == "2", "of those that had not started, %s have a fate", p.field("fate:cancelled")) // handed over and given back
	p.forget()
	p.do("DEL", p.keys.Acts)
	two := []Claim{p.claims(Allow, 20), p.claims(Allow, 21)}
	for _, c := range two {
		p.isTold(c, Won)
	}
	p.demand(p.cancelling("c", "act", two...)[2] == two[0].Run+" "+two[1].Run, "the answer does not name both")
	p.demand(p.verified(two[0]) == "CANCELLED" && p.verified(two[1]) == "CANCELLED", "one of two goes on")
	p.told("stop " + walkJob)
	for range 1500 {
		p.do("XADD", p.keys.Acts, "*", "act", "many")
	}
	p.cancelling("d", "act", two...)
	p.demand(p.do("XLEN", p.keys.Acts).(int64) <= 1200, "a cancel leaves too many acts")
	p.do("SET", p.keys.Acts, "no stream")
	p.demand(p.cancelling("e", "act", two...)[0] == "OK", "a request fails when its act cannot be kept")
	p.forget()
}

// probeMarks: a cancelled run takes its mark along, also as the last of its job. No other run ends by that mark.
func (p *prober) probeMarks() {
	p.older()
	p.at(nominal(60))
	cancelled, other := p.claims(Allow, 1), p.claims(Allow, 2)
	p.isTold(cancelled, Won)
	p.isTold(other, Won)
	p.cancelling("a", "act", cancelled)
	p.settles(other, "handover", other.due().Member(), 0)
	p.demand(len(p.isDue()) == 1, "a run was cancelled with another")
	p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, other.due().Member(), "")
	p.settles(cancelled, "finish", "")
	p.demand(p.open().runs == "" && p.field("x:"+cancelled.Run) == "", "the last run leaves its mark")
	replaced := p.claims(Forbid, 4)
	p.isTold(replaced, Won)
	p.cancelling("b", "act", replaced)
	p.isTold(p.claims(Replace, 5), Queued)
	p.demand(p.verified(replaced) == "CANCELLED", "a cancelled run is replaced")
}

// probeCancelInFullMemory: a run that fills Redis, say, can be cancelled.
func (p *prober) probeCancelInFullMemory() {
	if _, err := p.rdb.Do(context.Background(), "CONFIG", "GET", "maxmemory").Result(); err != nil {
		return // it has no bound on its memory
	}
	p.older()
	p.at(nominal(2))
	c := p.claims(Forbid, 1)
	p.isTold(c, Won)
	p.do("CONFIG", "SET", "maxmemory", 1)
	defer p.do("CONFIG", "SET", "maxmemory", 0)
	p.demand(p.cancelling("a", "act", c)[2] == c.Run && p.verified(c) == "CANCELLED", "it goes on")
}

// probeCancelledAs: a cancelled run whose holder does not know that is recorded as cancelled all the same, and has not
// failed. A run that its app or its timeout has ended keeps its outcome.
func (p *prober) probeCancelledAs() {
	p.older()
	p.at(nominal(60))
	ends := func(n int64, kind, said, fate string) (told any, entry string) {
		c := p.claims(Allow, n)
		if c.Kind = kind; kind == "manual" {
			c.Member = fmt.Sprintf("%d j manual 1 0 0 m", nominal(n))
			p.do("ZADD", p.keys.DueJobs, 1, c.Member)
		}
		p.isTold(c, Won)
		p.cancelling(fmt.Sprint("as", n), "act", c)
		entry = fmt.Sprintf(`{"job":"j","outcome":"%s","failed":true}`, said)
		got := p.eval(p.scripts.settle, p.settleKeys(&fiber{claim: c}), "finish", c.Run, walkJob, 0, p.keys.Events, entry, 500, fate, 0, 0, 0, "failed", "", 0, 0)
		return got[6], p.text("HGET", p.ledger(), "done")
	}
	counts := func(fate string) string { return p.field("fate:" + fate) }
	for i, said := range []string{"shutdown", "interrupted", "lost_lock", "not_started", "replaced", "handed_over"} {
		told, entry := ends(int64(1+i), "schedule", said, said)
		p.demand(told != nil && entry == `{"job":"j","outcome":"cancelled"}` && counts("cancelled") == rds.Itoa(int64(i+1)) && counts(said) == "",
			"cancelled, and its holder says %s: %v, %s, counted %s", said, told, entry, counts("cancelled"))
	}
	p.demand(p.ended(1) == "" && p.do("XLEN", p.keys.Failures(walkJob)) == int64(0), "a cancelled run has failed: %q", p.ended(1))
	told, entry := ends(20, "manual", "shutdown", "")
	p.demand(told != nil && entry == `{"job":"j","outcome":"cancelled"}` && counts("cancelled") == "6", "by hand: %v, %s, counted %s", told, entry, counts("cancelled"))
	told, entry = ends(21, "schedule", "failed", "failed")
	p.demand(told == nil && entry == `{"job":"j","outcome":"failed","failed":true}` && counts("failed") == "1", "failed: %v, %s", told, entry)
	p.forget()
}

// probeCancelWaiting: what waits of a job by hand is dropped, and nothing else.
func (p *prober) probeCancelWaiting() {
	drops := func(id string, until int64) []any {
		keys := []string{p.ledger(), p.keys.Memo(id), p.keys.Acts, p.keys.DueJobs, p.keys.History(walkJob)}
		return p.eval(p.scripts.cancel, keys, p.keys.Events, walkJob, until, 200, "act")
	}
	p.demand(drops("a", p.clock+1000)[0] == string(unknown), "what waits of a job without a ledger was dropped")
	p.told("due") // whoever lives registers it
	p.older()
	trigger, tick, stays := nominal(1)+7, nominal(2), fmt.Sprintf("%d j catchup 1 0 0 n", nominal(3))
	others := fmt.Sprintf("%d k manual 1 0 0 n", nominal(1)+9)
	for _, m := range []string{fmt.Sprintf("%d j manual 1 0 0 one", trigger), fmt.Sprintf("%d j backfill:k 2 1 1 two x", tick), stays, others} {
		p.do("ZADD", p.keys.DueJobs, 0, m)
	}
	open := fmt.Sprintf(" %d~:", tick)
	p.do("HSET", p.ledger(), "open", fmt.Sprintf("%s %d*:", open, tick))
	p.demand(drops("b", p.clock-1)[0] == "PAST" && len(p.isDue()) == 4, "a copy that came late: %q", p.isDue())
	want := fmt.Sprintf("%d %d", trigger, tick)
	for range 2 {
		p.demand(drops("b", p.clock)[2] == want, "the answer does not name what waited: want %s", want)
	}
	p.demand(slices.Equal(p.isDue(), []string{others, stays}) && p.field("open") == open, "left are %q, open %q", p.isDue(), p.field("open"))
	told := fmt.Sprint(p.do("XRANGE", p.keys.History(walkJob), "-", "+"))
	for _, entry := range []string{fmt.Sprintf(`{"job":"j","tick":%d,"run":"one","kind":"manual","outcome":"cancelled","ended":%d}`, trigger, p.clock),
		fmt.Sprintf(`{"job":"j","tick":%d,"run":"two","kind":"backfill","outcome":"cancelled","ended":%d}`, tick, p.clock)} {
		p.demand(strings.Contains(told, entry), "the history has %s, and not %s", told, entry)
	}
	p.demand(strings.Contains(fmt.Sprint(p.do("XRANGE", p.keys.Acts, "-", "+")), "made 2]"), "the act is %v", p.do("XRANGE", p.keys.Acts, "-", "+"))
	p.demand(drops("c", p.clock)[2] == "" && p.do("XLEN", p.keys.Acts) == int64(1), "what was dropped is dropped again")
	p.do("DEL", p.keys.DueJobs, p.keys.History(walkJob))
	p.forget()
}

// probeReleases is of locks that are released in one call: of a run that is over, of another run, of one that lives, of
// a job whose ledger is none, and one more.
func (p *prober) probeReleases() {
	var locks, ledgers []string
	for _, job := range []string{"over", "another", "lives", "bad", "more"} {
		locks, ledgers = append(locks, p.keys.Lock(job, "")), append(ledgers, p.keys.Ledger(job))
		p.do("SET", p.keys.Lock(job, ""), "run-"+job)
	}
	p.do("HSET", p.keys.Ledger("lives"), "r:run-lives", "x")
	p.do("SET", p.keys.Ledger("bad"), "no ledger")
	p.do("HSET", p.keys.Ledger("more"), "r:run-another", "x")
	cmd := []any{"EVALSHA", p.scripts.release.SHA, 10}
	for _, key := range append(locks, ledgers...) {
		cmd = append(cmd, key)
	}
	n := p.do(append(cmd, "run-over", "run-before", "run-lives", "run-bad", "run-more")...)
	p.demand(n == int64(2), "%v locks are released", n)
	left, _ := p.do("MGET", locks[0], locks[1], locks[2], locks[3], locks[4]).([]any)
	p.demand(fmt.Sprint(left) == "[<nil> run-another run-lives run-bad <nil>]", "left: %v", left)
}
