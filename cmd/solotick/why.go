package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
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
			var at time.Time
			if len(args) == 2 {
				if at, err = tickArgument(args[1], j, op.now()); err != nil {
					return err
				}
			}
			w, err := view.Explain(ctx, op.Store, op.Table(), j, at)
			if err != nil {
				return operatorFailure(err)
			}
			return a.answer(w, w.Text)
		}),
	})
}

// tickArgument reads the time of a tick as an operator writes it. A time of day is the last one that has come.
func tickArgument(value string, j config.Job, now time.Time) (time.Time, error) {
	at := moment{tick: true}
	if at.Set(value) != nil {
		hint := fmt.Sprintf("solotick why %s 09:00, or as in RFC 3339: %s", j.Name, now.UTC().Format(time.RFC3339))
		return time.Time{}, usage(hint, "%q is not the time of a tick", value)
	}
	given, err := at.field("solotick why "+j.Name, j, now)
	return given.Time, err
}
