//go:build !race

package lock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/solotick/solotick/internal/rds"
)

// probeManyRefused is of a run that outlives a hundred ticks.
func (p *prober) probeManyRefused() {
	p.older()
	p.at(nominal(1))
	run := p.claims(Forbid, 1)
	p.isTold(run, Won)
	for n := int64(2); n <= 120; n++ {
		p.at(nominal(n))
		if n <= 20 {
			p.extend(&fiber{claim: run})
		}
		p.isTold(p.claims(Forbid, n), Overlap)
	}
	p.demand(p.missed() == "", "overlaps are missed: %s", p.missed())
	p.at(nominal(121))
	p.isTold(p.claims(Forbid, 121), Overlap) // the next one came due when the run may have been dead
	p.demand(p.missed() == fmt.Sprintf("%d-%d ", nominal(21)-1, nominal(21)+1), "missed: %q", p.missed())
	behind := strings.Fields(p.open().behind)
	last := fmt.Sprintf("-%d@%d", nominal(121), nominal(121))
	p.demand(len(behind) == 100 && behind[99] == last, "%d ticks stand behind a run, and the last is not %s", len(behind), last)
	p.demand(rds.Millis(p.isTold(p.claims(Forbid, 20), Fired).Overlap) == nominal(20), "the newest that was in nobody's memory is no overlap")
}

// probeManyOlder is of a hundred ticks and more that a run is in the way of, and that came due before it began.
func (p *prober) probeManyOlder() {
	p.older()
	p.at(nominal(2))
	p.isTold(p.claims(Forbid, 1), Won) // what came due as it began overlaps
	for n := int64(2); n <= 102; n++ {
		p.isTold(p.claims(Forbid, n), Overlap)
		p.at(nominal(n + 1))
	}
	p.demand(p.missed() == "" && p.field("overlap") == rds.Itoa(nominal(2)), "missed: %q, overlap %s", p.missed(), p.field("overlap"))
	p.do("FLUSHDB")
	p.older()
	p.at(nominal(200))
	p.isTold(p.claims(Forbid, 1), Won)
	for n := int64(2); n <= 103; n++ {
		p.isTold(p.claims(Forbid, n), Overlap)
	}
	want := fmt.Sprintf("%d-%d %d-%d ", nominal(2)-1, nominal(2)+1, nominal(3)-1, nominal(3)+1)
	p.demand(p.missed() == want && p.field("overlap") == "", "missed: %q, want %q, overlap %s", p.missed(), want, p.field("overlap"))

	p.do("FLUSHDB") // the oldest of them waits for the end of the run, and stays
	p.older()
	p.at(nominal(200))
	p.isTold(p.claims(Queue, 1), Won)
	open := fmt.Sprintf(" %[1]d~+%[1]d:", nominal(2))
	for n := int64(3); n <= 101; n++ {
		open += fmt.Sprintf(" %[1]d~<%[1]d:", nominal(n))
	}
	p.do("HSET", p.ledger(), "tick", nominal(2), "open", p.field("open")+open)
	p.isTold(p.claims(Forbid, 103), Overlap)
	p.demand(strings.HasPrefix(p.open().behind, openIn(open).behind[:30]), "behind a run stand %q", p.field("open"))
}

// probeRefusedWrites: a tick overlaps although full memory refuses to keep that; a Redis that must not write says
// nothing of it.
func (p *prober) probeRefusedWrites() {
	if _, err := p.rdb.Do(context.Background(), "CONFIG", "GET", "maxmemory").Result(); err != nil {
		return // it refuses no write
	}
	p.older()
	p.at(nominal(4))
	p.isTold(p.claims(Forbid, 1), Won)
	defer p.do("CONFIG", "SET", "maxmemory", 0)
	p.do("CONFIG", "SET", "maxmemory", 1)
	p.fails(p.claims(Queue, 3), "OOM")
	p.do("CONFIG", "SET", "maxmemory", 0)
	p.isTold(p.claims(Queue, 2), Queued)
	p.do("CONFIG", "SET", "maxmemory", 1)
	for _, policy := range []Policy{Forbid, Queue} {
		settled := p.isTold(p.claims(policy, 3), Overlap).Overlap
		p.demand(rds.Millis(settled) < nominal(3), "under %s it is told that it is settled", policy)
	}
	p.demand(p.open().behind == fmt.Sprintf("+%[1]d@%[1]d ", nominal(2)), "memory is not full: %q", p.open().behind)
	p.do("CONFIG", "SET", "maxmemory", 0)
	p.do("CONFIG", "SET", "min-replicas-to-write", 1)
	defer p.do("CONFIG", "SET", "min-replicas-to-write", 0)
	p.fails(p.claims(Forbid, 3), "NOREPLICAS")
}

func (p *prober) fails(c Claim, how string) {
	keys, args := p.question(&c, farFuture)
	said, err := p.rdb.EvalSha(context.Background(), p.scripts.acquire.SHA, keys, args...).Result()
	p.demand(err != nil && strings.HasPrefix(err.Error(), how), "%s under %s: %v, %v", how, c.Policy, said, err)
}

// probeOpenTicks: one open tick is never taken for another, nor twice.
func (p *prober) probeOpenTicks() {
	p.older()
	p.do("HSET", p.ledger(), "succeeded", nominal(1))
	p.at(nominal(2))
	p.isTold(p.claims(Allow, 2), Won)
	short := p.claims(Allow, 2) // a number with which that of another tick begins
	short.Tick = rds.FromMillis(nominal(2) / 10)
	short.Kind, short.Member = "backfill", fmt.Sprintf("%d j backfill 1 0 0 x", nominal(2)/10)
	p.do("HSET", p.ledger(), "succeeded", 77)
	p.do("ZADD", p.keys.DueJobs, 1, short.Member)
	p.demand(p.isTold(short, Won).Since.UnixMilli() == 77, "a tick is told what another one began after: %q", p.field("open"))

	p.do("FLUSHDB") // what was refused is not due
	p.older()
	p.at(nominal(3))
	p.do("ZADD", p.keys.DueJobs, 1, rds.Itoa(nominal(3))+" other catchup 1 0 0 x")
	p.isTold(p.claims(Forbid, 1), Won)
	p.isTold(p.claims(Forbid, 2), Overlap)
	p.isTold(p.claims(Queue, 3), Queued)

	p.do("FLUSHDB") // a list with the tick that waits
	p.older()
	p.at(nominal(1))
	p.isTold(p.claims(Queue, 1), Won)
	p.at(nominal(2))
	p.isTold(p.claims(Queue, 2), Queued)
	p.at(nominal(4))
	list := p.claims(Queue, 4)
	for n := int64(2); n <= 4; n++ {
		list.Older = append(list.Older, Past{rds.FromMillis(nominal(n)), rds.FromMillis(nominal(n))})
	}
	p.isTold(list, Queued)
	p.demand(len(strings.Fields(p.open().due)) == 3 && len(p.isDue()) == 3, "due are %q, and %q is open", p.isDue(), p.field("open"))

	p.do("FLUSHDB") // Redis loses a run of T3, its replica has T3 run again, and T3 is refused
	p.older()
	p.at(nominal(5))
	p.isTold(p.claims(Allow, 1), Won)
	lost := p.claims(Allow, 3)
	lost.Again = true
	again := lost.takeover(1)
	p.do("ZADD", p.keys.DueJobs, 1, again)
	p.settles(lost, "requeue", again, 0, 0, 7)
	p.demand(p.open().due == "", "it was due before, and is open as %q", p.field("open"))
	lost.Run, lost.Member, lost.Kind, lost.Attempt = lost.Run+"+", again, "takeover", 2
	p.isTold(lost, Won)
	p.isTold(p.claims(Forbid, 3), Overlap)
	p.settles(lost, "reap", lost.takeover(1), 0, p.clock+walkTTL.Milliseconds())
	p.settles(lost, "finish", lost.takeover(1))
	p.demand(p.open().due == "" && strings.Contains(p.open().behind, rds.Itoa(nominal(3))), "a late end leaves %q open", p.field("open"))
}

// probeBrokenEnd: a settlement that breaks off leaves no run open that is gone.
func (p *prober) probeBrokenEnd() {
	p.older()
	p.at(nominal(3))
	a, b := p.claims(Allow, 1), p.claims(Allow, 2)
	p.isTold(a, Won)
	p.isTold(b, Won)
	p.do("SET", p.keys.DueJobs, "no sorted set")
	args := p.whole(&fiber{claim: a}, []any{"handover", a.Run, a.Job, 0, "", a.due().Member()})
	said, err := p.rdb.EvalSha(context.Background(), p.scripts.settle.SHA, p.settleKeys(&fiber{claim: a}), args...).Result()
	p.demand(err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE"), "handed over: %v, %v", said, err)
	p.do("DEL", p.keys.DueJobs)
	p.demand(p.open().runs == b.Run+" ", "%q live, and should be %s", p.open().runs, b.Run)
}

// probeListInAPause claims a list of which the first came in a pause, or before.
func (p *prober) probeListInAPause() {
	for _, live := range []bool{false, true} {
		p.do("FLUSHDB")
		p.at(nominal(9))
		p.older()
		if live {
			p.isTold(p.claims(Forbid, 1), Won)
		}
		p.do("HSET", p.ledger(), "paused", fmt.Sprintf("%d %d x", nominal(4), nominal(3)))
		c := p.claims(Forbid, 5)
		for n := int64(2); n <= 5; n++ {
			c.Older = append(c.Older, Past{rds.FromMillis(nominal(n)), rds.FromMillis(nominal(n))})
		}
		if live {
			p.isTold(c, Overlap)
			want := fmt.Sprintf("-%[1]d@%[1]d -%[2]d@%[2]d ", nominal(4), nominal(5))
			p.demand(p.open().behind == want, "refused are %q, want %q", p.open().behind, want)
		} else {
			p.isTold(c, Queued)
			due := p.isDue()
			p.demand(len(due) == 2 && slices.IsSorted(due) && p.number("ZSCORE", p.keys.DueJobs, due[0]) == p.clock, "%q is due", due)
		}
		from := int64(0)
		if live {
			from = 1
		}
		want := fmt.Sprintf("%d-%d ", nominal(from), nominal(3))
		p.demand(p.missed() == want, "the gap is %q, want %q", p.missed(), want)
	}
	p.do("FLUSHDB")
	p.at(nominal(9))
	p.older()
	p.do("HSET", p.ledger(), "paused", fmt.Sprintf("%d %d x", nominal(4)+1, nominal(3)))
	c := p.claims(Forbid, 5)
	c.Older = []Past{{rds.FromMillis(nominal(4)), rds.FromMillis(nominal(4))}, {c.Tick, c.Due}}
	p.isTold(c, Queued)
	p.demand(len(p.isDue()) == 1 && strings.HasPrefix(p.isDue()[0], rds.Itoa(nominal(5))), "behind the last instant of a pause %q is due", p.isDue())
}

// probeListPassedOver claims lists with a tick that was passed over before.
func (p *prober) probeListPassedOver() {
	past := func(ns ...int64) (list []Past) {
		for _, n := range ns {
			list = append(list, Past{rds.FromMillis(nominal(n)), rds.FromMillis(nominal(n) + 7)})
		}
		return list
	}
	for _, policy := range []Policy{Forbid, Replace} {
		p.do("FLUSHDB")
		p.at(nominal(9))
		p.older()
		p.isTold(p.claims(Forbid, 1), Won)
		newest := p.claims(Forbid, 5)
		newest.Older, newest.Before = past(4, 5), rds.FromMillis(nominal(3))
		p.isTold(newest, Overlap)
		gap, behind := fmt.Sprintf("%d-%d ", nominal(1), nominal(4)), fmt.Sprintf("-%d@%d -%d@%d ", nominal(4), nominal(4)+7, nominal(5),
			nominal(5)+7)
		p.demand(p.missed() == gap && p.open().behind == behind, "of a list, refused were %q, missed %q", p.open().behind,
			p.missed())
		older := p.claims(policy, 4)
		older.Older = past(3, 4)
		if policy == Forbid {
			p.isTold(older, Overlap)
			p.demand(p.open().behind == behind, "what was passed over was refused: %q", p.open().behind)
		} else {
			p.isTold(older, Queued)
			p.demand(fmt.Sprint(p.isDue()) == fmt.Sprintf("[%d j catchup 1 0 0 %s]", nominal(4), older.Run), "%q is due", p.isDue())
			behind = fmt.Sprintf("-%d@%d ", nominal(5), nominal(5)+7)
			p.demand(p.open().behind == behind, "%q stands behind the run", p.open().behind)
		}
		p.demand(p.missed() == gap, "missed were %q", p.missed())
	}
	p.do("FLUSHDB") // a list with the tick that was claimed last makes it due no second time
	p.at(nominal(9))
	p.older()
	p.do("HSET", p.ledger(), "tick", nominal(2))
	list := p.claims(Forbid, 3)
	list.Older, list.OlderThan = past(2, 3), rds.FromMillis(nominal(2))
	p.isTold(list, Queued)
	p.demand(len(p.isDue()) == 1 && strings.HasPrefix(p.isDue()[0], rds.Itoa(nominal(3))), "%q is due", p.isDue())
	p.do("SET", p.keys.DueJobs, "no sorted set")
	list = p.claims(Forbid, 5)
	list.Older = past(4, 5)
	p.fails(list, "WRONGTYPE")
	p.demand(p.field("tick") == rds.Itoa(nominal(3)), "it is claimed, though nothing can be due")
}

// probeQueueOfDue has a tick asked for under Queue where another has waited and is due again, behind a tick of the
// table that was faster.
func (p *prober) probeQueueOfDue() {
	p.older()
	p.at(nominal(9))
	run := p.claims(Queue, 1)
	p.isTold(run, Won)
	p.isTold(p.claims(Queue, 2), Queued)
	p.settles(run, "finish", "")
	faster := p.claims(Queue, 3)
	p.isTold(faster, Won)
	full := p.claims(Queue, 4)
	p.demand(p.isTold(full, Overlap).Overlap.Equal(full.Tick), "who has a tick refused for good is not told so")
	p.settles(faster, "finish", "")
	waited := p.claims(Queue, 2)
	waited.Member = p.isDue()[0]
	p.isTold(waited, Won)
	for _, m := range []string{" other catchup 1 0 0 x", " j manual 1 0 0 x", " j backfill 1 0 0 x"} { // none of them waits for the end of a run
		p.do("ZADD", p.keys.DueJobs, 0, rds.Itoa(nominal(4))+m)
	}
	p.isTold(p.claims(Queue, 5), Queued)
	p.settles(waited, "finish", "")
	p.do("DEL", p.keys.DueJobs) // the set is lost, and the ledger is not
	run = p.claims(Queue, 6)
	p.isTold(run, Won)
	p.isTold(p.claims(Queue, 7), Queued)

	list := p.claims(Queue, 9)
	list.Older = []Past{{rds.FromMillis(nominal(8)), rds.FromMillis(nominal(8))}, {list.Tick, list.Due}}
	p.isTold(list, Queued)
	due := p.isDue()
	p.demand(len(due) == 3 && strings.HasPrefix(due[0], rds.Itoa(nominal(7))) && p.open().behind == "", "%q is due, and %q waits", due, p.open().behind)
	p.settles(run, "finish", "")
	waited = p.claims(Queue, 7)
	waited.Member = due[0]
	p.isTold(waited, Won)
	p.at(nominal(14))
	p.isTold(p.claims(Queue, 10), Overlap)

	p.isTold(p.claims(Forbid, 11), Overlap)
	list = p.claims(Queue, 13)
	list.Older = []Past{{rds.FromMillis(nominal(12)), rds.FromMillis(nominal(12))}, {list.Tick, list.Due}}
	p.isTold(list, Queued)
}

// probeFullQueue has a tick that was refused under Forbid asked for under Queue, where another waits.
func (p *prober) probeFullQueue() {
	p.older()
	p.at(nominal(9))
	p.isTold(p.claims(Forbid, 1), Won)
	p.isTold(p.claims(Queue, 2), Queued)
	p.isTold(p.claims(Forbid, 3), Overlap)
	p.isTold(p.claims(Queue, 3), Overlap)
	want := fmt.Sprintf("+%[1]d@%[1]d ", nominal(2))
	p.demand(p.open().behind == want && p.field("tick") == rds.Itoa(nominal(3)) && p.field("overlap") == rds.Itoa(nominal(3)), "the ledger is %v",
		p.list("HGETALL", p.ledger()))
}

// probeLimit has a job that may run twice at once.
func (p *prober) probeLimit() {
	p.older()
	p.at(nominal(9))
	limited := func(n int64) Claim {
		c := p.claims(Allow, n)
		c.Limit = 2
		return c
	}
	byHand := limited(2)
	byHand.Member = Due{Tick: byHand.Tick, Job: walkJob, Kind: "manual", Attempt: 1, Nonce: "n"}.Member()
	one := limited(1)
	p.isTold(one, Won)
	two := limited(3)
	p.isTold(two, Won)
	early := limited(10)
	early.Period = 4 * walkTTL
	p.isTold(early, Early)
	late := limited(5)
	late.Known, late.Before = rds.FromMillis(nominal(3)), rds.FromMillis(nominal(4))
	p.isTold(late, Overlap)
	p.demand(p.open().behind == "" && p.field("tick") == rds.Itoa(nominal(5)) && p.field("overlap") == rds.Itoa(nominal(5)), "the ledger is %v",
		p.list("HGETALL", p.ledger()))
	p.demand(p.missed() == fmt.Sprintf("%d-%d ", nominal(3), nominal(5)), "missed before the refused tick: %q", p.missed())
	p.demand(p.other() == fmt.Sprintf("%d-%d:overlapped ", nominal(5)-1, nominal(5)+1), "of the refused tick: %q", p.other())
	p.do("ZADD", p.keys.DueJobs, 1, byHand.Member)
	p.isTold(byHand, Held)
	list := limited(7)
	list.OlderThan = rds.FromMillis(nominal(5))
	list.Older = []Past{{rds.FromMillis(nominal(6)), rds.FromMillis(nominal(6))}, {rds.FromMillis(nominal(7)), rds.FromMillis(nominal(7))}}
	p.isTold(list, Queued)
	p.demand(len(p.isDue()) == 3, "due: %q", p.isDue())
	look := limited(8)
	look.MayNotWin = true
	p.isTold(look, Overlap)
	p.settles(one, "finish", "")
	look = limited(9)
	look.MayNotWin = true
	p.isTold(look, Free)
	p.isTold(byHand, Won)
	p.isTold(p.claims(Allow, 9), Won) // without a limit, as a table of before it has it
	p.settles(two, "finish", "")
	p.demand(p.open().behind == "", "behind: %q", p.open().behind)
}

// probeGaps is of all that a gap begins after.
func (p *prober) probeGaps() {
	for what, c := range map[string]struct {
		fields []any
		known  int64
		from   int64
	}{
		"the ledger's tick":     {nil, 0, walkStart},
		"what the asker heard":  {nil, nominal(2), nominal(2)},
		"when the series began": {[]any{"since", nominal(3) + 1}, nominal(2), nominal(3) + 1},
		"a pause":               {[]any{"pausedTo", nominal(4) + 1}, nominal(2), nominal(4) + 1},
	} {
		p.do("FLUSHDB")
		p.at(nominal(9))
		p.older()
		if c.fields != nil {
			p.do(append([]any{"HSET", p.ledger()}, c.fields...)...)
		}
		claim := p.claims(Forbid, 9)
		claim.Known, claim.Before = rds.FromMillis(c.known), rds.FromMillis(nominal(8))
		want := fmt.Sprintf("%d-%d ", c.from, nominal(9))
		p.demand(p.isTold(claim, Won).Gaps == want && p.field("gaps") == want, "after %s the gap is %q, want %q", what, p.missed(), want)
	}
	p.do("FLUSHDB")
	p.at(nominal(9))
	p.older()
	claim := p.claims(Forbid, 9)
	claim.Known, claim.Before = rds.FromMillis(nominal(8)), rds.FromMillis(nominal(8))
	p.demand(p.isTold(claim, Won).Gaps == "", "a gap without a tick: %q", p.missed())
	p.settles(claim, "finish", "")
	p.at(nominal(10))
	claim = p.claims(Forbid, 10)
	claim.Known, claim.Before = rds.FromMillis(nominal(8)), rds.FromMillis(nominal(9)) // which another replica has claimed
	p.demand(p.isTold(claim, Won).Gaps == "", "a gap without a tick behind another's claim: %q", p.missed())
}

// probeHanded tells ticks that wait from those that were fired.
func (p *prober) probeHanded() {
	p.older()
	p.at(nominal(20))
	takes := func(n int64) Claim {
		c := p.claims(Forbid, n)
		due := p.isDue()
		i := slices.IndexFunc(due, func(m string) bool { return strings.HasPrefix(m, rds.Itoa(nominal(n))) })
		p.demand(i >= 0, "T%d is not due: %q", n, due)
		c.Member = due[i]
		p.isTold(c, Won)
		return c
	}
	hears := func(what string, n int64, want Code) {
		a := p.asks(p.claims(Forbid, n), farFuture)
		p.demand(a.Code == want, "%s: T%d is %s, want %s", what, n, a.Code, want)
	}
	list := p.claims(Forbid, 3)
	list.Older = []Past{{rds.FromMillis(nominal(2)), rds.FromMillis(nominal(2))}, {list.Tick, list.Due}}
	p.isTold(list, Queued)
	hears("a list", 3, Waits)
	byHand := p.claims(Allow, 3)
	byHand.Kind, byHand.Member = "backfill", fmt.Sprintf("%d j backfill 1 0 0 n", nominal(3))
	p.do("ZADD", p.keys.DueJobs, 1, byHand.Member)
	p.isTold(byHand, Won)
	hears("it runs by hand", 3, Waits)
	p.settles(byHand, "finish", "")
	c := takes(2)
	hears("the older one was won", 3, Waits)
	p.settles(c, "handover", c.due().Member(), 0)
	hears("the older one was handed on", 3, Waits)
	p.settles(takes(2), "finish", "")
	c = takes(3)
	hears("it was won", 3, Fired)
	p.settles(c, "handover", c.due().Member(), 0)
	hears("it was handed on", 3, Waits)
	c = takes(3)
	p.settles(c, "reap", c.due().Member()+"x", 0, p.clock+walkTTL.Milliseconds())
	hears("it is to be run again", 3, Waits)
	p.settles(c, "finish", c.due().Member()+"x", 0, 0, 1)
	hears("a late finish took it back", 3, Fired)

	run := p.claims(Forbid, 4)
	p.isTold(run, Won)
	p.isTold(p.claims(Forbid, 5), Overlap)
	hears("the newest was refused", 4, Fired)
	p.settles(run, "handover", run.due().Member(), 0)
	hears("it was set free", 5, Waits)
	hears("it was handed on behind the other", 4, Waits)
	p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, p.isDue()[0], "")
	hears("the other was dropped", 5, Waits)
	p.eval(p.scripts.drop, []string{p.ledger(), p.keys.DueJobs}, p.isDue()[0], "")
	hears("it was dropped", 5, Fired)

	run = p.claims(Allow, 6)
	p.isTold(run, Won)
	p.isTold(p.claims(Forbid, 7), Overlap)
	newer := p.claims(Allow, 8)
	p.isTold(newer, Won)
	p.settles(run, "handover", "")
	p.settles(newer, "handover", newer.due().Member(), 0)
	hears("it was handed on, and an older one set free", 8, Waits)
}

// probeBesideHand: a run by hand takes no tick away from the schedule, and an old tick that succeeds tells of its own
// time.
func (p *prober) probeBesideHand() {
	p.older()
	for i, kind := range []string{"manual", "backfill"} {
		n := int64(10 * (i + 1))
		p.at(nominal(n))
		c := p.claims(Forbid, n)
		c.Kind, c.Run = kind, "hand-"+kind
		c.Member = Due{Tick: c.Tick, Job: walkJob, Kind: kind, Attempt: 1, Nonce: "n"}.Member()
		p.do("ZADD", p.keys.DueJobs, 1, c.Member)
		p.isTold(c, Won)
		for tick := n + 1; tick <= n+2; tick++ {
			p.at(nominal(tick))
			p.isTold(p.claims(Forbid, tick), Overlap)
		}
		p.at(nominal(n+3) - 1)
		got := p.settles(c, "finish", "")
		due := p.isDue()
		p.demand(millisOf(got[2]) == nominal(n+2) && got[3] == rds.Itoa(nominal(n+1))+" ", "beside a run by hand: %v", got)
		p.demand(len(due) == 1 && strings.HasPrefix(due[0], rds.Itoa(nominal(n+2))+" "), "due behind it are %q", due)
		p.do("DEL", p.keys.DueJobs)
	}
	again := func(n int64, last, want int64, what string) {
		p.at(nominal(40))
		p.do("HSET", p.ledger(), "lastSuccess", last)
		c := p.claims(Allow, n)
		c.Kind, c.Run, c.Member = "backfill", "again-"+what, fmt.Sprintf("%d j backfill 1 0 0 %d", nominal(n), last)
		p.do("ZADD", p.keys.DueJobs, 1, c.Member)
		p.isTold(c, Won)
		p.endsAs(c, "succeeded", 1)
		p.demand(p.field("lastSuccess") == rds.Itoa(want), "%s: the last success is %s, want %d", what, p.field("lastSuccess"), want)
	}
	again(30, nominal(29), nominal(30), "newer")
	again(31, nominal(31)+7, nominal(31)+7, "older")
}
