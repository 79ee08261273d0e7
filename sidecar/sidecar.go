package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// Options of a Sidecar. All but Wall and Nap are required.
type Options struct {
	Table      *config.Table
	Store      *lock.Store
	Replica    string // name of this replica: one word
	Version    string
	Log        *slog.Logger
	Registerer prometheus.Registerer
	// Executor makes what runs a job.
	Executor func(config.Job) execute.Executor
	// Wall is this machine's clock; nil is time.Now.
	Wall func() time.Time
	// Nap sleeps for a millisecond or two, precisely; nil is the kernel's nanosleep. Simulations bring their own.
	Nap func(time.Duration)
}

// Sidecar is one replica at work.
type Sidecar struct {
	service, replica, version, tableHash string

	grace   time.Duration
	store   *lock.Store
	clock   *clock
	jobs    map[string]*job
	log     *slog.Logger
	metrics *metrics
	watcher *watcher
	heart   *heart
	turn    *turn

	accepting     context.Context // ends when no more ticks are taken
	stopAccepting context.CancelFunc
	working       context.Context // ends, with errShutdown, when running jobs have to end
	stopWorking   context.CancelCauseFunc
	runs          sync.WaitGroup // fires under way
}

// New builds a replica; Run sets it to work.
func New(o Options) (*Sidecar, error) {
	s := &Sidecar{
		service: o.Table.Service, replica: o.Replica, version: o.Version, tableHash: o.Table.Hash,
		grace: o.Table.ShutdownGrace, store: o.Store, log: o.Log, jobs: make(map[string]*job, len(o.Table.Jobs)),
	}
	s.accepting, s.stopAccepting = context.WithCancel(context.Background())
	s.working, s.stopWorking = context.WithCancelCause(context.Background())
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Nap == nil {
		o.Nap = nap
	}
	s.clock = newClock(o.Wall, o.Nap)
	if o.Table.Clock != "local" {
		s.clock.redis = s.store.Reached
	}
	s.watcher = &watcher{sidecar: s, runs: s.store.NewWatcher(), up: true, nudged: make(chan struct{}, 1)}
	s.heart = &heart{sidecar: s, skips: map[string]lock.Skip{}}
	s.turn = &turn{sidecar: s}
	var err error
	if s.metrics, err = newMetrics(o.Registerer, s); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	for _, c := range o.Table.Jobs {
		j := &job{Job: c, series: newSeries(&c), executor: o.Executor(c)}
		s.jobs[c.Name] = j
		if c.Guarantee != config.EveryReplica {
			s.watcher.canary = j
		}
		s.metrics.add(c.Name)
	}
	return s, nil
}

// Run fires ticks until ctx ends. Then it takes no more of them, gives running jobs the shutdown grace to end, cancels
// those that do not, and returns when all are settled.
func (s *Sidecar) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	ticking, stopClock := context.WithCancel(context.Background()) // until the last fire has ended: fires sleep on it
	loops.Go(func() { s.clock.run(ticking) })
	defer loops.Wait()
	defer stopClock()
	s.watcher.look(ctx) // so that ticks come on the cluster clock from the start, when Redis is there
	cron, err := s.schedule()
	if err != nil {
		s.stopAccepting()
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() { s.watcher.run(s.accepting) })
	watching.Go(func() { s.heart.run(s.accepting) })
	loops.Go(func() { s.store.Listen(ticking, s.watcher.nudge) }) // to the end: runs may be told to end while others drain
	cron.Start()
	s.log.Info("taking ticks", "service", s.service, "replica", s.replica, "jobs", len(s.jobs), "table", s.tableHash)

	<-ctx.Done()
	s.log.Info("taking no more ticks", "grace", s.grace)
	s.stopAccepting()
	if err := cron.Shutdown(); err != nil {
		s.log.Warn("the scheduler did not stop cleanly", "err", err)
	}
	watching.Wait()
	s.finish()
	s.heart.leave()
	return nil
}

// schedule gives every job to gocron, on the cluster clock and with our schedules.
func (s *Sidecar) schedule() (gocron.Scheduler, error) {
	cron, err := gocron.NewScheduler(gocron.WithClock(s.clock), gocron.WithLocation(time.UTC))
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	now := s.clock.Now()
	for _, j := range s.jobs {
		j.taken = j.series.newest(now) // what came due before this replica was there is not its to take
		s.showNext(j, now)
		_, err := cron.NewJob(gocron.CronJob("", false), gocron.NewTask(s.wake, j), gocron.WithName(j.Name),
			gocron.WithCronImplementation(&j.series))
		if err != nil {
			return nil, fmt.Errorf("scheduling job %q: %w", j.Name, err)
		}
	}
	return cron, nil
}

// wake is what gocron calls. It returns at once, so that a running job never holds gocron up.
func (s *Sidecar) wake(j *job) {
	w, ok := j.take(s.clock.Now().Add(ahead))
	if !ok {
		return
	}
	s.showNext(j, w.due)
	s.runs.Go(func() { s.fire(&w) })
}

func (s *Sidecar) showNext(j *job, after time.Time) {
	next := 0.0
	if tick := j.series.after(after); !tick.IsZero() && !j.Suspend {
		next = seconds(j.series.due(tick))
	}
	s.metrics.next.WithLabelValues(j.Name).Set(next)
}

// finish waits for the fires under way: for the grace at first, and then for what has been cancelled.
func (s *Sidecar) finish() {
	done := make(chan struct{})
	go func() {
		s.runs.Wait()
		close(done)
	}()
	grace := time.NewTimer(s.grace)
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

// Ready tells why the replica cannot take ticks; nil when it can. Redis must have answered once. That it stays away later
// is not told here: this decides over the readiness of the whole pod, and Redis is not brought back by ending it.
func (s *Sidecar) Ready() error {
	switch {
	case s.accepting.Err() != nil:
		return errors.New("draining")
	case !s.watcher.answeredOnce.Load():
		return errors.New("no answer from Redis yet")
	}
	return nil
}
