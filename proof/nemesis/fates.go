package nemesis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Fates of ticks that had no run.
const (
	missed     = "missed"
	overlapped = "overlapped"
)

// Outcomes of runs that were cut short, and lived to say so.
const (
	lostLock = "lost_lock"
	shutdown = "shutdown"
)

// forgetful is how long after it answered a Redis that writes to its disk each second may lose what it said.
const forgetful = 2 * time.Second

// account is what became of the fates of a world's ticks.
type account struct {
	ticks, right, wrong, excused int
	byName                       map[string]int // ticks that have one
}

// decided are the entries of one tick: those of its runs or, if it had none, the shortest row in which it lies.
type decided struct {
	runs []*fate
	row  *fate
}

// last is the tick's fate; nil if it has none.
func (d *decided) last() *fate {
	if n := len(d.runs); n > 0 {
		return d.runs[n-1]
	}
	return d.row
}

// weigh compares the fates that Redis keeps of the job's ticks with what became of them. From the first tick that Redis
// saw to the last one that counts, each has one.
func (c *court) weigh() {
	l := c.ledgers[c.job.name]
	from, to := c.from, c.to
	if !l.since.IsZero() && l.since.Before(from) {
		from = l.since.Add(time.Millisecond)
	}
	for _, f := range l.fates {
		if f.tick.After(to) {
			to = f.tick
		}
	}
	ticks := c.job.ticks(from, to)
	if c.job.isLease() {
		ticks = c.questioned(l)
	}
	all := c.read(l, ticks)
	c.compare(l, all)
	for _, tick := range ticks {
		t := all[tick]
		if t.last() == nil && tick.After(c.to) {
			continue // nobody may have asked for it before the replicas ended
		}
		c.fates.ticks++
		if f := t.last(); f != nil {
			c.fates.byName[f.what]++
		}
		switch what, excused := c.weighTick(l, tick, t); {
		case what == "":
			c.fates.right++
		case excused != "":
			c.fates.excused++
			c.excuse(excused, tick)
		default:
			c.fates.wrong++
			c.find(what, &run{job: c.job.name, tick: tick})
		}
	}
}

// read gives each tick its entries. A row counts those of its ticks that had no run and lie in no shorter row.
func (c *court) read(l *ledger, ticks []time.Time) map[time.Time]*decided {
	all := map[time.Time]*decided{}
	for _, tick := range ticks {
		all[tick] = &decided{}
	}
	for i := range l.fates {
		switch f := &l.fates[i]; {
		case all[f.tick] == nil, f.run == "" && all[f.first] == nil:
			c.find("the fate of no tick", &run{job: c.job.name, tick: f.tick})
		case f.run != "":
			all[f.tick].runs = append(all[f.tick].runs, f)
		}
	}
	holds := map[*fate]int{}
	for _, tick := range ticks {
		t := all[tick]
		for i := range l.fates {
			f := &l.fates[i]
			if f.run == "" && !tick.Before(f.first) && !tick.After(f.tick) &&
				(t.row == nil || f.tick.Sub(f.first) < t.row.tick.Sub(t.row.first)) {
				t.row = f
			}
		}
		if len(t.runs) == 0 && t.row != nil {
			holds[t.row]++
		}
	}
	for i := range l.fates {
		if f := &l.fates[i]; f.run == "" && f.count != holds[f] && !(c.memory == forgets && c.forgot(f.first, f.at)) {
			c.find("a row of fates counts other ticks than it has", &run{job: c.job.name, tick: f.tick})
		}
	}
	return all
}

// compare demands that each counter is as many as the entries of its fate. A tick whose first run had never begun was
// counted with that one.
func (c *court) compare(l *ledger, all map[time.Time]*decided) {
	kept := map[string]int{}
	for i := range l.fates {
		f := &l.fates[i]
		t := all[f.tick]
		switch {
		case f.run == "":
			kept[f.what] += f.count
		case t == nil || t.runs[0] == f || !c.neverBegan(t.runs):
			kept[f.what]++
		}
	}
	names := maps.Clone(kept)
	maps.Copy(names, l.counted)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if kept[name] != l.counted[name] {
			c.find(fmt.Sprintf("%d ticks are %s, and %d are counted", kept[name], name, l.counted[name]),
				&run{job: c.job.name, tick: c.to})
		}
	}
}

// weighTick tells what is wrong with a tick's fate, and what excuses that; "" = nothing.
func (c *court) weighTick(l *ledger, tick time.Time, t *decided) (what string, why cause) {
	switch f := t.last(); {
	case f == nil:
		what = "no fate"
		if c.uncounted(l, tick) {
			why = notCounted
		}
	case len(t.runs) > 1:
		what = "more than one fate"
		if c.neverBegan(t.runs) && c.contradicted(tick, f) == "" {
			why = neverBegun
		}
	default:
		what = c.contradicted(tick, f)
	}
	if what != "" && c.memory == forgets && c.forgot(tick, c.over(tick)) {
		why = forgotFates
	}
	return what, why
}

// uncounted reports whether a tick was missed, and no newer one came due by which somebody would have counted it. Where
// apps ask, that is the next one that an app gets.
func (c *court) uncounted(l *ledger, tick time.Time) bool {
	if c.job.asks && tick.After(l.newest) {
		return !slices.ContainsFunc(c.runs, func(r *run) bool { return !r.tick.Before(tick) })
	}
	passed := tick.After(l.newest) || slices.ContainsFunc(l.gaps, func(g gap) bool {
		return g.from.Before(tick) && tick.Before(g.to)
	})
	return passed && len(started(c.byTick[tick])) == 0 && tick.Add(c.job.every).After(c.left)
}

// neverBegan reports whether all but the last run of a tick were taken for dead with their replica, or while there was
// no Redis, and had never begun. So their replica could give the tick back when it went on, although it had its fate.
func (c *court) neverBegan(runs []*fate) bool {
	return !slices.ContainsFunc(runs[:len(runs)-1], func(f *fate) bool {
		r := c.byID(f.run)
		return f.what != interrupted || r == nil || r.started() || !c.record.struck(r.replica, r.tick.Add(-edge), f.at)
	})
}

// forgot reports whether Redis was killed in such a stretch of time, or so soon after it that it may have lost what it
// had said.
func (c *court) forgot(from, to time.Time) bool {
	return c.record.gone(from.Add(-edge), to.Add(forgetful))
}

// over is when the last run of a tick ended; the tick itself, if it had none.
func (c *court) over(tick time.Time) time.Time {
	end := tick
	for _, r := range c.byTick[tick] {
		if r.end().After(end) {
			end = r.end()
		}
	}
	return end
}

// byID is a run of the job; nil if there is none of that name.
func (c *court) byID(id string) *run {
	if at := slices.IndexFunc(c.runs, func(r *run) bool { return r.id == id }); at >= 0 {
		return c.runs[at]
	}
	return nil
}

// itsFateIs begins a finding; the fate follows.
const itsFateIs = "its run succeeded, and its fate is "

// contradicted tells in what the fate of a tick is not what the app, the history and the nemesis know of it; "" = in
// nothing.
func (c *court) contradicted(tick time.Time, f *fate) string {
	runs := started(c.byTick[tick])
	for _, r := range runs {
		if c.surelyDone(r) && (f.run != r.id || f.what != succeeded) {
			return itsFateIs + f.what
		}
		if c.job.asks && c.reported(r, failed) && (f.run != r.id || f.what != failed) {
			return "its app reported that it failed, and its fate is " + f.what
		}
	}
	if f.run != "" {
		return c.contradictedRun(tick, f)
	}
	switch {
	case f.what == interrupted: // nobody ran it again before the next one was due
		if !slices.ContainsFunc(c.byTick[tick], func(r *run) bool {
			return r.outcome() == interrupted && c.job.again
		}) {
			return "interrupted, and no run was"
		}
	case f.what != missed && f.what != overlapped:
		return f.what + ", which nobody did"
	case len(runs) > 0:
		return f.what + ", and it was fired"
	case f.what == overlapped && (c.job.isLease() || !c.metARun(tick, f)):
		return "overlapped, and no run was in its way"
	case f.what == missed && c.surelyOverlapped(tick):
		return "missed, and a run was in its way"
	case f.what == missed && c.job.isLease():
		if !c.unheardLease(f) {
			return noLeaseMissed
		}
	case f.what == missed && c.job.asks && !c.explained(tick, f):
		return "missed, and the reason is said to be: " + f.detail
	}
	return ""
}

// contradictedRun is contradicted for the fate that a run gave its tick.
func (c *court) contradictedRun(tick time.Time, f *fate) string {
	r := c.byID(f.run)
	if r == nil || !r.tick.Equal(tick) {
		return "the fate by a run of another tick"
	}
	finished := r.started() && !r.left && !r.failed
	if !slices.ContainsFunc(r.settled, func(e entry) bool { return e.outcome == f.what }) {
		// Its replica may have said only after it was taken for dead that it had finished. The history keeps what came
		// first.
		if late := r.outcome() == interrupted && finished && f.what == succeeded; !late {
			return f.what + ", and the history has another end of the run"
		}
	}
	if slices.ContainsFunc(started(c.byTick[tick]), func(s *run) bool { return s != r && s.arrived.After(f.at) }) {
		return "its fate is older than its last run"
	}
	harmed := len(c.record.on(r.replica, r.begin().Add(-edge), f.at)) > 0 ||
		len(c.record.on(theRedis, r.begin().Add(-edge), f.at)) > 0
	switch f.what {
	case succeeded:
		if !finished {
			return "succeeded, and the app did not finish it"
		}
	case failed:
		if finished && !harmed {
			return "failed, and the app finished it"
		}
	case interrupted:
		if finished && !c.untold(r, f.at) && !c.silent(r) {
			return "interrupted, and the app finished it"
		}
	case notStarted:
		if r.started() {
			return "not started, and it was"
		}
	case lostLock, shutdown:
		if !harmed {
			return f.what + ", and nothing had happened"
		}
	default:
		return f.what + ", which nobody did"
	}
	return ""
}

// surelyDone reports whether the app finished a run, and nothing kept its replica from saying so.
func (c *court) surelyDone(r *run) bool {
	if c.job.async {
		return c.reported(r, succeeded)
	}
	return r.started() && !r.left && !r.failed && !c.record.touched(r.replica, r.begin().Add(-edge), r.end().Add(edge))
}

// metARun reports whether the run that a fate names, or where it names none, some run was under way when the tick came
// due.
func (c *court) metARun(tick time.Time, f *fate) bool {
	if f.behind == "" {
		return c.overlapped(tick)
	}
	r := c.byID(f.behind)
	return r != nil && c.inTheWay(r, tick)
}

// surelyOverlapped reports whether a run was under way for long before and after a tick that skips then, on a replica
// to which nothing happened: so that one asked for the tick. Where apps ask, one was told so.
func (c *court) surelyOverlapped(tick time.Time) bool {
	if c.job.asks && !c.toldOfARun(tick) {
		return false
	}
	return !c.job.allow && !c.job.queue && slices.ContainsFunc(c.runs, func(r *run) bool {
		return r.started() && !r.tick.Equal(tick) && r.arrived.Add(edge).Before(tick) &&
			r.ended.After(tick.Add(edge)) && !c.record.touched(r.replica, r.begin().Add(-edge), r.end().Add(edge))
	})
}

// add sums accounts up.
func (a *account) add(o account) {
	a.ticks += o.ticks
	a.right += o.right
	a.wrong += o.wrong
	a.excused += o.excused
	for name, n := range o.byName {
		a.byName[name] += n
	}
}

// fateFigures is the table of the accounts of all worlds, with their sum.
func fateFigures(accounts map[string]account) string {
	sum := account{byName: map[string]int{}}
	for _, a := range accounts {
		sum.add(a)
	}
	names := slices.Sorted(maps.Keys(sum.byName))
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "redis\tticks\tright\texcused\twrong\t%s\t\n", strings.Join(names, "\t"))
	line := func(world string, a account) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t", world, a.ticks, a.right, a.excused, a.wrong)
		for _, name := range names {
			fmt.Fprintf(w, "%d\t", a.byName[name])
		}
		fmt.Fprintln(w)
	}
	for _, world := range slices.Sorted(maps.Keys(accounts)) {
		line(world, accounts[world])
	}
	line("all", sum)
	_ = w.Flush() // to memory
	return b.String()
}
