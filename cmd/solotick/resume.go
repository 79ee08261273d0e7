package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) resumeCommand() *cobra.Command {
	var (
		o   output
		all bool
	)
	c := &cobra.Command{
		Use:   "resume {JOB... | --all}",
		Short: "Let paused jobs go on",
		Long:  `Let paused jobs go on. The ticks of the pause stay settled: the next one that is fired is the next to come.`,
		Example: `  solotick resume -c table.yaml send-invoices
  solotick resume -c table.yaml --all`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			ctx, stop := interruptible()
			defer stop()
			d, err := a.desk(ctx)
			if err != nil {
				return err
			}
			defer d.close()
			jobs, err := d.jobs(c, args, all)
			if err != nil {
				return err
			}
			return a.resume(ctx, d, jobs, o)
		},
	}
	o.flag(c)
	c.Flags().BoolVar(&all, "all", false, "all jobs of the table")
	return c
}

// resumedJSON is one row of `resume -o json`, a contract: see docs/cli-json.md.
type resumedJSON struct {
	Job     string `json:"job"`
	Resumed bool   `json:"resumed"`
}

func (a *app) resume(ctx context.Context, d *desk, jobs []string, o output) error {
	rows := []resumedJSON{}
	failed := d.operateEach(ctx, jobs, func(ctx context.Context, job string) error {
		resumed, err := d.Resume(ctx, job)
		if err != nil {
			return err
		}
		rows = append(rows, resumedJSON{job, resumed})
		if o != "json" {
			said := map[bool]string{true: "resumed " + job, false: job + " was not paused"}[resumed]
			fmt.Fprintln(a.out, said)
		}
		return nil
	})
	return a.printEach(rows, o, failed)
}
