package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) rerunCommand() *cobra.Command {
	tick, force := moment{tick: true}, false
	c := a.outputFlag(&cobra.Command{
		Use:   "rerun JOB",
		Short: "Run a failed tick again",
		Long: `Run a tick of the job's schedule again, on one of the replicas, even if the job is paused: the newest
tick that failed, or that of --tick. The run has the tick's own Idempotency-Key. --force also runs any other.

rerun runs one past tick under its own key, trigger the job now under a new tick, and backfill all ticks of a range.

With --wait the exit code is 0 only if the run succeeded.`,
		Example: `  solotick rerun -c table.yaml send-invoices
  solotick rerun -c table.yaml send-invoices --tick 2027-03-28T07:00:00Z --wait --timeout 5m`,
		Args:              ofOneJob(1, 1),
		ValidArgsFunction: a.completeJobs(1),
		RunE: a.onRedis(func(ctx context.Context, op *operator, args []string) error {
			j, err := op.Startable(ctx, args[0])
			if err != nil {
				return err
			}
			before, err := op.Store.History(ctx, j.Name, historyOfWait)
			if err != nil {
				return operatorFailure(err)
			}
			given, err := tick.field("--tick", j, op.now())
			if err != nil {
				return err
			}
			due, err := op.Rerun(ctx, j, given, force, "")
			if err != nil {
				return err
			}
			fmt.Fprintf(a.text(), "rerunning %s: tick %s, request %s\n", j.Name, view.Stamp(due.Tick), due.Nonce)
			return a.asked(ctx, op, due, before)
		}),
	})
	a.authorFlags(c, "events")
	a.wait.flags(c)
	c.Flags().Var(&tick, "tick", "`time` of the tick"+timeOfJobHelp+" (default: the newest tick that failed)")
	c.Flags().BoolVar(&force, "force", false, "run the tick even if it did not fail")
	return c
}
