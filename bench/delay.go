package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

// The share of the other side's delay that ours may be at most.
const delayTarget = 0.75

// delays are what one side took from the tick to the first request for it, and what went wrong.
type delays struct {
	took            []time.Duration
	doubles, losses int
}

// delay measures how long after a tick the app is called, with one job and with a hundred on the same second.
func (b *bench) delay() ([]row, error) {
	var rows []row
	for _, size := range []struct{ jobs, ticks int }{{1, 21}, {100, 10}} {
		var ours, theirs []delays
		for range b.rounds {
			o, err := b.oneDelay(true, size.jobs, size.ticks)
			if err != nil {
				return nil, err
			}
			t, err := b.oneDelay(false, size.jobs, size.ticks)
			if err != nil {
				return nil, err
			}
			ours, theirs = append(ours, o), append(theirs, t)
		}
		rows = append(rows, compare(size.jobs, ours, theirs)...)
	}
	return rows, nil
}

// oneDelay starts one side's replicas and watches so many ticks of so many jobs.
func (b *bench) oneDelay(solotick bool, jobs, ticks int) (delays, error) {
	redis, err := rig.StartRedis(b.dir)
	if err != nil {
		return delays{}, err
	}
	defer func() { _ = redis.Stop(grace) }()
	app, err := rig.StartApp()
	if err != nil {
		return delays{}, err
	}
	defer app.Close()

	var stop func() error
	if solotick {
		_, stop, err = b.solotick(redis, func(listen string) string {
			return table(jobs, "* * * * * *", listen, func(job string) string { return app.URL(job, take) })
		}, replicas)
	} else {
		stop, err = b.peers(redis, jobs, app.URL("%s", take))
	}
	if err != nil {
		return delays{}, err
	}
	begin := half(3 * time.Second) // connections are open, and the first ticks over
	end := begin.Add(time.Duration(ticks) * time.Second)
	if err = b.sleep(begin); err == nil {
		app.Forget()
		err = b.sleep(end.Add(time.Second)) // what comes very late still counts
	}
	seen := app.Seen()
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	return settle(seen, begin, end, jobs), err
}

// settle finds the first request for each tick. The tick is the second that the request came after, or just before: the
// other side does not say.
func settle(seen []rig.Request, begin, end time.Time, jobs int) delays {
	type tickOf struct {
		job  string
		tick time.Time
	}
	first := map[tickOf]time.Duration{}
	var d delays
	for _, r := range seen {
		tick := r.Arrived.Add(100 * time.Millisecond).Truncate(time.Second)
		if tick.Before(begin) || tick.After(end) {
			continue
		}
		if _, ok := first[tickOf{r.Job, tick}]; ok {
			d.doubles++
			continue
		}
		first[tickOf{r.Job, tick}] = r.Arrived.Sub(tick)
	}
	for _, took := range first {
		d.took = append(d.took, took)
	}
	d.losses = jobs*int(end.Sub(begin)/time.Second) - len(first)
	return d
}

// compare puts both sides' quantiles over all rounds beside each other, with the spread of the rounds' ratios.
func compare(jobs int, ours, theirs []delays) []row {
	var rows []row
	for _, q := range []float64{.5, .99} {
		var ratios []float64
		for i := range ours {
			ratios = append(ratios, float64(quantile(ours[i].took, q))/float64(quantile(theirs[i].took, q)))
		}
		o, t := quantile(all(ours).took, q), quantile(all(theirs).took, q)
		ratio := float64(o) / float64(t)
		rows = append(rows, row{
			what: fmt.Sprintf("tick to request, %d jobs, p%g", jobs, q*100), ours: ms(o), theirs: ms(t), ratio: fmt.Sprintf("%.2f", ratio),
			target: fmt.Sprintf("≤ %.2f", delayTarget), missed: ratio > delayTarget,
			note: fmt.Sprintf("rounds %.2f–%.2f, %d ticks a side", slices.Min(ratios), slices.Max(ratios), len(all(ours).took)),
		})
	}
	o, t := all(ours), all(theirs)
	return append(rows,
		row{what: fmt.Sprintf("ticks fired twice, %d jobs", jobs), ours: fmt.Sprint(o.doubles), theirs: fmt.Sprint(t.doubles), target: "0", missed: o.doubles > 0},
		row{what: fmt.Sprintf("ticks lost, %d jobs", jobs), ours: fmt.Sprint(o.losses), theirs: fmt.Sprint(t.losses), target: "0", missed: o.losses > 0})
}

func all(rounds []delays) (d delays) {
	for _, r := range rounds {
		d.took = append(d.took, r.took...)
		d.doubles += r.doubles
		d.losses += r.losses
	}
	return d
}

// quantile of durations that need not be sorted; q is within [0, 1].
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[min(int(q*float64(len(d))), len(d)-1)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }
