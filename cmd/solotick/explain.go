package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/sidecar/view"
)

// explainFlags are the flags of `next --explain`.
type explainFlags struct {
	explain        bool
	timeZone, name string
}

func (f *explainFlags) flags(c *cobra.Command) {
	c.Flags().BoolVar(&f.explain, "explain", false, "say what the schedules mean; accepts a schedule in place of jobs")
	c.Flags().StringVar(&f.timeZone, "time-zone", "", "time `zone` of the schedule given to --explain (default UTC)")
	c.Flags().StringVar(&f.name, "name", "", "`name` of the job of the schedule given to --explain: it decides each H")
}

// isSchedule tells a schedule from the name of a job: a name has no blank and does not begin with @.
func isSchedule(arg string) bool {
	return arg == "" || strings.ContainsAny(arg, " \t") || strings.HasPrefix(arg, "@")
}

// alone reports whether the user wants a schedule explained, not jobs of a table.
func (f *explainFlags) alone(args []string) bool {
	return f.explain && len(args) == 1 && isSchedule(args[0])
}

func (f *explainFlags) check(args []string) error {
	const example = `solotick next --explain "0 9 * * MON-FRI"`
	several := len(args) > 1 && slices.ContainsFunc(args, func(arg string) bool {
		return isSchedule(arg) || strings.ContainsAny(arg, "*?/#,")
	})
	switch {
	case f.explain && several:
		return usage("put the schedule in quotes: "+example,
			"--explain takes names of jobs, or one schedule as one argument")
	case !f.explain && len(args) > 0 && isSchedule(args[0]):
		return usage(fmt.Sprintf("solotick next --explain %q", args[0]),
			"%q is a schedule, and next takes the names of jobs", args[0])
	case f.timeZone+f.name != "" && !f.alone(args):
		return usage(example, "--time-zone and --name are for a schedule given to --explain")
	}
	return nil
}

// explainedJSON is an element of `next --explain -o json`, a contract: see docs/cli-json.md.
type explainedJSON struct {
	Job            string   `json:"job,omitempty"`
	Schedule       string   `json:"schedule"`
	TimeZone       string   `json:"timeZone"`
	Words          string   `json:"words"`
	DaylightSaving string   `json:"daylightSaving"`
	Ticks          []string `json:"ticks"`

	meaning schedule.Explanation
	at      []time.Time
}

// newExplained explains a schedule, and lists its next ticks. If an H is open, the ticks are not known.
func newExplained(exprs []string, o schedule.Options, after, end time.Time, n int) (explainedJSON, error) {
	e := explainedJSON{Job: o.Job, TimeZone: cmp.Or(o.TimeZone, "UTC"), DaylightSaving: "elapsed", Ticks: []string{}}
	var err error
	if e.meaning, err = schedule.Explain(exprs, o); err != nil {
		return e, err
	}
	s, err := schedule.ParseAll(exprs, o)
	if err != nil {
		return e, err
	}
	e.Schedule, e.Words = s.String(), strings.Join(append([]string{e.meaning.Words}, e.meaning.Rules...), "; ")
	if e.meaning.Fixed {
		e.DaylightSaving = "fixed"
	}
	if o.Job == "" && s.ByName() {
		return e, nil
	}
	zone := view.Zone(o.TimeZone)
	for range n {
		if after = s.Next(after); after.IsZero() || !end.IsZero() && !after.Before(end) {
			break
		}
		e.Ticks, e.at = append(e.Ticks, after.Format(time.RFC3339)), append(e.at, after.In(zone))
	}
	return e, nil
}

func (a *app) explainSchedule(expr string, f explainFlags, after, end time.Time, n int) error {
	options := schedule.Options{TimeZone: f.timeZone, Job: f.name}
	e, err := newExplained([]string{expr}, options, after, end, n)
	if err != nil {
		return usage(config.ScheduleHint(expr, options), "schedule %q: %w", expr, err)
	}
	switch {
	case f.name == "" && e.meaning.Name != "":
		fmt.Fprintln(a.err, "note: the ticks depend on the job's name: --name NAME shows them")
	case len(e.at) == 0:
		fmt.Fprintln(a.err, "note: the schedule has no more ticks")
	}
	return a.printExplained([]explainedJSON{e})
}

func (a *app) explainJobs(jobs []config.Job, after, end time.Time, to string, n int) error {
	rows, ticking := []explainedJSON{}, map[string]bool{}
	for _, j := range jobs {
		if j.Schedule == nil {
			continue
		}
		options := schedule.Options{TimeZone: j.TimeZone, Job: j.Name, Start: j.Start, End: j.End,
			Rules: j.Schedule.Rules()}
		e, err := newExplained(j.Schedule.Expressions(), options, after, end, n)
		if err != nil {
			return cannot("", "job %q: %w", j.Name, err)
		}
		if j.Suspend {
			e.Ticks, e.at = []string{}, nil
		}
		rows, ticking[j.Name] = append(rows, e), len(e.at) > 0
	}
	a.explainNone(jobs, ticking, to)
	return a.printExplained(rows)
}

func (a *app) printExplained(rows []explainedJSON) error {
	var lines []string
	for i, e := range rows {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, e.lines()...)
	}
	return a.answer(rows, lines...)
}

func (e *explainedJSON) lines() []string {
	title := fmt.Sprintf("%s (%s)", e.Schedule, e.TimeZone)
	if e.Job != "" {
		title = e.Job + ": " + title
	}
	m := e.meaning
	said := slices.Concat([]string{m.Words}, m.Rules, []string{m.Window, m.Name, m.Clocks})
	said = slices.DeleteFunc(said, func(line string) bool { return line == "" })
	if len(e.at) > 0 {
		g := grid{}
		g.add("TICK (UTC)", "LOCAL")
		for i, at := range e.at {
			g.add(e.Ticks[i], localTime(at))
		}
		said = append(said, g.lines()...)
	}
	lines := []string{title}
	for _, line := range said {
		lines = append(lines, "  "+line)
	}
	return lines
}
