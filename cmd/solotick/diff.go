package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/compare"
)

const (
	// mostShown is how many changes of one job are shown as text.
	mostShown = 10
	// longestDiff is the longest --for: more than the longest time between the ticks of most schedules.
	longestDiff = 366 * 24 * time.Hour
)

func (a *app) diffCommand() *cobra.Command {
	var (
		o    output
		span = length{Duration: 14 * 24 * time.Hour, example: "14d"}
		from moment
	)
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show in which ticks two tables differ",
		Long: `Show which ticks the jobs of the table NEW gain, lose and move, compared with the table OLD. OLD and NEW are files or
directories; one of them may be -, which is standard input. solotick-import makes a table of a crontab or of Kubernetes
CronJobs.

Jobs of the same name are compared. A tick that a job loses and one that it gains are one moved tick if they are at most 12
hours apart, and no other tick of the job lies between them. Jitter does not count, and suspended jobs have no ticks.

The exit code is 1 if a tick differs.`,
		Example: `  solotick diff table.yaml new.yaml
  solotick diff table.yaml new.yaml --for 1d --from 2027-03-28T00:00:00Z -o json
  crontab -l | solotick-import - --time-zone Europe/Berlin | solotick diff - table.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] == "-" && args[1] == "-" {
				return &failure{code: exitUsage, err: errors.New("diff takes two files, and one of them may be - for standard input"),
					hint: "solotick diff table.yaml new.yaml"}
			}
			if span.Duration > longestDiff {
				return &failure{code: exitUsage, err: errors.New("--for is longer than 366d"), hint: "--for 14d"}
			}
			now := time.Now().UTC().Truncate(time.Second)
			begin := from.or(now, now)
			var tables [2]*config.Table
			for i, name := range args {
				var err error
				if tables[i], err = (&app{err: a.err, config: name}).tableToCompare(); err != nil {
					return err
				}
			}
			return a.diff(args, tables, begin, begin.Add(span.Duration), o)
		},
	}
	o.flag(c)
	c.Flags().Var(&span, "for", "length of the `time` that is compared, as 14d or 36h")
	c.Flags().Lookup("for").DefValue = "14d"
	c.Flags().Var(&from, "from", "begin of that `time`"+timeHelp+" (default now)")
	return c
}

// tableToCompare reads a table. Unset variables do not matter here.
func (a *app) tableToCompare() (*config.Table, error) {
	t, err := a.readTable()
	return t, a.refused(err)
}

// diffJSON is the output of `diff -o json`, a contract: see docs/cli-json.md.
type diffJSON struct {
	From string        `json:"from"`
	To   string        `json:"to"`
	Same int           `json:"same"`
	Jobs []diffJobJSON `json:"jobs"`
}

type diffJobJSON struct {
	Job    string     `json:"job"`
	Gained []string   `json:"gained"`
	Lost   []string   `json:"lost"`
	Moved  []moveJSON `json:"moved"`
}

type moveJSON struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func (a *app) diff(names []string, tables [2]*config.Table, begin, end time.Time, o output) error {
	r, err := compare.Jobs(tables[0].Jobs, tables[1].Jobs, begin, end)
	var unknown *compare.UnknownError
	var many *compare.TooManyError
	switch {
	case errors.As(err, &unknown):
		name := names[0]
		if unknown.After {
			name = names[1]
		}
		return &failure{code: exitCannot, err: fmt.Errorf("%s: %w", name, err), hint: "set the variable"}
	case errors.As(err, &many):
		hint := "--for 1h"
		if many.Job == "" {
			hint = "compare fewer jobs at a time, or a shorter --for"
		}
		return &failure{code: exitCannot, err: err, hint: hint}
	case err != nil:
		return err
	}
	if o == "json" {
		err = a.printJSON(newDiff(r, begin, end))
	} else {
		err = a.printDiff(names, r, begin, end)
	}
	if err == nil && len(r.Jobs) > 0 {
		err = &failure{code: exitProblem} // the output shows the differences
	}
	return err
}

func newDiff(r *compare.Result, begin, end time.Time) diffJSON {
	d := diffJSON{From: begin.UTC().Format(time.RFC3339), To: end.UTC().Format(time.RFC3339), Same: r.Same, Jobs: []diffJobJSON{}}
	for _, j := range r.Jobs {
		row := diffJobJSON{Job: j.Name, Gained: instants(j.Gained), Lost: instants(j.Lost), Moved: []moveJSON{}}
		for _, m := range j.Moved {
			row.Moved = append(row.Moved, moveJSON{m.From.Format(time.RFC3339), m.To.Format(time.RFC3339)})
		}
		d.Jobs = append(d.Jobs, row)
	}
	return d
}

func instants(ticks []time.Time) []string {
	texts := []string{}
	for _, t := range ticks {
		texts = append(texts, t.Format(time.RFC3339))
	}
	return texts
}

func (a *app) printDiff(names []string, r *compare.Result, begin, end time.Time) error {
	fmt.Fprintf(a.out, "%s to %s: %s, %d the same\n", formatTime(begin), formatTime(end), plural(len(r.Jobs), "different job"), r.Same)
	for _, j := range r.Jobs {
		var counts []string
		for _, c := range []struct {
			n    int
			what string
		}{{len(j.Gained), "gained"}, {len(j.Lost), "lost"}, {len(j.Moved), "moved"}} {
			if c.n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
		only := ""
		switch {
		case !j.Before:
			only = "; only in " + names[1]
		case !j.After:
			only = "; only in " + names[0]
		}
		fmt.Fprintf(a.out, "\n%s: %s%s\n", j.Name, strings.Join(counts, ", "), only)
		lines := changeLines(j)
		for _, line := range lines[:min(len(lines), mostShown)] {
			fmt.Fprintf(a.out, "  %s\n", line)
		}
		if more := len(lines) - mostShown; more > 0 {
			fmt.Fprintf(a.out, "  and %d more: -o json shows all\n", more)
		}
	}
	return nil
}

// changeLines has a line for each change of a job, in the order of time.
func changeLines(j compare.Job) []string {
	type change struct {
		at   time.Time
		line string
	}
	var all []change
	for _, t := range j.Gained {
		all = append(all, change{t, "gained  " + formatTime(t)})
	}
	for _, t := range j.Lost {
		all = append(all, change{t, "lost    " + formatTime(t)})
	}
	for _, m := range j.Moved {
		by, way := m.To.Sub(m.From), "later"
		if by < 0 {
			by, way = -by, "earlier"
		}
		all = append(all, change{m.From, fmt.Sprintf("moved   %s to %s, %s %s", formatTime(m.From), formatTime(m.To), &length{Duration: by}, way)})
	}
	slices.SortFunc(all, func(x, y change) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.line, y.line)) })
	var lines []string
	for _, c := range all {
		lines = append(lines, c.line)
	}
	return lines
}
