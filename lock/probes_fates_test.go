//go:build !race

package lock

import (
	"fmt"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// ended is a word of what the ledger keeps of the ticks that ended: the newest, how many in a row have failed, since when.
func (p *prober) ended(word int) string {
	return append(strings.Fields(p.field("ended")), "", "", "")[word]
}

// probeFates ends runs in all ways, and asks what is kept of their ticks.
func (p *prober) probeFates() {
	p.older()
	kept := func() int {
		return strings.Count(fmt.Sprint(p.do("XRANGE", p.keys.History(walkJob), "-", "+")), "[tick ")
	}
	stands := func(what string, streak, ended int64, answer []any, before, after int64) {
		p.demand(p.ended(1) == rds.Itoa(streak) && p.ended(0) == rds.Itoa(nominal(ended)), "%s: %s in a row have failed, up to %s",
			what, p.ended(1), p.ended(0))
		p.demand(millisOf(answer[4]) == before && millisOf(answer[5]) == after, "%s: %v, want %d before and %d now", what, answer, before, after)
	}
	newest := "" // run of the schedule that is to be kept
	end := func(n int64, how string, again int) []any {
		p.at(nominal(n))
		c := p.claims(Forbid, n)
		newest = c.Run
		p.isTold(c, Won)
		return p.endsAs(c, how, again)
	}
	shows := func(what string) {
		p.demand(p.field("scheduled") == "entry "+newest, "%s: the last run of the schedule is %q, want that of %s", what, p.field("scheduled"), newest)
	}
	stands("a success", 0, 1, end(1, "succeeded", 0), 0, 0)
	stands("a failure", 1, 2, end(2, "failed", 0), 0, 1)
	since := p.ended(2)
	stands("another one", 2, 3, end(3, "failed", 0), 1, 2)
	p.demand(since == rds.Itoa(nominal(2)) && p.ended(2) == since && p.field("lastFailure") == rds.Itoa(nominal(3)) &&
		p.field("lastSuccess") == rds.Itoa(nominal(1)), "failing since %s, last %s, succeeded at %s", p.ended(2), p.field("lastFailure"),
		p.field("lastSuccess"))
	shows("a failure")
	stands("one that the app has declined", 2, 3, end(4, "declined", 0), 2, 2)
	shows("one that the app has declined")
	newestOf := fmt.Sprint(p.do("XREVRANGE", p.keys.History(walkJob), "+", "-", "COUNT", 1))
	p.demand(strings.Contains(newestOf, "[tick entry "+newest+"]") && p.do("XLEN", p.keys.History(walkJob)) == int64(4), "the history ends with %s", newestOf)
	p.demand(p.field("fate:succeeded") == "1" && p.field("fate:failed") == "2" && p.field("fate:declined") == "1" && kept() == 4,
		"four ticks have the fates %v", p.list("HGETALL", p.ledger()))

	once := func(n int64, how string, again int) []any { // by hand
		c := p.claims(Forbid, n)
		c.Kind, c.Member = "backfill", fmt.Sprintf("%d j backfill 1 0 0 x%d", nominal(n), kept())
		c.Run = fmt.Sprintf("once-%d", kept())
		p.do("ZADD", p.keys.DueJobs, 1, c.Member)
		p.isTold(c, Won)
		return p.endsAs(c, how, again)
	}
	stands("the tick before fails once more", 2, 3, once(2, "failed", 1), 0, 0)
	shows("an older tick once more")
	stands("it fails once more", 2, 3, once(3, "failed", 1), 2, 2)
	stands("an older one succeeds", 0, 3, once(3, "succeeded", 1), 2, 0)
	p.demand(p.field("fate:failed") == "2" && p.field("fate:succeeded") == "1" && kept() == 7, "what ran once more has the fates %v",
		p.list("HGETALL", p.ledger()))
	newest = "once-6"
	once(4, "", 0)
	p.demand(kept() == 7, "a run by hand has a fate")
	shows("a run by hand")
	newest = "once-7"
	stands("one fails once more that had neither succeeded nor failed", 0, 4, once(4, "failed", 1), 0, 0)

	again := func(what string, c Claim, verb string, before, after int64) {
		a := p.settles(c, verb, "")
		p.demand(a[0] == "NONE" && millisOf(a[4]) == before && millisOf(a[5]) == after, "%s asks again: %v, want %d and %d", what, a, before, after)
	}
	ends := func(n int64, how string) Claim {
		p.at(nominal(n))
		c := p.claims(Forbid, n)
		p.isTold(c, Won)
		p.endsAs(c, how, 0)
		return c
	}
	bad := ends(5, "failed")
	again("who has failed", bad, "finish", 0, 1)
	good := ends(6, "succeeded")
	again("who has succeeded", good, "finish", 1, 0)
	again("who has failed, when a newer tick has ended,", bad, "finish", 0, 0)

	p.at(nominal(7))
	gone := p.claims(Forbid, 7)
	p.isTold(gone, Won)
	p.settles(gone, "reap", "", 0, p.clock+walkTTL.Milliseconds(), 0, 0, "failed")
	p.demand(p.ended(1) == "1", "taken over: %v", p.list("HGETALL", p.ledger()))
	late := p.settles(gone, "finish", "")
	p.demand(late[0] == "LATE" && millisOf(late[4]) == 0 && millisOf(late[5]) == 0, "who was taken over: %v", late)
	again("who was taken over", gone, "finish", 0, 0)
	p.probeTakeoverAskedAgain()
}

// probeTakeoverAskedAgain has a watcher ask again whether it has taken a run over, and another one ask for the first
// time. The tick has failed by then, and it fails once, though it may be given back and fail again.
func (p *prober) probeTakeoverAskedAgain() {
	told := func(what string, c Claim, again, watcher, code string, before, after int64) {
		a := p.settles(c, "reap", again, 0, 7, watcher, 0, "failed")
		p.demand(a[0] == code && millisOf(a[4]) == before && millisOf(a[5]) == after, "%s: %v, want %s, %d and %d", what, a, code, before, after)
	}
	row, kept := rds.Number(p.ended(1)), 0
	for n, again := range []string{"", "x"} {
		p.at(nominal(int64(8 + n)))
		c := p.claims(Forbid, int64(8+n))
		p.isTold(c, Won)
		p.do("ZADD", p.keys.Running, 7, c.Run+" "+walkJob)
		if again != "" {
			again = c.takeover(1) + "x"
		}
		before, after := row, row+1
		if again != "" { // its tick has not ended
			before, after = 0, 0
		}
		told("a takeover", c, again, "w1", "OK", before, after)
		told("its watcher", c, again, "w1", "OK", before, after)
		told("another watcher", c, again, "w2", "MOVED", 0, 0)
		p.lasts(p.keys.Memo(c.Run), 24*time.Hour)
		if again != "" {
			continue
		}
		back := c.due()
		p.settles(c, "abandon", back.Member())
		told("its watcher, when the run was late", c, again, "w1", "OK", before, after)
		p.lasts(p.keys.Memo(c.Run), 24*time.Hour)
		ends := func(how string, want int64) {
			d := p.claims(Forbid, 8)
			d.Run, d.Member = fmt.Sprintf("back-%d", kept), back.Member()
			kept++
			p.do("ZADD", p.keys.DueJobs, 1, d.Member)
			p.isTold(d, Won)
			p.endsAs(d, how, 0)
			row = rds.Number(p.ended(1))
			p.demand(row == want, "a tick that was given back has %s, and %d are in a row, want %d", how, row, want)
		}
		ends("failed", row+1)
		ends("succeeded", 0)
		ends("failed", 1)
		told("its watcher, when a run has ended since", c, again, "w1", "OK", 0, 0)
	}
}

// probeAgeOfHistory registers a job that has a history.
func (p *prober) probeAgeOfHistory() {
	for _, key := range []string{p.keys.History(walkJob), p.keys.Failures(walkJob)} {
		p.do("XADD", key, "*", "run", "an entry")
		p.registers("a", farFuture)
		p.lasts(key, 90*24*time.Hour)
	}
}

// endsAs finishes a run.
func (p *prober) endsAs(c Claim, how string, again int) []any {
	failed := ""
	if how == "failed" {
		failed = how
	}
	return p.eval(p.scripts.settle, p.settleKeys(&fiber{claim: c}), "finish", c.Run, walkJob, 0, p.keys.Events, "entry "+c.Run, 500, how, 0, 0, 0,
		failed, "", 0, again)
}

// probeEvidenceAndFate has a run taken over, and then its replica says that it had never started: its tick keeps the
// fate that was counted.
func (p *prober) probeEvidenceAndFate() {
	for _, dropped := range []bool{false, true} {
		p.do("FLUSHDB")
		p.older()
		p.at(nominal(1))
		c := p.claims(Forbid, 1)
		p.isTold(c, Won)
		p.settles(c, "reap", "", 0, p.clock+walkTTL.Milliseconds())
		p.demand(p.field("fate:interrupted") == "1", "taken over: %v", p.list("HGETALL", p.ledger()))
		p.settles(c, "abandon", c.due().Member())
		p.demand(p.open().counted == rds.Itoa(nominal(1))+" ", "counted is %q", p.open().counted)
		if dropped {
			p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, p.isDue()[0], Missed)
		} else {
			d := p.claims(Forbid, 1)
			d.Run, d.Member, d.Kind = "again", p.isDue()[0], "handover"
			p.isTold(d, Won)
			p.endsAs(d, "succeeded", 0)
		}
		p.demand(p.field("gaps") == "" && p.open().counted == "" && p.field("fate:interrupted") == "1" && p.field("fate:succeeded") == "",
			"it has another fate: %v", p.list("HGETALL", p.ledger()))
	}
	for _, kind := range []string{"manual", "backfill", "timer"} { // which have no fate that could be counted again
		p.do("FLUSHDB")
		p.older()
		p.at(nominal(1))
		c := p.claims(Allow, 1)
		c.Kind, c.Member = kind, fmt.Sprintf("%d j %s 1 0 0 n", nominal(1), kind)
		p.do("ZADD", p.keys.DueJobs, 1, c.Member)
		p.isTold(c, Won)
		p.settles(c, "reap", "", 0, p.clock+walkTTL.Milliseconds())
		got := p.settles(c, "abandon", c.due().Member())
		p.demand(got[0] == "LATE" && len(p.isDue()) == 1 && p.open().counted == "", "%s: %v, counted %q", kind, got, p.open().counted)
	}
}

// probeOverlaps: the ticks that overlap with a run are kept as one entry, and each is counted.
func (p *prober) probeOverlaps() {
	p.older()
	for i, n := range []int64{1, 5} {
		p.at(nominal(n))
		run := p.claims(Forbid, n)
		p.isTold(run, Won)
		for _, tick := range []int64{n + 1, n + 2} {
			p.at(nominal(tick))
			p.isTold(p.claims(Forbid, tick), Overlap)
		}
		p.settles(run, "finish", "")
		entry := fmt.Sprintf(`{"first":%d,"tick":%d,"count":2,"outcome":"overlapped","behind":"%s","ended":%d}`, nominal(n+1), nominal(n+2), run.Run, p.clock)
		kept := fmt.Sprint(p.do("XRANGE", p.keys.History(walkJob), "-", "+"))
		p.demand(strings.Contains(kept, "[tick "+entry+"]") && p.field("fate:overlapped") == rds.Itoa(int64(2*i+2)), "%s are counted, want two more; kept %s, and not %s",
			p.field("fate:overlapped"), kept, entry)
	}
	p.at(nominal(17))
	failing := p.claims(Forbid, 17)
	p.isTold(failing, Won)
	p.at(nominal(18))
	p.isTold(p.claims(Forbid, 18), Overlap)
	p.endsAs(failing, "failed", 0)
	p.demand(p.do("XLEN", p.keys.Failures(walkJob)) == int64(1), "failed: %v", p.do("XRANGE", p.keys.Failures(walkJob), "-", "+"))
	run := p.claims(Queue, 28)
	p.at(nominal(29))
	p.isTold(run, Won)
	p.isTold(p.claims(Queue, 29), Queued)
	p.settles(run, "finish", "")
	p.demand(len(p.isDue()) == 1 && p.field("overlap") == rds.Itoa(nominal(18)), "due behind a run: %q, overlap %s", p.isDue(), p.field("overlap"))
}

// probeBounds: entries and failures are kept up to a number. Redis drops whole nodes of a stream, of a hundred entries.
func (p *prober) probeBounds() {
	history, failures := p.keys.History(walkJob), p.keys.Failures(walkJob)
	fill := func(key string) {
		p.do("EVAL", "for i = 1, 800 do redis.call('XADD', KEYS[1], '*', 'run', 'x') end", 1, key)
	}
	bounded := func(key string, most int64) {
		n, _ := p.do("XLEN", key).(int64)
		p.demand(n >= most && n <= most+200, "%d entries in %s", n, key)
	}
	p.older()
	fill(history)
	fill(failures)
	p.at(nominal(1))
	c := p.claims(Forbid, 1)
	p.isTold(c, Won)
	p.endsAs(c, "failed", 0)
	bounded(history, 500)
	bounded(failures, 125)
	fill(history)
	p.do("HSET", p.ledger(), "gaps", "10-20 ")
	p.eval(p.scripts.book, []string{p.ledger(), history, p.keys.Memo("b")}, "10-20 ", 1, 500, Missed, 1, "an entry")
	bounded(history, 500)
	fill(history)
	p.do("ZADD", p.keys.DueJobs, 0, fmt.Sprintf("%d j manual 1 0 0 one", nominal(2)))
	p.eval(p.scripts.cancel, []string{p.ledger(), p.keys.Memo("c"), p.keys.Acts, p.keys.DueJobs, history}, p.keys.Events, walkJob,
		p.clock, 500, "act")
	bounded(history, 500)
}

// probeSince demands that all runs of a tick are told which tick had succeeded before it was claimed first.
func (p *prober) probeSince() {
	p.older()
	claims := func(n int64, member string, want int64) Claim {
		p.at(max(p.clock, nominal(n)))
		c := p.claims(Allow, n)
		if c.Member = member; member != "" {
			c.Kind, c.Attempt = "takeover", 2
		}
		for range 2 { // the answer may be lost
			since := int64(0)
			if a := p.isTold(c, Won); !a.Since.IsZero() {
				since = rds.Millis(a.Since)
			}
			p.demand(since == want, "%s %q is told %d, want %d", p.name(nominal(n)), member, since, want)
		}
		return c
	}
	first, second := claims(1, "", 0), claims(2, "", 0)
	p.endsAs(first, "succeeded", 0)
	third := claims(3, "", nominal(1))
	p.endsAs(third, "succeeded", 0)
	p.demand(p.field("succeeded") == rds.Itoa(nominal(3)), "the newest success is %s", p.field("succeeded"))

	// One that is run again goes on from where it began, even though a newer one has succeeded meanwhile.
	fourth, fifth := claims(4, "", nominal(3)), claims(5, "", nominal(3))
	p.endsAs(fifth, "succeeded", 0)
	fourth.Again = true
	again := fourth.takeover(0)
	p.settles(fourth, "requeue", again)
	p.demand(p.open().since == fmt.Sprintf(" %d:0 %d:%d", nominal(2), nominal(4), nominal(3)), "kept of the ticks: %q", p.open().since)
	p.endsAs(claims(4, again, nominal(3)), "succeeded", 0)
	p.endsAs(second, "succeeded", 0)
	p.demand(p.field("succeeded") == rds.Itoa(nominal(5)) && p.open().since == "", "the newest success is %s, kept of the ticks: %q",
		p.field("succeeded"), p.open().since)

	// A tick that ended before a newer one did, and is run once more, has nothing before it.
	asked := fmt.Sprintf("%d j backfill 1 0 0 asked", nominal(2))
	p.do("ZADD", p.keys.DueJobs, 1, asked)
	p.endsAs(claims(2, asked, 0), "succeeded", 1)
	p.endsAs(claims(6, "", nominal(5)), "failed", 0)
	given := claims(7, "", nominal(5))
	given.Again = true
	p.settles(given, "requeue", given.takeover(0))
	p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, given.takeover(0), Missed)
	p.demand(p.open().since == "", "kept of a tick that was dropped: %q", p.open().since)

	// A request to run a tick again says nothing of the run of that tick that lives.
	living, byHand := claims(8, "", nominal(5)), fmt.Sprintf("%d j backfill 1 0 0 asked", nominal(8))
	p.do("ZADD", p.keys.DueJobs, 1, byHand)
	p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, byHand, "")
	p.demand(p.open().since == fmt.Sprintf(" %d:%d", nominal(8), nominal(5)), "kept of a tick that runs: %q", p.open().since)
	p.do("ZADD", p.keys.DueJobs, 1, byHand)
	p.do("DEL", p.keys.Lock(walkJob, fmt.Sprintf(":%d", nominal(8)))) // it may live on without its lock
	p.endsAs(claims(8, byHand, nominal(5)), "failed", 0)
	p.demand(p.open().runs == living.Run+" ", "beside the end of another run of its tick, these live: %q", p.open().runs)
	p.endsAs(living, "failed", 0)

	// A backfill may have any number of ticks, and they hide none of the table.
	for i, c := range []struct {
		how, due string
		left     int
	}{{"~", "", 500}, {"*", "", 499}, {"*", " 4~:4", 499}} {
		n, how := 9+int64(i), c.how
		p.do("HSET", p.ledger(), "open", " 3=lives:3"+c.due+strings.Repeat(" 1"+how+":1", 500)+" 2"+how+":2")
		p.at(nominal(n))
		p.isTold(p.claims(Allow, n), Won)
		kept := " 3:3" + strings.Replace(c.due, "~", "", 1) + strings.Repeat(" 1:1", c.left) + fmt.Sprintf(" 2:2 %d:%d", nominal(n), nominal(5))
		p.demand(p.open().since == kept, "of %q what is kept is %d bytes long", how, len(p.open().since))
	}
}
