package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

const (
	drawnNotes = 3   // at most, of one job
	anyHeight  = 1e6 // rows of a terminal that does not tell them
)

// outage is a time in which no look at the service succeeds.
type outage struct {
	since time.Time
	err   error
}

// words say that Redis is away, and since when.
func (o *outage) words(now time.Time) string {
	d := diagnosis.Of(o.err)
	return text.OneLine(fmt.Sprintf("OUT OF DATE: Redis %s since %s: %s. The last known state:", d.Says, formatClock(now, o.since.Truncate(time.Second)), d.Reason))
}

// watch draws the status on the terminal's alternate screen until ctx ends, after each look at the service and when the
// terminal is resized. While Redis does not answer it keeps the last look, and says so.
func (a *app) watch(ctx context.Context, op *operator, f statusFlags) error {
	last, err := op.look(ctx, f.job...) // a job that does not exist is an error, not an outage
	if err != nil {
		return operatorFailure(err)
	}
	// Lines that are too wide after all, for their characters are, must not wrap: the screen would scroll.
	fmt.Fprint(a.out, "\x1b[?1049h\x1b[?25l\x1b[?7l")
	defer fmt.Fprint(a.out, "\x1b[?7h\x1b[?25h\x1b[?1049l")

	type answer struct {
		look *view.Look
		err  error
	}
	answers := make(chan answer)
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for range answers { // until nobody asks Redis any more
		}
	}()
	go func() {
		defer close(answers)
		for {
			select {
			case <-time.After(f.interval):
			case <-ctx.Done():
				return
			}
			look, err := op.look(ctx, f.job...)
			select {
			case answers <- answer{look, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	resized, stop := resizes()
	defer stop()
	var away *outage
	for {
		_, rows, _ := terminal(a.out)
		s := a.showing(last, f)
		s.away = away
		draw(a.out, s.screen(rows))
		select {
		case got, open := <-answers:
			switch {
			case !open || ctx.Err() != nil:
				return nil
			case got.err == nil:
				last, away = got.look, nil
			case service.RefusalOf(got.err).Kind == service.NoJob: // a dynamic job that was deleted
				return operatorFailure(got.err)
			case away == nil:
				away = &outage{op.now(), got.err}
			default:
				away.err = got.err
			}
		case <-resized:
		}
	}
}

// draw replaces what is on the terminal, in one piece and so without flicker.
func draw(out io.Writer, lines []string) {
	fmt.Fprint(out, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[K\x1b[J")
}

// screen returns the status in at most so many lines: all that is bad, and of the rest as much as fits.
func (s status) screen(rows int) []string {
	if rows < 2 {
		rows = anyHeight
	}
	head := s.head()
	if len(s.job) > 0 {
		return fitted(append(append(head, ""), s.card(s.jobs()[0])...), rows)
	}
	replicas := fitted(s.replicaBrief(), max(3, rows/3))
	const frame = 3 // two blank lines and the names of the columns
	jobs, notes, rest := s.fitting(rows - len(head) - len(replicas) - frame)
	lines := append(append(head, ""), s.jobLines(jobs, func(j config.Job) []string { return s.jobNotes(j)[:notes[j.Name]] })...)
	if rest != "" {
		lines = append(lines, cut(rest, s.width))
	}
	return fitted(append(append(lines, ""), replicas...), rows)
}

// fitted cuts lines that are too many, and says so.
func fitted(lines []string, rows int) []string {
	if len(lines) <= rows {
		return lines
	}
	return append(slices.Clone(lines[:rows-1]), "… "+plural(len(lines)-rows+1, "more line"))
}

// fitting chooses what of the jobs fits into so many lines: the jobs with a row, how many notes each of them has, and a
// line about the others. Rows of jobs that need a person or run come first, then their notes, then the other jobs.
func (s status) fitting(room int) (jobs []config.Job, notes map[string]int, rest string) {
	jobs = s.jobs()
	rank := func(j config.Job) int {
		switch {
		case s.needsPerson(j):
			return 0
		case len(s.States[j.Name].Running) > 0:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(jobs, func(a, b config.Job) int { return rank(a) - rank(b) })
	left := max(room-1, 1) // one line is for the others
	shown := 0
	for ; left > 0 && shown < len(jobs) && rank(jobs[shown]) < 2; shown++ {
		left--
	}
	notes = map[string]int{}
	for n := range drawnNotes {
		for _, j := range jobs[:shown] {
			if left > 0 && len(s.jobNotes(j)) > n {
				notes[j.Name], left = n+1, left-1
			}
		}
	}
	shown = min(shown+left, len(jobs))
	return jobs[:shown], notes, s.restWords(jobs[shown:])
}

// restWords counts the jobs that have no row; "" if there are none.
func (s status) restWords(rest []config.Job) string {
	kinds := []string{"failing", "overdue", "missed", "running", "paused", "suspended", "never ran", "well"}
	count := map[string]int{}
	for _, j := range rest {
		state, kind := s.States[j.Name], "well"
		switch health := s.Health(j); {
		case s.needsPerson(j):
			kind = string(health)
		case len(state.Running) > 0:
			kind = "running"
		case state.IsPaused():
			kind = "paused"
		case j.Suspend:
			kind = "suspended"
		case health == view.NeverRan:
			kind = "never ran"
		}
		count[kind]++
	}
	switch {
	case len(rest) == 0:
		return ""
	case count["well"] == 1 && len(rest) == 1:
		return "1 more is well"
	case count["well"] == len(rest):
		return fmt.Sprintf("%d more are well", len(rest))
	}
	var words []string
	for _, kind := range kinds {
		if count[kind] > 0 {
			words = append(words, fmt.Sprintf("%d %s", count[kind], kind))
		}
	}
	return fmt.Sprintf("%d more: %s", len(rest), strings.Join(words, ", "))
}

// replicaBrief returns one line for all replicas that are ready, one for each with which something is wrong, and one
// for all that are silent, probably for good.
func (s status) replicaBrief() []string {
	if len(s.Replicas) == 0 {
		return s.replicaLines()
	}
	var (
		lines, ready, silent []string
		seen                 time.Time // of the silent ones, the last time
	)
	add := func(c colour, said string) { lines = append(lines, s.in(c).paint(cut(text.OneLine(said), s.width))) }
	for _, r := range s.Replicas {
		switch {
		case s.Silent(r):
			silent = append(silent, s.replica(r.Name))
			if r.Seen.After(seen) {
				seen = r.Seen
			}
		case r.Ready == "":
			ready = append(ready, s.replica(r.Name))
		}
	}
	if len(ready) > 0 {
		add("", fmt.Sprintf("%s ready: %s", plural(len(ready), "replica"), strings.Join(ready, ", ")))
	}
	for _, r := range s.Replicas {
		if wrong := s.wrong(r); len(wrong) > 0 && !s.Silent(r) {
			add(yellow, s.replica(r.Name)+" "+strings.Join(wrong, "; "))
		}
	}
	if len(silent) > 0 {
		add(yellow, fmt.Sprintf("%s SILENT, last seen %s: %s", plural(len(silent), "replica"), ago(s.Now, seen), strings.Join(silent, ", ")))
	}
	return append(lines, slices.DeleteFunc(s.tableNotes(), func(line string) bool { return line == "" })...)
}
