package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin/view"
)

func (a *app) backfillCommand() *cobra.Command {
	var (
		o        output
		from, to string
		dry      bool
		anew     bool
	)
	c := &cobra.Command{
		Use:   "backfill JOB --from TIME --to TIME",
		Short: "Run a job for ticks of the past",
		Long: fmt.Sprintf(`Run a job once for each tick that its schedule has from --from (inclusive) to --to (exclusive), %d at most, also while
the job is paused.

Ticks that were fired before are fired again: the promise that no tick is fired twice does not cover manual runs. Check the
ticks with --dry-run first.

Each tick is sent under the Idempotency-Key that it had before. An app that keeps its answers by key answers such a request
from its store, and does the work only for ticks that it has not seen. To have the app do all of them again, use
--new-keys.`, lock.MaxBackfill),
		Example: `  solotick backfill -c table.yaml send-invoices --from 2027-03-01T00:00:00Z --to 2027-03-08T00:00:00Z --dry-run
  solotick backfill -c table.yaml send-invoices --from 2027-03-01T00:00:00Z --to 2027-03-08T00:00:00Z
  solotick backfill -c table.yaml send-invoices --from 2027-03-01T00:00:00Z --to 2027-03-08T00:00:00Z --new-keys`,
		Args:              oneJob,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if from == "" || to == "" {
				return &failure{code: exitUsage, err: errors.New("backfill needs --from and --to"), hint: c.CommandPath() + " --help"}
			}
			return a.at(func(ctx context.Context, d *desk) error {
				j, err := d.claimed(ctx, args[0])
				if err != nil {
					return err
				}
				ticks, err := between(j, from, to, d.now())
				if err != nil {
					return err
				}
				return a.backfill(ctx, d, j.Name, ticks, dry, anew, o)
			})
		},
	}
	o.flag(c)
	c.Flags().StringVar(&from, "from", "", "first `time`, inclusive, RFC 3339")
	c.Flags().StringVar(&to, "to", "", "last `time`, exclusive, RFC 3339")
	c.Flags().BoolVar(&anew, "new-keys", false, "give each tick a new Idempotency-Key, so that the app does the work again")
	c.Flags().BoolVar(&dry, "dry-run", false, "show the ticks and run nothing")
	return c
}

// between gives the job's ticks in [from, to), none of which is to come.
func between(j config.Job, from, to string, now time.Time) ([]time.Time, error) {
	if j.Schedule == nil {
		return nil, &failure{code: exitCannot, err: fmt.Errorf("the schedule of job %q is not known here", j.Name),
			hint: "backfill needs a table without problems, and the variables of the schedule"}
	}
	first, err := instant("from", from)
	if err != nil {
		return nil, err
	}
	end, err := instant("to", to)
	if err != nil {
		return nil, err
	}
	switch {
	case !first.Before(end):
		return nil, &failure{code: exitUsage, err: fmt.Errorf("--from %s is not before --to %s", from, to)}
	case end.After(now):
		return nil, &failure{code: exitUsage, err: fmt.Errorf("--to %s is yet to come: Redis' clock is at %s", to, view.Stamp(now)),
			hint: "solotick trigger " + j.Name + " runs the job now"}
	}
	var ticks []time.Time
	for t := j.Schedule.Next(first.Add(-time.Nanosecond)); !t.IsZero() && t.Before(end); t = j.Schedule.Next(t) {
		if len(ticks) == lock.MaxBackfill {
			return nil, &failure{code: exitUsage, err: fmt.Errorf("job %q has more than %d ticks from %s to %s", j.Name, lock.MaxBackfill, from, to),
				hint: "go in steps: --to " + t.Format(time.RFC3339)}
		}
		ticks = append(ticks, t)
	}
	return ticks, nil
}

// backfillJSON is the output of `backfill -o json`, a contract: see docs/cli-json.md.
type backfillJSON struct {
	Job    string   `json:"job"`
	Ticks  []string `json:"ticks"`
	Added  int      `json:"added"`
	DryRun bool     `json:"dryRun"`
}

func (a *app) backfill(ctx context.Context, d *desk, job string, ticks []time.Time, dry, anew bool, o output) error {
	result := backfillJSON{Job: job, Ticks: []string{}, DryRun: dry}
	for _, t := range ticks {
		result.Ticks = append(result.Ticks, view.Stamp(t))
	}
	if !dry {
		err := d.operate(ctx, func(ctx context.Context) (err error) {
			ask := d.Backfill
			if anew {
				ask = d.BackfillAnew
			}
			result.Added, err = ask(ctx, job, ticks, uuid.NewString())
			return err
		})
		if err != nil {
			return err
		}
		if len(ticks) > 0 {
			a.warnIfAlone(ctx, d)
		}
	}
	if o == "json" {
		return a.printJSON(result)
	}
	for _, t := range result.Ticks {
		fmt.Fprintf(a.out, "%s  %s\n", t, job)
	}
	if dry {
		fmt.Fprintf(a.err, "note: %s; nothing was enqueued\n", plural(len(ticks), "tick"))
		return nil
	}
	under := ""
	if anew {
		under = " under new keys"
	}
	_, err := fmt.Fprintf(a.out, "enqueued %s%s\n", plural(result.Added, "tick"), under)
	return err
}
