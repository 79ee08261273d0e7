package sidecar

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics hang on a registerer that is handed in. Labels are the job's name and closed sets, and every series is there
// from the start, so that a rate over one that has just begun is not lost.
type metrics struct {
	fires, missed, retries, handovers, takeovers *prometheus.CounterVec // job
	skips                                        *prometheus.CounterVec // job, reason
	runs                                         *prometheus.CounterVec // job, outcome
	running, lastFire, lastSuccess, next         *prometheus.GaugeVec   // job
	runDuration, fireDelay                       *prometheus.HistogramVec
	acquireDuration                              prometheus.Histogram
	redisUp, redisFit, appReady                  prometheus.Gauge
	reloadedWell, reloadedAt                     prometheus.Gauge

	mu   sync.Mutex
	busy map[string]int  // by job: fires under way
	gone map[string]bool // jobs whose series go with the last of these
}

func newMetrics(reg prometheus.Registerer, s *Sidecar) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "solotick_" + name, Help: help}, append([]string{"job"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "solotick_" + name, Help: help}, []string{"job"})
	}
	histogram := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "solotick_" + name, Help: help, Buckets: buckets}, []string{"job"})
	}
	m := &metrics{
		fires:       counter("fires_total", "Ticks for which this replica started the job."),
		skips:       counter("skips_total", "Wakes of this replica that did not start the job, by reason.", "reason"),
		runs:        counter("runs_total", "Runs that ended, by outcome. An interrupted run is counted by the replica that noticed.", "outcome"),
		missed:      counter("missed_total", "Ticks that no replica fired in time, counted by the replica that claimed the next one."),
		retries:     counter("retries_total", "Failed attempts that were followed by another one in the same run."),
		handovers:   counter("handovers_total", "Ticks given to another replica because the job could not be started here."),
		takeovers:   counter("takeovers_total", "Runs of other replicas that this one found dead and dealt with."),
		running:     gauge("running", "Runs of the job on this replica now."),
		lastFire:    gauge("last_fire_timestamp_seconds", "When this replica last started the job; 0 if it has not."),
		lastSuccess: gauge("last_success_timestamp_seconds", "When a run of the job on this replica last succeeded; 0 if none has."),
		next:        gauge("next_tick_timestamp_seconds", "When the job's next tick comes due; 0 if it has none."),
		runDuration: histogram("run_duration_seconds", "How long runs took.", .005, .05, .25, 1, 5, 30, 120, 600, 3600),
		fireDelay:   histogram("fire_delay_seconds", "From the tick to the start of the job.", .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 60),
		acquireDuration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "solotick_acquire_duration_seconds",
			Help: "From the first question to Redis for a tick to its answer.", Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}}),
		redisUp:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "solotick_redis_up", Help: "1 if Redis answered last time it was asked, about once a second."}),
		redisFit: prometheus.NewGauge(prometheus.GaugeOpts{Name: "solotick_redis_fit", Help: "1 if Redis was fit for locks when it was last connected to: a master, not evicting, not too old."}),
	}
	m.busy, m.gone = map[string]int{}, map[string]bool{}
	m.appReady = prometheus.NewGauge(prometheus.GaugeOpts{Name: "solotick_app_ready", Help: "1 if the app was ready when it was last asked, or the table has it not asked."})
	m.reloadedWell = prometheus.NewGauge(prometheus.GaugeOpts{Name: "solotick_table_last_reload_successful", Help: "1 if the table that was read last is in force."})
	m.reloadedAt = prometheus.NewGauge(prometheus.GaugeOpts{Name: "solotick_table_last_reload_success_timestamp_seconds", Help: "When a table was last put in force."})
	offset := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "solotick_clock_offset_seconds",
		Help: "Redis' time minus this replica's, as estimated; 0 before the first answer, and for clock: local."}, func() float64 {
		d, _ := s.clock.offset()
		return d.Seconds()
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "solotick_build_info", Help: "1; the version of this binary.",
		ConstLabels: prometheus.Labels{"version": s.version}})
	build.Set(1)
	for _, c := range []prometheus.Collector{m.fires, m.skips, m.runs, m.missed, m.retries, m.handovers, m.takeovers, m.running, m.lastFire, m.lastSuccess,
		m.next, m.runDuration, m.fireDelay, m.acquireDuration, m.redisUp, m.redisFit, m.appReady, m.reloadedWell, m.reloadedAt,
		offset, tableInfo{s}, build} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// tableInfo is solotick_table_info, of the table in force at each scrape.
type tableInfo struct{ sidecar *Sidecar }

var tableInfoDesc = prometheus.NewDesc("solotick_table_info", "1; hash tells the tables of replicas apart.", []string{"hash"}, nil)

func (tableInfo) Describe(ch chan<- *prometheus.Desc) { ch <- tableInfoDesc }

func (t tableInfo) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(tableInfoDesc, prometheus.GaugeValue, 1, t.sidecar.Table().Hash)
}

// reloaded counts what came of a table.
func (m *metrics) reloaded(at time.Time, well bool) {
	m.reloadedWell.Set(0)
	if well {
		m.reloadedWell.Set(1)
		m.reloadedAt.Set(seconds(at))
	}
}

// hold keeps the series of a job while a fire of it is under way, until release.
func (m *metrics) hold(job string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[job]++
}

func (m *metrics) release(job string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[job]--; m.busy[job] > 0 {
		return
	}
	delete(m.busy, job)
	if m.gone[job] {
		delete(m.gone, job)
		m.drop(job)
	}
}

// remove takes away the series of a job that has left, when its last fire has ended.
func (m *metrics) remove(job string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[job] > 0 {
		m.gone[job] = true
		m.next.DeleteLabelValues(job)
		return
	}
	m.drop(job)
}

func (m *metrics) drop(job string) {
	of := prometheus.Labels{"job": job}
	for _, v := range []*prometheus.CounterVec{m.fires, m.missed, m.retries, m.handovers, m.takeovers, m.skips, m.runs} {
		v.DeletePartialMatch(of)
	}
	for _, v := range []*prometheus.GaugeVec{m.running, m.lastFire, m.lastSuccess, m.next} {
		v.DeletePartialMatch(of)
	}
	m.runDuration.DeletePartialMatch(of)
	m.fireDelay.DeletePartialMatch(of)
}

// add makes all series of a job appear, at zero unless they are there already.
func (m *metrics) add(job string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gone, job)
	for _, v := range []*prometheus.CounterVec{m.fires, m.missed, m.retries, m.handovers, m.takeovers} {
		v.WithLabelValues(job)
	}
	for _, r := range reasons {
		m.skips.WithLabelValues(job, string(r))
	}
	for _, o := range outcomes {
		m.runs.WithLabelValues(job, string(o))
	}
	for _, v := range []*prometheus.GaugeVec{m.running, m.lastFire, m.lastSuccess, m.next} {
		v.WithLabelValues(job)
	}
	m.runDuration.WithLabelValues(job)
	m.fireDelay.WithLabelValues(job)
}
