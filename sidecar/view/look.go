// Package view shows a service from outside: the state of its jobs and replicas in Redis, next to what the table says.
// The command line, the API and the status page show the same look, in the same JSON, which is a contract:
// docs/cli-json.md.
package view

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// Store is where Read reads; a service.Store is one.
type Store interface {
	States(ctx context.Context, jobs []string) (map[string]service.Ledger, error)
	Replicas(ctx context.Context) ([]service.Replica, error)
	Now() (time.Time, bool)
}

// Look is one reading of the service's state in Redis, with the table.
type Look struct {
	Table    *config.Table
	Jobs     []config.Job
	Now      time.Time // Redis' time
	States   map[string]service.Ledger
	Replicas []service.Replica
}

// Read reads the state of the jobs, in two round trips.
func Read(ctx context.Context, s Store, t *config.Table, jobs []config.Job) (*Look, error) {
	states, err := s.States(ctx, Each(jobs, func(j config.Job) string { return j.Name }))
	if err != nil {
		return nil, err
	}
	now, _ := s.Now() // known since the states are
	replicas, err := s.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	return &Look{t, jobs, now, states, replicas}, nil
}

// Zone returns the time zone of that name; UTC if it is not known here.
func Zone(name string) *time.Location {
	if zone, err := time.LoadLocation(name); err == nil {
		return zone
	}
	return time.UTC
}

// Next returns the next tick that no pause and no suspend skips; zero if there is none.
func (l *Look) Next(j config.Job) time.Time {
	after := l.Now
	for _, p := range []*service.Pause{l.States[j.Name].Paused, l.States[j.Name].PausedAll} {
		switch {
		case p == nil:
		case p.Until.IsZero():
			return time.Time{}
		case p.Until.After(after):
			after = p.Until.Add(-time.Nanosecond)
		}
	}
	if j.Suspend || j.Schedule == nil {
		return time.Time{}
	}
	return j.Schedule.Next(after)
}

// Silent reports whether a replica's last heartbeat is so old that the replica is probably gone.
func (l *Look) Silent(r service.Replica) bool { return l.Now.Sub(r.Seen) > service.HeartbeatTimeout }

// Live returns the replicas that are not silent.
func (l *Look) Live() []service.Replica { return slices.DeleteFunc(slices.Clone(l.Replicas), l.Silent) }

// Drift reports whether the live replicas have different tables.
func (l *Look) Drift() bool { return l.differ(func(r service.Replica) any { return r.Table }) }

// Mixed reports whether some live replicas observe and others call the jobs. A tick that an observing one takes is not
// fired.
func (l *Look) Mixed() bool { return l.differ(func(r service.Replica) any { return r.Observe }) }

// Strange reports whether the live replicas belong to different environments.
func (l *Look) Strange() bool { return l.differ(func(r service.Replica) any { return r.Environment }) }

func (l *Look) differ(in func(service.Replica) any) bool {
	all := map[any]bool{}
	for _, r := range l.Live() {
		all[in(r)] = true
	}
	return len(all) > 1
}

// Skipped is a replica's last skip of a job.
type Skipped struct {
	service.Skip
	Replica string
}

// Skips returns each replica's last skip of a job, the newest first.
func (l *Look) Skips(job string) []Skipped {
	var all []Skipped
	for _, r := range l.Replicas {
		if k, ok := r.Skips[job]; ok {
			all = append(all, Skipped{k, r.Name})
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		return cmp.Or(all[j].At.Compare(all[i].At), cmp.Compare(all[i].Replica, all[j].Replica)) < 0
	})
	return all
}

// Twins reports whether two processes use the name of a replica. Then each of them overwrites the heartbeat of the
// other.
func (l *Look) Twins(r service.Replica) bool { return r.Twin && !l.Silent(r) }
