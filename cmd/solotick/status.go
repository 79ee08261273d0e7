package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/view"
)

// statusFlags say what solotick status shows, and how.
type statusFlags struct {
	job                 []string // at most one; none = all jobs
	failed, wide, check bool
}

func (a *app) statusCommand() *cobra.Command {
	var f statusFlags
	c := a.outputFlag(&cobra.Command{
		Use: "status [JOB]",
		// The names that other tools have for it.
		SuggestFor: []string{"list", "ps", "get", "show"},
		Short:      "Show the state of all jobs and replicas",
		Long: `Show how the service fares, in one line; then its jobs, those that need a person first: failing, overdue,
missed, never run. Columns show the last run of the schedule, notes below a job what else matters: since when it fails,
a newer run by hand, pauses, running and waiting ticks, new skips. Then come the replicas: version, table, clock offset,
readiness. JOB shows all about one job. Times are UTC, by Redis' clock; the next ticks are of the table given here.

With --check, show only the first line and the jobs that fail or are overdue. The exit code is 1 if there is such a job
or no replica is ready, 3 if Redis cannot be reached, and else 0. With JOB, only this job and the replicas count.

Output on a terminal is coloured unless NO_COLOR is set or TERM is dumb.`,
		Example: `  solotick status -c table.yaml
  solotick status -c table.yaml send-invoices
  solotick status -c table.yaml --failed
  solotick status -c table.yaml --check
  solotick status -c table.yaml -o json`,
		Args:              ofOneJob(0, 1),
		ValidArgsFunction: a.completeJobs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.job = args; f.failed && len(args) > 0 {
				return usage("solotick status --failed", "--failed and JOB both say which jobs to show")
			}
			return a.withOperator(func(ctx context.Context, op *operator) error {
				look, err := op.look(ctx, f.job...)
				if err != nil {
					return operatorFailure(err)
				}
				s := a.showing(look, f)
				return a.judge(!f.check || !s.bad(), s.json(), s.lines()...)
			})
		},
	})
	c.Flags().BoolVar(&f.failed, "failed", false, "only jobs that need a person: failing, overdue, missed")
	c.Flags().BoolVar(&f.wide, "wide", false,
		"whole names of replicas, and schedules, owners and run ids; lines may be wider than the terminal")
	c.Flags().BoolVar(&f.check, "check", false, "only what is bad, as lines and as exit code: for scripts and probes")
	return c
}

// look takes a look at all jobs. It fails if there is no job of one of the given names.
func (op *operator) look(ctx context.Context, names ...string) (*view.Look, error) {
	all, err := op.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if slices.ContainsFunc(all, func(j config.Job) bool { return j.Name == name }) {
			continue
		}
		j, err := op.Find(ctx, name) // without a table any name may be one
		if err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	return view.Read(ctx, op.Store, op.Table(), all)
}

// json returns the status in JSON, with the jobs that are to be shown.
func (s status) json() view.Status {
	out := s.Status()
	shown := map[string]bool{}
	for _, j := range s.jobs() {
		shown[j.Name] = true
	}
	out.Jobs = slices.DeleteFunc(out.Jobs, func(j view.Job) bool { return !shown[j.Job] })
	return out
}
