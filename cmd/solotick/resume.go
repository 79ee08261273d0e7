package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

func (a *app) resumeCommand() *cobra.Command {
	c := a.outputFlag(&cobra.Command{
		Use:   "resume {JOB... | --all}",
		Short: "Resume paused jobs",
		Long: `Resume paused jobs. The ticks of the pause stay skipped: a job goes on with its next tick.

With the name of a job, resume ends the job's own pause. With --all, it ends the pause of "pause --all". Neither ends
the other: if one of them is still set, the job stays paused, and a note says so. A pattern such as 'send-*' stands for
the jobs that match it.`,
		Example: `  solotick resume -c table.yaml send-invoices
  solotick resume -c table.yaml 'send-*'
  solotick resume -c table.yaml --all`,
		ValidArgsFunction: a.completeJobs(0),
		RunE:              a.onJobs(a.resume),
	})
	a.authorFlags(c, "events")
	c.Flags().BoolVar(&a.all, "all", false, "end the pause of pause --all, for all jobs")
	return c
}

func (a *app) resume(ctx context.Context, op *operator, jobs []string) error {
	by := map[bool]string{true: " by pause --all"}[a.all]
	rows := []view.Resumed{}
	failed := each(jobs, func(job string) error {
		resumed, err := op.Resume(ctx, job)
		if err != nil {
			return err
		}
		rows = append(rows, view.Resumed{Job: job, Resumed: resumed})
		said := map[bool]string{true: "resumed " + job, false: job + " was not paused" + by}[resumed]
		fmt.Fprintln(a.text(), said)
		return nil
	})
	a.noteStillPaused(ctx, op, jobs)
	if err := a.answer(rows); err != nil { // those that were done, if others were not
		return err
	}
	return failed
}

// noteStillPaused names the jobs that another pause still holds: the operator has resumed them and expects them to run.
func (a *app) noteStillPaused(ctx context.Context, op *operator, jobs []string) {
	standings, err := op.Store.Standings(ctx, jobs)
	if err != nil { // the jobs are resumed; only the note is missing
		return
	}
	note := func(job, by string, p *service.Pause) {
		if p != nil {
			fmt.Fprintf(a.err, "note: %s stays paused %s by %s%s: %s\n",
				job, untilWords(p.Until), by, text.Between(" of ", p.By, ""), p.Reason)
		}
	}
	for _, job := range jobs {
		note(job, "its own pause", standings[job].Paused)
		note(job, "pause --all", standings[job].PausedAll)
	}
}
