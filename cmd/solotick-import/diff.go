package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/strict"
	"github.com/solotick/solotick/internal/compare"
	"github.com/solotick/solotick/internal/convert"
	"github.com/solotick/solotick/internal/text"
)

const (
	// mostShown is how many changes of one job are shown as text.
	mostShown = 10
	// longestDays is the longest --for: more than the longest time between the ticks of most schedules.
	longestDays = 366
)

func diffCommand() *cobra.Command {
	var (
		o                  convert.Options
		span, from, format string
	)
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show in which ticks two tables differ",
		Long: `Show which ticks the jobs of NEW gain, lose and move, compared with OLD. Each of them is a table, a
directory of its files, a crontab, or a manifest with CronJobs; one may be -, which is standard input.

Jobs of the same name are compared. A tick that a job loses and one that it gains are one moved tick if they are at most
12 hours apart, and no other tick of the job lies between them. Jitter does not count, and suspended jobs have no ticks.

The exit code is 1 if a tick differs.`,
		Example: `  solotick-import diff table.yaml new.yaml
  solotick-import diff table.yaml new.yaml --for 1d --from 2027-03-28T00:00:00Z -o json
  crontab -l | solotick-import diff - table.yaml --time-zone Europe/Berlin`,
		RunE: func(c *cobra.Command, args []string) error {
			begin, end, err := period(from, span)
			switch {
			case len(args) != 2 || args[0] == "-" && args[1] == "-":
				return usage("solotick-import diff table.yaml new.yaml",
					"diff takes two files, and one of them may be - for standard input")
			case format != "text" && format != "json":
				return usage("-o json", "--output %q is neither text nor json", format)
			case err != nil:
				return err
			}
			var jobs [2][]config.Job
			for i, name := range args {
				if jobs[i], err = jobsOf(c, name, o); err != nil {
					return err
				}
			}
			r, err := compare.Jobs(jobs[0], jobs[1], begin, end)
			if err != nil {
				return incomparable(args, err)
			}
			made := asText(args, r, begin, end)
			if format == "json" {
				made = asJSON(r, begin, end)
			}
			if err := write(c, made); err != nil || len(r.Jobs) == 0 {
				return err
			}
			return &failure{code: exitProblem} // the output shows the differences
		},
	}
	crontabFlags(c, &o)
	f := c.Flags()
	f.StringVarP(&format, "output", "o", "text", "`format` of the output: text or json")
	f.StringVar(&span, "for", "14d", "length of the `time` that is compared, as 14d or 36h")
	f.StringVar(&from, "from", "", "begin of that `time`, as RFC 3339 or 2027-03-28 in UTC (default now)")
	return c
}

// period reads --from and --for.
func period(from, span string) (begin, end time.Time, err error) {
	if begin, err = time.Parse(time.RFC3339, from); err != nil {
		begin, err = time.Parse(time.DateOnly, from)
	}
	if from == "" {
		begin, err = time.Now(), nil
	}
	if err != nil {
		return begin, end, usage("--from 2027-03-28T06:00:00Z, or 2027-03-28", "--from %q is not a time", from)
	}
	begin = begin.UTC().Truncate(time.Second)
	length, err := time.ParseDuration(span)
	if days, found := strings.CutSuffix(span, "d"); found {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16) // so many days are a time.Duration
		length = time.Duration(n) * 24 * time.Hour
	}
	switch {
	case err != nil:
		err = usage("--for 14d", "--for %q is not a duration", span)
	case length <= 0:
		err = usage("--for 14d", "--for %s is not a positive duration", length)
	case length > longestDays*24*time.Hour:
		err = usage("--for 14d", "--for is longer than %dd", longestDays)
	}
	return begin, begin.Add(length), err
}

// jobsOf reads the jobs of a table, or of what can be converted into one. Unset variables do not matter here.
func jobsOf(c *cobra.Command, name string, o convert.Options) ([]config.Job, error) {
	f, err := read(c.InOrStdin(), name)
	if info, e := os.Stat(name); e == nil && info.IsDir() {
		f.Data, err = config.ReadFile(name)
	}
	if err != nil {
		return nil, &failure{fmt.Errorf("reading the file to compare: %w", err), exitCannot, ""}
	}
	t, err := config.ReadText(f.Name, f.Data, os.LookupEnv)
	if err != nil && t.Service == "" { // it may be no table at all
		r, e := convert.Convert([]convert.Input{f}, o)
		switch ext := filepath.Ext(name); {
		case e == nil:
			summarize(c, r)
			t, err = config.ReadText(f.Name, r.Table, os.LookupEnv)
		case ext != ".yaml" && ext != ".yml":
			return nil, unreadable(e)
		}
	}
	if problems, ok := errors.AsType[config.Problems](err); ok {
		fmt.Fprintln(c.ErrOrStderr(), problems)
		err = &failure{fmt.Errorf("%s has %s", f.Name, text.Plural(len(problems), "problem")), exitProblem, ""}
	}
	return t.Jobs, err
}

// incomparable is the failure of a comparison.
func incomparable(names []string, err error) error {
	var unknown *compare.UnknownError
	var many *compare.TooManyError
	switch {
	case errors.As(err, &unknown) && unknown.After:
		return &failure{fmt.Errorf("%s: %w", names[1], err), exitCannot, "set the variable"}
	case errors.As(err, &unknown):
		return &failure{fmt.Errorf("%s: %w", names[0], err), exitCannot, "set the variable"}
	case errors.As(err, &many) && many.Job == "":
		return &failure{err, exitCannot, "compare fewer jobs at a time, or a shorter --for"}
	}
	return &failure{err, exitCannot, "--for 1h"}
}

// diffJSON is the output of `diff -o json`, a contract: see docs/cli-json.md.
type diffJSON struct {
	From time.Time     `json:"from"`
	To   time.Time     `json:"to"`
	Same int           `json:"same"`
	Jobs []diffJobJSON `json:"jobs"`
}

type diffJobJSON struct {
	Job    string      `json:"job"`
	Gained []time.Time `json:"gained"`
	Lost   []time.Time `json:"lost"`
	Moved  []moveJSON  `json:"moved"`
}

type moveJSON struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func asJSON(r *compare.Result, begin, end time.Time) []byte {
	none := []time.Time{} // and not null
	d := diffJSON{From: begin, To: end, Same: r.Same, Jobs: []diffJobJSON{}}
	for _, j := range r.Jobs {
		row := diffJobJSON{j.Name, append(none, j.Gained...), append(none, j.Lost...), []moveJSON{}}
		for _, m := range j.Moved {
			row.Moved = append(row.Moved, moveJSON(m))
		}
		d.Jobs = append(d.Jobs, row)
	}
	made, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		panic(err) // texts and numbers can always be written
	}
	return append(made, '\n')
}

func instant(t time.Time) string { return t.Format(time.RFC3339) }

func asText(names []string, r *compare.Result, begin, end time.Time) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s to %s: %s, %d the same\n", instant(begin), instant(end),
		text.Plural(len(r.Jobs), "different job"), r.Same)
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
		fmt.Fprintf(&b, "\n%s: %s%s\n", j.Name, strings.Join(counts, ", "), only)
		lines := changeLines(j)
		for _, line := range lines[:min(len(lines), mostShown)] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		if more := len(lines) - mostShown; more > 0 {
			fmt.Fprintf(&b, "  and %d more: -o json shows all\n", more)
		}
	}
	return b.Bytes()
}

// changeLines has a line for each change of a job, in the order of time.
func changeLines(j compare.Job) []string {
	type change struct {
		at   time.Time
		line string
	}
	var all []change
	for _, t := range j.Gained {
		all = append(all, change{t, "gained  " + instant(t)})
	}
	for _, t := range j.Lost {
		all = append(all, change{t, "lost    " + instant(t)})
	}
	for _, m := range j.Moved {
		by, way := m.To.Sub(m.From), "later"
		if by < 0 {
			by, way = -by, "earlier"
		}
		all = append(all, change{m.From,
			fmt.Sprintf("moved   %s to %s, %s %s", instant(m.From), instant(m.To), strict.ShortDuration(by), way)})
	}
	slices.SortFunc(all, func(x, y change) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.line, y.line)) })
	var lines []string
	for _, c := range all {
		lines = append(lines, c.line)
	}
	return lines
}
