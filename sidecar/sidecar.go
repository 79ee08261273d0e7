package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
)

// Options of a Sidecar. All but Redis, Process, Notify, Wall and Nap are required.
type Options struct {
	Table   *config.Table
	Store   *lock.Store
	Redis   string // where Redis is, for the log
	Replica string // name of this replica: one word
	Version string
	// Process tells this process from another one that has the same name, about which it warns; "" is not compared.
	Process    string
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Executor makes what runs a job.
	Executor func(config.Job) execute.Executor
	// Prober makes what asks the app whether it is ready.
	Prober func(config.Ready) Prober
	// Notify tells others how runs go; nil tells nobody.
	Notify *notify.Pinger
	// Wall is this machine's clock; nil is time.Now.
	Wall func() time.Time
	// Nap sleeps for a millisecond or two, precisely; nil is the kernel's nanosleep. Simulations bring their own.
	Nap func(time.Duration)
}

// Sidecar is one replica at work.
type Sidecar struct {
	service, replica, version, process string

	store      *lock.Store
	clock      *clock
	wall       func() time.Time
	log        *slog.Logger
	metrics    *metrics
	admission  admission
	watcher    *watcher
	heartbeat  *heartbeat
	rendezvous *rendezvous
	executor   func(config.Job) execute.Executor
	prober     func(config.Ready) Prober
	notify     *notify.Pinger

	table    atomic.Pointer[config.Table]
	roster   atomic.Pointer[roster]
	reloaded atomic.Pointer[ReloadState]
	timers   *job          // stands for all timers: it has no ticks of its own
	newTable chan struct{} // tells probeApp

	swapping sync.Mutex   // held by whoever changes what is at work
	dynamic  []config.Job // the jobs made through the API
	cron     cron

	accepting     context.Context // ends when no more ticks are taken
	stopAccepting context.CancelFunc
	working       context.Context // ends, with errShutdown, when running jobs have to end
	stopWorking   context.CancelCauseFunc
	runs          sync.WaitGroup // fires under way
	drained       chan struct{}  // closed when the last of them has ended, and no more can begin
}

// New builds a replica; Run sets it to work.
func New(o Options) (*Sidecar, error) {
	s := &Sidecar{
		service: o.Table.Service, replica: o.Replica, version: o.Version, process: o.Process, store: o.Store, log: o.Log, wall: o.Wall,
		executor: o.Executor, prober: o.Prober, notify: o.Notify,
		admission: admission{own: map[string]bool{}}, newTable: make(chan struct{}, 1), drained: make(chan struct{}),
	}
	s.accepting, s.stopAccepting = context.WithCancel(context.Background())
	s.working, s.stopWorking = context.WithCancelCause(context.Background())
	if s.wall == nil {
		s.wall = time.Now
	}
	if o.Nap == nil {
		o.Nap = nap
	}
	s.clock = newClock(s.wall, o.Nap)
	if o.Table.Clock != "local" {
		s.clock.redis, s.clock.steady = s.store.Reached, s.store.Steady
	}
	s.rendezvous = newRendezvous(s.replica, s.store)
	s.heartbeat = &heartbeat{store: s.store, clock: s.clock, rendezvous: s.rendezvous, log: s.log, status: s.status, spec: s.spec,
		self:  lock.Replica{Name: s.replica, Version: s.version, Process: s.process},
		skips: map[string]lock.Skip{}, ran: map[string]lock.Entry{}}
	s.timers = newTimers()
	s.watcher = &watcher{sidecar: s, deferred: newDeferred(), trouble: trouble{redis: o.Redis}, up: true, nudged: make(chan struct{}, 1),
		takeover: takeover{replica: s.replica, runs: s.store.NewWatcher(), log: s.log, spec: s.spec, count: s.interrupted},
		register: registrar{store: s.store, log: s.log, now: s.clock.Now, jobs: s.jobs, timers: s.timers}}
	s.cron = cron{wake: s.wake, log: s.log}
	s.table.Store(o.Table)
	s.roster.Store(&roster{})
	s.reloaded.Store(&ReloadState{At: s.wall()})
	var err error
	if s.metrics, err = newMetrics(o.Registerer, s); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.metrics.add(lock.TimerJobs)
	s.metrics.reloaded(s.wall(), true)
	if o.Table.Ready != nil {
		s.admission.unready = notAsked
	}
	if err := s.use(o.Table, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// Run fires ticks until ctx ends, or Drain is called. Then it takes no more of them, gives running jobs the shutdown grace
// to end, and cancels those that do not. When all are settled it returns, though never before ctx has ended.
func (s *Sidecar) Run(ctx context.Context) error {
	ticking, stopClock := context.WithCancel(context.Background()) // to the end: fires sleep on it, and health asks for it
	var clock sync.WaitGroup
	clock.Go(func() { s.clock.run(ticking) })
	defer clock.Wait()
	defer stopClock()
	s.watcher.look(ctx) // so that ticks come on the cluster clock from the start, when Redis is there
	if err := s.start(); err != nil {
		s.stopAccepting()
		close(s.drained)
		return err
	}
	s.watcher.announce()
	var watching, attending sync.WaitGroup
	watching.Go(func() { s.watcher.run(s.accepting) })
	watching.Go(func() { s.probeApp(s.accepting) })
	attended, stopAttending := context.WithCancel(context.Background()) // until the last fire has ended
	attending.Go(func() { s.heartbeat.run(attended, s.accepting.Done()) })
	attending.Go(func() { s.store.Listen(attended, s.watcher.nudge) })

	select {
	case <-ctx.Done():
	case <-s.accepting.Done():
	}
	s.log.Info("taking no more ticks", "grace", s.Table().ShutdownGrace)
	s.stopAccepting()
	s.stopTimers()
	watching.Wait()
	s.finish()
	stopAttending()
	attending.Wait()
	s.heartbeat.leave()
	if ctx.Err() == nil {
		s.log.Info("drained")
	}
	close(s.drained)
	<-ctx.Done()
	return nil
}

// Drain has the replica take no more ticks, nor anything else that is due: both go to other replicas. It returns when the
// runs under way have ended, or been cancelled at the end of the shutdown grace; or with ctx' error when that ends first,
// which stops nothing. A drained replica stays so until its process ends.
func (s *Sidecar) Drain(ctx context.Context) error {
	s.stopAccepting()
	select {
	case <-s.drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("draining: %w", context.Cause(ctx))
	}
}

// start starts the jobs' timers. From now on jobs may be swapped.
func (s *Sidecar) start() error {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	now := s.clock.Now()
	s.watcher.last, s.watcher.checked = now, time.Now() // a clock that is set back from now on is noticed
	for _, j := range s.jobs() {
		j.start(now)
		s.showNext(j.now(), now)
	}
	return s.cron.start(s.clock, s.jobs())
}

// stopTimers stops the jobs' timers. Jobs are not swapped any more.
func (s *Sidecar) stopTimers() {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	s.cron.stop()
}

// wake is what cron calls. It returns at once, so that a running job never holds up those that come due with it. The job is
// looked up by its name, since it may have left the table, or left and come back.
func (s *Sidecar) wake(name string) {
	j := s.job(name)
	if j == nil {
		return
	}
	w, ok := j.take(s.clock.Now().Add(ahead))
	if !ok {
		return
	}
	s.showNext(w.spec, w.due)
	s.launch(&w)
}

// launch fires a wake beside all others.
func (s *Sidecar) launch(w *wake) {
	release := s.metrics.hold(w.spec.label)
	s.runs.Go(func() {
		defer release()
		s.fire(w)
	})
}

func (s *Sidecar) showNext(sp *spec, after time.Time) {
	next := 0.0
	if tick := sp.series.after(after); !tick.IsZero() && !sp.Suspend {
		next = seconds(sp.series.due(tick))
	}
	s.metrics.job(sp.Name).next.set(next)
}

// finish waits for the fires under way: for the grace at first, and then for what has been cancelled.
func (s *Sidecar) finish() {
	done := make(chan struct{})
	go func() {
		s.runs.Wait()
		close(done)
	}()
	grace := time.NewTimer(s.Table().ShutdownGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		s.log.Warn("the shutdown grace is over: cancelling what still runs")
	}
	s.stopWorking(errShutdown)
	s.store.Hurry()
	<-done
}

// Alive tells whether the replica's clock still looks at its timers.
func (s *Sidecar) Alive() bool { return s.clock.alive() }

var errNoAnswer = errors.New("no answer from Redis yet")

// Ready tells why the replica cannot take ticks; nil when it can. Redis must have answered once. That it stays away later
// is not told here: this decides over the readiness of the whole pod, and Redis is not brought back by ending it.
func (s *Sidecar) Ready() error {
	switch {
	case s.accepting.Err() != nil:
		return errDraining
	case !s.watcher.answeredOnce.Load():
		return errNoAnswer
	}
	return nil
}

// Notice tells what is wrong although the replica need not be restarted, nor its pod taken out of service; "" = nothing.
func (s *Sidecar) Notice() string {
	if s.LastReload().Err == nil {
		return ""
	}
	return "the table in force is not what its file says: the log and solotick status tell why"
}

// status is how the replica fares.
func (s *Sidecar) status() status { return status{s.Table().Hash, s.contends(), s.LastReload().Err} }

// contends tells why the replica leaves all ticks to others; nil when it does not.
func (s *Sidecar) contends() error {
	if err := s.Ready(); err != nil {
		return err
	}
	if why := s.admission.unreadiness(); why != "" {
		return fmt.Errorf("the app is not ready: %s", why)
	}
	return nil
}
