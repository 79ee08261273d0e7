package sidecar

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// takeover deals with runs whose replica is gone: it records each as interrupted or cancelled, once. Under
// at-least-once the tick of an interrupted run becomes due again.
type takeover struct {
	replica string   // this one
	died    []string // nodes of the earlier processes in this one's place
	watcher *lock.Watcher
	log     *slog.Logger
	spec    func(job string) *spec
	count   func(sp *spec, job, run string, rec lock.Reaped, detail string) // counts a run that was taken over
}

// newTakeover makes the takeover of a replica, before which the processes with these nodes have died in its place.
func newTakeover(replica string, died []string, locks *lock.Store, log *slog.Logger, job func(string) *job,
	count func(sp *spec, job, run string, rec lock.Reaped, detail string)) takeover {
	t := takeover{replica: replica, died: died, watcher: locks.NewWatcher(), log: log, count: count}
	t.spec = func(name string) *spec { return job(name).inForce() }
	t.watcher.Dead = t.isDead
	t.watcher.Lacks = func(name string) bool { return !service.IsTimer(name) && job(name) == nil }
	return t
}

// isDead reports whether a run is that of an earlier process in this one's place.
func (t *takeover) isDead(run string) bool { return slices.Contains(t.died, lock.Node(run)) }

// look takes over the runs that have not changed for the length of their leases, or whose process is dead. It does so
// all at once, since a dead replica may have had many.
func (t *takeover) look(ctx context.Context, runs []lock.Running) {
	var all sync.WaitGroup
	defer all.Wait()
	t.warn(t.watcher.Learn(ctx, runs))
	old := t.watcher.Unchanged(runs, t.ttl)
	all.Go(func() { t.warn(t.watcher.Tell(ctx, runs, t.ttl)) })
	for _, r := range old[:min(len(old), 1000)] { // the next look takes over the others
		all.Go(func() {
			var detail string
			sp := t.spec(r.Job) // it may leave the table before the answer
			rec, ours, err := t.watcher.Reap(ctx, r, func(rec lock.Record) lock.Ending {
				detail = t.detail(r, rec)
				e := service.Entry{Job: service.SeriesJob(r.Job), Tick: rec.Tick, Run: r.Run, Replica: rec.Replica,
					Kind: rec.Kind, Attempt: rec.Attempt, Outcome: string(leftAs(rec)),
					Failed: sp.failsAs(leftAs(rec)), Detail: detail}
				return e.Ending()
			})
			switch {
			case err != nil:
				t.log.Warn("a run without a replica could not be taken over", "job", r.Job, "run", r.Run, "err", err)
			case ours:
				t.count(sp, r.Job, r.Run, rec, detail)
			}
		})
	}
}

// warn logs that watchers could not tell each other what they see: then each goes by itself.
func (t *takeover) warn(err error) {
	if err != nil {
		t.log.Debug("runs are watched without the other replicas", "err", err)
	}
}

// detail tells how it was noticed that the replica of a run is gone.
func (t *takeover) detail(r lock.Running, rec lock.Record) string {
	if t.isDead(r.Run) {
		return fmt.Sprintf("the process of replica %s ended during the run; replica %s was restarted in its place",
			rec.Replica, t.replica)
	}
	return fmt.Sprintf("replica %s stopped renewing its lease at %s: it died, was stopped or lost Redis; "+
		"replica %s noticed that", rec.Replica, r.Renewed(rec.TTL).UTC().Format("2006-01-02 15:04:05 UTC"), t.replica)
}

// defaultTTL is the lease of a job that this table lacks, until its record tells.
const defaultTTL = 15 * time.Second

// ttl is the lease of a job's runs as far as this table knows.
func (t *takeover) ttl(name string) time.Duration {
	if sp := t.spec(name); sp != nil {
		return sp.Lock.TTL
	}
	return defaultTTL
}
