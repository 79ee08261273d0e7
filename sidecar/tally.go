package sidecar

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/solotick/solotick/sidecar/service"
)

// tally is what this replica counts of one job. The library's vectors would keep an object with labels for each
// series: most of the memory of a replica with a hundred jobs. Here a job takes less than a kilobyte, and such
// objects exist only during a scrape.
type tally struct {
	fires, failures, missed, retries, handovers, takeovers atomic.Uint64
	skips                                                  [len(reasons)]atomic.Uint64
	runs                                                   [len(outcomes)]atomic.Uint64
	running                                                atomic.Int64
	lastFire, next                                         gauge
	runDuration                                            histogram

	mu    sync.Mutex
	since time.Time       // when the job got the ticks that it has
	own   *service.Ledger // how the job fares here, if every replica runs it, or while Redis does not answer

	held int         // fires under way, under the lock of the tallies
	left atomic.Bool // the job has left: its tally goes with the last of these
}

func (t *tally) skipped(r reason) { t.skips[slices.Index(reasons[:], r)].Add(1) }

func (t *tally) ran(o outcome) { t.runs[slices.Index(outcomes[:], o)].Add(1) }

// began records a run that has begun here.
func (t *tally) began(r service.RunState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own == nil { // most jobs of a large table have not run
		t.own = &service.Ledger{}
	}
	t.own.Running = append(t.own.Running, r)
}

// ended records that a run here ended, and when it succeeded or failed.
func (t *tally) ended(e *service.Entry, o outcome, asFailed bool, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own == nil {
		t.own = &service.Ledger{}
	}
	t.own.Running = slices.DeleteFunc(t.own.Running, func(r service.RunState) bool { return r.Run == e.Run })
	t.own.Last = e
	switch {
	case o == succeeded:
		t.own.LastSuccess, t.own.FailingSince, t.own.Streak = at, time.Time{}, 0
	case asFailed:
		if t.own.LastFailure = at; t.own.Streak == 0 {
			t.own.FailingSince = at
		}
		t.own.Streak++
	}
}

// restarted records that the job has other ticks from now on.
func (t *tally) restarted(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = at
}

// ledger is how the job fares on this replica. Its runs are without the ends of their leases.
func (t *tally) ledger() service.Ledger {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := service.Ledger{}
	if t.own != nil {
		own = *t.own
	}
	own.Since, own.Running = t.since, slices.Clone(own.Running)
	return own
}

// gauge is a figure that is set; the zero value shows 0.
type gauge struct{ bits atomic.Uint64 }

func (g *gauge) set(v float64) { g.bits.Store(math.Float64bits(v)) }

func (g *gauge) value() float64 { return math.Float64frombits(g.bits.Load()) }

// runBounds tell short runs from long ones. The limit of series per job has room for one bound. How long runs usually
// take is their sum by their count.
var runBounds = [...]float64{60}

// histogram counts seconds by runBounds.
type histogram struct {
	mu     sync.Mutex
	counts [len(runBounds) + 1]uint64 // by bound, not cumulative; the last one counts values above all bounds
	sum    float64
	newest float64 // the value that came last
	run    string  // of that value; "" = none came
	at     time.Time
}

func (h *histogram) observe(v float64, run string, at time.Time) {
	i, _ := slices.BinarySearch(runBounds[:], v) // a value that equals a bound counts there
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[i]++
	h.sum += v
	h.newest, h.run, h.at = v, run, at
}

func (h *histogram) metric(desc *prometheus.Desc, job string) prometheus.Metric {
	h.mu.Lock()
	defer h.mu.Unlock()
	upTo, n := make(map[float64]uint64, len(runBounds)), uint64(0)
	for i, bound := range runBounds {
		n += h.counts[i]
		upTo[bound] = n
	}
	m := prometheus.MustNewConstHistogram(desc, n+h.counts[len(runBounds)], h.sum, upTo, job)
	if h.run == "" {
		return m
	}
	return prometheus.MustNewMetricWithExemplars(m,
		prometheus.Exemplar{Value: h.newest, Labels: prometheus.Labels{"run": h.run}, Timestamp: h.at})
}

// tallies has the tallies of all jobs, by label.
type tallies struct {
	mu sync.Mutex
	of map[string]*tally
}

// perJob describes a metric of each job. Inlined at its twenty callers, it would take 3 kB.
//
//go:noinline
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
	nextDesc        = perJob("next_tick_timestamp_seconds", "When the job's next tick comes due; 0 if it has none.")
	runDurationDesc = perJob("run_duration_seconds", "How long runs took.")
)

// Describe implements prometheus.Collector.
func (*tallies) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{firesDesc, skipsDesc, runsDesc, failuresDesc, missedDesc, retriesDesc,
		handoversDesc, takeoversDesc, runningDesc, lastFireDesc, nextDesc, runDurationDesc} {
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
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		labels = append([]string{job}, labels...)
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	rare := func(d *prometheus.Desc, c *atomic.Uint64, labels ...string) {
		if n := c.Load(); n > 0 {
			counter(d, n, labels...)
		}
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, job)
	}
	counter(firesDesc, t.fires.Load())
	for i, r := range reasons {
		rare(skipsDesc, &t.skips[i], string(r))
	}
	for i, o := range outcomes {
		rare(runsDesc, &t.runs[i], string(o))
	}
	counter(failuresDesc, t.failures.Load())
	counter(missedDesc, t.missed.Load())
	rare(retriesDesc, &t.retries)
	rare(handoversDesc, &t.handovers)
	rare(takeoversDesc, &t.takeovers)
	gauge(runningDesc, float64(t.running.Load()))
	gauge(lastFireDesc, t.lastFire.value())
	if !t.left.Load() {
		gauge(nextDesc, t.next.value())
	}
	ch <- t.runDuration.metric(runDurationDesc, job)
}

// tally is the tally of a job. If the job has left, it is one that no scrape shows.
func (a *tallies) tally(label string) *tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(label)
}

func (a *tallies) find(label string) *tally {
	if t := a.of[label]; t != nil {
		return t
	}
	return &tally{}
}

// add makes the series of a job appear, at zero unless they are there already. Those of what is rare come with its
// first event.
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
