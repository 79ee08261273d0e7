package sidecar

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

const (
	// lookEvery is how often a replica looks at what runs and what is due: one round trip, which also reads Redis' time.
	lookEvery = time.Second
	// duePage bounds what one look takes in.
	duePage = 1000
	// strange is how long due ticks of jobs that this table lacks are left to replicas that may have them.
	strange = 24 * time.Hour
	// standBack is how long the replica that could not start a job leaves its tick to others.
	standBack = 2 * time.Second
	// registerAtOnce jobs are told to Redis in one burst.
	registerAtOnce = 100
	// registerEvery keeps the ledgers of the table's jobs from expiring.
	registerEvery = 24 * time.Hour
	// defaultTTL is the lease of a job that this table lacks, until its record tells.
	defaultTTL = 15 * time.Second
)

// watcher looks at the service's runs and due ticks, once a second, for as long as the replica accepts work.
type watcher struct {
	sidecar *Sidecar
	runs    *lock.Watcher
	seen    map[string]time.Time // due members, since when
	busy    sync.Map             // due members that a fire here is busy with
	canary  *job                 // the job by which a loss of Redis' data is noticed; nil = the table has no locked job
	up      bool
	last    time.Time // the cluster clock at the last look
	wild    bool      // Redis' clock and ours lie too far apart

	answeredOnce atomic.Bool
}

func (w *watcher) run(ctx context.Context) {
	for pause(ctx, lookEvery) {
		w.look(ctx)
		w.checkClock()
	}
}

func (w *watcher) look(ctx context.Context) {
	s := w.sidecar
	runs, dues, err := s.store.Look(ctx, duePage)
	if ctx.Err() != nil {
		return
	}
	w.answered(err)
	if err != nil {
		return
	}
	w.register(ctx)
	w.answeredOnce.Store(true)
	w.takeOver(ctx, runs)
	w.takeDue(ctx, runs, dues)
}

// checkClock deals with steps of the cluster clock that its timers cannot: gocron, once armed, is not armed for an
// earlier instant. After a step back the ticks that come again are this replica's to take, and a tick that is due and
// that no timer woke for is woken for here. The claims see to it that nothing is fired twice.
func (w *watcher) checkClock() {
	s := w.sidecar
	now := s.clock.Now()
	back := now.Before(w.last.Add(-glance))
	w.last = now
	for _, j := range s.jobs {
		if j.overdue(now, back) {
			s.wake(j)
		}
	}
	if wild := s.clock.wild(); wild != w.wild {
		w.wild = wild
		offset, _ := s.clock.offset()
		if wild {
			s.log.Error("the clocks of Redis and of this replica lie too far apart: ticks come by this replica's", "offset", offset)
		} else {
			s.log.Info("the clocks of Redis and of this replica agree again", "offset", offset)
		}
	}
}

// answered says once when Redis goes away, and once when it is back.
func (w *watcher) answered(err error) {
	s := w.sidecar
	switch {
	case err == nil && !w.up:
		s.log.Info("Redis answers")
	case err != nil && w.up:
		s.log.Error("Redis does not answer", "err", err)
	}
	w.up = err == nil
	s.metrics.redisUp.Set(0)
	if w.up {
		s.metrics.redisUp.Set(1)
	}
}

// takeOver deals with runs whose replica is gone: under at-most-once they are written down as interrupted, once.
func (w *watcher) takeOver(ctx context.Context, runs []lock.Running) {
	s := w.sidecar
	for _, r := range w.runs.Unchanged(runs, s.ttl) {
		rec, ours, err := w.runs.Reap(ctx, r, func(rec lock.Record) []any {
			return history{job: r.Job, tick: rec.Tick, run: r.Run, replica: rec.Replica, kind: rec.Kind, attempt: rec.Attempt,
				outcome: wasInterrupted}.fields()
		})
		if err != nil {
			s.log.Warn("a run without a replica could not be taken over", "job", r.Job, "run", r.Run, "err", err)
			continue
		}
		if ours {
			s.interrupted(r.Job, rec)
		}
	}
}

// ttl is the lease of a job's runs as far as this table knows.
func (s *Sidecar) ttl(name string) time.Duration {
	if j := s.jobs[name]; j != nil {
		return j.Lock.TTL
	}
	return defaultTTL
}

// takeDue fires what is due besides the table: ticks handed over, or set free by the end of the run before.
func (w *watcher) takeDue(ctx context.Context, runs []lock.Running, dues []lock.Due) {
	s := w.sidecar
	now := time.Now()
	seen := make(map[string]time.Time, len(dues))
	for _, d := range dues {
		member := d.Member()
		since, ok := w.seen[member]
		if !ok {
			since = now
		}
		seen[member] = since
		j := s.jobs[d.Job]
		switch {
		case j == nil:
			if s.clock.Now().Sub(d.Tick) > strange {
				_, _ = s.store.Drop(ctx, member)
			}
		case j.Guarantee == config.EveryReplica: // it was locked when the tick was handed on
			_, _ = s.store.Drop(ctx, member)
		case w.drop(ctx, j, d):
		case d.Avoid == s.replica && now.Sub(since) < standBack: // left to others
		case j.ConcurrencyPolicy == config.Forbid && slices.ContainsFunc(runs, func(r lock.Running) bool { return r.Job == d.Job }):
			// its time comes when the run ends
		default:
			w.fire(j, d)
		}
	}
	w.seen = seen
}

// drop takes a tick that may not be fired any more out of the due set. It is counted by the replica that does so.
func (w *watcher) drop(ctx context.Context, j *job, d lock.Due) bool {
	s := w.sidecar
	wk := j.dueWake(d)
	r := s.gate(wk)
	if until := wk.worthUntil(); r == "" && !until.IsZero() && !s.clock.Now().Before(until) {
		r = superseded // a newer tick is due
	}
	if r == "" {
		return false
	}
	if ours, err := s.store.Drop(ctx, wk.member); ours && err == nil {
		s.skipped(wk, r)
		s.metrics.missed.WithLabelValues(j.Name).Inc()
	}
	return true
}

// fire starts a due tick, unless a fire here is busy with it already.
func (w *watcher) fire(j *job, d lock.Due) {
	s := w.sidecar
	wk := j.dueWake(d)
	if _, busy := w.busy.LoadOrStore(wk.member, true); busy {
		return
	}
	s.runs.Go(func() {
		defer w.busy.Delete(wk.member)
		s.fire(wk)
	})
}

// register tells Redis of the jobs that it has not been told of today. When it has forgotten one it is told of all: data
// that was lost was lost whole, and each job would pay for it with its next tick.
func (w *watcher) register(ctx context.Context) {
	s := w.sidecar
	if w.canary != nil && !w.canary.registerDue() {
		if known, err := s.store.Registered(ctx, w.canary.Name); err == nil && !known {
			s.log.Warn("Redis has lost its data: registering all jobs anew")
			for _, j := range s.jobs {
				j.forget()
			}
		}
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, registerAtOnce)
	for _, j := range s.jobs {
		if !j.registerDue() {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if l, err := s.store.Register(ctx, j.Name, j.Fingerprint); err == nil {
				j.registeredAs(l)
			} else if ctx.Err() == nil {
				s.log.Warn("the job is not known to Redis yet", "job", j.Name, "err", err)
			}
		})
	}
	all.Wait()
}
