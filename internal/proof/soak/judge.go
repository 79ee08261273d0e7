package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

// tickOf is one tick of one job.
type tickOf struct {
	job  string
	tick time.Time
}

// verdict is what became of the ticks.
type verdict struct {
	ticks      int           // that should have been
	fired      int           // of those, that were requested at least once
	overlapped int           // not requested, since a run of the job was under way at the tick
	edge       int           // of those, that the tick missed by less than the edge
	doubles    []tickOf      // requested more than once, within the window or not
	losses     []tickOf      // neither requested nor overlapped
	beside     []tickOf      // began while another run of the same job was under way, which its policy forbids
	tokens     []tickOf      // whose token was not greater than that of the run before
	strangers  []tickOf      // requested, but no tick of the job
	late       int           // requests that were not the table's: handed over, or caught up
	early      int           // requests that came before their tick
	earliest   time.Duration // by how much, at worst
	delays     []time.Duration
	byReplica  map[string]int
}

// fine tells whether every promise was kept.
func (v *verdict) fine() bool {
	return len(v.doubles)+len(v.losses)+len(v.beside)+len(v.tokens)+len(v.strangers) == 0
}

// judge compares what the app was asked with the ticks in [from, to]. A tick that nobody fired is excused only by a run
// of its job that was under way then, as the app saw it: from arrival to answer. edge widens that interval: a replica
// asks a moment after the tick, or before it by the error of its clock, and the end of a run reaches Redis a moment after
// the app's answer.
func judge(jobs []job, seen []rig.Request, from, to time.Time, edge time.Duration) *verdict {
	v := &verdict{byReplica: map[string]int{}}
	byJob := map[string][]rig.Request{}
	for _, r := range seen {
		byJob[r.Job] = append(byJob[r.Job], r)
		v.byReplica[r.Replica]++
	}
	for _, j := range jobs {
		runs := byJob[j.name]
		slices.SortStableFunc(runs, func(a, b rig.Request) int { return a.Arrived.Compare(b.Arrived) })
		v.count(j, runs, from, to, edge)
		v.order(j, runs)
		delete(byJob, j.name)
	}
	for name, runs := range byJob {
		for _, r := range runs {
			v.strangers = append(v.strangers, tickOf{name, r.Tick})
		}
	}
	return v
}

// count settles each tick of a job.
func (v *verdict) count(j job, runs []rig.Request, from, to time.Time, edge time.Duration) {
	requests := map[time.Time]int{}
	for _, r := range runs {
		tick := r.Tick.UTC()
		requests[tick]++
		if (tick.UnixNano()-int64(j.offset))%int64(j.every) != 0 {
			v.strangers = append(v.strangers, tickOf{j.name, tick})
		}
		if requests[tick] == 2 {
			v.doubles = append(v.doubles, tickOf{j.name, tick})
		}
		if r.Kind != "schedule" {
			v.late++
		}
		delay := r.Arrived.Sub(tick)
		if delay < 0 {
			v.early++
			v.earliest = max(v.earliest, -delay)
		}
		if !j.delayed && requests[tick] == 1 && !tick.Before(from) && !tick.After(to) {
			v.delays = append(v.delays, delay)
		}
	}
	for _, tick := range j.ticks(from, to) {
		v.ticks++
		switch {
		case requests[tick] > 0:
			v.fired++
		case !j.allow && underWay(runs, tick, 0):
			v.overlapped++
		case !j.allow && underWay(runs, tick, edge):
			v.overlapped++
			v.edge++
		default:
			v.losses = append(v.losses, tickOf{j.name, tick})
		}
	}
}

// underWay tells whether one of the runs was under way at t, give or take the edge.
func underWay(runs []rig.Request, t time.Time, edge time.Duration) bool {
	return slices.ContainsFunc(runs, func(r rig.Request) bool {
		return !r.Arrived.After(t.Add(edge)) && (r.Ended.IsZero() || !r.Ended.Before(t.Add(-edge)))
	})
}

// order checks what one run owes to the one before it.
func (v *verdict) order(j job, runs []rig.Request) {
	if j.allow { // the order of ticks, since they need not arrive in order
		runs = slices.Clone(runs)
		slices.SortStableFunc(runs, func(a, b rig.Request) int { return a.Tick.Compare(b.Tick) })
	}
	var busy time.Time // until when the latest of the runs so far was under way
	for i, r := range runs {
		if i > 0 && r.Token <= runs[i-1].Token {
			v.tokens = append(v.tokens, tickOf{j.name, r.Tick})
		}
		if !j.allow && r.Arrived.Before(busy) {
			v.beside = append(v.beside, tickOf{j.name, r.Tick})
		}
		end := r.Ended
		if end.IsZero() {
			end = r.Arrived.Add(j.take)
		}
		if end.After(busy) {
			busy = end
		}
	}
}

// quantile of durations that need not be sorted; q is within [0, 1].
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Clone(d)
	slices.SortFunc(d, cmp.Compare)
	return d[min(int(q*float64(len(d))), len(d)-1)]
}
