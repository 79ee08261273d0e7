package main

import (
	"fmt"
	"time"
)

// others runs every contender once with a hundred jobs on one second, every other second: some of them hold a lock for
// a second, and should not suffer for it. Their delays beside redsync's are measured in rounds, by delay.
func (b *bench) others() (part, error) {
	const jobs, every, ticks = 100, 2, 4
	var p part
	var ours sideRound
	for _, c := range contenders {
		if c.missing != nil {
			if why := c.missing(b); why != "" {
				p.Rows = append(p.Rows, row{What: c.name, NotRun: why})
				continue
			}
		}
		r, err := b.oneRound(c,
			setting{replicas: replicas, jobs: herd(jobs, every), warm: 4 * time.Second}, every, ticks)
		if err != nil {
			return p, fmt.Errorf("%s: %w", c.name, err)
		}
		if c.key == solotick.key {
			ours = r
			continue
		}
		beside := func(what, unit string, number func(sideRound) float64) row {
			return compared(c.name+": "+what, unit, []float64{number(ours)}, []float64{number(r)})
		}
		p.Rows = append(p.Rows,
			beside("tick to request, p50", "ms", func(r sideRound) float64 { return quantile(r.took, .5) }),
			beside("tick to request, p99", "ms", func(r sideRound) float64 { return quantile(r.took, .99) }),
			beside("ticks doubled", "", func(r sideRound) float64 { return float64(r.doubles) }),
			beside("ticks lost", "", func(r sideRound) float64 { return float64(r.losses) }),
			beside("CPU of a replica per job and tick", "µs", sideRound.replicaCPU),
			beside("Redis CPU per job and tick", "µs", sideRound.redisCPU),
		)
	}
	return p, nil
}
