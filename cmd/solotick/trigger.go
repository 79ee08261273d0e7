package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) triggerCommand() *cobra.Command {
	c := a.outputFlag(&cobra.Command{
		Use:   "trigger JOB",
		Short: "Run a job now, on one replica",
		Long: `Ask for one run of the job now, on one of the replicas, even if the job is paused. The schedule does not
change: the manual run has a tick of its own. If the job is already running, the manual run waits for its end. At most
100 triggers of a job can wait.

With --wait the exit code is 0 only if the run succeeded. While the run has not begun, notes say what it waits for.`,
		Example: `  solotick trigger -c table.yaml send-invoices
  solotick trigger -c table.yaml send-invoices --wait --timeout 10m
  solotick trigger -c table.yaml send-invoices -o json`,
		Args:              ofOneJob(1, 1),
		ValidArgsFunction: a.completeJobs(1),
		RunE:              a.onRedis(a.trigger),
	})
	a.authorFlags(c, "events")
	a.wait.flags(c)
	return c
}

func (a *app) trigger(ctx context.Context, op *operator, args []string) error {
	j, err := op.Startable(ctx, args[0])
	if err != nil {
		return err
	}
	due, err := op.Trigger(ctx, j, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(a.text(), "triggered %s: tick %s, request %s\n", j.Name, view.Stamp(due.Tick), due.Nonce)
	return a.asked(ctx, op, due, nil)
}

// warnIfNoReplica prints a note if no live replica can do what was asked for.
func (a *app) warnIfNoReplica(ctx context.Context, op *operator) {
	replicas, err := op.Store.Replicas(ctx)
	look := view.Look{Now: op.now(), Replicas: replicas}
	if err == nil && len(look.Live()) == 0 {
		fmt.Fprintf(a.err, "note: no replica has reported in the last %s: the request waits for one\n",
			service.HeartbeatTimeout)
	}
}
