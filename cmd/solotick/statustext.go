package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
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
type status struct{ *view.Look }

// shownSkips is how many different skips of a job are shown.
const shownSkips = 3

// text returns the status, at most width characters wide (0 = no limit).
func (s status) text(width int) string {
	lines := []string{cut(fmt.Sprintf("%s at %s UTC: %s, %s", s.Table.Service, formatTime(s.Now.Truncate(time.Second)),
		plural(len(s.Jobs), "job"), plural(len(s.Replicas), "replica")), width), ""}
	lines = append(lines, s.jobLines(width)...)
	lines = append(lines, "")
	lines = append(lines, s.replicaLines(width)...)
	return strings.Join(lines, "\n") + "\n"
}

func (s status) jobLines(width int) []string {
	g := grid{width: width, names: []int{0, 2}}
	g.add("JOB", "LAST TICK", "BY", "OUTCOME", "TOOK", "NEXT", "NOW")
	for _, j := range s.Jobs {
		tick, by, outcome, lasted := "-", "-", "-", "-"
		if e := s.Last(j); e != nil {
			tick, by, outcome, lasted = ago(s.Now, e.Tick), e.Replica, e.Outcome, took(e.Took)
		}
		if all := s.Results(j); len(all) > 1 {
			by, outcome = plural(len(all), "replica"), resultWords(all)
		}
		next := "-"
		if t := s.Next(j); !t.IsZero() {
			next = "in " + formatDuration(t.Sub(s.Now))
		}
		g.add(j.Name, tick, by, outcome, lasted, next, s.stateWords(j))
		for _, note := range s.jobNotes(j) {
			g.note(note)
		}
	}
	return g.lines()
}

// stateWords returns what the job does now, in few words.
func (s status) stateWords(j config.Job) string {
	state, known := s.States[j.Name]
	switch {
	case j.Guarantee == config.EveryReplica && !state.IsPaused() && !j.Suspend:
		return "on every replica"
	case len(state.Running) > 0:
		running := "running " + formatDuration(s.Now.Sub(state.Running[0].Since))
		if state.IsPaused() {
			running = "PAUSED, " + running
		}
		return running
	case state.IsPaused():
		return "PAUSED"
	case j.Suspend:
		return "suspended"
	case len(state.Waiting) > 0:
		return "waiting"
	case !known:
		return "unknown"
	}
	return "idle"
}

// jobNotes returns the lines below a job: whatever does not fit into the columns.
func (s status) jobNotes(j config.Job) []string {
	state, known := s.States[j.Name]
	var notes []string
	if !known && j.Guarantee != config.EveryReplica {
		notes = append(notes, "no replica has registered it")
	}
	if p := state.Paused; p != nil {
		notes = append(notes, fmt.Sprintf("paused %s%s, %s: %s", byWords(p), ago(s.Now, p.At), untilWords(p.Until), p.Reason))
	}
	if p := state.PausedAll; p != nil {
		notes = append(notes, fmt.Sprintf("paused by pause --all%s %s, %s: %s", ofWords(p), ago(s.Now, p.At), untilWords(p.Until), p.Reason))
	}
	for _, r := range state.Running {
		notes = append(notes, fmt.Sprintf("running on %s%s for %s: tick %s, %s", r.Replica, s.doubt(r), formatDuration(s.Now.Sub(r.Since)),
			formatTime(r.Tick), kindWords(r.Kind, r.Attempt)))
	}
	if len(state.Waiting) > 0 {
		notes = append(notes, "waiting: "+waitingWords(state.Waiting))
	}
	if results := s.Results(j); len(results) > 0 {
		notes = append(notes, s.resultNotes(results)...)
	} else if e := s.Last(j); e != nil && e.Detail != "" {
		notes = append(notes, fmt.Sprintf("%s: %s", e.Outcome, e.Detail))
	}
	return append(notes, s.skipNotes(j.Name)...)
}

// byWords says who paused a job; "" if that is not known.
func byWords(p *service.Pause) string {
	if p.By == "" {
		return ""
	}
	return "by " + p.By + " "
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

// resultNotes returns a line for each replica whose last run failed or has a detail.
func (s status) resultNotes(results []service.Entry) []string {
	var notes []string
	for _, e := range results {
		if !e.Failed && e.Detail == "" {
			continue
		}
		note := fmt.Sprintf("%s on %s %s", e.Outcome, e.Replica, ago(s.Now, e.Ended))
		if e.Detail != "" {
			note += ": " + e.Detail
		}
		notes = append(notes, note)
	}
	return notes
}

// doubt marks a run whose replica may be gone.
func (s status) doubt(r service.RunState) string {
	for _, replica := range s.Replicas {
		if replica.Name == r.Replica && s.Silent(replica) {
			return " (silent)"
		}
	}
	if s.Now.After(r.LeaseEnd) {
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

// skipNotes returns the job's newest skips. Skips of one tick for one reason share a line.
func (s status) skipNotes(job string) []string {
	type skip struct {
		tick   time.Time
		reason string
	}
	var order []skip
	by := map[skip][]string{}
	at := map[skip]time.Time{}
	for _, k := range s.Skips(job) {
		key := skip{k.Tick, k.Reason}
		if by[key] == nil {
			order = append(order, key)
			at[key] = k.At
		}
		by[key] = append(by[key], k.Replica)
	}
	var notes []string
	for _, k := range order[:min(len(order), shownSkips)] {
		slices.Sort(by[k])
		notes = append(notes, fmt.Sprintf("skipped %s: %s, tick %s, by %s", ago(s.Now, at[k]), k.reason, formatTime(k.tick), strings.Join(by[k], ", ")))
	}
	return notes
}

func (s status) replicaLines(width int) []string {
	if len(s.Replicas) == 0 {
		return []string{"No replica takes ticks: all replicas of the last day have drained or ended, or there were none."}
	}
	g := grid{width: width, names: []int{0, 1}}
	g.add("REPLICA", "VERSION", "TABLE", "OFFSET", "SEEN", "READY")
	for _, r := range s.Replicas {
		ready := "yes"
		switch {
		case s.Silent(r):
			ready = "SILENT"
		case r.Ready != "":
			ready = "NO"
		}
		g.add(r.Name, r.Version, r.Table, offset(r.Offset), ago(s.Now, r.Seen), ready)
		if r.Ready != "" {
			g.note("not ready: " + r.Ready)
		}
		if s.Twins(r) {
			g.note("ANOTHER PROCESS HAS THE SAME NAME: give each its own name with --replica or POD_NAME")
		}
		if r.Reload != "" {
			g.note("keeps the previous table: " + r.Reload)
		}
	}
	return append(g.lines(), s.tableNotes(width)...)
}

// tableNotes names the tables of the replicas, if they differ from each other or from the one given here.
func (s status) tableNotes(width int) []string {
	by := map[string][]string{}
	for _, r := range s.Replicas {
		if !s.Silent(r) {
			by[r.Table] = append(by[r.Table], r.Name)
		}
	}
	var notes []string
	if s.Drift() {
		notes = append(notes, "", "TABLES DIFFER between the replicas, and so may their ticks:")
		hashes := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(by[b]), len(by[a])), cmp.Compare(a, b))
		})
		for _, hash := range hashes {
			notes = append(notes, cut("  "+text.OneLine(fmt.Sprintf("%s: %s", hash, strings.Join(by[hash], ", "))), width))
		}
	}
	if len(by) > 0 && by[s.Table.Hash] == nil && s.Table.Hash != "" {
		notes = append(notes, "", cut(fmt.Sprintf("No replica has the table given here (%s). The next ticks are from this table.", s.Table.Hash), width))
	}
	return notes
}

// watch draws the status on the terminal's alternate screen until ctx ends. While Redis does not answer it keeps the
// last one.
func (a *app) watch(ctx context.Context, op *operator, interval time.Duration) {
	fmt.Fprint(a.out, "\x1b[?1049h\x1b[?25l")
	defer fmt.Fprint(a.out, "\x1b[?25h\x1b[?1049l")
	var last *view.Look
	for {
		look, err := op.look(ctx)
		if err == nil {
			last = look
		}
		columns, rows, _ := terminal(a.out)
		text := ""
		if last != nil {
			text = status{last}.text(columns)
		}
		draw(a.out, text, err, columns, rows)
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return
		}
	}
}

// draw replaces the text on a terminal without flicker, and cuts it to the terminal's height.
func draw(out io.Writer, page string, trouble error, columns, rows int) {
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	if trouble != nil {
		lines = append([]string{cut("OUT OF DATE: "+text.OneLine(trouble.Error()), columns)}, lines...)
	}
	if rows > 1 && len(lines) > rows {
		more := len(lines) - rows + 1
		lines = append(lines[:rows-1], "… "+plural(more, "more line"))
	}
	fmt.Fprint(out, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[K\x1b[J")
}
