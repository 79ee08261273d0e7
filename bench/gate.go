package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

const (
	gateJobs    = 100
	gateWindow  = 6 * time.Second // of three ticks a side
	gateWindows = 5
	// gateNoise is the least noise that is allowed for, as a share of the figure: five windows can agree by luck.
	gateNoise = 0.05
)

// gate measures what tells soon and steadily that Solotick became dearer: CPU time and Redis commands per job and tick,
// over those of gocron + redsync, and the binary. Both sides are at work at the same time and take turns second by
// second. Reads and bytes are left out: they depend on how busy the machine is.
func (b *bench) gate() (p part, err error) {
	turn := func(offset int) setting {
		s := setting{replicas: replicas}
		jobs := herd(gateJobs, 2)
		s.jobs = func(app *rig.App) []job {
			all := jobs(app)
			for i := range all {
				all[i].Offset = offset
			}
			return all
		}
		return s
	}
	ours, err := b.open(solotick, turn(0))
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	theirs, err := b.open(redsync, turn(1))
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, theirs.close()) }()

	begin := half(3 * time.Second)
	if err := b.sleep(begin); err != nil {
		return p, err
	}
	sides := []*world{ours, theirs}
	spent := make([][]sideRound, len(sides))
	last := make([]reading, len(sides))
	for window := range gateWindows + 1 {
		if err := b.sleep(begin.Add(time.Duration(window) * gateWindow)); err != nil {
			return p, err
		}
		for i, w := range sides {
			now, err := w.read()
			if err != nil {
				return p, err
			}
			if window > 0 {
				spent[i] = append(spent[i], sideRound{spent: now.since(last[i]), ticks: gateJobs * gateWindow.Seconds() / 2, replicas: replicas})
			}
			last[i] = now
		}
	}
	for i, w := range sides {
		if due := gateJobs * gateWindows * int(gateWindow.Seconds()) / 2; w.app.Count() < due {
			return p, fmt.Errorf("the app of %s was called %d times for %d ticks", sides[i].contender.name, w.app.Count(), due)
		}
	}
	file, err := os.Stat(b.ours)
	if err != nil {
		return p, err
	}
	steady := costs("100 jobs, taking turns", spent[0], spent[1], nil, nil)[:3]
	p.Rows = append(steady, row{What: "binary", Unit: "MB", Ours: one(float64(file.Size()) / 1e6)})
	return p, nil
}

// worse lists what is worse than what is committed by more than the noise of that.
func worse(now, committed part) (rows []string) {
	for _, was := range committed.Rows {
		r, ok := now.row(was.What)
		if !ok || r.judged() == nil || was.judged() == nil {
			rows = append(rows, was.What+": it was not measured")
			continue
		}
		limit := was.judged().Value + max(was.judged().High-was.judged().Low, gateNoise*was.judged().Value)
		if r.judged().Value > limit {
			rows = append(rows, fmt.Sprintf("%s: %s (%s), and %s is committed: the limit is %.3g", was.What, r.judged(), r.judged().spread(), was.judged(), limit))
		}
	}
	return rows
}
