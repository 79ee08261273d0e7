package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/admin/view"
)

// fastestWatch keeps a forgotten --watch from being a load on Redis.
const fastestWatch = 500 * time.Millisecond

func (a *app) statusCommand() *cobra.Command {
	var (
		o        output
		watch    bool
		interval time.Duration
	)
	c := &cobra.Command{
		Use:   "status",
		Short: "Show all jobs and replicas as they are now",
		Long: `Show of each job its last run, its next tick, what runs, waits or is paused now and what was skipped last; and of each
replica its version, table, clock offset and readiness. Times are Redis' own. The next ticks are those of the table that
is given here.`,
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
				return &failure{code: exitUsage, err: errors.New("--interval is of --watch"), hint: "solotick status --watch --interval 5s"}
			case watch && (o == "json" || !isTerminal):
				return &failure{code: exitUsage, err: errors.New("--watch draws on a terminal"), hint: "solotick status -o json"}
			case interval < fastestWatch:
				return &failure{code: exitUsage, err: fmt.Errorf("--interval %s is shorter than %s", interval, fastestWatch), hint: "--interval 2s"}
			}
			return a.at(func(ctx context.Context, d *desk) error {
				if watch {
					a.watch(ctx, d, interval)
					return nil
				}
				return a.status(ctx, d, o)
			})
		},
	}
	o.flag(c)
	c.Flags().BoolVar(&watch, "watch", false, "draw anew until it is interrupted")
	c.Flags().DurationVar(&interval, "interval", 2*time.Second, "with --watch: `duration` from one drawing to the next")
	return c
}

func (a *app) status(ctx context.Context, d *desk, o output) error {
	look, err := d.look(ctx)
	if err != nil {
		return cannot(err)
	}
	if o == "json" {
		return a.printJSON(look.Status())
	}
	columns, _, _ := terminal(a.out)
	_, err = fmt.Fprint(a.out, status{look}.text(columns))
	return err
}

// look takes a look at all jobs.
func (d *desk) look(ctx context.Context) (*view.Look, error) {
	all, err := d.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	return view.Take(ctx, d.Store, d.Table(), all)
}
