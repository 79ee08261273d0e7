package sidecar

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"maps"
	"slices"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// dynamicJobs reads the jobs made through the API.
type dynamicJobs struct {
	store    *service.Store
	log      *slog.Logger
	put      func([]config.Job) error // puts them to work
	revision int64                    // of the jobs at work, or of more than there may be; the looker alone uses it
	parsed   map[string]parsed        // by name, those that were read last; the looker alone uses it
}

// parsed is a job and what it was parsed from.
type parsed struct {
	sum [sha256.Size]byte
	job config.Job
}

// adopt puts the jobs made through the API to work when they have changed since the last look.
func (d *dynamicJobs) adopt(ctx context.Context, revision int64) {
	if revision == d.revision {
		return
	}
	revision, sources, err := d.store.DynamicJobs(ctx)
	if err != nil {
		d.log.Warn("the jobs made through the API could not be read", "err", err)
		d.revision = cmp.Or(revision, d.revision)
		return
	}
	jobs, next := []config.Job{}, map[string]parsed{}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		p, sum := d.parsed[name], sha256.Sum256(sources[name])
		if p.sum != sum { // parsing a thousand jobs takes longer than a tick may
			j, err := config.ParseJob(name, sources[name])
			if err != nil { // another version's may read it
				d.log.Warn("a job made through the API cannot be read", "job", name, "err", err)
				continue
			}
			p = parsed{sum, *j}
		}
		next[name] = p
		jobs = append(jobs, p.job)
	}
	d.parsed = next
	if err := d.put(jobs); err != nil {
		d.log.Warn("the jobs made through the API are not at work", "err", err)
		return
	}
	d.revision = revision
}
