package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// status prints a look as text.
type status struct {
	*view.Look
	statusFlags
	width     int // of the terminal; 0 = no limit
	colourful bool
	prefix    string // that all names of replicas have in common, and that is left out
	broken    string // what is wrong with the table; "" = nothing
}

// showing returns the status with which to print a look.
func (a *app) showing(l *view.Look, f statusFlags) status {
	s := status{Look: l, statusFlags: f, broken: a.broken}
	columns, isTerminal := terminal(a.out)
	s.colourful = isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if !f.wide {
		s.width, s.prefix = columns, commonPrefix(l.Replicas)
	}
	return s
}

const (
	shownSkips = 3  // how many different skips of a job are shown
	longName   = 16 // from this length on, replicas lose what their names have in common
)

// commonPrefix returns what the names of all replicas begin with, up to a dash: of pods, the name of their ReplicaSet.
// It returns "" for short names.
func commonPrefix(replicas []service.Replica) string {
	if len(replicas) < 2 {
		return ""
	}
	common, longest := replicas[0].Name, 0
	for _, r := range replicas {
		longest = max(longest, len(r.Name))
		for !strings.HasPrefix(r.Name, common) {
			common = common[:len(common)-1]
		}
	}
	if longest < longName {
		return ""
	}
	return common[:strings.LastIndexByte(common, '-')+1]
}

// replica returns the name by which a replica is shown.
func (s status) replica(name string) string {
	return cmp.Or(strings.TrimPrefix(name, s.prefix), name)
}

// jobs returns the jobs that are shown, those that need a person first.
func (s status) jobs() []config.Job {
	return slices.DeleteFunc(s.ByNeed(), func(j config.Job) bool {
		return len(s.job) > 0 && !slices.Contains(s.job, j.Name) || s.failed && !s.needsPerson(j)
	})
}

func (s status) needsPerson(j config.Job) bool {
	return slices.Contains([]view.Health{view.Failing, view.Overdue, view.Missed}, s.Health(j))
}

// isBad reports whether a job is one for which --check exits with 1.
func (s status) isBad(j config.Job) bool {
	return slices.Contains([]view.Health{view.Failing, view.Overdue}, s.Health(j))
}

// bad reports whether --check exits with 1.
func (s status) bad() bool {
	return s.Summary().Ready == 0 || slices.ContainsFunc(s.jobs(), s.isBad)
}

// lines returns the status, each line at most as wide as the terminal.
func (s status) lines() []string {
	lines := s.head()
	add := func(more []string) { lines = append(append(lines, ""), more...) }
	jobs := s.jobs()
	switch {
	case s.check:
		if jobs = slices.DeleteFunc(jobs, func(j config.Job) bool { return !s.isBad(j) }); len(jobs) > 0 {
			add(s.jobLines(jobs))
		}
	case len(s.job) > 0:
		add(s.card(jobs[0]))
	case s.failed && len(jobs) == 0:
		add(wrap("No job needs a person: none is failing or overdue, and none missed its newest tick.", s.width))
	default:
		if add(s.jobLines(jobs)); !s.failed {
			add(s.replicaLines())
		}
	}
	return lines
}

// head returns the first lines: how the service fares.
func (s status) head() []string {
	sum, health := s.Summary(), green
	switch {
	case s.broken != "":
		health, sum.Text = red, s.broken+" · "+sum.Text
	case sum.Bad():
		health = red
	case sum.MissedToday > 0 || sum.Ready < len(s.Replicas):
		health = yellow
	}
	lines := s.banner(health, sum.Text)
	if sum.Ready == 0 {
		lines = append(lines, s.banner(red, "No replica is ready: nothing is fired.")...)
	}
	if s.check {
		return lines
	}
	return append(lines, cut(fmt.Sprintf("%s at %s: %s, %s", s.Table.Service, formatTime(s.Now.Truncate(time.Second)),
		plural(len(s.Jobs), "job"), plural(len(s.Replicas), "replica")), s.width))
}

// banner returns text that is not cut, in a colour.
func (s status) banner(c colour, said string) []string {
	lines := wrap(said, s.width)
	for i := range lines {
		lines[i] = s.in(c).paint(lines[i])
	}
	return lines
}

// colourOf returns the colour of a job that needs a person.
func (s status) colourOf(j config.Job) colour {
	switch {
	case s.isBad(j):
		return s.in(red)
	case s.needsPerson(j):
		return s.in(yellow)
	}
	return ""
}

// in returns the colour if colours are wanted.
func (s status) in(c colour) colour {
	if !s.colourful {
		return ""
	}
	return c
}

// jobLines returns a row for each job, and beneath it its notes.
func (s status) jobLines(jobs []config.Job) []string {
	g := grid{width: s.width, names: []int{0, 2}}
	cells := []string{"JOB", "LAST TICK", "BY", "OUTCOME", "TOOK", "NEXT", "NOW"}
	if s.wide {
		cells = append(cells, "SCHEDULE", "OWNER", "RUN")
	}
	g.add(cells...)
	for _, j := range jobs {
		g.add(s.row(j)...)
		g.last().colour = s.colourOf(j)
		g.note(s.jobNotes(j)...)
	}
	return g.lines()
}

// row returns the columns of a job. A run by hand is not in them: it says nothing about the schedule.
func (s status) row(j config.Job) []string {
	tick, by, outcome, lasted, run := "-", "-", "-", "-", "-"
	if e := s.LastScheduled(j); e != nil {
		tick, by, outcome, lasted, run = ago(s.Now, e.Tick), s.replica(e.Replica), e.Outcome, took(e.Took), e.Run
	}
	if all := s.Results(j); len(all) > 1 {
		by, outcome = plural(len(all), "replica"), resultWords(all)
	}
	next := "-"
	if t := s.Next(j); !t.IsZero() {
		next = "in " + formatDuration(t.Sub(s.Now))
	}
	cells := []string{j.Name, tick, by, outcome, lasted, next, s.stateWords(j)}
	if s.wide {
		cells = append(cells, scheduleWords(j), cmp.Or(j.Owner, "-"), cmp.Or(run, "-"))
	}
	return cells
}

// scheduleWords returns a job's schedule, with its zone unless that is UTC.
func scheduleWords(j config.Job) string {
	if j.Schedule == nil { // without a readable table only the name is known
		return "-"
	}
	return zoned(j.Schedule.String(), j.TimeZone)
}

func zoned(schedule, zone string) string {
	if zone == "" || zone == "UTC" {
		return schedule
	}
	return schedule + " " + zone
}

// stateWords returns what the job does now, in few words.
func (s status) stateWords(j config.Job) string {
	state, known := s.States[j.Name]
	switch {
	case j.Guarantee == config.EveryReplica && !state.IsPaused() && !j.Suspend:
		return "on every replica"
	case len(state.Running) > 0:
		running := "running " + formatDuration(s.Now.Sub(state.Running[0].Since)) + s.doubt(state.Running[0])
		if state.IsPaused() {
			running = "PAUSED, " + running
		}
		return running
	case state.IsPaused():
		return "PAUSED"
	case j.Suspend:
		return "suspended"
	case !s.Overdue(j).IsZero():
		return "OVERDUE"
	case len(state.Waiting) > 0:
		return "waiting"
	case state.Streak > 0:
		return "failing " + formatDuration(s.Now.Sub(state.FailingSince))
	case !known:
		return "unknown"
	case j.Observe:
		return "observed"
	}
	return "idle"
}

// jobNotes returns the lines below a job: whatever does not fit into the columns, what tells most first.
func (s status) jobNotes(j config.Job) []string {
	state, known := s.States[j.Name]
	var notes []string
	if state.Streak > 0 {
		notes = append(notes, s.failingWords(state))
	}
	if results := s.Results(j); len(results) > 0 {
		notes = append(notes, s.resultNotes(results)...)
	} else if e := s.LastScheduled(j); e != nil && e.Detail != "" {
		notes = append(notes, fmt.Sprintf("%s: %s", e.Outcome, e.Detail))
	}
	if t := s.Overdue(j); !t.IsZero() {
		notes = append(notes, fmt.Sprintf("overdue: tick %s came due %s, and no replica runs it",
			formatClock(s.Now, t), ago(s.Now, t)))
	}
	if missed := s.Missed(j); missed != nil {
		notes = append(notes, s.missedWords(missed))
	}
	if e := s.byHand(j); e != nil {
		notes = append(notes, "by hand: "+s.runWords(e)+text.Between(": ", e.Detail, ""))
	}
	for _, r := range state.Running {
		notes = append(notes, "running on "+s.liveWords(r))
	}
	if len(state.Waiting) > 0 {
		notes = append(notes, "waiting: "+waitingWords(state.Waiting))
	}
	for _, p := range s.pauseNotes(state) {
		notes = append(notes, "paused "+p)
	}
	if !known && j.Guarantee != config.EveryReplica {
		notes = append(notes, "no replica has registered it")
	}
	for _, k := range s.skipNotes(j) {
		notes = append(notes, "skipped "+k)
	}
	return notes
}

// failingWords tells how long the ticks of a job have failed.
func (s status) failingWords(state service.Ledger) string {
	success := "no success known"
	if !state.LastSuccess.IsZero() {
		success = "last success " + ago(s.Now, state.LastSuccess)
	}
	return fmt.Sprintf("failing since %s, %d in a row, %s",
		formatClock(s.Now, state.FailingSince.Truncate(time.Second)), state.Streak, success)
}

// missedWords tells which ticks were missed, and why.
func (s status) missedWords(missed *service.Entry) string {
	last := formatClock(s.Now, missed.Tick)
	words := "missed tick " + last
	if missed.Count > 1 {
		words = fmt.Sprintf("missed %d ticks, %s to %s", missed.Count, formatClock(s.Now, missed.First), last)
	}
	return words + text.Between(": ", missed.Detail, "")
}

// byHand returns the run that ended last if somebody asked for it; nil if the last run is one of the schedule.
func (s status) byHand(j config.Job) *service.Entry {
	if e := s.Last(j); e != nil && (e.Kind == "manual" || e.Kind == "backfill") {
		return e
	}
	return nil
}

// runWords tells of a run that has ended.
func (s status) runWords(e *service.Entry) string {
	words := fmt.Sprintf("%s on %s", e.Outcome, s.replica(e.Replica))
	if e.Took > 0 {
		words += " after " + took(e.Took)
	}
	if !e.Ended.IsZero() { // else its replica was gone
		words += ", " + ago(s.Now, e.Ended)
	}
	words += ", " + kindWords(e.Kind, e.Attempt)
	if e.Kind == "backfill" {
		words += " of tick " + formatClock(s.Now, e.Tick)
	}
	if s.wide {
		words += ", run " + e.Run
	}
	return words
}

// liveWords tells of a run that has not ended.
func (s status) liveWords(r service.RunState) string {
	words := fmt.Sprintf("%s%s for %s: tick %s, %s", s.replica(r.Replica), s.doubt(r),
		formatDuration(s.Now.Sub(r.Since)), formatTime(r.Tick), kindWords(r.Kind, r.Attempt))
	if s.wide {
		words += ", run " + r.Run
	}
	return words
}

// pauseNotes tells of the pauses of a job.
func (s status) pauseNotes(state service.Ledger) (notes []string) {
	note := func(by, of string, p *service.Pause) {
		if p != nil {
			by += text.Between(of, p.By, "")
			said := fmt.Sprintf("%s %s, %s: %s", by, ago(s.Now, p.At), untilWords(p.Until), p.Reason)
			notes = append(notes, strings.TrimSpace(said))
		}
	}
	note("", "by ", state.Paused)
	note("by pause --all", " of ", state.PausedAll)
	return notes
}

// resultWords sums up the last runs of an every-replica job: their outcome, or how many failed.
func resultWords(results []service.Entry) string {
	failed, same := 0, true
	for _, e := range results {
		if e.Failed {
			failed++
		}
		same = same && e.Outcome == results[0].Outcome
	}
	switch {
	case same:
		return results[0].Outcome
	case failed > 0:
		return fmt.Sprintf("failed on %d", failed)
	}
	return "mixed"
}

// resultNotes returns a line for each replica whose last run failed or has a detail. Replicas that say the same share
// one.
func (s status) resultNotes(results []service.Entry) (notes []string) {
	dull := func(e service.Entry) bool { return !e.Failed && e.Detail == "" }
	results = slices.DeleteFunc(slices.Clone(results), dull)
	for _, same := range grouped(len(results), func(a, b int) bool {
		return results[a].Outcome == results[b].Outcome && results[a].Detail == results[b].Detail
	}) {
		e := results[same[0]] // the newest of those that failed
		names := view.Each(same, func(i int) string { return s.replica(results[i].Replica) })
		notes = append(notes, fmt.Sprintf("%s on %s %s%s", e.Outcome, strings.Join(names, ", "), ago(s.Now, e.Ended),
			text.Between(": ", e.Detail, "")))
	}
	return notes
}

// grouped groups those of n things that are alike. Groups and their elements keep the order of the things.
func grouped(n int, alike func(a, b int) bool) (groups [][]int) {
	for one := range n {
		i := slices.IndexFunc(groups, func(group []int) bool { return alike(group[0], one) })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], one)
	}
	return groups
}

// doubt marks a run whose replica may be gone.
func (s status) doubt(r service.RunState) string {
	isSilent := func(its service.Replica) bool { return its.Name == r.Replica && s.Silent(its) }
	switch {
	case slices.ContainsFunc(s.Replicas, isSilent):
		return " (silent)"
	case s.Now.After(r.LeaseEnd):
		return " (lease over)"
	}
	return ""
}

// waitingWords counts the waiting ticks by kind.
func waitingWords(waiting []lock.Due) string {
	count := map[string]int{}
	for _, d := range waiting {
		count[d.Kind]++
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d %s", count[kind], kind))
	}
	return strings.Join(words, ", ")
}

// skipNotes returns the job's newest skips after its last run. Skips of one tick for one reason share a line.
func (s status) skipNotes(j config.Job) (notes []string) {
	last := s.Last(j)
	skips := slices.DeleteFunc(s.Skips(j.Name), func(k view.Skipped) bool {
		return last != nil && !k.At.After(last.Ended)
	})
	groups := grouped(len(skips), func(a, b int) bool {
		return skips[a].Tick.Equal(skips[b].Tick) && skips[a].Reason == skips[b].Reason
	})
	for _, same := range groups[:min(len(groups), shownSkips)] {
		k := skips[same[0]] // the newest
		names := view.Each(same, func(i int) string { return s.replica(skips[i].Replica) })
		slices.Sort(names)
		notes = append(notes, fmt.Sprintf("%s: %s, tick %s, by %s",
			ago(s.Now, k.At), k.Reason, formatTime(k.Tick), strings.Join(names, ", ")))
	}
	return notes
}

const sameName = "ANOTHER PROCESS HAS THE SAME NAME: give each its own name with --replica or POD_NAME"

func (s status) replicaLines() []string {
	if len(s.Replicas) == 0 {
		return wrap("No replica takes ticks: all replicas of the last day have drained or ended, or there were none.",
			s.width)
	}
	g := grid{width: s.width, names: []int{0, 1}}
	g.add("REPLICA", "VERSION", "TABLE", "OFFSET", "SEEN", "READY")
	for _, r := range s.Replicas {
		ready, c := "yes", colour("")
		switch {
		case s.Silent(r):
			ready, c = "SILENT", yellow
		case r.Ready != "":
			ready, c = "NO", yellow
		}
		g.add(r.Name, r.Version, r.Table, offset(r.Offset), ago(s.Now, r.Seen), ready)
		g.last().colour = s.in(c)
		g.note(s.wrong(r)...)
	}
	return append(g.lines(), s.tableNotes()...)
}

// wrong returns what is not as it should be on a replica.
func (s status) wrong(r service.Replica) (all []string) {
	also := func(is bool, said string) {
		if is {
			all = append(all, said)
		}
	}
	also(r.Ready != "", "not ready: "+r.Ready)
	also(r.Observe, "observes: it takes ticks, and calls no job")
	also(s.Twins(r), sameName)
	also(r.Reload != "", "refuses the new table: "+r.Reload)
	return all
}

// tableNotes names the tables of the replicas, if they differ from each other or from the one given here.
func (s status) tableNotes() []string {
	by := map[string][]string{}
	for _, r := range s.Live() {
		by[r.Table] = append(by[r.Table], s.replica(r.Name))
	}
	var notes []string
	if s.Drift() {
		notes = append(notes, "", "TABLES DIFFER between the replicas, and so may their ticks:")
		hashes := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(by[b]), len(by[a])), cmp.Compare(a, b))
		})
		for _, hash := range hashes {
			notes = append(notes, cut("  "+text.OneLine(hash+": "+strings.Join(by[hash], ", ")), s.width))
		}
	}
	if s.Mixed() {
		notes = append(notes, "",
			cut("ONLY SOME REPLICAS OBSERVE: a tick that an observing replica takes is not fired.", s.width))
	}
	if len(by) > 0 && by[s.Table.Hash] == nil && s.Table.Hash != "" {
		notes = append(notes, "", cut("No replica has the table given here ("+s.Table.Hash+
			"). The next ticks are from this table.", s.width))
	}
	return notes
}
