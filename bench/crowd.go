package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// point is what one crowd costs its Redis, per job and tick, and what a replica of it uses.
type point struct {
	Side     string  `json:"side"`
	Jobs     int     `json:"jobs"`
	Replicas int     `json:"replicas"`
	Every    int     `json:"every"` // seconds between ticks
	Replica  float64 `json:"replicaCPU"`
	Redis    float64 `json:"redisCPU"`
	Commands float64 `json:"commands"`
	Reads    float64 `json:"reads"`
	Bytes    float64 `json:"bytes"`
}

// crowds are the sizes. A thousand jobs of fifty replicas on each second are more than two cores can do: they tick less
// often, and what the replicas ask of Redis at rest is counted with the ticks.
var crowds = []struct{ jobs, every, ticks int }{{jobs: 100, every: 2, ticks: 3}, {jobs: 1000, every: 6, ticks: 1}}

var crowdReplicas = []int{3, 10, 50}

// crowd measures what many replicas cost their Redis. They are in one process, and their jobs do nothing.
func (b *bench) crowd() (part, error) {
	var p part
	for _, c := range crowds {
		first := map[string]point{}
		for _, n := range crowdReplicas {
			if b.quick && (c.jobs > 100 || n > 10) {
				continue
			}
			var both []point
			for _, side := range []string{solotick.key, redsync.key} {
				pt, err := b.oneCrowd(side, c.jobs, n, c.every, c.ticks)
				if err != nil {
					return p, fmt.Errorf("%d replicas of %s: %w", n, side, err)
				}
				both = append(both, pt)
			}
			p.Curve = append(p.Curve, both...)
			about := fmt.Sprintf("%d jobs, %d replicas: ", c.jobs, n)
			beside := func(what, unit string, number func(point) float64, targets ...target) {
				p.Rows = append(p.Rows, compared(about+what, unit,
					[]float64{number(both[0])}, []float64{number(both[1])}, targets...))
			}
			beside("Redis CPU per job and tick", "µs", func(p point) float64 { return p.Redis }, ratioAtMost(1))
			beside("Redis commands per job and tick", "", func(p point) float64 { return p.Commands })
			beside("Redis reads per job and tick", "", func(p point) float64 { return p.Reads })
			beside("Redis bytes per job and tick", "", func(p point) float64 { return p.Bytes })
			beside("CPU of a replica per job and tick", "µs", func(p point) float64 { return p.Replica })
			for _, pt := range both {
				if n == crowdReplicas[0] {
					first[pt.Side] = pt
				}
			}
			if n == crowdReplicas[len(crowdReplicas)-1] {
				each := func(pt point) []float64 {
					return []float64{(pt.Redis - first[pt.Side].Redis) / float64(n-crowdReplicas[0])}
				}
				what := fmt.Sprintf("%d jobs: Redis CPU per job and tick for each further replica", c.jobs)
				p.Rows = append(p.Rows,
					compared(what, "µs", each(both[0]), each(both[1]), oursAtMost(furtherReplica)))
			}
		}
	}
	rest, err := b.oneCrowd(solotick.key, 100, 50, 0, 3)
	if err != nil {
		return p, fmt.Errorf("50 replicas at rest: %w", err)
	}
	p.Rows = append(p.Rows,
		row{What: "at rest, 50 replicas: Redis CPU per replica and second", Unit: "µs", Ours: one(rest.Redis)},
		row{What: "at rest, 50 replicas: Redis commands per replica and second", Ours: one(rest.Commands)},
		row{What: "at rest, 50 replicas: Redis bytes per replica and second", Ours: one(rest.Bytes)})
	return p, nil
}

// oneCrowd starts one side's replicas and watches ticks. Every 0 is a table whose next tick is far away; ticks are then
// seconds, and what is told is per replica and second.
func (b *bench) oneCrowd(side string, jobs, n, every, ticks int) (pt point, err error) {
	pt = point{Side: side, Jobs: jobs, Replicas: n, Every: every}
	dir, err := os.MkdirTemp(b.dir, "crowd-")
	if err != nil {
		return pt, err
	}
	redis, err := rig.StartRedis(dir)
	if err != nil {
		return pt, err
	}
	defer func() { err = errors.Join(err, redis.Stop(grace)) }()
	p, err := b.startCrowd(side, dir, redis, jobs, n, every)
	if err != nil {
		return pt, err
	}
	defer func() { err = errors.Join(err, p.Stop(grace)) }()

	begin := half(2 * time.Second)
	period := max(every, 1)
	for every > 0 && begin.Unix()%int64(every) != int64(every)-1 { // half a second before a tick
		begin = begin.Add(time.Second)
	}
	if err := b.sleep(begin); err != nil {
		return pt, err
	}
	before, err := readMeters(redis, p)
	if err != nil {
		return pt, err
	}
	if err := b.sleep(begin.Add(time.Duration(ticks*period) * time.Second)); err != nil {
		return pt, err
	}
	after, err := readMeters(redis, p)
	if err != nil {
		return pt, err
	}
	spent, per := after.since(before), float64(jobs*ticks)
	if every == 0 {
		per = float64(n * ticks)
	}
	pt.Replica = round(micros(spent.replicas) / per / float64(n))
	pt.Redis, pt.Commands = round(micros(spent.redis)/per), round(spent.commands/per)
	pt.Reads, pt.Bytes = round(spent.reads/per), round(spent.bytes/per)
	return pt, nil
}

func (b *bench) startCrowd(side, dir string, redis *rig.Redis, jobs, n, every int) (*rig.Process, error) {
	var rows []job
	for i := range jobs {
		j := job{Name: fmt.Sprintf("job-%d", i), Every: every}
		if every == 0 {
			j.Schedule = "0 0 1 1 *"
		}
		rows = append(rows, j)
	}
	if side == redsync.key {
		file, err := writeJobs(seat{name: side, dir: dir, jobs: rows})
		if err != nil {
			return nil, err
		}
		return rig.Launch(side, filepath.Join(dir, side+".log"), nil, b.peer, "-redis", redis.Addr(), "-jobs", file,
			"-replicas", fmt.Sprint(n))
	}
	text := strings.ReplaceAll(table(rows, ""), `url: ""`, `url: "http://127.0.0.1:1/"`) // never called
	return b.launchCrowd(dir, redis, text, n)
}

// launchCrowd starts replicas of Solotick in one process, whose jobs do nothing, and waits until all take ticks.
func (b *bench) launchCrowd(dir string, redis *rig.Redis, table string, n int) (*rig.Process, error) {
	file := filepath.Join(dir, "crowd.yaml")
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		return nil, err
	}
	p, err := rig.Launch("crowd", filepath.Join(dir, "crowd.log"), nil, b.crowdProgram, "-redis", redis.Addr(),
		"-table", file, "-replicas", fmt.Sprint(n))
	if err != nil {
		return nil, err
	}
	err = rig.Until(3*time.Minute, "the crowd to be ready", func() bool {
		text, _ := os.ReadFile(p.Log)
		return string(text) == "ready\n" || p.Ended()
	})
	if err == nil && p.Ended() {
		text, _ := os.ReadFile(p.Log)
		err = fmt.Errorf("the crowd ended at once: %s", text)
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}
