package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/admin/view"
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
			return a.at(func(ctx context.Context, d *desk) error {
				jobs, err := d.jobs(ctx, c, args, all)
				if err != nil {
					return err
				}
				return a.resume(ctx, d, jobs, o)
			})
		},
	}
	o.flag(c)
	c.Flags().BoolVar(&all, "all", false, "all jobs, those made through the API too")
	return c
}

func (a *app) resume(ctx context.Context, d *desk, jobs []string, o output) error {
	rows := []view.Resumed{}
	failed := d.operateEach(ctx, jobs, func(ctx context.Context, job string) error {
		resumed, err := d.Resume(ctx, job)
		if err != nil {
			return err
		}
		rows = append(rows, view.Resumed{Job: job, Resumed: resumed})
		if o != "json" {
			said := map[bool]string{true: "resumed " + job, false: job + " was not paused"}[resumed]
			fmt.Fprintln(a.out, said)
		}
		return nil
	})
	return a.printEach(rows, o, failed)
}
