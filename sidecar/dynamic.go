package sidecar

import (
	"context"
	"maps"
	"slices"

	"github.com/solotick/solotick/config"
)

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
