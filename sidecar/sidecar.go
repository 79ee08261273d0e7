package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/trace"
	"github.com/solotick/solotick/sidecar/view"
)

// Options of a Sidecar. Table, Store, Replica, Version, Registerer, Log, Executor and Prober are required.
type Options struct {
	Table   *config.Table
	Store   *service.Store
	Redis   string // where Redis is, for the log
	Replica string // name of this replica: one word
	Version string
	// Environment is told to the other replicas, which warn if theirs is another one; "" is one, too.
	Environment string
	// Process is a random UUID of this process, by which its runs are known as its own (see lock.NewRun). It also tells
	// the process from another one that has the same name, about which it warns; "" is not compared.
	Process string
	// Died are the nodes (see lock.Node) of processes that are certainly dead: their runs are taken over at once.
	Died       []string
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Executor makes the executor of a job.
	Executor func(config.Job) execute.Executor
	// Observe takes the ticks of all jobs, calls none, and sends no pings.
	Observe bool
	// Prober makes the Prober that asks the app whether it is ready.
	Prober func(config.Ready) Prober
	// Notify sends pings about runs to other services; nil sends none.
	Notify Notifier
	// Spans sends spans of runs to a collector; nil sends none.
	Spans *trace.Exporter
	// Wall is this machine's clock; nil is time.Now.
	Wall func() time.Time
	// Nap sleeps for a millisecond or two, precisely; nil is the kernel's nanosleep. Simulations bring their own.
	Nap func(time.Duration)
}

// Sidecar is one replica at work. It connects the parts; none of them knows it.
type Sidecar struct {
	*life
	*atWork
	store     *service.Store
	clock     *clock
	log       *slog.Logger
	metrics   *metrics
	slots     *slots
	heartbeat *heartbeat
	firer     *firer
	looker    *looker
	probe     *probe
}

// New builds a replica; Run sets it to work.
func New(o Options) (*Sidecar, error) {
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Nap == nil {
		o.Nap = preciseSleep
	}
	if o.Notify == nil {
		o.Notify = (*notify.Pinger)(nil)
	}
	s := &Sidecar{life: newLife(), atWork: &atWork{newTable: make(chan struct{}, 1), executor: o.Executor,
		observe: o.Observe},
		store: o.Store, log: o.Log, clock: newClock(o.Wall, o.Nap), slots: &slots{reserved: map[string]int{}}}
	s.clock.redis = s.store.Reached
	if o.Table.Clock != "local" {
		s.clock.steady = s.store.Steady
	}
	s.table.Store(o.Table)
	s.roster.Store(&roster{})
	s.reloaded.Store(&ReloadState{At: o.Wall()})
	s.cron = cron{wake: s.wake, ahead: s.ahead, log: s.log}
	timer := newTimerJob()
	var err error
	if s.metrics, err = newMetrics(o.Registerer, o.Version, s.clock, o.Store, s.atWork, timer); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	s.metrics.add(service.TimerJobs)
	s.metrics.reloaded(o.Wall(), true)
	if err := o.Registerer.Register(jobInfo{s.jobs}); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if o.Table.Ready != nil {
		s.slots.unready = notAsked
	}
	s.connect(o, timer)
	s.swapJobs(o.Table)
	return s, nil
}

// connect makes the parts, and gives each the others that it needs.
func (s *Sidecar) connect(o Options, timer *job) {
	nudges, deferred := newNudges(), newDeferred(&s.fires)
	peers := &rendezvous{replica: o.Replica, store: s.store, looking: make(chan struct{}, 1)}
	s.heartbeat = &heartbeat{store: s.store, clock: s.clock, rendezvous: peers, log: s.log, status: s.status,
		nudges: nudges, atRest: s.atRest, spec: s.spec, told: make(chan struct{}, 1),
		self: service.Replica{Name: o.Replica, Version: o.Version, Observe: o.Observe,
			Environment: o.Environment, Process: o.Process, Local: o.Table.Clock == "local"},
		skips: map[string]service.Skip{}, ran: map[string]service.Entry{}}
	s.heartbeat.beatRefused.Store(new(error))
	record := &recorder{life: s.life, service: o.Table.Service, replica: o.Replica, store: s.store, clock: s.clock,
		log: s.log, metrics: s.metrics, heartbeat: s.heartbeat, notify: o.Notify, spans: o.Spans, began: time.Now()}
	registrar := &registrar{locks: s.store.Locks, log: s.log, now: s.clock.Now, jobs: s.jobs, timerLedger: timer}
	s.firer = &firer{life: s.life, clock: s.clock, slots: s.slots, rendezvous: peers, nudges: nudges, record: record,
		claimer: &claimer{life: s.life, replica: o.Replica, process: o.Process, store: s.store, clock: s.clock,
			log: s.log, slots: s.slots, registrar: registrar, nudges: nudges, record: record},
		runner: &runner{service: o.Table.Service, replica: o.Replica, clock: s.clock, record: record, spans: o.Spans},
		settler: &settler{life: s.life, store: s.store, replica: o.Replica, clock: s.clock, log: s.log,
			rendezvous: peers, nudges: nudges, record: record},
	}
	timers := &timers{job: timer, store: s.store, clock: s.clock, log: s.log, newSpec: s.newSpec, slots: s.slots,
		deferred: deferred, nudges: nudges, firer: s.firer, rendezvous: peers}
	about := func() []any {
		return []any{"service", o.Table.Service, "replica", o.Replica, "jobs", len(s.jobs()), "table", s.Table().Hash}
	}
	s.looker = &looker{store: s.store, jobs: s.jobs, nudges: nudges, deferred: deferred, registrar: registrar,
		timers: timers,
		redis: redisStatus{store: s.store, log: s.log, metrics: s.metrics, timerLedger: timer, about: about,
			table: s.Table, redis: o.Redis, up: true},
		refusal:  func() error { return *s.heartbeat.beatRefused.Load() },
		soonest:  s.cron.agenda.soonest,
		woken:    make(chan struct{}, 1),
		takeover: newTakeover(o.Replica, o.Died, s.store.Locks, s.log, s.job, record.interrupted),
		steps: steps{clock: s.clock, log: s.log, jobs: s.jobs, wake: s.wake, setBack: s.setBack,
			launch: func(w *wake) { s.firer.launch(w, nil) }},
		dueTicks: &dueTicks{locks: s.store.Locks, clock: s.clock, log: s.log, jobs: s.jobs, timers: timers,
			rendezvous: peers, slots: s.slots, deferred: deferred, nudges: nudges, firer: s.firer,
			line: map[string]*inLine{}},
	}
	s.probe = &probe{prober: o.Prober, table: s.Table, newTable: s.newTable, slots: s.slots, metrics: s.metrics,
		told: s.heartbeat.told, log: s.log}
}

// Run fires ticks until ctx ends or Drain is called. Then it takes no more ticks, gives running jobs the shutdown
// grace to end, and cancels those that do not. It returns when all runs are settled, but never before ctx has ended.
func (s *Sidecar) Run(ctx context.Context) error {
	// The clock runs to the end: fires sleep on it, and Alive asks for it.
	ticking, stopClock := context.WithCancel(context.Background())
	var clock sync.WaitGroup
	clock.Go(func() { s.clock.run(ticking) })
	defer clock.Wait()
	defer stopClock()
	s.looker.look(ctx) // so that ticks come on the cluster clock from the start, when Redis is there
	if err := s.start(); err != nil {
		s.stopAccepting()
		close(s.drained)
		return err
	}
	s.looker.redis.announce()
	var watching, attending sync.WaitGroup
	watching.Go(func() { s.looker.run(s.accepting) })
	watching.Go(func() { s.probe.run(s.accepting) })
	attended, stopAttending := context.WithCancel(context.Background()) // until the last fire has ended
	attending.Go(func() { s.heartbeat.run(attended, s.accepting.Done()) })
	attending.Go(func() { s.store.Listen(attended, s.looker.onMessage, s.looker.hear) })

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

// Drain makes the replica take no more ticks and no due members: they go to other replicas. It returns when the runs
// under way have ended, or were cancelled at the end of the shutdown grace. If ctx ends first, Drain returns its
// error and the replica drains on. A drained replica stays so until its process ends.
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
	s.looker.steps.begin(now)
	for _, j := range s.jobs() {
		j.start(now)
		s.showNext(j.inForce(), now)
	}
	if err := s.cron.start(s.clock, s.jobs()); err != nil {
		return err
	}
	for _, j := range s.jobs() {
		s.wakeAhead(j)
	}
	return nil
}

// atRest reports whether nothing runs, nothing is due, and no tick comes before the next heartbeat but two.
func (s *Sidecar) atRest() bool {
	return s.store.Resting.Load() && s.clock.Now().Add(2*beat.Rest+lookAhead).Before(s.cron.agenda.soonest())
}

// stopTimers stops the jobs' timers. Jobs are not swapped any more.
func (s *Sidecar) stopTimers() {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	s.cron.stop()
}

// wake is called by cron with jobs that come due together, for their ticks up to an instant. It returns at once, so
// that a running job never holds up others. It looks the jobs up by their names, since a job may have left the table,
// or left and come back.
func (s *Sidecar) wake(upTo time.Time, names ...string) {
	wakes := make([]*wake, 0, len(names))
	for _, name := range names {
		j := s.job(name)
		if j == nil {
			continue
		}
		if w, ok := j.take(upTo); ok {
			s.showNext(w.spec, w.due)
			if w.spec.asks() { // see Ask
				w.close(false)
				continue
			}
			w.herd = s.ahead()
			wakes = append(wakes, &w)
		}
	}
	s.firer.launchTogether(wakes)
}

// wakeAhead wakes a job for a tick that comes due too soon for a timer that is armed now.
func (s *Sidecar) wakeAhead(j *job) {
	if upTo := s.clock.Now().Add(s.ahead()); j.overdue(upTo) {
		s.wake(upTo, j.name)
	}
}

func (s *Sidecar) showNext(sp *spec, after time.Time) {
	next := 0.0
	if tick := sp.series.after(after); !tick.IsZero() && !sp.Suspend {
		next = seconds(sp.series.due(tick))
	}
	s.metrics.tally(sp.Name).next.set(next)
}

// finish waits for the fires under way. After the grace it cancels them, and waits for their ends.
func (s *Sidecar) finish() {
	done := make(chan struct{})
	go func() {
		s.fires.Wait()
		close(done)
	}()
	grace := s.Table().ShutdownGrace
	select {
	case <-done:
	case <-time.After(grace):
		s.log.Warn("the shutdown grace is over: cancelling what still runs")
	}
	s.stopWorking(fmt.Errorf("%w: shutdownGrace is %s", errShutdown, grace))
	s.store.Locks.BeginShutdown()
	<-done
}

// Alive reports whether the replica's clock still looks at its timers.
func (s *Sidecar) Alive() bool { return s.clock.alive() }

// Ready tells why the replica cannot take ticks; nil if it can. Redis must have answered once. If Redis stays away
// later, the replica stays ready: ending the pod would not bring Redis back.
func (s *Sidecar) Ready() error {
	switch {
	case s.accepting.Err() != nil:
		return errDraining
	case !s.looker.redis.answeredOnce.Load():
		return errNoAnswer
	}
	return nil
}

// Notice tells what is wrong although the replica need not be restarted, nor its pod taken out of service; "" =
// nothing.
func (s *Sidecar) Notice() string {
	switch {
	case s.LastReload().Err == nil:
		return ""
	case s.Table().MaxRunning < 0:
		return NoTable
	}
	return "the table in force is not what its file says: the log and solotick status tell why"
}

// RedisTrouble tells why Redis is of no use to the replica; nil if it is of use.
func (s *Sidecar) RedisTrouble() *view.Trouble { return s.looker.redis.shown.Load() }

// OwnRuns is what this replica itself ran of a job.
func (s *Sidecar) OwnRuns(job string) service.Ledger { return s.metrics.tally(job).ledger() }

// status is how the replica fares.
func (s *Sidecar) status() status {
	now := status{table: s.Table().Hash}
	if err := s.WhyIdle(); err != nil {
		now.ready = err.Error()
	}
	if err := s.LastReload().Err; err != nil {
		now.reload = text.OneLine(truncate(firstProblem(err), maxDetail))
	}
	return now
}

// WhyIdle tells why the replica leaves all ticks to others; nil if it takes them.
func (s *Sidecar) WhyIdle() error {
	if err := s.Ready(); err != nil {
		return err
	}
	if why := s.slots.idle(); why != "" {
		return errors.New(why)
	}
	return nil
}
