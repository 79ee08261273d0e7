package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

const (
	replicas = 3
	grace    = 30 * time.Second
	// take is how long the app is at work for each call: long enough that a contender who is late finds the job running,
	// short enough that one who is later still finds it over.
	take = 5 * time.Millisecond
)

// table has so many jobs with one schedule, all calling the app.
func table(jobs int, schedule, listen string, url func(job string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: bench\nlisten: %q\nadmin: \"\"\njobs:\n", listen)
	for i := range jobs {
		name := fmt.Sprintf("job-%d", i)
		fmt.Fprintf(&b, "  - {name: %s, schedule: %q, http: {url: %q}}\n", name, schedule, url(name))
	}
	return b.String()
}

// solotick starts the replicas of a service and waits until they are ready; stop ends them.
func (b *bench) solotick(redis *rig.Redis, table func(listen string) string, n int) (all []*rig.Replica, stop func() error, err error) {
	stop = func() error {
		processes := make([]*rig.Process, 0, n)
		for _, r := range all {
			processes = append(processes, r.Process)
		}
		return rig.StopAll(grace, processes...)
	}
	for i := range n {
		r, err := rig.StartReplica(rig.ReplicaOptions{Binary: b.ours, Name: fmt.Sprintf("r%d", i), Redis: redis.URL(), Dir: b.dir}, table)
		if err != nil {
			_ = stop()
			return nil, nil, err
		}
		all = append(all, r)
	}
	for _, r := range all {
		if err := r.Ready(20 * time.Second); err != nil {
			_ = stop()
			return nil, nil, err
		}
	}
	return all, stop, nil
}

// peers starts the other side's replicas.
func (b *bench) peers(redis *rig.Redis, jobs int, url string) (stop func() error, err error) {
	var all []*rig.Process
	stop = func() error { return rig.StopAll(grace, all...) }
	for i := range replicas {
		name := fmt.Sprintf("peer-%d", i)
		p, err := rig.Launch(name, filepath.Join(b.dir, name+".log"), nil, b.peer, "-redis", redis.Addr(), "-url", url, "-jobs", fmt.Sprint(jobs))
		if err != nil {
			_ = stop()
			return nil, err
		}
		all = append(all, p)
	}
	return stop, nil
}
