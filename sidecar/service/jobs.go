package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/strict"
	"github.com/solotick/solotick/internal/rds"
)

// Jobs returns the jobs of the table. If the table does not tell all its jobs, Jobs adds the jobs that run, wait, have
// a history or were skipped lately. Of these only the name is known, and whether every replica runs them.
func (o *Operator) Jobs(ctx context.Context) ([]config.Job, error) {
	all := slices.Clone(o.Table().Jobs)
	if !partial(o.Table()) {
		return all, nil
	}
	seen, err := o.seen(ctx)
	if err != nil {
		return nil, RefusalOf(err)
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		i := slices.IndexFunc(all, func(j config.Job) bool { return j.Name == name })
		if i < 0 {
			i, all = len(all), append(all, config.Job{Name: name})
		}
		if seen[name] == config.EveryReplica { // a replica reports it, from the table that it runs
			all[i].Guarantee = config.EveryReplica
		}
	}
	return all, nil
}

// partial reports whether a table does not tell all of its jobs: it is broken, or there is none.
func partial(t *config.Table) bool {
	return t.Unknown["jobs"] != "" || t.Unknown["defaults"] != "" || t.Unknown[config.Names] != ""
}

// seen returns the names of the jobs with a history, in the heartbeats, and among the runs and due ticks. A job that
// every replica runs now has its guarantee.
func (o *Operator) seen(ctx context.Context) (map[string]config.Guarantee, error) {
	names := map[string]config.Guarantee{}
	see := func(name string) {
		if _, known := names[name]; !known && !IsTimer(name) {
			names[name] = ""
		}
	}
	histories := o.Store.redis.Keys.History("")
	err := o.Store.eachKeys(ctx, histories, func(keys []string) error {
		for _, key := range keys {
			if job := strings.TrimPrefix(key, histories); job != rds.TimerJobs {
				see(job)
			}
		}
		return nil
	})
	if err != nil && !strings.Contains(err.Error(), "NOPERM") { // few users may scan
		return nil, err
	}
	sight, err := o.Store.Look(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range sight.Runs {
		see(r.Job)
	}
	for _, due := range sight.Due {
		see(due.Job)
	}
	replicas, err := o.Store.Replicas(ctx)
	now, _ := o.Store.Now() // Redis has just answered
	for _, r := range replicas {
		for name := range r.Skips {
			see(name)
		}
		for name := range r.Ran {
			if see(name); now.Sub(r.Seen) <= HeartbeatTimeout {
				names[name] = config.EveryReplica
			}
		}
	}
	return names, err
}

// Find returns the job of that name.
func (o *Operator) Find(ctx context.Context, name string) (config.Job, error) {
	jobs, err := o.Jobs(ctx)
	if err != nil {
		return config.Job{}, err
	}
	return find(o.Table(), jobs, name)
}

// find returns the job of that name. If the table does not tell all its jobs, any name may be one: Redis knows.
func find(t *config.Table, jobs []config.Job, name string) (config.Job, error) {
	if i := slices.IndexFunc(jobs, func(j config.Job) bool { return j.Name == name }); i >= 0 {
		return jobs[i], nil
	}
	if partial(t) {
		return config.Job{Name: name}, nil
	}
	return config.Job{}, refuse(NoJob, "there is no job %q", name).hint(Near(name, jobs))
}

// Near is the hint that names the job that may have been meant; "" if no name is near.
func Near(name string, jobs []config.Job) string {
	if meant := strict.Nearest(name, namesOf(jobs)); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	return ""
}

// Startable is Claimed for a job that a replica can start by request: not so if its app runs it.
func (o *Operator) Startable(ctx context.Context, name string) (config.Job, error) {
	j, err := o.Claimed(ctx, name)
	if err == nil && j.Claim != nil {
		err = refuse(OtherWay, "the app of job %q runs it by itself, and asks for its ticks", name)
	}
	return j, err
}

// Claimed returns the job of that name if its ticks are claimed in Redis. Only such a job can be run or cancelled by
// request.
func (o *Operator) Claimed(ctx context.Context, name string) (config.Job, error) {
	j, err := o.Find(ctx, name)
	if err == nil && j.Guarantee == config.EveryReplica {
		err = refuse(EveryReplica,
			"job %q has guarantee every-replica: each replica runs it by itself, without Redis", name)
	}
	return j, err
}

// Cancellable is Claimed for a job whose runs are to be cancelled.
func (o *Operator) Cancellable(ctx context.Context, name string) (config.Job, error) {
	j, err := o.Claimed(ctx, name)
	if r, ok := errors.AsType[*Refusal](err); ok && r.Kind == EveryReplica {
		r.Hint = "a pause keeps it from its next ticks"
	}
	return j, err
}

// Scheduled is Startable for a job that must have a known schedule.
func (o *Operator) Scheduled(ctx context.Context, name string) (config.Job, error) {
	j, err := o.Startable(ctx, name)
	if err == nil && j.Schedule == nil {
		err = refuse(Partial, "the schedule of job %q is not known here", name).
			hint("backfill needs a table without problems, and the variables of the schedule")
	}
	return j, err
}

// Pick returns the names given, each once; a pattern such as send-* stands for all names that match it. With no names,
// it returns those of all jobs.
func (o *Operator) Pick(ctx context.Context, names ...string) ([]string, error) {
	needsAll := len(names) == 0 || slices.ContainsFunc(names, isPattern)
	if why := o.Table().Unknown[config.Names]; needsAll && why != "" {
		return nil, &Refusal{Kind: Partial, Message: "not all jobs are known here: " + why}
	}
	jobs, err := o.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return namesOf(jobs), nil
	}
	var picked []string
	for _, name := range names {
		found := []string{name}
		if isPattern(name) {
			found, err = matching(jobs, name)
		} else {
			_, err = find(o.Table(), jobs, name)
		}
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !slices.Contains(picked, name) {
				picked = append(picked, name)
			}
		}
	}
	return picked, nil
}

// namesOf returns the names of jobs, in their order.
func namesOf(jobs []config.Job) []string {
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.Name
	}
	return names
}

// isPattern reports whether a word stands for the names that match it: no name has one of these characters.
func isPattern(word string) bool { return strings.ContainsAny(word, "*?[") }

// matching returns the names of the jobs that match a pattern, as a shell matches names of files.
func matching(jobs []config.Job, pattern string) ([]string, error) {
	var names []string
	for _, j := range jobs {
		matches, err := path.Match(pattern, j.Name)
		if err != nil {
			return nil, refuse(Invalid, "the pattern %q has no end", pattern).hint("send-*, or [ab]*")
		}
		if matches {
			names = append(names, j.Name)
		}
	}
	if len(names) == 0 {
		return nil, refuse(NoJob, "no job matches %q", pattern)
	}
	return names, nil
}
