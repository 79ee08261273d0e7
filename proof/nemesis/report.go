package nemesis

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/results"
)

const (
	// maxExplained bounds how many violations are told in full.
	maxExplained = 5
	// maxLines bounds what is cited of each log.
	maxLines = 20
)

// unsafe are the findings that no machine explains, however busy it is.
var unsafe = []string{"double", "token did not grow", "beside another run", "two apps at work",
	"called while another app could work", "over while its app could work",
	"more runs than slots", "no tick of the job", "claimed, and no app had asked", "fired twice",
	"started twice", "told twice", "no time of its schedule", "claimed after it was deleted"} // of timers

// wrong fails the test. On a machine that does not keep time it has the test count as not run, since all that the judge
// asks has to be in time; with CI=true, or to be recorded, that fails it, too.
func (w *world) wrong(format string, args ...any) {
	w.t.Helper()
	if !w.record.busy() {
		w.t.Errorf(format, args...)
		return
	}
	w.t.Logf("not judged: "+format, args...)
	w.unjudged++
}

// forbids is how a finding fails the test.
func (w *world) forbids(what string) (fail func(format string, args ...any)) {
	if slices.Contains(unsafe, what) {
		return w.t.Errorf
	}
	return w.wrong
}

// needsTime ends the test of a world on such a machine.
func (w *world) needsTime() {
	w.t.Helper()
	switch {
	case w.unjudged == 0:
	case os.Getenv(results.Variable) != "":
		w.t.Error("no record of a machine that does not keep time")
	default:
		needs.That(w.t, "a machine that keeps time", errors.New(w.record.figuresOfTime()))
	}
}

// explain fails the test for each violation, with all that is known of the first few.
func (w *world) explain(t trial, v *verdict) {
	w.t.Helper()
	w.t.Log(t.record.figuresOfTime())
	excused, ticks := 0, 0
	for _, class := range v.byClass {
		ticks += class.ticks
	}
	for i, f := range v.findings {
		if stood, late := w.late(t.record, f); late {
			w.t.Logf("the machine stood still for %s: %s: %s %s", stood, f.what, f.job, stamp(f.tick))
			v.of(t.record.classAt(f.tick)).forgive(f.what)
			excused++
			continue
		}
		w.forbids(f.what)("%s: %s %s (%s)", f.what, f.job, stamp(f.tick), t.record.classAt(f.tick))
		if i < maxExplained {
			w.t.Log(w.story(t, f))
		}
	}
	if most := max(fewLate, ticks/100); excused > most {
		w.wrong("a machine that stood still may explain %d findings, and explains %d", most, excused)
	}
}

// blame tells how many ticks each cause has excused, and fails the test where they are too many. It tells which those
// are.
func (w *world) blame(v *verdict) {
	w.t.Helper()
	for _, l := range v.leniencies() {
		w.t.Logf("excused by %s: %d of %d ticks, %d at most (%s)", l.cause, l.n, l.of, l.most, l.class)
		if l.n <= l.most {
			continue
		}
		w.wrong("too many ticks are excused by %s: %d of %d (%s)", l.cause, l.n, l.of, l.class)
		for _, e := range v.excuses {
			if e.class == l.class && e.cause == l.cause {
				w.t.Logf("excused by %s: %s %s", e.cause, e.job, stamp(e.tick))
			}
		}
	}
}

// story is what the app, the history, the nemesis and the replicas know of a tick.
func (w *world) story(t trial, f finding) string {
	var b strings.Builder
	near := func(at time.Time) bool { return at.Sub(f.tick).Abs() < 2*ttl }
	for _, q := range t.requests {
		if q.Job == f.job && near(q.Tick) {
			fmt.Fprintf(&b,
				"  app: tick %s from %s, run %s, kind %s, attempt %d, token %d, arrived %s, ended %s, left %t\n",
				clock(q.Tick), q.Replica, q.Run, q.Kind, q.Attempt, q.Token, clock(q.Arrived), clock(q.Ended), q.Left)
			if w := q.Work; w.Heartbeat > 0 {
				fmt.Fprintf(&b, "    work: from %s to %s, might last until %s, woken up %s late; stopped by %d %s; "+
					"reported %q, answered %d\n", clock(w.Began), clock(w.Ended), clock(w.Until), w.Late, w.Stop, w.Why,
					w.Report, w.Answer)
			}
		}
	}
	for _, q := range t.questions {
		if q.Job == f.job && near(q.Sent) {
			fmt.Fprintf(&b, "  asked of %s: tick %s, now %t, sent %s, answered %s: %d %s %s\n",
				q.Replica, clock(q.Tick), q.Now, clock(q.Sent), clock(q.Answered), q.Status, q.Reason, q.By)
		}
	}
	for _, e := range t.history {
		if e.job == f.job && near(e.tick) {
			fmt.Fprintf(&b, "  history %s: tick %s of %s, run %s, kind %s, attempt %d: %s %s\n",
				clock(e.at), clock(e.tick), e.replica, e.run, e.kind, e.attempt, e.outcome, e.detail)
		}
	}
	if l := t.ledgers[f.job]; l != nil {
		for _, k := range l.fates {
			if near(k.tick) || k.run == "" && k.first.Before(f.tick.Add(2*ttl)) && k.tick.After(f.tick.Add(-2*ttl)) {
				fmt.Fprintf(&b, "  fate %s: %s, tick %s of %d from %s, run %s, behind %s\n",
					clock(k.at), k.what, clock(k.tick), k.count, clock(k.first), k.run, k.behind)
			}
		}
	}
	for _, s := range t.record.strikes {
		if s.touches(f.tick.Add(-2*ttl), f.tick.Add(2*ttl)) {
			fmt.Fprintf(&b, "  nemesis: %s %s from %s to %s\n", s.target, s.harm, clock(s.from), clock(s.to))
		}
	}
	for _, r := range w.replicas {
		for _, log := range r.logs {
			for _, line := range grep(log, `"job":"`+f.job+`"`, stamp(f.tick)) {
				fmt.Fprintf(&b, "  %s: %s\n", r.name, line)
			}
		}
	}
	return b.String()
}

// grep returns the first lines of a log that hold all of the texts.
func grep(path string, texts ...string) (lines []string) {
	f, err := os.Open(path)
	if err != nil {
		return []string{err.Error()}
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan() && len(lines) < maxLines; {
		if !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(in.Text(), t) }) {
			lines = append(lines, in.Text())
		}
	}
	return lines
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("15:04:05.000")
}

// row is the tally of one class in one world.
type row struct {
	world, class string
	*tally
}

// rows are a verdict's, sorted by class.
func (v *verdict) rows(world string) []row {
	var all []row
	for class, t := range v.byClass {
		all = append(all, row{world, class, t})
	}
	slices.SortFunc(all, func(a, b row) int { return strings.Compare(a.class, b.class) })
	return all
}

// figures is the table of all rows, with their sum.
func figures(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "redis\tfaults\tstrikes\tticks\tfired\toverlaps\toutages\texcused\tinterrupted\tdoubles\tlost\t"+
		"limit\ttakeovers\tslowest\thandovers\tslowest\tlate\tdrained\tworks\tstopped\tstood still\treported\t"+
		"given\theld\tunasked\tdied\t")
	for _, r := range append(slices.Clone(rows), row{"all", "", total(rows)}) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t"+
			"%d\t%d\t%d\t%d\t\n",
			r.world, r.class, r.strikes, r.ticks, r.fired, r.overlaps, r.outages, r.excused, r.interrupted,
			r.doubles, r.lost, r.limits, r.takeovers, r.slowestTakeover.Round(time.Millisecond), r.handovers,
			r.slowestHandover.Round(time.Millisecond), r.late, r.drained, r.works, r.stops, r.stood, r.reports,
			r.given, r.held, r.unasked, r.died)
	}
	_ = w.Flush() // to memory
	return b.String()
}

// total sums rows up.
func total(rows []row) *tally {
	sum := &tally{}
	for _, r := range rows {
		sum.add(r.tally)
	}
	return sum
}

// tell puts the sums into the record of the run.
func (t *tally) tell(run *results.Run) {
	run.Add(t.strikes, "strikes")
	run.Add(t.ticks, "ticks")
	run.Add(t.fired, "fired")
	run.Add(t.overlaps, "overlapped")
	run.Add(t.outages+t.interrupted+t.excused, "excused by a strike")
	run.Add(t.doubles, "doubled")
	run.Add(t.lost, "lost")
	run.Add(t.machine, "explained by a machine that stood still")
	run.Add(t.limits, "forgotten by Redis")
	run.Add(t.takeovers, "takeovers")
	run.Add(t.handovers, "handovers")
	run.Add(t.works, "runs that apps ended")
	run.Add(t.given, "ticks that apps got by asking")
	run.Add(t.held, "holders of leases")
}

// forgive takes a finding of that kind for the machine's fault.
func (t *tally) forgive(what string) {
	t.machine++
	switch what {
	case "lost":
		t.lost--
	case "double":
		t.doubles--
	}
}

func (t *tally) add(o *tally) {
	t.machine += o.machine
	t.strikes += o.strikes
	t.ticks += o.ticks
	t.fired += o.fired
	t.overlaps += o.overlaps
	t.outages += o.outages
	t.excused += o.excused
	t.late += o.late
	t.drained += o.drained
	t.works += o.works
	t.stops += o.stops
	t.stood += o.stood
	t.reports += o.reports
	t.given += o.given
	t.held += o.held
	t.unasked += o.unasked
	t.died += o.died
	t.doubles += o.doubles
	t.lost += o.lost
	t.limits += o.limits
	t.interrupted += o.interrupted
	t.takeovers += o.takeovers
	t.handovers += o.handovers
	t.slowestTakeover = max(t.slowestTakeover, o.slowestTakeover)
	t.slowestHandover = max(t.slowestHandover, o.slowestHandover)
}
