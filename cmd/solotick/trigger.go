package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// lookInterval is how often --wait asks Redis: it reports the end of a run late by up to this.
const lookInterval = 500 * time.Millisecond

func (a *app) triggerCommand() *cobra.Command {
	var (
		data string
	)
	c := a.outputFlag(&cobra.Command{
		Use:   "trigger JOB",
		Short: "Run a job now, on one replica",
		Long: `Ask for one run of the job now, on one of the replicas, even if the job is paused. The schedule does not
change: the manual run has a tick of its own. If the job is already running, the manual run waits for its end. At most
100 triggers of a job can wait.

With --data the run gets JSON of at most 64 KiB, if the table has trigger: {data: true} for the job. An http job gets it
as the request's body, a command as standard input and, up to 32 KiB, as SOLOTICK_DATA. Redis keeps it until the run has
ended, and for a day at most.

With --wait the exit code is 0 only if the run succeeded. While the run has not begun, notes say what it waits for.`,
		Example: `  solotick trigger -c table.yaml send-invoices
  solotick trigger -c table.yaml send-invoices --wait --timeout 10m
  solotick trigger -c table.yaml send-invoices --data '{"customer": 42}'
  solotick trigger -c table.yaml send-invoices --data @customers.json
  solotick trigger -c table.yaml send-invoices -o json`,
		Args:              oneJob,
		ValidArgsFunction: a.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			brought, err := a.readData(c, data)
			if err != nil {
				return err
			}
			return a.withOperator(func(ctx context.Context, op *operator) error {
				return a.trigger(ctx, op, args[0], brought)
			})
		},
	})
	a.authorFlags(c, "events")
	a.wait.flags(c)
	c.Flags().StringVar(&data, "data", "", dataHelp)
	return c
}

const dataHelp = "`JSON` for the run, or @FILE with it; @- is standard input"

// readData returns the data that --data gives or names; nil without that flag.
func (a *app) readData(c *cobra.Command, given string) ([]byte, error) {
	if !c.Flag("data").Changed {
		return nil, nil
	}
	data, err := a.content(given, "data")
	if err != nil {
		return nil, err
	}
	return service.CheckData("--data", data)
}

func (a *app) trigger(ctx context.Context, op *operator, name string, data []byte) error {
	j, err := op.Claimed(ctx, name)
	if err != nil {
		return err
	}
	due, err := op.Trigger(ctx, j, "", data)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.text(), "triggered %s: tick %s, request %s\n", name, view.Stamp(due.Tick), due.Nonce)
	return a.asked(ctx, op, due, nil)
}

// succeeded is the outcome of a run without a failure.
const succeeded = "succeeded"

func (a *app) printTriggered(r view.Triggered) error {
	if e := r.Result; e != nil {
		end := fmt.Sprintf("%s on %s", e.Outcome, e.Replica)
		if e.DurationMS > 0 {
			end += " after " + took(time.Duration(e.DurationMS)*time.Millisecond)
		}
		fmt.Fprintln(a.text(), text.OneLine(end+": run "+e.Run))
		if e.Detail != "" {
			fmt.Fprintf(a.text(), "  %s\n", text.OneLine(e.Detail))
		}
	}
	return a.answer(r)
}

// warnIfNoReplica prints a note if no live replica can do what was asked for.
func (a *app) warnIfNoReplica(ctx context.Context, op *operator) {
	replicas, err := op.Store.Replicas(ctx)
	alive := func(r service.Replica) bool { return op.now().Sub(r.Seen) <= service.HeartbeatTimeout }
	if err == nil && !slices.ContainsFunc(replicas, alive) {
		fmt.Fprintf(a.err, "note: no replica has reported in the last %s: the request waits for one\n",
			service.HeartbeatTimeout)
	}
}

// records is the part of the store that shows how a tick ended.
type records interface {
	History(ctx context.Context, job string, limit int) ([]service.Entry, error)
	States(ctx context.Context, jobs []string) (map[string]service.Ledger, error)
}

// await asks Redis until the tick has ended, and returns its end. The tick may be handed over from replica to replica.
// Errors of Redis do not end the wait.
func await(ctx context.Context, r records, due lock.Due) (*service.Entry, error) {
	for gone := 0; ; {
		// If another replica repeats the newest run of the tick, the state shows the repetition, or the history that is
		// read after the state has its end.
		history, err := r.History(ctx, due.Job, historyOfWait)
		var states map[string]service.Ledger
		if err == nil {
			states, err = r.States(ctx, []string{due.Job})
		}
		if entry, over := ending(due, history, states[due.Job]); err == nil && over {
			if entry != nil && entry.Outcome != service.HandedOver {
				after, err := r.History(ctx, due.Job, historyOfWait)
				newest, _ := ending(due, after, states[due.Job])
				if err == nil && newest != nil && newest.Run == entry.Run {
					return entry, nil
				}
				continue
			}
			switch gone++; { // the tick may have ended, or been handed over, between the two reads
			case gone < 3:
			case entry != nil: // the next replica has dropped it
				return entry, nil
			default:
				return nil, problem(
					"a replica may have dropped it, or Redis may have lost its data: see the replicas' logs",
					"the run neither waits nor runs, and the history does not have it")
			}
		}
		if !beat.Sleep(ctx, lookInterval) {
			return nil, cannot("solotick history "+due.Job, "no longer waiting; the run goes on")
		}
	}
}

// ending reports whether a tick no longer waits or runs, and returns its newest entry in the history; nil if there is
// none. The history must have its newest entry first.
func ending(due lock.Due, history []service.Entry, state service.Ledger) (entry *service.Entry, over bool) {
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
