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
		Short: "Resume paused jobs",
		Long: `Resume paused jobs. The ticks of the pause stay dropped: the next tick that is fired is the next one of the schedule.

With the name of a job, resume lifts the job's own pause. With --all, it lifts the pause of "pause --all". Neither lifts the
other: if one of them is still set, the job stays paused, and a note says so.`,
		Example: `  solotick resume -c table.yaml send-invoices
  solotick resume -c table.yaml --all`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.at(func(ctx context.Context, d *desk) error {
				jobs, err := d.pick(ctx, c, args, all)
				if err != nil {
					return err
				}
				return a.resume(ctx, d, jobs, all, o)
			})
		},
	}
	o.flag(c)
	c.Flags().BoolVar(&all, "all", false, "lift the pause of pause --all, for all jobs")
	return c
}

func (a *app) resume(ctx context.Context, d *desk, jobs []string, all bool, o output) error {
	by := map[bool]string{true: " by pause --all"}[all]
	rows := []view.Resumed{}
	failed := each(jobs, func(job string) error {
		resumed, err := d.Resume(ctx, job, all)
		if err != nil {
			return err
		}
		rows = append(rows, view.Resumed{Job: job, Resumed: resumed})
		if o != "json" {
			said := map[bool]string{true: "resumed " + job, false: job + " was not paused" + by}[resumed]
			fmt.Fprintln(a.out, said)
		}
		return nil
	})
	a.noteStillPaused(ctx, d, jobs)
	return a.printEach(rows, o, failed)
}

// noteStillPaused says which of the jobs another pause still holds: whoever has resumed them expects them to run.
func (a *app) noteStillPaused(ctx context.Context, d *desk, jobs []string) {
	states, err := d.Store.States(ctx, jobs)
	if err != nil { // they were resumed all the same
		return
	}
	for _, job := range jobs {
		state := states[job]
		if p := state.Paused; p != nil {
			fmt.Fprintf(a.err, "note: %s stays paused %s by its own pause: %s\n", job, untilWords(p.Until), p.Reason)
		}
		if p := state.PausedAll; p != nil {
			fmt.Fprintf(a.err, "note: %s stays paused %s by pause --all: %s\n", job, untilWords(p.Until), p.Reason)
		}
	}
}
