package sidecar

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// standings shows how each job fares in the cluster. Redis knows it, so every replica shows the same, also right after
// a restart. Redis only knows the runs of ticks that are claimed. Of timers, and of a job that every replica runs, it
// knows the pauses, and each replica shows its own runs.
type standings struct {
	store       *service.Store
	jobs        func() roster
	timerLedger *job // stands for all timers
	tallies     *tallies
	now         func() time.Time // the cluster clock's

	mu    sync.Mutex
	asked time.Time // when Redis was last asked
	known map[string]service.Ledger
}

// standingsFresh is for how long Redis is not asked again, however many scrapes come.
const standingsFresh = 5 * time.Second

var (
	lastSuccessDesc = perJob("last_success_timestamp_seconds", "When a run of the job last succeeded; 0 if none has.")
	streakDesc      = perJob("consecutive_failures", "Ticks in a row that failed; 0 if the newest one did not.")
	successDueDesc  = perJob("success_due_timestamp_seconds",
		"When the second tick since the job last succeeded, or was first known, comes due; "+
			"0 while it need not succeed.")
	jobPausedDesc = perJob("job_paused", "1 if the job is paused.")
	fatesDesc     = perJob("ticks_total", "Ticks of the job in the cluster, by what became of them.", "fate")
	timersDesc    = prometheus.NewDesc("solotick_timers", "Timers that wait in the cluster.", nil, nil)
	lateDesc      = prometheus.NewDesc("solotick_timers_lag_seconds",
		"Since when the oldest timer that is due waits for a replica; 0 if none is due.", nil, nil)
)

// Describe implements prometheus.Collector.
func (*standings) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastSuccessDesc, streakDesc, successDueDesc, jobPausedDesc,
		fatesDesc, timersDesc, lateDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (a *standings) Collect(ch chan<- prometheus.Metric) {
	jobs, now := a.jobs(), a.now()
	known := a.read(append(slices.Collect(maps.Keys(jobs)), service.TimerJobs))
	for name, j := range jobs {
		if sp := j.inForce(); sp != nil {
			st, ok := known[name]
			a.collect(ch, sp, &st, ok, now)
		}
	}
	st, ok := known[service.TimerJobs]
	a.collect(ch, a.timerLedger.inForce(), &st, ok, now)
	if ok {
		ch <- prometheus.MustNewConstMetric(timersDesc, prometheus.GaugeValue, float64(st.Timers))
		ch <- prometheus.MustNewConstMetric(lateDesc, prometheus.GaugeValue, st.Late.Seconds())
	}
}

// collect shows one job. st is what Redis knows of it; nothing unless known.
func (a *standings) collect(ch chan<- prometheus.Metric, sp *spec, st *service.Ledger, known bool, now time.Time) {
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, sp.label)
	}
	runs := *st
	if !sp.hasFates() {
		runs = a.tallies.tally(sp.label).ledger()
		runs.Paused, runs.PausedAll, runs.PausedTo = st.Paused, st.PausedAll, st.PausedTo
	}
	if known || !sp.hasFates() {
		gauge(lastSuccessDesc, timestamp(runs.LastSuccess))
		gauge(streakDesc, float64(runs.Streak))
	}
	if !known {
		return
	}
	gauge(jobPausedDesc, map[bool]float64{true: 1}[st.IsPaused()])
	gauge(successDueDesc, timestamp(sp.successDue(&runs, now)))
	if !sp.hasFates() {
		return
	}
	for i, fate := range service.Fates {
		// The series by which trouble is told are there at zero.
		if st.Counts[i] > 0 || fate == string(failed) || fate == lock.Missed {
			ch <- prometheus.MustNewConstMetric(fatesDesc, prometheus.CounterValue, float64(st.Counts[i]), sp.label,
				fate)
		}
	}
}

// read asks Redis how the jobs fare, unless it did so lately. While Redis does not answer, what it said last holds.
func (a *standings) read(jobs []string) map[string]service.Ledger {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.asked.IsZero() && time.Since(a.asked) < standingsFresh {
		return a.known
	}
	all, err := a.store.Standings(context.Background(), jobs)
	a.asked = time.Now()
	if err != nil {
		return a.known
	}
	for name, st := range all {
		before := a.known[name]
		// Redis may have lost its data. A success that this replica knows of stays one.
		st.LastSuccess = newestOf(st.LastSuccess, before.LastSuccess)
		st.LastFailure = newestOf(st.LastFailure, before.LastFailure)
		all[name] = st
	}
	a.known = all
	return all
}

// timestamp is an instant as metrics show it: 0 for none.
func timestamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return seconds(t)
}
