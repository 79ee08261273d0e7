package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/admin/view"
)

const (
	// maxHistory bounds -n: what Redis keeps, roughly.
	maxHistory = 20_000
	// handedMost is how many handovers there are before the end of a tick, as a rule: they take no row of their own.
	handedMost = 20
)

func (a *app) historyCommand() *cobra.Command {
	var (
		o      output
		n      int
		failed bool
	)
	c := &cobra.Command{
		Use:   "history [JOB]",
		Short: "Show what became of the newest runs",
		Long: `Show what became of the newest runs of one job or of all, the last one first. Redis keeps some ten thousand runs, and as
many of those that failed. JOB may be one that is not in the table any more.`,
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
			return a.at(func(ctx context.Context, d *desk) error {
				return a.history(ctx, d, strings.Join(args, ""), n, failed, o)
			})
		},
	}
	o.flag(c)
	c.Flags().IntVarP(&n, "count", "n", 20, "at most `number` runs")
	c.Flags().BoolVar(&failed, "failed", false, "only runs that failed")
	return c
}

func (a *app) history(ctx context.Context, d *desk, job string, n int, failed bool, o output) error {
	many := n
	if !failed && o != "json" {
		many = min(handedMost*n, maxHistory)
	}
	entries, err := d.Runs(ctx, job, failed, many)
	if err != nil {
		return err
	}
	if o == "json" {
		return a.printJSON(view.NewEntries(entries))
	}
	columns, _, _ := terminal(a.out)
	g := grid{width: columns, names: []int{1, 6}}
	g.add("TICK (UTC)", "JOB", "KIND", "OUTCOME", "TOOK", "ENDED", "REPLICA")
	for _, e := range view.Fold(entries, n) {
		g.add(moment(e.Tick), e.Job, kindWords(e.Kind, e.Attempt), e.Outcome, took(e.Took), ago(d.now(), e.Ended), e.Replica)
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

// kindWords is a run's kind, with its attempt where that is not the first.
func kindWords(kind string, attempt int) string {
	if attempt > 1 {
		return fmt.Sprintf("%s, try %d", kind, attempt)
	}
	return kind
}
