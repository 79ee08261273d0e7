package sidecar

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// tally is what this replica counts of one job. The library's vectors would keep an object with labels for each
// series: most of the memory of a replica with a hundred jobs. Here a job takes less than a kilobyte, and such
// objects exist only during a scrape.
type tally struct {
	fires, failures, missed, retries, handovers, takeovers atomic.Uint64
	skips                                                  [len(reasons)]atomic.Uint64
	runs                                                   [len(outcomes)]atomic.Uint64
	running                                                atomic.Int64
	lastFire, lastSuccess, next                            gauge
	runDuration, fireDelay                                 histogram

	held int         // fires under way, under the lock of the tallies
	left atomic.Bool // the job has left: its tally goes with the last of these
}

func newTally() *tally {
	return &tally{runDuration: newHistogram(runBounds), fireDelay: newHistogram(delayBounds)}
}

func (t *tally) skipped(r reason) { t.skips[slices.Index(reasons[:], r)].Add(1) }

func (t *tally) ran(o outcome) { t.runs[slices.Index(outcomes[:], o)].Add(1) }

// gauge is a figure that is set; the zero value shows 0.
type gauge struct{ bits atomic.Uint64 }

func (g *gauge) set(v float64) { g.bits.Store(math.Float64bits(v)) }

func (g *gauge) value() float64 { return math.Float64frombits(g.bits.Load()) }

// histogram counts seconds by upper bounds, which are in order.
type histogram struct {
	bounds []float64

	mu     sync.Mutex
	counts []uint64 // by bound, not cumulative; the last one counts values above all bounds
	sum    float64
}

var (
	runBounds   = []float64{.005, .05, .25, 1, 5, 30, 120, 600, 3600}
	delayBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, 1, 5, 60}
)

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(v float64) {
	at, _ := slices.BinarySearch(h.bounds, v) // a value that equals a bound counts there
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[at]++
	h.sum += v
}

func (h *histogram) metric(desc *prometheus.Desc, job string) prometheus.Metric {
	h.mu.Lock()
	defer h.mu.Unlock()
	upTo, n := make(map[float64]uint64, len(h.bounds)), uint64(0)
	for i, bound := range h.bounds {
		n += h.counts[i]
		upTo[bound] = n
	}
	return prometheus.MustNewConstHistogram(desc, n+h.counts[len(h.bounds)], h.sum, upTo, job)
}

// tallies has the tallies of all jobs, by label.
type tallies struct {
	mu sync.Mutex
	of map[string]*tally
}

func perJob(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("solotick_"+name, help, append([]string{"job"}, labels...), nil)
}

var (
	firesDesc = perJob("fires_total", "Ticks for which this replica started the job.")
	skipsDesc = perJob("skips_total", "Wakes of this replica that did not start the job, by reason.", "reason")
	runsDesc  = perJob("runs_total",
		"Runs that ended, by outcome. An interrupted run is counted by the replica that noticed.", "outcome")
	failuresDesc = perJob("failures_total", "Runs that failed, as the history shows them.")
	missedDesc   = perJob("missed_total",
		"Ticks that no replica fired in time, counted by the replica that claimed the next one.")
	retriesDesc   = perJob("retries_total", "Failed attempts that were followed by another one in the same run.")
	handoversDesc = perJob("handovers_total",
		"Ticks given to another replica because the job could not be started here.")
	takeoversDesc   = perJob("takeovers_total", "Runs of other replicas that this one found dead and dealt with.")
	runningDesc     = perJob("running", "Runs of the job on this replica now.")
	lastFireDesc    = perJob("last_fire_timestamp_seconds", "When this replica last started the job; 0 if it has not.")
	lastSuccessDesc = perJob("last_success_timestamp_seconds",
		"When a run of the job on this replica last succeeded; 0 if none has.")
	nextDesc        = perJob("next_tick_timestamp_seconds", "When the job's next tick comes due; 0 if it has none.")
	runDurationDesc = perJob("run_duration_seconds", "How long runs took.")
	fireDelayDesc   = perJob("fire_delay_seconds", "From the tick to the start of the job.")
)

// Describe implements prometheus.Collector.
func (*tallies) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{firesDesc, skipsDesc, runsDesc, failuresDesc, missedDesc, retriesDesc,
		handoversDesc, takeoversDesc, runningDesc, lastFireDesc, lastSuccessDesc, nextDesc, runDurationDesc,
		fireDelayDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (a *tallies) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	all := maps.Clone(a.of) // a scrape that is slow holds no fire up
	a.mu.Unlock()
	for job, t := range all {
		t.collect(ch, job)
	}
}

func (t *tally) collect(ch chan<- prometheus.Metric, job string) {
	counter := func(d *prometheus.Desc, c *atomic.Uint64, labels ...string) {
		labels = append([]string{job}, labels...)
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(c.Load()), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, job)
	}
	counter(firesDesc, &t.fires)
	for i, r := range reasons {
		counter(skipsDesc, &t.skips[i], string(r))
	}
	for i, o := range outcomes {
		counter(runsDesc, &t.runs[i], string(o))
	}
	counter(failuresDesc, &t.failures)
	counter(missedDesc, &t.missed)
	counter(retriesDesc, &t.retries)
	counter(handoversDesc, &t.handovers)
	counter(takeoversDesc, &t.takeovers)
	gauge(runningDesc, float64(t.running.Load()))
	gauge(lastFireDesc, t.lastFire.value())
	gauge(lastSuccessDesc, t.lastSuccess.value())
	if !t.left.Load() {
		gauge(nextDesc, t.next.value())
	}
	ch <- t.runDuration.metric(runDurationDesc, job)
	ch <- t.fireDelay.metric(fireDelayDesc, job)
}

// job is the tally of a job. If the job has left, it is one that no scrape shows.
func (a *tallies) job(label string) *tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(label)
}

func (a *tallies) find(label string) *tally {
	if t := a.of[label]; t != nil {
		return t
	}
	return newTally()
}

// add makes all series of a job appear, at zero unless they are there already.
func (a *tallies) add(label string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.find(label)
	t.left.Store(false)
	a.of[label] = t
}

// hold keeps the series of a job while a fire of it is under way, until release is called.
func (a *tallies) hold(label string) (release func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.find(label)
	t.held++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		t.held--
		a.drop(label, t)
	}
}

// remove takes away the series of a job that has left, when its last fire has ended.
func (a *tallies) remove(label string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.of[label]; t != nil {
		t.left.Store(true)
		a.drop(label, t)
	}
}

func (a *tallies) drop(label string, t *tally) {
	if t.left.Load() && t.held == 0 && a.of[label] == t {
		delete(a.of, label)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
