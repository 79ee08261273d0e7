package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) cancelCommand() *cobra.Command {
	var run string
	var waiting bool
	c := a.outputFlag(&cobra.Command{
		Use:   "cancel JOB",
		Short: "End the live runs of a job",
		Long: `End the live runs of a job, or one of them: the request to the app is closed, a command gets TERM, and
KILL after its grace. A cancelled run is neither retried nor run again, even under guarantee: at-least-once, and does
not count as failed. The next ticks of the job are run as usual: to stop them too, pause the job.

With --waiting, drop what waits because somebody asked for it, by trigger, rerun or backfill, and leave live runs alone.
"solotick history" shows the dropped runs as cancelled.

The command does not wait for the end of the runs, which comes within a second or so; "solotick history" shows it. An
app may go on with its work after the request was closed. Runs of timers, and of jobs with guarantee: every-replica,
cannot be cancelled.`,
		Example: `  solotick cancel -c table.yaml send-invoices
  solotick cancel -c table.yaml send-invoices --run 5e4d3c2b --reason "fills the disk"
  solotick cancel -c table.yaml send-invoices --waiting`,
		Args:              ofOneJob(1, 1),
		ValidArgsFunction: a.completeJobs(1),
		RunE: a.onRedis(func(ctx context.Context, op *operator, args []string) error {
			name := args[0]
			if _, err := op.Cancellable(ctx, name); err != nil {
				return err
			}
			runs, waited, err := op.Cancel(ctx, name, run, waiting)
			if err != nil {
				return err
			}
			for _, tick := range waited {
				fmt.Fprintf(a.text(), "dropped %s: tick %s\n", name, view.Stamp(tick))
			}
			for _, r := range runs {
				fmt.Fprintf(a.text(), "cancelled %s: run %s\n", name, r)
			}
			return a.answer(view.NewCancelled(name, runs, waited))
		}),
	})
	a.authorFlags(c, "events")
	c.Flags().StringVar(&run, "run", "", "only the run with this `id`, or the first 8 characters of it")
	c.Flags().BoolVar(&waiting, "waiting", false, "drop what waits by hand, and end no run")
	return c
}
