package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin/view"
)

// operateLimit is how long a request whose answer was lost is asked for again.
const operateLimit = 10 * time.Second

// desk is where an operator looks and acts: the table and the service's Redis, with no replica of its own.
type desk struct {
	*lock.Store
	table *config.Table
	close func()
}

// desk opens the Redis of the table or the flag, and asks it for its time: what cannot be reached at all is told at once.
func (a *app) desk(ctx context.Context) (*desk, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	t, err := a.meeting()
	if err != nil {
		return nil, err
	}
	address, err := a.redisURL(t)
	if err != nil {
		return nil, err
	}
	client, err := connect(t.Redis, address)
	if err != nil {
		return nil, err
	}
	redis.SetLogger(redisLog{log})
	d := &desk{table: t, close: func() { _ = client.Close() }}
	if d.Store, err = lock.New(client, t.Service, lock.Options{Timeout: t.Redis.Timeout, WaitReplicas: t.Redis.WaitReplicas}); err != nil {
		d.close()
		return nil, cannot(err)
	}
	if err := d.Sync(ctx); err != nil {
		d.close()
		return nil, unreachable(where(t.Redis, address), err)
	}
	return d, nil
}

// at opens a desk, works at it until it is done or a signal comes, and closes it.
func (a *app) at(work func(context.Context, *desk) error) error {
	ctx, stop := interruptible()
	defer stop()
	d, err := a.desk(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	return work(ctx, d)
}

// now is Redis' time; that it is known the desk has seen to.
func (d *desk) now() time.Time {
	now, _ := d.Now()
	return now
}

// operate runs what acts, within operateLimit.
func (d *desk) operate(ctx context.Context, act func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, operateLimit)
	defer cancel()
	if err := act(ctx); err != nil {
		return cannot(err)
	}
	return nil
}

// fromRedis is an error with words of Redis in it, which are not to move the cursor of a terminal, nor to add lines.
type fromRedis struct{ error }

func (e fromRedis) Error() string { return lock.OneLine(e.error.Error()) }
func (e fromRedis) Unwrap() error { return e.error }

// cannot is the failure of a request to Redis.
func cannot(err error) *failure {
	f := &failure{code: exitCannot, err: fromRedis{err}}
	switch {
	case errors.Is(err, lock.ErrUnknownJob):
		f.hint = "a replica registers its jobs when it starts: solotick status shows which replicas there are"
	case errors.Is(err, lock.ErrPast):
		f.code = exitUsage
	case errors.Is(err, lock.ErrTimerFired):
		f.code, f.hint = exitProblem, "for a day the id is not taken again: use another one"
	case errors.Is(err, lock.ErrNoAnswer):
		f.hint = "it may have been done or not: solotick status shows it"
	default:
		f.hint = diagnosis.Of(err).Hint
	}
	return f
}

// all returns the jobs of the table, and after them those made through the API. If the table does not tell all its jobs, all
// adds the jobs that run, wait, ran lately or were skipped lately. Of these only the name is known, and whether every replica
// runs them.
func (d *desk) all(ctx context.Context) ([]config.Job, error) {
	_, sources, err := d.DynamicJobs(ctx)
	if err != nil {
		return nil, cannot(err)
	}
	all := view.Jobs(d.table, sources)
	if !d.partial() {
		return all, nil
	}
	seen, err := d.seen(ctx)
	if err != nil {
		return nil, cannot(err)
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

// partial says whether the table does not tell all of its jobs: it is broken, or there is none.
func (d *desk) partial() bool {
	return d.table.Unknown["jobs"] != "" || d.table.Unknown["defaults"] != "" || d.table.Unknown[config.Names] != ""
}

// recentRuns are looked through for the names of jobs.
const recentRuns = 2000

// seen returns the names of the jobs in the history, in the heartbeats, and among the runs and the due ticks. A job that every
// replica runs now has its guarantee.
func (d *desk) seen(ctx context.Context) (map[string]config.Guarantee, error) {
	names := map[string]config.Guarantee{}
	see := func(name string) {
		_, timer := lock.TimerID(name)
		if _, known := names[name]; !known && !timer {
			names[name] = ""
		}
	}
	entries, err := d.History(ctx, "", recentRuns)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		see(e.Job)
	}
	sight, err := d.Look(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range sight.Runs {
		see(r.Job)
	}
	for _, due := range sight.Due {
		see(due.Job)
	}
	replicas, err := d.Replicas(ctx)
	for _, r := range replicas {
		for name := range r.Skips {
			see(name)
		}
		for name := range r.Ran {
			if see(name); d.now().Sub(r.Seen) <= lock.Silent {
				names[name] = config.EveryReplica
			}
		}
	}
	return names, err
}

// job is the job of that name.
func (d *desk) job(ctx context.Context, name string) (config.Job, error) {
	all, err := d.all(ctx)
	if err != nil {
		return config.Job{}, err
	}
	return d.find(all, name)
}

// find finds a job by its name. One that a broken table may have, or that of no table at all, is for Redis to know.
func (d *desk) find(all []config.Job, name string) (config.Job, error) {
	j, err := find(all, name)
	if err != nil && d.partial() && !slices.ContainsFunc(all, func(j config.Job) bool { return j.Name == name }) {
		return config.Job{Name: name}, nil
	}
	return j, err
}

// claimed is the job of that name, whose ticks replicas agree on in Redis: nobody could be asked for a run of any other.
func (d *desk) claimed(ctx context.Context, name string) (config.Job, error) {
	j, err := d.job(ctx, name)
	if err == nil && j.Guarantee == config.EveryReplica {
		err = &failure{code: exitUsage,
			err: fmt.Errorf("job %q has guarantee every-replica: each replica runs it by itself, without Redis", name)}
	}
	return j, err
}

// find finds a job by its name.
func find(all []config.Job, name string) (config.Job, error) {
	var names []string
	for _, j := range all {
		names = append(names, j.Name)
		if j.Name == name {
			return j, nil
		}
	}
	f := &failure{code: exitUsage, err: fmt.Errorf("there is no job %q", name), hint: "solotick status shows all jobs"}
	if near := config.Nearest(name, names); near != "" {
		f.hint = fmt.Sprintf("did you mean %q?", near)
	}
	return config.Job{}, f
}

// jobs are the names given, each once, or, with all, those of all jobs.
func (d *desk) jobs(ctx context.Context, c *cobra.Command, names []string, all bool) ([]string, error) {
	if all == (len(names) > 0) {
		return nil, &failure{code: exitUsage, err: fmt.Errorf("%s takes the names of jobs or --all", c.Name()), hint: c.CommandPath() + " --help"}
	}
	known, err := d.all(ctx)
	if err != nil {
		return nil, err
	}
	if why := d.table.Unknown[config.Names]; all && why != "" {
		return nil, &failure{code: exitCannot, err: fmt.Errorf("not all jobs are known here: %s", why),
			hint: "name the jobs, or give the table with -c"}
	}
	var picked []string
	seen := map[string]bool{}
	for _, name := range names {
		if _, err := d.find(known, name); err != nil {
			return nil, err
		}
		if !seen[name] {
			picked = append(picked, name)
		}
		seen[name] = true
	}
	if all {
		for _, j := range known {
			picked = append(picked, j.Name)
		}
	}
	return picked, nil
}

// oneJob asks for exactly one name.
func oneJob(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return &failure{code: exitUsage, err: fmt.Errorf("%s takes the name of one job", c.Name()), hint: c.CommandPath() + " --help"}
}

// instant reads the value of a flag that is a time.
func instant(flag, value string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, &failure{code: exitUsage, err: fmt.Errorf("--%s %q is not a time as in RFC 3339", flag, value),
			hint: fmt.Sprintf("--%s %s", flag, time.Now().UTC().Format(time.RFC3339))}
	}
	return t, nil
}

// interruptible ends with the first SIGINT or SIGTERM; the second one ends the process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
