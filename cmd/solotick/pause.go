package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// pauseFlags say how long a pause lasts.
type pauseFlags struct {
	until moment
	span  length
}

func (a *app) pauseCommand() *cobra.Command {
	f := pauseFlags{until: moment{ahead: true}, span: length{example: "2h"}}
	c := a.outputFlag(&cobra.Command{
		Use:   "pause {JOB... | --all} --reason TEXT",
		Short: "Pause jobs on all replicas",
		Long: `Pause jobs on all replicas until they are resumed or the given time is reached. Replicas skip the ticks
that come due during the pause, for good. Runs that wait by trigger, rerun or backfill wait on. Runs under way go on,
and so does what is asked for while the job is paused.

A job can have two pauses, its own and that of --all, and runs when neither is set. Pausing a job again replaces the
reason and the end of its own pause; --all does not change it. --all pauses the jobs that exist now, not jobs that are
added later. A pattern such as 'send-*' stands for the jobs that exist now and match it.

A pause is lost if Redis loses its data; to be sure, set suspend: true in the table.`,
		Example: `  solotick pause -c table.yaml send-invoices --reason "database migration"
  solotick pause -c table.yaml send-invoices tidy-up --reason "database migration" --for 2h
  solotick pause -c table.yaml 'send-*' --reason "mail server is down" --until 18:00
  solotick pause -c table.yaml --all --reason "moving house" --until 2027-03-28T06:00:00Z`,
		ValidArgsFunction: a.completeJobs(0),
		RunE: a.onJobs(func(ctx context.Context, op *operator, jobs []string) error {
			return a.pause(ctx, op, jobs, f)
		}),
	})
	c.Flags().BoolVar(&a.all, "all", false, "all jobs")
	a.authorFlags(c, "status and events")
	c.Flags().Var(&f.until, "until", "end of the pause: `time`"+timeAheadHelp+" (default: until it is resumed)")
	c.Flags().Var(&f.span, "for", "length of the pause: `duration`, such as 90m or 2d")
	checks(c, func() error {
		return service.CheckPause(service.Field{Name: "--reason", Text: a.author.Reason},
			service.Field{Name: "--until", Text: f.until.text}, service.Field{Name: "--for", Text: f.span.String()})
	})
	return c
}

// end returns when the pause ends; zero if it lasts until it is resumed.
func (f *pauseFlags) end(ctx context.Context, op *operator) (time.Time, error) {
	switch {
	case f.span.Duration > 0:
		return op.PauseEnd(ctx, f.span.Duration)
	case !f.until.given():
		return time.Time{}, nil
	}
	now := op.now()
	until := f.until.read(now, time.UTC).First
	if !until.After(now) {
		return time.Time{}, usage("", "--until %s has passed: Redis' clock is at %s", f.until.text, view.Stamp(now))
	}
	return until, nil
}

func (a *app) pause(ctx context.Context, op *operator, jobs []string, f pauseFlags) error {
	until, err := f.end(ctx, op)
	if err != nil {
		return err
	}
	rows := []view.Paused{}
	failed := each(jobs, func(job string) error {
		if err := op.Pause(ctx, job, a.author.Reason, until); err != nil {
			return err
		}
		rows = append(rows, view.NewPaused(job, a.author.Reason, until))
		fmt.Fprintf(a.text(), "paused %s %s: %s\n", job, untilWords(until), a.author.Reason)
		return nil
	})
	if err := a.answer(rows); err != nil { // those that were done, if others were not
		return err
	}
	return failed
}

func untilWords(until time.Time) string {
	if until.IsZero() {
		return "until it is resumed"
	}
	return "until " + formatTime(until)
}

// each calls act for one job after the other, and goes on after a job that Redis does not know.
func each(jobs []string, act func(job string) error) error {
	var unknown error
	for _, job := range jobs {
		err := act(job)
		if err != nil && !errors.Is(err, service.ErrUnknownJob) {
			return err
		}
		unknown = cmp.Or(unknown, err)
	}
	return unknown
}
