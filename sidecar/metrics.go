package sidecar

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/service"
)

// metrics are registered with the given registerer. Labels are the job's name and closed sets. A job has few series, 24
// with all that usually happens to it. The counters of fires, failures and missed ticks are there from the start, so
// that a rate sees its first increment.
type metrics struct {
	tallies                     // of each job
	acquireDuration, fireDelay  prometheus.Histogram
	redisUp, redisFit, appReady prometheus.Gauge
	reloadedWell, reloadedAt    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, version string, clock *clock, store *service.Store, work *atWork,
	timers *job) (*metrics, error) {
	m := &metrics{
		tallies: tallies{of: map[string]*tally{}},
		acquireDuration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "solotick_acquire_duration_seconds",
			Help:    "From the first question to Redis for a tick to its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}}),
		fireDelay: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "solotick_fire_delay_seconds",
			Help:    "From a tick to the start of its job.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 60}}),
		redisUp: newGauge("solotick_redis_up", "1 if Redis answered the last look."),
		redisFit: newGauge("solotick_redis_fit",
			"1 if Redis was fit for locks when it was last connected to: a master, not evicting, not too old."),
		appReady: newGauge("solotick_app_ready",
			"1 if the app was ready when it was last asked, or the table has it not asked."),
		reloadedWell: newGauge("solotick_table_last_reload_successful",
			"1 if the table that was read last is in force."),
		reloadedAt: newGauge("solotick_table_last_reload_success_timestamp_seconds",
			"When a table was last put in force."),
	}
	offset := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "solotick_clock_offset_seconds",
		Help: "Redis' time minus this replica's, as estimated; 0 before the first answer.",
	}, func() float64 {
		d, _ := clock.offset()
		return d.Seconds()
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "solotick_build_info",
		Help: "1; the version of this binary.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	cluster := &standings{store: store, jobs: work.jobs, timerLedger: timers, tallies: &m.tallies, now: clock.Now}
	for _, c := range []prometheus.Collector{&m.tallies, cluster, m.acquireDuration, m.fireDelay, m.redisUp, m.redisFit,
		m.appReady, m.reloadedWell, m.reloadedAt, offset, tableInfo{work.Table}, build} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func newGauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// tableInfo is solotick_table_info, of the table in force at each scrape.
type tableInfo struct{ inForce func() *config.Table }

var tableInfoDesc = prometheus.NewDesc("solotick_table_info", "1; hash tells the tables of replicas apart.",
	[]string{"hash"}, nil)

func (tableInfo) Describe(ch chan<- *prometheus.Desc) { ch <- tableInfoDesc }

func (t tableInfo) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(tableInfoDesc, prometheus.GaugeValue, 1, t.inForce().Hash)
}

// reloaded counts the success or failure of a reload.
func (m *metrics) reloaded(at time.Time, well bool) {
	show(m.reloadedWell, well)
	if well {
		m.reloadedAt.Set(seconds(at))
	}
}

// show sets a gauge to 1 or 0, in one step.
func show(g prometheus.Gauge, on bool) {
	g.Set(map[bool]float64{true: 1}[on])
}

// jobInfo is solotick_job_info: what the jobs at work are, at each scrape. An alert takes owner, runbook and severity
// from it. The jobs' other labels are not in it: all series of a metric have the same label names, and each job may
// have others.
type jobInfo struct{ jobs func() roster }

var jobInfoDesc = perJob("job_info", "1; when the job runs, whom to call and what to do when it fails.",
	"schedule", "time_zone", "guarantee", "owner", "runbook", "severity")

// Describe implements prometheus.Collector.
func (jobInfo) Describe(ch chan<- *prometheus.Desc) { ch <- jobInfoDesc }

// Collect implements prometheus.Collector.
func (i jobInfo) Collect(ch chan<- prometheus.Metric) {
	for _, j := range i.jobs() {
		if sp := j.inForce(); sp != nil { // it may have left the table since the roster was read
			ch <- prometheus.MustNewConstMetric(jobInfoDesc, prometheus.GaugeValue, 1,
				sp.Name, sp.Schedule.String(), sp.TimeZone, string(sp.Guarantee), sp.Owner, sp.Runbook,
				sp.Labels["severity"])
		}
	}
}
