package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/trace"
)

// world is a service in a synctest bubble: replicas of the real sidecar on the real scripts in miniredis, over
// in-memory connections, and jobs that only take fake time.
type world struct {
	t     *testing.T
	redis *miniredis.Miniredis
	table *config.Table
	began time.Time

	mu       sync.Mutex
	starts   []start
	replicas []*replica
	offset   atomic.Pointer[time.Duration] // by which Redis' clock was set; nil = it was not
}

// start is one start of a job.
type start struct {
	job     string
	tick    time.Time
	at      time.Time
	replica string
	run     execute.Run
}

// replica is one sidecar with its own network and clock.
type replica struct {
	*Sidecar
	world       *world
	name        string
	registry    *prometheus.Registry
	stop        context.CancelFunc
	done        chan struct{}
	client      redis.UniversalClient
	logs        *logs
	app         Prober // nil = it is always ready
	pings       *notify.Pinger
	spans       *trace.Exporter
	says        func(string) // called with a message ahead of its line in the log
	process     string       // "" = it does not say
	observes    bool
	environment string
	died        []string // nodes of processes that it knows to be dead

	mu    sync.Mutex
	skew  time.Duration // its machine's clock minus the bubble's
	cut   bool          // no connection gets through
	slept atomic.Int64  // for how long its machine was suspended
	deaf  atomic.Bool   // what it asks reaches Redis, and no answer comes back: the connection ends instead
	far   time.Duration // from Redis: what a write takes
	dials int
	conns []net.Conn
	work  func(ctx context.Context, r execute.Run) execute.Result // what its jobs do; nil: they cannot be started
	ifNot func()                                                  // called then
	tries func(execute.Run)                                       // called then, one at a time
}

// besides are the tests that run beside others.
var besides sync.Map

// simulate runs f in a bubble with a table, and ends everything afterwards. Bubbles share nothing and only compute, so
// tests run beside each other; those of one test run in turn.
func simulate(t *testing.T, table string, f func(w *world)) {
	t.Helper()
	if _, is := besides.LoadOrStore(t, true); !is {
		t.Parallel()
	}
	parsed := parse(t, table)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, redis: miniredis.NewMiniRedis(), table: parsed, began: time.Now()}
		w.redis.ClockTTL(true)
		time.Sleep(10 * time.Minute) // Redis is older than the service
		f(w)
		for _, r := range w.replicas {
			r.stop()
		}
		for _, r := range w.replicas {
			<-r.done
			_ = r.client.Close()
		}
		w.redis.Close()
		time.Sleep(2 * time.Second) // go-redis looks once a second whether a network that was away is back, and then ends
	})
}

// long marks a test that computes for many seconds under the race detector. make test plays it without, and make check
// not at all. A test that does not call it first is played under the detector.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short: it computes for long")
	}
}

func parse(t *testing.T, table string) *config.Table {
	t.Helper()
	parsed, err := config.Parse("table.yaml", []byte("service: test\n"+table), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// reload gives the replicas to come another table.
func (w *world) reload(table string) { w.table = parse(w.t, table) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it has no other way to be told where to write
	goleak.VerifyTestMain(m)
}

// replica starts one more. Its jobs take d, and end early when they are told to.
func (w *world) replica(d time.Duration, change ...func(*replica)) *replica {
	r := &replica{world: w, name: fmt.Sprintf("r%d", len(w.replicas)+1), registry: prometheus.NewRegistry(), done: make(chan struct{}), logs: &logs{}}
	r.work = func(ctx context.Context, _ execute.Run) execute.Result {
		if !beat.Sleep(ctx, d) {
			return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
		}
		return execute.Result{Status: execute.Succeeded}
	}
	for _, c := range change {
		c(r)
	}
	r.client = lock.NewClient(redis.UniversalOptions{Addrs: []string{"redis:6379"}, Dialer: r.dial}, 0)
	boottime := func() time.Duration { return time.Since(w.began) + time.Duration(r.slept.Load()) }
	store, err := service.New(r.client, "test", lock.Options{Boottime: boottime})
	if err != nil {
		w.t.Fatal(err)
	}
	r.Sidecar, err = New(Options{
		Table: w.table, Store: store, Redis: "redis:6379", Replica: r.name, Version: "test", Process: r.process, Died: r.died, Registerer: r.registry,
		Log:      slog.New(speech{slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}), r.says}),
		Executor: func(config.Job) execute.Executor { return r },
		Observe:  r.observes, Environment: r.environment,
		Prober: func(config.Ready) Prober { return r },
		Notify: r.pings,
		Spans:  r.spans,
		Wall:   r.wall,
		Nap:    time.Sleep,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.t.Context())
	r.stop = stop
	w.replicas = append(w.replicas, r)
	go func() {
		defer close(r.done)
		if err := r.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	return r
}

// Execute records the start and does the replica's work.
func (r *replica) Execute(ctx context.Context, run execute.Run) execute.Result {
	inner := run.Started
	run.Started = func() {
		r.world.mu.Lock()
		r.world.starts = append(r.world.starts, start{job: run.Job, tick: run.Tick, at: time.Now(), replica: r.name, run: run})
		r.world.mu.Unlock()
		inner()
	}
	r.mu.Lock()
	work := r.work
	r.mu.Unlock()
	if work == nil {
		if r.tries != nil {
			r.world.mu.Lock()
			r.tries(run)
			r.world.mu.Unlock()
		}
		if r.ifNot != nil {
			r.ifNot()
		}
		return execute.Result{Status: execute.NotStarted, Err: errors.New("connection refused"), Code: -1}
	}
	run.Await(ctx)
	if err := context.Cause(ctx); err != nil {
		return execute.Result{Status: execute.Canceled, Err: err, Code: -1}
	}
	run.Started()
	return work(ctx, run)
}

// Probe asks the app.
func (r *replica) Probe(ctx context.Context) error {
	if r.app == nil {
		return nil
	}
	return r.app.Probe(ctx)
}

func (r *replica) dial(context.Context, string, string) (net.Conn, error) {
	c, err := r.world.redis.Dial() // without r.mu: a message under way may wait for the replica, and that for its clock
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials++
	if r.cut && err == nil {
		c.Close()
		err = &net.OpError{Op: "dial", Err: errors.New("network is unreachable")}
	}
	if err == nil {
		c = r.carried(c)
		r.conns = append(r.conns, c)
	}
	return c, err
}

// link is a connection over some way that records what is written, as a kernel's does: over a bare pipe, a long
// pipeline and the answers to its beginning wait for each other.
type link struct {
	net.Conn
	of   *replica
	out  chan []byte
	gone chan struct{}
	end  func()
}

// carried carries what is written to c, each time after r.far.
func (r *replica) carried(c net.Conn) *link {
	l := &link{Conn: c, of: r, out: make(chan []byte, 1000), gone: make(chan struct{})}
	way := r.far
	l.end = sync.OnceFunc(func() { close(l.gone) })
	go func() {
		defer l.end()
		for {
			select {
			case p := <-l.out:
				time.Sleep(way)
				r.world.tellTime()
				if _, err := c.Write(p); err != nil {
					return
				}
			case <-l.gone:
				return
			}
		}
	}()
	return l
}

func (l *link) Write(p []byte) (int, error) {
	select {
	case l.out <- slices.Clone(p):
		return len(p), nil
	case <-l.gone:
		return 0, net.ErrClosed
	}
}

func (l *link) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err == nil && l.of.deaf.Load() {
		_ = l.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (l *link) Close() error {
	l.end()
	return l.Conn.Close()
}

func (l *link) SetDeadline(t time.Time) error      { return l.SetReadDeadline(t) }
func (l *link) SetWriteDeadline(t time.Time) error { return nil }

func (r *replica) dialed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}

// wall is its machine's clock.
func (r *replica) wall() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.skew)
}

// set sets its machine's clock.
func (r *replica) set(skew time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skew = skew
}

// disconnect takes the network away, or gives it back.
func (r *replica) disconnect(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	if cut {
		for _, c := range r.conns {
			c.Close()
		}
		r.conns = nil
	}
}

// redisIsAhead sets Redis' clock, so much ahead of the bubble's.
func (w *world) redisIsAhead(d time.Duration) {
	w.offset.Store(&d)
	w.tellTime()
}

// tellTime tells miniredis the time once its clock was set: from then on it has none of its own.
func (w *world) tellTime() {
	if d := w.offset.Load(); d != nil {
		w.redis.SetTime(time.Now().UTC().Add(*d))
	}
}

// operator gives f a store of somebody who is no replica.
func (w *world) operator(f func(s *service.Store)) {
	w.t.Helper()
	far := &replica{world: w, name: "operator"}
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{"redis:6379"}, Dialer: far.dial}, 0)
	defer client.Close()
	store, err := service.New(client, "test", lock.Options{Boottime: func() time.Duration { return time.Since(w.began) }})
	w.must(err)
	f(store)
}

// at sleeps until d after the full minute that follows the start of the bubble's world, and until all that the replicas
// do at that very instant is done.
func (w *world) at(d time.Duration) {
	time.Sleep(time.Until(w.origin().Add(d)))
	synctest.Wait()
}

// origin is the minute after the replicas started: bubbles begin at midnight.
func (w *world) origin() time.Time { return w.began.Add(11 * time.Minute).UTC() }

// started gives the starts of a job so far, by tick.
func (w *world) started(job string) map[time.Time][]start {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := map[time.Time][]start{}
	for _, s := range w.starts {
		if s.job == job {
			by[s.tick] = append(by[s.tick], s)
		}
	}
	return by
}

// value is the sum of a metric's series on this replica that have these label values. A rare event has no series before
// it has happened.
func (r *replica) value(name string, labels ...string) float64 {
	r.world.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.world.t.Fatal(err)
	}
	sum, found := 0.0, slices.Contains(perJobMetrics(), "solotick_"+name)
	for _, l := range labels {
		found = found && (r.job(l) != nil || l == service.TimerJobs || slices.Contains(reasons[:], reason(l)) ||
			slices.Contains(outcomes[:], outcome(l)) || slices.Contains(service.Fates[:], l))
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "solotick_"+name && !slices.ContainsFunc(labels, func(l string) bool { return !hasLabel(m, l) }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
				found = true
			}
		}
	}
	if !found {
		r.world.t.Fatalf("no series solotick_%s %v", name, labels)
	}
	return sum
}

// perJobMetrics are the names of the metrics that have the label job.
func perJobMetrics() []string {
	ch := make(chan *prometheus.Desc, 100)
	(*tallies)(nil).Describe(ch)
	(*standings)(nil).Describe(ch)
	close(ch)
	var names []string
	for d := range ch {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		names = append(names, name)
	}
	return names
}

func hasLabel(m *dto.Metric, value string) bool {
	return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetValue() == value })
}

// sum adds a metric over all replicas.
func (w *world) sum(name string, labels ...string) float64 {
	w.t.Helper()
	sum := 0.0
	for _, r := range w.replicas {
		sum += r.value(name, labels...)
	}
	return sum
}

// expect compares a metric's sum over all replicas.
func (w *world) expect(want float64, name string, labels ...string) {
	w.t.Helper()
	if got := w.sum(name, labels...); got != want {
		w.t.Errorf("%s%v = %v over all replicas, want %v\n%s", name, labels, got, want, w.log())
	}
}

// log is what all replicas said, for a failure.
func (w *world) log() string {
	var b strings.Builder
	for _, r := range w.replicas {
		fmt.Fprintf(&b, "--- %s\n%s", r.name, r.logs)
	}
	return b.String()
}

// speech tells of each message before it is written.
type speech struct {
	slog.Handler
	says func(string)
}

func (s speech) Handle(ctx context.Context, r slog.Record) error {
	if s.says != nil {
		s.says(r.Message)
	}
	return s.Handler.Handle(ctx, r)
}

// logs is a writer that can be read meanwhile.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

var _ io.Writer = (*logs)(nil)

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
