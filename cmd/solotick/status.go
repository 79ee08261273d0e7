package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/view"
)

// fastestWatch bounds the load of a forgotten --watch on Redis.
const fastestWatch = 500 * time.Millisecond

func (a *app) statusCommand() *cobra.Command {
	var (
		o        output
		watch    bool
		interval time.Duration
	)
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the state of all jobs and replicas",
		Long: `Show for each job its last run, its next tick, its running and waiting ticks, its pauses and its last skips. Show for each
replica its version, table, clock offset and readiness. Times are by Redis' clock. The next ticks are those of the table given
here.`,
		Example: `  solotick status -c table.yaml
  solotick status -c table.yaml --watch --interval 5s
  solotick status -c table.yaml -o json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			_, _, isTerminal := terminal(a.out)
			switch {
			case !watch && c.Flags().Changed("interval"):
				return &failure{code: exitUsage, err: errors.New("--interval needs --watch"), hint: "solotick status --watch --interval 5s"}
			case watch && (o == "json" || !isTerminal):
				return &failure{code: exitUsage, err: errors.New("--watch needs a terminal"), hint: "solotick status -o json"}
			case interval < fastestWatch:
				return &failure{code: exitUsage, err: fmt.Errorf("--interval %s is shorter than %s", interval, fastestWatch), hint: "--interval 2s"}
			}
			return a.withOperator(func(ctx context.Context, op *operator) error {
				if watch {
					a.watch(ctx, op, interval)
					return nil
				}
				return a.status(ctx, op, o)
			})
		},
	}
	o.flag(c)
	c.Flags().BoolVar(&watch, "watch", false, "draw the status again and again until interrupted")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "with --watch: `duration` from one drawing to the next")
	return c
}

func (a *app) status(ctx context.Context, op *operator, o output) error {
	look, err := op.look(ctx)
	if err != nil {
		return operatorFailure(err)
	}
	if o == "json" {
		return a.printJSON(look.Status())
	}
	columns, _, _ := terminal(a.out)
	_, err = fmt.Fprint(a.out, status{look}.text(columns))
	return err
}

// look takes a look at all jobs.
func (op *operator) look(ctx context.Context) (*view.Look, error) {
	all, err := op.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	return view.Take(ctx, op.Store, op.Table(), all)
}
