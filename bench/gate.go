package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

const (
	gateJobs    = 100
	gateWindow  = 6 * time.Second // of three ticks a side
	gateWindows = 5
	// gateNoise is the least noise that is allowed for, as a share of the figure: five windows can agree by luck.
	gateNoise = 0.05
	// gateTries is how often the gate measures at most. A dearer change shows each time, a busy neighbour does not.
	gateTries = 3
)

// gate measures what tells soon and steadily that Solotick became dearer: CPU time and Redis commands per job and tick,
// over those of gocron + redsync. Both sides are at work at the same time and take turns second by
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
	worlds := []*world{ours, theirs}
	spent := make([][]sideRound, len(worlds))
	last := make([]reading, len(worlds))
	for window := range gateWindows + 1 {
		if err := b.sleep(begin.Add(time.Duration(window) * gateWindow)); err != nil {
			return p, err
		}
		for i, w := range worlds {
			now, err := w.read()
			if err != nil {
				return p, err
			}
			if window > 0 {
				spent[i] = append(spent[i], sideRound{spent: now.since(last[i]),
					ticks: gateJobs * gateWindow.Seconds() / 2, replicas: replicas})
			}
			last[i] = now
		}
	}
	for i, w := range worlds {
		if due := gateJobs * gateWindows * int(gateWindow.Seconds()) / 2; w.app.Count() < due {
			return p, fmt.Errorf("the app of %s was called %d times for %d ticks",
				worlds[i].contender.name, w.app.Count(), due)
		}
	}
	p.Rows = sides{"100 jobs, taking turns", spent[0], spent[1]}.costs(nil, nil)[:3]
	return p, nil
}

// runGate reports whether a figure of the gate is worse than the committed one.
func (b *bench) runGate() (worse bool, err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.prepare(false); err != nil {
		return false, err
	}
	p, err := load(filepath.Join(b.root, "docs", "benchmarks.json"))
	if err != nil {
		return false, err
	}
	return compareOften(b.gate, p.part("gate"), os.Stdout)
}

// compareOften measures until no figure is worse than the committed one, and gives up after gateTries.
func compareOften(measure func() (part, error), committed part, out io.Writer) (worse bool, err error) {
	if len(committed.Rows) == 0 {
		return false, errors.New("docs/benchmarks.json has no figures to compare with: make benchmarks")
	}
	for try := range gateTries {
		now, err := measure()
		if err != nil {
			return false, err
		}
		fmt.Fprintf(out, "\ntry %d of %d\n", try+1, gateTries)
		if worse, err = compare(now, committed, out); err != nil || !worse {
			return worse, err
		}
	}
	_, err = fmt.Fprintln(out, "\nSolotick is dearer than docs/benchmarks.json says, or this machine is busy.")
	return true, err
}

// compare prints each figure beside the committed one, and reports whether one is worse by more than its noise.
func compare(now, committed part, out io.Writer) (worse bool, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ratio to gocron + redsync\tnow\trounds\tcommitted\tdeviation\tlimit\tverdict")
	for _, was := range committed.Rows {
		r, _ := now.row(was.What)
		figure, then, limit, verdict := r.judged(), was.judged(), 0.0, "WORSE"
		if then != nil {
			limit = then.Value + max(then.High-then.Low, gateNoise*then.Value)
		}
		switch {
		case figure == nil || then == nil:
			verdict = "NOT MEASURED"
		case figure.Value <= limit:
			verdict = "fine"
		}
		worse = worse || verdict != "fine"
		deviation, _ := r.deviation(was)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.2f\t%s\n",
			was.What, figure, figure.spread(), then, deviation, limit, verdict)
	}
	return worse, w.Flush()
}
