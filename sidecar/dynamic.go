package sidecar

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// admitted is the executor of a job or timer of the API. The table in force says at each attempt whether it may be sent:
// the API asks the table, too, though perhaps another one, and whoever writes to Redis asks nobody.
type admitted struct {
	execute.Executor
	job   *config.Job
	table func() *config.Table
}

func (a admitted) Execute(ctx context.Context, r execute.Run) execute.Result {
	if p := a.table().Admits(a.job); p != nil {
		return execute.Result{Status: execute.Failed, Err: errors.New("not sent: " + p.Message), Code: -1}
	}
	return a.Executor.Execute(ctx, r)
}

// takeDynamic puts the jobs made through the API to work when they have changed since the last look.
func (w *watcher) takeDynamic(ctx context.Context, revision int64) {
	s := w.sidecar
	if revision == w.dynamic {
		return
	}
	revision, sources, err := s.store.DynamicJobs(ctx)
	if err != nil {
		s.log.Warn("the jobs made through the API could not be read", "err", err)
		return
	}
	var jobs []config.Job
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		j, err := config.ParseJob(name, sources[name])
		if err != nil { // another version's may read it
			s.log.Warn("a job made through the API cannot be read", "job", name, "err", err)
			continue
		}
		jobs = append(jobs, *j)
	}
	if err := s.SetDynamic(jobs); err != nil {
		s.log.Warn("the jobs made through the API are not at work", "err", err)
		return
	}
	w.dynamic = revision
}
