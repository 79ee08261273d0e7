package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) triggerCommand() *cobra.Command {
	var (
		data string
	)
	c := a.outputFlag(&cobra.Command{
		Use:   "trigger JOB",
		Short: "Run a job now, on one replica",
		Long: `Ask for one run of the job now, on one of the replicas, even if the job is paused. The schedule does not
change: the manual run has a tick of its own. If the job is already running, the manual run waits for its end. At most
100 triggers of a job can wait.

With --data the run gets JSON of at most 64 KiB, if the table has trigger: {data: true} for the job. An http job gets it
as the request's body, a command as standard input and, up to 32 KiB, as SOLOTICK_DATA. Redis keeps it until the run has
ended, and for a day at most.

With --wait the exit code is 0 only if the run succeeded. While the run has not begun, notes say what it waits for.`,
		Example: `  solotick trigger -c table.yaml send-invoices
  solotick trigger -c table.yaml send-invoices --wait --timeout 10m
  solotick trigger -c table.yaml send-invoices --data '{"customer": 42}'
  solotick trigger -c table.yaml send-invoices --data @customers.json
  solotick trigger -c table.yaml send-invoices -o json`,
		Args:              oneJob,
		ValidArgsFunction: a.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			brought, err := a.readData(c, data)
			if err != nil {
				return err
			}
			return a.withOperator(func(ctx context.Context, op *operator) error {
				return a.trigger(ctx, op, args[0], brought)
			})
		},
	})
	a.authorFlags(c, "events")
	a.wait.flags(c)
	c.Flags().StringVar(&data, "data", "", dataHelp)
	return c
}

const dataHelp = "`JSON` for the run, or @FILE with it; @- is standard input"

// readData returns the data that --data gives or names; nil without that flag.
func (a *app) readData(c *cobra.Command, given string) ([]byte, error) {
	if !c.Flag("data").Changed {
		return nil, nil
	}
	data, err := a.content(given, "data")
	if err != nil {
		return nil, err
	}
	return service.CheckData("--data", data)
}

func (a *app) trigger(ctx context.Context, op *operator, name string, data []byte) error {
	j, err := op.Claimed(ctx, name)
	if err != nil {
		return err
	}
	due, err := op.Trigger(ctx, j, "", data)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.text(), "triggered %s: tick %s, request %s\n", name, view.Stamp(due.Tick), due.Nonce)
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
