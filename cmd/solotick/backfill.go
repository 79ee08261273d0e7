package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) backfillCommand() *cobra.Command {
	from, to := moment{}, moment{end: true}
	var dry, anew, yes bool
	c := a.outputFlag(&cobra.Command{
		Use:   "backfill JOB --from TIME --to TIME",
		Short: "Run a job for past ticks",
		Long: fmt.Sprintf(`Run a job once for each tick that its schedule has from --from (inclusive) to --to
(exclusive), %d at most, also while the job is paused. The ticks wait for each other, and a tick of the schedule that is
due goes first. Backfill asks first if they are more than %d. "solotick cancel JOB --waiting" drops those that wait.

Ticks that were fired before are fired again: the promise that no tick is fired twice does not cover manual runs. Check
the ticks with --dry-run first.

Each tick is sent under the Idempotency-Key that it had before. An app that keeps its answers by key answers such a
request from its store, and does the work only for ticks that it has not seen. To have the app do all of them again, use
--new-keys.`, service.MaxBackfill, unasked),
		Example: `  solotick backfill -c table.yaml send-invoices --from 2027-03-01T00:00:00Z --to 2027-03-08T00:00:00Z
  solotick backfill -c table.yaml send-invoices --from 2027-03-01T00:00:00Z --to 2027-03-08T00:00:00Z --dry-run
  solotick backfill -c table.yaml send-invoices --from 2027-03-01T00:00:00Z --to 2027-03-08T00:00:00Z --new-keys`,
		Args:              ofOneJob(1, 1),
		ValidArgsFunction: a.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !from.given() || !to.given() {
				return usage(c.CommandPath()+" --help", "backfill needs --from and --to")
			}
			return a.withOperator(func(ctx context.Context, op *operator) error {
				j, err := op.Scheduled(ctx, args[0])
				if err != nil {
					return err
				}
				now := op.now()
				first, err := from.field("--from", j, now)
				last, wrong := to.field("--to", j, now)
				if err = cmp.Or(err, wrong); err != nil {
					return err
				}
				ticks, err := service.Ticks(j, first, last, now)
				if err != nil {
					return err
				}
				if len(ticks) > unasked && !dry && !yes {
					if err := a.confirm(fmt.Sprintf("run job %q for %d ticks", j.Name, len(ticks))); err != nil {
						return err
					}
				}
				return a.backfill(ctx, op, j.Name, ticks, dry, anew)
			})
		},
	})
	a.authorFlags(c, "events")
	c.Flags().Var(&from, "from", "first `time`, inclusive"+timeOfJobHelp)
	c.Flags().Var(&to, "to", "last `time`, exclusive; in the same forms")
	c.Flags().BoolVar(&anew, "new-keys", false, "new Idempotency-Keys, so that the app does the work again")
	c.Flags().BoolVar(&dry, "dry-run", false, "show the ticks and run nothing")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask first, however many ticks there are")
	return c
}

// unasked is how many ticks a backfill runs without asking first.
const unasked = 20

// confirm asks at the terminal whether to do something.
func (a *app) confirm(what string) error {
	if _, ok := terminal(os.Stdin); !ok {
		return usage("--dry-run shows the ticks; --yes runs them",
			"to %s needs a yes, and nobody can be asked here", what)
	}
	fmt.Fprintf(a.err, "%s? [y/N] ", what)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n') // what cannot be read is no yes
	if !strings.HasPrefix(strings.ToLower(answer), "y") {
		return problem("", "nothing was enqueued")
	}
	return nil
}

// backfillJSON is the output of `backfill -o json`, a contract: see docs/cli-json.md.
type backfillJSON struct {
	Job    string   `json:"job"`
	Ticks  []string `json:"ticks"`
	Added  int      `json:"added"`
	DryRun bool     `json:"dryRun"`
}

func (a *app) backfill(ctx context.Context, op *operator, job string, ticks []time.Time, dry, anew bool) error {
	result := backfillJSON{Job: job, Ticks: view.Each(ticks, view.Stamp), DryRun: dry}
	if !dry {
		var err error
		if result.Added, err = op.Backfill(ctx, job, ticks, anew); err != nil {
			return err
		}
		if len(ticks) > 0 {
			a.warnIfNoReplica(ctx, op)
		}
	}
	if a.output == "json" {
		return a.printJSON(result)
	}
	for _, t := range result.Ticks {
		fmt.Fprintf(a.out, "%s  %s\n", t, job)
	}
	if len(ticks) == 0 {
		fmt.Fprintf(a.err, "note: job %q has no ticks in that time: "+
			"solotick next %[1]s --from TIME --to TIME shows its ticks\n", job)
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
