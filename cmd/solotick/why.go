package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) whyCommand() *cobra.Command {
	return a.outputFlag(&cobra.Command{
		Use:   "why JOB [TIME]",
		Short: "Tell what became of a tick, or how a job stands",
		Long: `Tell what became of the tick of JOB at TIME: who fired it, how it ended, or why no replica fired it.
Without TIME, tell how the job stands, and what would make it fire. TIME is as in RFC 3339, or "2027-03-28 09:00",
2027-03-28 or 09:00 in the job's time zone; 09:00 is the last one that has come. Redis keeps as many ticks as
solotick history has entries. JOB may be a timer: timer:ID.`,
		Example: `  solotick why -c table.yaml send-invoices
  solotick why -c table.yaml send-invoices 09:00
  solotick why -c table.yaml send-invoices 2026-11-23T08:00:00Z -o json`,
		Args:              ofOneJob(1, 2),
		ValidArgsFunction: a.completeJobs(1),
		RunE: a.onRedis(func(ctx context.Context, op *operator, args []string) error {
			j, err := op.FindAny(ctx, args[0])
			if err != nil {
				return operatorFailure(err)
			}
			tick := moment{tick: true}
			if len(args) == 2 && tick.Set(args[1]) != nil {
				return usage(fmt.Sprintf("solotick why %s 09:00, or as in RFC 3339: %s", j.Name,
					op.now().UTC().Format(time.RFC3339)), "%q is not the time of a tick", args[1])
			}
			at, err := tick.field("solotick why "+j.Name, j, op.now())
			if err != nil {
				return err
			}
			w, err := view.Explain(ctx, op.Store, op.Table(), j, at.Time)
			if err != nil {
				return operatorFailure(err)
			}
			return a.answer(w, w.Text)
		}),
	})
}
