package main

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// maxNext bounds -n: enough for a year of a job every five minutes.
const maxNext = 100_000

func (a *app) nextCommand() *cobra.Command {
	var n int
	from, to := moment{}, moment{ahead: true}
	var ex explainFlags
	c := a.outputFlag(&cobra.Command{
		Use:   "next [JOB]...",
		Short: "Show the next ticks of each job",
		Long: `Show the next ticks of all jobs, or of the named jobs, sorted by time. Ticks are nominal times, without
jitter. Suspended jobs have none. With --to, all ticks before that time are shown, unless -n limits them.

With --explain, also say in words what each schedule means, and what it does when the clocks change. In place of jobs,
--explain takes one schedule, and then needs no table.`,
		Example: `  solotick next -c table.yaml
  solotick next -c table.yaml -n 3 --from 2027-03-28T00:00:00Z send-invoices
  solotick next -c table.yaml --from today --to tomorrow
  solotick next -c table.yaml -o json
  solotick next --explain "0 9 * * 1#1" --time-zone Europe/Berlin`,
		ValidArgsFunction: a.completeJobs(0),
		RunE: func(c *cobra.Command, args []string) error {
			now := time.Now()
			after, end := from.or(now, now), to.or(time.Time{}, now)
			if to.given() && !after.Before(end) {
				return usage("", "--to %s is not after --from %s", to.text, after.UTC().Format(time.RFC3339))
			}
			if to.given() && !c.Flags().Changed("count") {
				n = maxNext + 1
			}
			if err := ex.check(args); err != nil {
				return err
			}
			if ex.alone(args) {
				return a.explainSchedule(args[0], ex, after, end, n)
			}
			t, err := a.readTable()
			if err := a.refused(err); err != nil {
				return err
			}
			a.warnUnset(t)
			jobs, err := pick(t, args)
			if err != nil {
				return err
			}
			if ex.explain {
				return a.explainJobs(jobs, after, end, to.text, n)
			}
			rows, err := next(jobs, after, end, n)
			if err != nil {
				return err
			}
			g, ticking := grid{}, map[string]bool{}
			g.add("TICK (UTC)", "LOCAL", "JOB")
			for _, r := range rows {
				g.add(r.Tick, localTime(r.at), r.Job)
				ticking[r.Job] = true
			}
			a.explainNone(jobs, ticking, to.text)
			return a.answer(rows, g.lines()...)
		},
	})
	countFlag(c, &n, 5, maxNext, "ticks for each job, at most `number`")
	c.Flags().Var(&to, "to", "only ticks before this `time`"+timeAheadHelp)
	c.Flags().Var(&from, "from", "only ticks after this `time`"+timeHelp+" (default now)")
	ex.flags(c)
	return c
}

// pick returns the named jobs, or all if names is empty.
func pick(t *config.Table, names []string) ([]config.Job, error) {
	if len(names) == 0 {
		return t.Jobs, nil
	}
	var jobs []config.Job
	for _, name := range names {
		named := func(j config.Job) bool { return j.Name == name }
		i := slices.IndexFunc(t.Jobs, named)
		if i < 0 {
			hint := cmp.Or(service.Near(name, t.Jobs), "without names, solotick next shows all jobs")
			if tableName.MatchString(name) {
				hint = "solotick next -c " + name
			}
			return nil, usage(hint, "the table has no job %q", name)
		}
		if !slices.ContainsFunc(jobs, named) {
			jobs = append(jobs, t.Jobs[i])
		}
	}
	return jobs, nil
}

// tickJSON is one row of `next -o json`, a contract: see docs/cli-json.md.
type tickJSON struct {
	Job  string `json:"job"`
	Tick string `json:"tick"`

	at time.Time // in the zone of the job
}

// next returns at most n ticks of each job: those after a time and, if end is not zero, before end. If n is more than
// maxNext, it is all of them, or an error if these are too many.
func next(jobs []config.Job, after, end time.Time, n int) ([]tickJSON, error) {
	rows := []tickJSON{}
	for _, j := range jobs {
		if j.Suspend || j.Schedule == nil {
			continue
		}
		at, zone := after, view.Zone(j.TimeZone)
		for range n {
			if at = j.Schedule.Next(at); at.IsZero() || !end.IsZero() && !at.Before(end) {
				break
			}
			if n > maxNext && len(rows) == maxNext {
				return nil, usage("--to "+rows[len(rows)-1].Tick+", or -n 5",
					"there are more than %d ticks before --to", maxNext)
			}
			rows = append(rows, tickJSON{j.Name, at.UTC().Format(time.RFC3339), at.In(zone)})
		}
	}
	sort.Slice(rows, func(i, j int) bool {
		return cmp.Or(rows[i].at.Compare(rows[j].at), cmp.Compare(rows[i].Job, rows[j].Job)) < 0
	})
	return rows, nil
}

// explainNone says on standard error of each job without a tick why it has none. to is the text of --to.
func (a *app) explainNone(jobs []config.Job, ticking map[string]bool, to string) {
	for _, j := range jobs {
		switch {
		case j.Suspend:
			fmt.Fprintf(a.err, "note: job %q is suspended\n", j.Name)
		case j.Schedule == nil:
			fmt.Fprintf(a.err, "note: the ticks of job %q are not known: "+
				"its schedule or zone has a variable that is not set\n", j.Name)
		case !ticking[j.Name]:
			said := "has no more ticks"
			if to != "" {
				said = "has no ticks before --to " + to
			}
			fmt.Fprintf(a.err, "note: job %q %s\n", j.Name, said)
		}
	}
}

// localTime writes a time in its zone; "-" if that is UTC.
func localTime(t time.Time) string {
	if t.Location() == time.UTC {
		return "-"
	}
	return t.Format("Mon 2006-01-02 15:04:05 MST")
}
