package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/view"
)

const (
	// maxHistory bounds -n: about as many runs as Redis keeps.
	maxHistory = 20_000
	// handoversPerTick is how many handovers a tick usually has at most. They have no rows of their own, so the command
	// reads that many more entries.
	handoversPerTick = 20
)

func (a *app) historyCommand() *cobra.Command {
	var (
		o      output
		n      int
		failed bool
	)
	c := &cobra.Command{
		Use:   "history [JOB]",
		Short: "Show the newest runs and how they ended",
		Long: `Show the newest runs of one job, or of all jobs, and how they ended, the newest first. Redis keeps about ten thousand runs,
and about ten thousand failed runs. Missed ticks have rows too. JOB may be a job that is no longer in the table.`,
		Example: `  solotick history -c table.yaml
  solotick history -c table.yaml send-invoices -n 50
  solotick history -c table.yaml --failed -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if n < 1 || n > maxHistory {
				return &failure{code: exitUsage, err: fmt.Errorf("--count %d is not between 1 and %d", n, maxHistory), hint: "-n 20"}
			}
			if len(args) > 1 {
				return oneJob(c, args)
			}
			return a.withOperator(func(ctx context.Context, op *operator) error {
				return a.history(ctx, op, strings.Join(args, ""), n, failed, o)
			})
		},
	}
	o.flag(c)
	c.Flags().IntVarP(&n, "count", "n", 20, "at most `number` runs")
	c.Flags().BoolVar(&failed, "failed", false, "only runs that failed")
	return c
}

func (a *app) history(ctx context.Context, op *operator, job string, n int, failed bool, o output) error {
	many := n
	if !failed && o != "json" {
		many = min(handoversPerTick*n, maxHistory)
	}
	entries, err := op.Runs(ctx, job, failed, many)
	if err != nil {
		return err
	}
	if o == "json" {
		return a.printJSON(view.NewEntries(entries, op.Table()))
	}
	columns, _, _ := terminal(a.out)
	g := grid{width: columns, names: []int{1, 6}}
	g.add("TICK (UTC)", "JOB", "KIND", "OUTCOME", "TOOK", "ENDED", "REPLICA")
	for _, e := range view.Fold(entries, n) {
		g.add(formatTime(e.Tick), e.Job, kindWords(e.Kind, e.Attempt), e.Outcome, took(e.Took), ago(op.now(), e.Ended), e.Replica)
		if e.Count > 1 {
			g.note(fmt.Sprintf("%d ticks, the first at %s", e.Count, formatTime(e.First)))
		}
		if e.Detail != "" {
			g.note(e.Detail)
		}
		if words := e.HandedWords(); words != "" {
			g.note(words)
		}
	}
	_, err = fmt.Fprintln(a.out, strings.Join(g.lines(), "\n"))
	return err
}

// kindWords returns a run's kind, followed by the attempt if it is not the first.
func kindWords(kind string, attempt int) string {
	if attempt > 1 {
		return fmt.Sprintf("%s, try %d", kind, attempt)
	}
	return kind
}
