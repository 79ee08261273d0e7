package nemesis

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// audit compares the fates that Redis kept of one job's ticks with the script of the hour. Each tick has one fate; it
// is one that the script expects, and the app's receipts and the history agree with it.
type audit struct {
	*court
	course
	plan    hourJob
	ticks   []time.Time // that the job's schedules have, in order
	changes bool        // at the reload
	sheet   sheet
}

// sheet is what became of one job's ticks.
type sheet struct {
	ticks, fates, right int
	byName              map[string]int
	emptied, stray      int // ticks that were in flight when Redis was emptied: not among ticks; and their fates
	again               int // ticks that were fired before Redis was emptied, and counted as missed after it
	reloaded            int // ticks beside a change of the schedule that have no fate: not among ticks
	each                int // ticks of every-replica, which have none
	counted             int // sum of the job's counters of fates
}

// account judges all ticks until an instant, prints what became of them, and fails the test for each that is not right.
// It returns the sums.
func (h *hour) account(to time.Time) sheet {
	h.t.Helper()
	t := trial{jobs: h.jobs, requests: h.app.Seen(), history: h.history.all(), ledgers: h.kept[2], record: h.record,
		to: to, left: h.left, slots: 1, reserved: map[string]bool{}}
	for _, plan := range h.plans {
		t.reserved[plan.name] = !plan.slot
	}
	for _, r := range h.replicas {
		t.replicas = append(t.replicas, r.name)
	}
	byJob := map[string][]*run{}
	runs := join(t.requests, t.history, time.Now())
	for _, r := range runs {
		byJob[r.job] = append(byJob[r.job], r)
	}
	first := h.next(filepath.Join(h.dir, "first.yaml"), h.began.Add(-time.Minute), h.reload.holds)
	second := h.next(filepath.Join(h.dir, "second.yaml"), h.reload.begins, time.Now())
	v := &verdict{byClass: map[string]*tally{}}
	all := map[string]*sheet{}
	for _, plan := range h.plans {
		a := newAudit(t, v, h.course, plan, byJob[plan.name], byReplica(runs))
		a.ticks = ticksOf(first[plan.name], second[plan.name], a.since())
		if plan.name == theEvery {
			a.everyReplica(to)
		} else {
			a.weigh(to)
		}
		all[plan.name] = &a.sheet
	}
	table, sum := sheets(all)
	h.t.Logf("\n%s\nticks %d, fates %d, right %d", table, sum.ticks, sum.fates, sum.right)
	h.explain(t, v)
	if sum.counted != sum.fates+sum.again+sum.stray {
		h.wrong("%d fates are counted, and the ticks have %d", sum.counted, sum.fates+sum.again+sum.stray)
	}
	if sum.emptied > 2*len(h.plans) || sum.again > len(h.plans) || sum.reloaded > 2*len(h.plans) {
		h.wrong("too many ticks are excused")
	}
	for _, name := range []string{succeeded, failed, timedOut, declined, interrupted, overlapped, missed, paused} {
		if sum.byName[name] == 0 {
			h.wrong("this hour shows nothing of the fate %s", name)
		}
	}
	return sum
}

func newAudit(t trial, v *verdict, c course, plan hourJob, runs []*run, at map[string][]*run) *audit {
	a := &audit{
		court:  &court{trial: t, verdict: v, job: plan.job, runs: runs, at: at, byTick: map[time.Time][]*run{}},
		course: c, plan: plan, sheet: sheet{byName: map[string]int{}},
		changes: slices.Contains([]string{theSuspended, theHeld, theSqueezed, theAdded}, plan.name),
	}
	for _, r := range runs {
		a.byTick[r.tick] = append(a.byTick[r.tick], r)
	}
	return a
}

// since is when Redis first knew the job. Ticks before that have no fate.
func (a *audit) since() time.Time {
	if at := a.kept[0][a.job.name].since; !at.IsZero() {
		return at
	}
	return a.kept[2][a.job.name].since
}

// ticksOf are the ticks of a job by both tables, in order.
func ticksOf(first, second []time.Time, since time.Time) []time.Time {
	all := slices.Concat(first, second)
	slices.SortFunc(all, time.Time.Compare)
	all = slices.CompactFunc(all, time.Time.Equal)
	return slices.DeleteFunc(all, func(t time.Time) bool { return !t.After(since) })
}

// weigh judges all ticks until an instant, and the fates of those after it.
func (a *audit) weigh(to time.Time) {
	before, after := a.kept[0][a.job.name], a.kept[2][a.job.name]
	old, young := a.read(before, a.ticks), a.read(after, a.ticks)
	a.compare(before, old)
	a.compare(after, young)
	for _, l := range []*ledger{before, after} {
		for _, n := range l.counted {
			a.sheet.counted += n
		}
	}
	for _, tick := range a.ticks {
		first, second := old[tick], young[tick]
		switch nothing := first.last() == nil && second.last() == nil; {
		case nothing && tick.After(to):
		case a.inFlight(tick), nothing && a.passed(tick):
			a.sheet.emptied++
			for _, d := range []*decided{first, second} {
				if d.last() != nil {
					a.sheet.stray++
				}
			}
		case nothing && a.changes && a.reload.perhaps(tick):
			a.sheet.reloaded++
		default:
			a.sheet.ticks++
			a.weighTick(tick, first, second)
		}
	}
}

// weighTick judges a tick by its entries before Redis was emptied and after that.
func (a *audit) weighTick(tick time.Time, first, second *decided) {
	find := func(what string, args ...any) { a.find(fmt.Sprintf(what, args...), &run{job: a.job.name, tick: tick}) }
	t := first
	switch {
	case first.last() == nil:
		t = second
	case second.last() == nil:
	case a.countedAgain(tick, second.last()):
		a.sheet.again++
	default:
		find("has the fate %s, and after Redis was emptied %s", first.last().what, second.last().what)
		return
	}
	f := t.last()
	if f == nil {
		find("no fate")
		return
	}
	a.sheet.fates++
	a.sheet.byName[f.what]++
	if len(t.runs) > 1 && !a.neverBegan(t.runs) {
		find("%d fates", len(t.runs))
		return
	}
	if chapter, expected := a.expected(tick); !slices.Contains(expected, f.what) {
		find("%s, where the script expects %s (%s)", f.what, strings.Join(expected, " or "), chapter)
		return
	}
	if wrong := a.unproved(tick, f); wrong != "" {
		find("%s", wrong)
		return
	}
	a.sheet.right++
}

// inFlight reports whether a tick came, or its run or one in its way was under way, as Redis was emptied: its fate may
// be lost, or stand in either ledger.
func (a *audit) inFlight(tick time.Time) bool {
	if tick.After(a.empty.holds) {
		return false
	}
	return !tick.Before(a.empty.begins.Add(-edge)) || slices.ContainsFunc(a.runs, func(r *run) bool {
		concerned := r.tick.Equal(tick) || !a.job.allow && tick.After(r.tick)
		return concerned && !r.begin().After(a.empty.holds) && !r.end().Before(a.empty.begins.Add(-edge))
	})
}

// passed reports whether a tick that had waited for the end of a run was passed by the next one, whose run was under way
// as Redis was emptied: it was due again, and not begun.
func (a *audit) passed(tick time.Time) bool {
	next := slices.IndexFunc(a.ticks, tick.Before)
	return a.job.queue && next >= 0 && len(started(a.byTick[tick])) == 0 &&
		slices.ContainsFunc(a.byTick[a.ticks[next]], func(r *run) bool {
			return !r.begin().After(a.empty.holds) && !r.end().Before(a.empty.begins.Add(-edge))
		})
}

// countedAgain reports whether a tick was the last one before Redis was emptied, and the first replica to come back did
// not know of it.
func (a *audit) countedAgain(tick time.Time, f *fate) bool {
	last := a.ticks[0]
	for _, t := range a.ticks {
		if t.Before(a.empty.begins) {
			last = t
		}
	}
	return f.what == missed && tick.Equal(last)
}

// expected tells which fates a tick may have, and which chapter says so.
func (a *audit) expected(tick time.Time) (name string, fates []string) {
	for _, c := range script {
		if c.expect == nil {
			continue
		}
		if fates := c.expect(a, tick); fates != nil {
			if len(a.byTick[tick]) == 0 && slices.Contains(fates, a.plan.ends) && a.behindARun(tick) { // it began late
				fates = append(fates, overlapped)
			}
			return c.name, fates
		}
	}
	switch {
	case a.surelyOverlapped(tick) && !a.claimedLater(tick):
		return "a run in the way", []string{overlapped}
	case a.behindARun(tick):
		return "perhaps a run in the way", []string{a.plan.ends, overlapped}
	}
	return "nothing in the way", []string{a.plan.ends}
}

// claimedLater reports whether a tick was claimed when no other run of its job was under way any more, as on a busy
// machine.
func (a *audit) claimedLater(tick time.Time) bool {
	own := started(a.byTick[tick])
	return len(own) > 0 && !slices.ContainsFunc(a.runs, func(r *run) bool {
		return r.started() && !r.tick.Equal(tick) && r.arrived.Before(own[0].arrived) && r.ended.After(own[0].claimed())
	})
}

// unproved tells in what a fate is not what the app and the history have of the tick; "" = in nothing.
func (a *audit) unproved(tick time.Time, f *fate) string {
	if f.run == "" {
		switch {
		case len(started(a.byTick[tick])) > 0:
			return f.what + ", and it was fired"
		case f.what == overlapped && !a.metARun(tick, f):
			return "overlapped, and no run was in its way"
		}
		return ""
	}
	r := a.byID(f.run)
	switch {
	case r == nil || !r.tick.Equal(tick):
		return "the fate by a run of another tick"
	case !slices.ContainsFunc(r.settled, func(e entry) bool { return e.outcome == f.what }):
		return f.what + ", and the history has another end of the run"
	case f.what == a.plan.ends:
		if !r.started() || r.failed != (f.what == failed) || r.left != (f.what == timedOut) {
			return f.what + ", and the app knows better"
		}
	}
	if n := len(started(a.byTick[tick])); n > 1 && !a.job.again {
		return "fired twice"
	}
	return ""
}

// everyReplica demands of a job that each replica fires for itself that each did, unless it was struck, and that Redis
// keeps no fate of it.
func (a *audit) everyReplica(to time.Time) {
	for _, l := range a.kept {
		if k := l[a.job.name]; len(k.fates) > 0 || len(k.counted) > 0 {
			a.find("a fate of a job that every replica fires", &run{job: a.job.name, tick: to})
		}
	}
	for _, tick := range a.ticks {
		if tick.After(to) {
			continue
		}
		a.sheet.each++
		for _, name := range a.replicas {
			n := len(slices.DeleteFunc(started(a.byTick[tick]), func(r *run) bool { return r.replica != name }))
			if n > 1 || n == 0 && !a.record.hit(name, tick.Add(-recovery), tick.Add(edge)) {
				a.find(fmt.Sprintf("%s fired it %d times", name, n), &run{job: a.job.name, tick: tick})
			}
		}
	}
}

// sheets is the table of all jobs, and its sum.
func sheets(all map[string]*sheet) (table string, sum sheet) {
	sum.byName = map[string]int{}
	for _, s := range all {
		sum.ticks += s.ticks
		sum.fates += s.fates
		sum.right += s.right
		sum.emptied += s.emptied
		sum.stray += s.stray
		sum.again += s.again
		sum.reloaded += s.reloaded
		sum.each += s.each
		sum.counted += s.counted
		for name, n := range s.byName {
			sum.byName[name] += n
		}
	}
	names := slices.Sorted(maps.Keys(sum.byName))
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "job\tticks\tfates\tright\t%s\tcounted\tin flight when emptied\tcounted again\t"+
		"beside the reload\tby each replica\t\n", strings.Join(names, "\t"))
	line := func(job string, s *sheet) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t", job, s.ticks, s.fates, s.right)
		for _, name := range names {
			fmt.Fprintf(w, "%d\t", s.byName[name])
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t\n", s.counted, s.emptied, s.again, s.reloaded, s.each)
	}
	for _, job := range slices.Sorted(maps.Keys(all)) {
		line(job, all[job])
	}
	line("all", &sum)
	_ = w.Flush() // to memory
	return b.String(), sum
}
