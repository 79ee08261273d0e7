package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin/view"
	"github.com/solotick/solotick/sidecar/service"
)

// lookInterval is how often --wait looks: a run's end is told so much late.
const lookInterval = 500 * time.Millisecond

func (a *app) triggerCommand() *cobra.Command {
	var (
		o    output
		wait bool
	)
	c := &cobra.Command{
		Use:   "trigger JOB",
		Short: "Run a job now, on one replica",
		Long: `One of the replicas runs the job now, even if the job is paused. The schedule does not change: the run has a tick of its own.
If the job runs already, the new run waits for its end. At most 100 triggers of a job can wait.

With --wait the exit code is 0 only when the run succeeded.`,
		Example: `  solotick trigger -c table.yaml send-invoices
  solotick trigger -c table.yaml send-invoices --wait
  solotick trigger -c table.yaml send-invoices -o json`,
		Args:              oneJob,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.at(func(ctx context.Context, d *desk) error { return a.trigger(ctx, d, args[0], wait, o) })
		},
	}
	o.flag(c)
	c.Flags().BoolVar(&wait, "wait", false, "wait for the end of the run and show it")
	return c
}

func (a *app) trigger(ctx context.Context, d *desk, name string, wait bool, o output) error {
	if _, err := d.Claimed(ctx, name); err != nil {
		return err
	}
	due, err := d.Trigger(ctx, name, "")
	if err != nil {
		return err
	}
	if o != "json" {
		fmt.Fprintf(a.out, "triggered %s: tick %s, request %s\n", name, view.Stamp(due.Tick), due.Nonce)
	}
	a.warnIfAlone(ctx, d)
	result := view.NewTriggered(due)
	if !wait {
		return a.printTriggered(result, o)
	}
	entry, err := await(ctx, d.Store, due)
	if err != nil {
		return err
	}
	made := view.NewEntry(*entry)
	result.Result = &made
	if err := a.printTriggered(result, o); err != nil {
		return err
	}
	if entry.Outcome != succeeded {
		return &failure{code: exitProblem} // the output has said all
	}
	return nil
}

// succeeded is the outcome that is none of the others.
const succeeded = "succeeded"

func (a *app) printTriggered(r view.Triggered, o output) error {
	if o == "json" {
		return a.printJSON(r)
	}
	if e := r.Result; e != nil {
		end := fmt.Sprintf("%s on %s", e.Outcome, e.Replica)
		if e.DurationMS > 0 {
			end += " after " + took(time.Duration(e.DurationMS)*time.Millisecond)
		}
		fmt.Fprintln(a.out, text.OneLine(end+": run "+e.Run))
		if e.Detail != "" {
			fmt.Fprintf(a.out, "  %s\n", text.OneLine(e.Detail))
		}
	}
	return nil
}

// warnIfAlone says so when nobody is there to do what was asked for.
func (a *app) warnIfAlone(ctx context.Context, d *desk) {
	replicas, err := d.Store.Replicas(ctx)
	alive := func(r service.Replica) bool { return d.now().Sub(r.Seen) <= service.HeartbeatTimeout }
	if err == nil && !slices.ContainsFunc(replicas, alive) {
		fmt.Fprintf(a.err, "note: no replica was seen in the last %s: it waits for one\n", service.HeartbeatTimeout)
	}
}

// records tell how a tick ended.
type records interface {
	History(ctx context.Context, job string, limit int) ([]service.Entry, error)
	States(ctx context.Context, jobs []string) (map[string]service.JobState, error)
}

// await looks until the tick was run, be it on several replicas one after the other. Redis may be away meanwhile.
func await(ctx context.Context, r records, due lock.Due) (*service.Entry, error) {
	for gone := 0; ; {
		// The history first: when the run that it shows is to be run again, that is seen after it.
		history, err := r.History(ctx, due.Job, 100)
		var states map[string]service.JobState
		if err == nil {
			states, err = r.States(ctx, []string{due.Job})
		}
		if entry, over := ending(due, history, states[due.Job]); err == nil && over {
			if entry != nil && entry.Outcome != service.HandedOver {
				return entry, nil
			}
			switch gone++; { // between two looks it may just have ended, or been handed on
			case gone < 3:
			case entry != nil: // and dropped by whoever took it up
				return entry, nil
			default:
				return nil, &failure{code: exitProblem, err: errors.New("the run neither waits nor runs, and the history does not know it"),
					hint: "a replica may have dropped it, or Redis has lost its data: see the replicas' logs"}
			}
		}
		select {
		case <-time.After(lookInterval):
		case <-ctx.Done():
			return nil, &failure{code: exitCannot, err: errors.New("not waiting any longer; what was triggered goes on"),
				hint: fmt.Sprintf("solotick history %s", due.Job)}
		}
	}
}

// ending tells whether a tick neither waits nor runs any more, and what the history, newest first, knows of its end.
func ending(due lock.Due, history []service.Entry, state service.JobState) (entry *service.Entry, over bool) {
	if slices.ContainsFunc(state.Waiting, func(w lock.Due) bool { return w.Tick.Equal(due.Tick) }) ||
		slices.ContainsFunc(state.Running, func(r service.RunState) bool { return r.Tick.Equal(due.Tick) }) {
		return nil, false
	}
	i := slices.IndexFunc(history, func(e service.Entry) bool { return e.Tick.Equal(due.Tick) })
	if i < 0 {
		return nil, true
	}
	return &history[i], true
}
