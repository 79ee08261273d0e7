package main

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
)

const (
	// completeLimit is for how long a completion asks Redis: a person waits at the keyboard.
	completeLimit = 400 * time.Millisecond
	// mostCompleted bounds the timers and failed ticks that a completion offers.
	mostCompleted = 100
)

// known asks the service for what a shell can complete after the arguments that are there. An error means that there is
// nothing to offer.
type known func(ctx context.Context, op *operator, args []string) ([]string, error)

// complete completes up to most arguments, or any number if that is 0, each once. The shell filters by what was typed.
func (a *app) complete(most int, ask known) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := slices.DeleteFunc(a.askQuietly(ask, args), func(name string) bool { return slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeJobs completes names of jobs: those of the table even if Redis does not answer, and then those that only
// Redis knows.
func (a *app) completeJobs(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, then := a.complete(most, jobNames)(c, args, typed)
		if names == nil && (most == 0 || len(args) < most) {
			return a.completeTable(c, args, typed)
		}
		return names, then
	}
}

// completeTable completes names of jobs in the table.
func (a *app) completeTable(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	if a.config != standardInput && a.service == "" {
		if t, _ := a.readTable(); t != nil { // of a table with problems the rest is known
			names = namesOf(t.Jobs)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}

// askQuietly asks the service within the limit. It returns nil if there is no answer: a completion has no errors.
func (a *app) askQuietly(ask known, args []string) []string {
	if a.config == standardInput { // it is the terminal
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(completeLimit, a.operate.Timeout))
	defer cancel()
	quiet := *a
	quiet.err = io.Discard
	op, err := quiet.openOperator(ctx)
	if err != nil {
		return nil
	}
	defer op.close()
	names, err := ask(ctx, op, args)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return name != text.OneLine(name) }) // a terminal shows them
}

func namesOf(jobs []config.Job) []string {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	return names
}

func jobNames(ctx context.Context, op *operator, _ []string) ([]string, error) {
	jobs, err := op.Jobs(ctx)
	return namesOf(jobs), err
}

func dynamicNames(ctx context.Context, op *operator, _ []string) ([]string, error) {
	jobs, err := op.Jobs(ctx)
	return namesOf(slices.DeleteFunc(jobs, func(j config.Job) bool { return !j.Dynamic })), err
}

func timerIDs(ctx context.Context, op *operator, _ []string) ([]string, error) {
	timers, err := op.Store.Timers(ctx, mostCompleted)
	var ids []string
	for _, t := range timers {
		ids = append(ids, t.ID)
	}
	return ids, err
}

func replicaNames(ctx context.Context, op *operator, _ []string) ([]string, error) {
	replicas, err := op.Store.Replicas(ctx)
	var names []string
	for _, r := range replicas {
		names = append(names, r.Name)
	}
	return names, err
}

// liveRuns are the runs of the job that is the argument.
func liveRuns(ctx context.Context, op *operator, args []string) ([]string, error) {
	states, err := op.Store.States(ctx, args)
	var runs []string
	for _, job := range args {
		for _, r := range states[job].Running {
			runs = append(runs, r.Run)
		}
	}
	return runs, err
}

// failedTicks are the ticks that failed of the job that is the argument, the newest first.
func failedTicks(ctx context.Context, op *operator, args []string) ([]string, error) {
	failures, err := op.Store.Search(ctx, service.Search{Jobs: args, Failed: true, Limit: mostCompleted})
	var ticks []string
	for _, e := range failures {
		if tick := e.Tick.UTC().Format(time.RFC3339Nano); e.Kind != "manual" && len(args) > 0 && !slices.Contains(ticks, tick) {
			ticks = append(ticks, tick)
		}
	}
	return ticks, err
}
