package sidecar

import (
	"context"
	"maps"
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
	// strange is how long due ticks of jobs that this table lacks are left to replicas that may have them.
	strange = 24 * time.Hour
	// standBack is how long the replica that could not start a job leaves its tick to others.
	standBack = 2 * time.Second
	// registerAtOnce jobs are told to Redis in one burst.
	registerAtOnce = 100
	// cleanEvery is how often some of the timers are gone through, for those that died with their replica.
	cleanEvery = time.Minute
	// registerEvery keeps the ledgers of the table's jobs from expiring.
	registerEvery = 24 * time.Hour
	// defaultTTL is the lease of a job that this table lacks, until its record tells.
	defaultTTL = 15 * time.Second
)

// watcher looks at the service's runs and due ticks, once a second, for as long as the replica accepts work.
type watcher struct {
	sidecar *Sidecar
	runs    *lock.Watcher
	busy    sync.Map      // due members that something is being done about here
	later   sync.Map      // due members that were refused, and lock.TimerJobs when timers are: until when they are left alone
	nudged  chan struct{} // something became due
	gone    sync.Map      // jobs that left the table, by name, and that Redis has not been told of
	timing  atomic.Int64  // timers that a fire here is busy with
	dynamic int64         // revision of the jobs made through the API that are at work
	left    atomic.Bool   // something due was left to other replicas, for want of a slot or of the app
	cleaned time.Time     // when this replica last had timers gone through
	next    time.Time     // when something else comes due, by Redis' time; zero = nothing is known to
	up      bool
	last    time.Time // the cluster clock at the last look
	wild    bool      // Redis' clock and ours lie too far apart

	answeredOnce atomic.Bool
}

func (w *watcher) run(ctx context.Context) {
	for w.wait(ctx) {
		w.look(ctx)
		w.checkClock()
		w.catchUp()
	}
}

// wait waits for the next look: a second, or until something is due. False when ctx ended first.
func (w *watcher) wait(ctx context.Context) bool {
	wait := lookEvery
	if !w.up { // a restart of Redis cuts all connections, and each look may find only one of them cut
		wait /= 4
	}
	if now, ok := w.sidecar.store.Now(); ok && !w.next.IsZero() {
		wait = max(min(wait, w.next.Sub(now)), time.Millisecond)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.nudged:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// nudge has the watcher look at once. It is called by whoever hears that something is due, of the job that was resumed if
// it is that.
func (w *watcher) nudge(resumed string) {
	w.later.Range(func(member, _ any) bool {
		if d, err := lock.ParseDue(member.(string)); member == resumed || err == nil && d.Job == resumed {
			w.later.Delete(member)
		}
		return true
	})
	select {
	case w.nudged <- struct{}{}:
	default: // it is about to look
	}
}

func (w *watcher) look(ctx context.Context) {
	s := w.sidecar
	w.next = time.Time{}
	w.resume(time.Now())
	seen, err := s.store.Look(ctx, w.timersWanted())
	if ctx.Err() != nil {
		return
	}
	came := w.answered(err)
	if err != nil {
		return
	}
	if came {
		w.checkFitness(ctx)
	}
	w.next = seen.Next
	w.takeDynamic(ctx, seen.Jobs)
	w.register(ctx, seen.Born)
	w.answeredOnce.Store(true)
	w.takeOver(ctx, seen.Runs)
	w.takeDue(ctx, seen.Runs, seen.Due)
	w.cleanTimers(ctx)
}

// checkClock deals with steps of the cluster clock that its timers cannot: gocron, once armed, is not armed for an
// earlier instant. After a step back the ticks that come again are this replica's to take, and a tick that is due and
// that no timer woke for is woken for here. The claims see to it that nothing is fired twice.
func (w *watcher) checkClock() {
	s := w.sidecar
	now := s.clock.Now()
	back := now.Before(w.last.Add(-glance))
	w.last = now
	for name, j := range s.jobs() {
		if j.overdue(now, back) {
			s.wake(name)
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

// catchUp wakes for the ticks of which nothing is known although they came due.
func (w *watcher) catchUp() {
	s := w.sidecar
	if !w.up {
		return
	}
	now := s.clock.Now()
	for _, j := range s.jobs() {
		if owed, ok := j.owed(now); ok {
			wk := owed // of all that are asked, once a second, the few that owe one go to the heap
			s.launch(&wk)
		}
	}
}

// answered says once when Redis goes away, and once when it is back. True when it has come: back, or for the first time.
func (w *watcher) answered(err error) (came bool) {
	s := w.sidecar
	came = err == nil && (!w.up || !w.answeredOnce.Load())
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
	return came
}

// checkFitness says what is wrong with the Redis that has come: it may be another one than before.
func (w *watcher) checkFitness(ctx context.Context) {
	s := w.sidecar
	problems, err := s.store.Fitness(ctx)
	if err != nil {
		s.log.Warn("Redis could not be checked", "err", err)
		return
	}
	for _, p := range problems {
		s.log.Warn("Redis is not fit for locks", "problem", p)
	}
	s.metrics.redisFit.Set(0)
	if len(problems) == 0 {
		s.metrics.redisFit.Set(1)
	}
}

// takeOver deals with runs whose replica is gone, all at once, as it may have had many: they are written down as
// interrupted, once, and under at-least-once they are due again.
func (w *watcher) takeOver(ctx context.Context, runs []lock.Running) {
	s := w.sidecar
	var all sync.WaitGroup
	defer all.Wait()
	for _, r := range w.runs.Unchanged(runs, s.ttl) {
		all.Go(func() {
			rec, ours, err := w.runs.Reap(ctx, r, func(lock.Record) lock.Entry {
				return lock.Entry{Outcome: string(wasInterrupted), Failed: true}
			})
			switch {
			case err != nil:
				s.log.Warn("a run without a replica could not be taken over", "job", r.Job, "run", r.Run, "err", err)
			case ours:
				s.interrupted(r.Job, r.Run, rec)
			}
		})
	}
}

// ttl is the lease of a job's runs as far as this table knows.
func (s *Sidecar) ttl(name string) time.Duration {
	if j := s.job(name); j != nil {
		return j.Lock.TTL
	}
	return defaultTTL
}

// takeDue fires what is due besides the table: ticks handed over, or set free by the end of the run before.
func (w *watcher) takeDue(ctx context.Context, runs []lock.Running, dues []lock.Due) {
	s := w.sidecar
	waiting := map[string]bool{} // jobs whose due ticks have to wait: for the present run, or for an older one
	for _, r := range runs {
		waiting[r.Job] = true
	}
	for _, d := range dues {
		j := s.job(d.Job)
		switch {
		case isTimer(d.Job):
			if !w.standsBack(d) && !w.putOff(d.Member()) && !w.putOff(lock.TimerJobs) {
				w.fireTimer(ctx, d)
			}
		case j == nil:
			if d.Age > strange {
				w.discard(ctx, d, "no replica has the job")
			}
		case j.Guarantee == config.EveryReplica: // it was locked when the tick was handed on
			w.discard(ctx, d, "the job runs on every replica")
		case w.drop(ctx, j, d):
		case w.standsBack(d):
		case j.ConcurrencyPolicy != config.Allow && waiting[d.Job]:
		case w.putOff(d.Member()):
		default:
			waiting[d.Job] = true
			w.fire(j, d)
		}
	}
}

// standsBack tells whether a tick that this replica could not start is left to others for now.
func (w *watcher) standsBack(d lock.Due) bool {
	return d.Avoid == w.sidecar.replica && d.Age < standBack
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
	w.beside(wk.member, func() {
		if ours, err := s.store.Drop(ctx, wk.member); ours && err == nil {
			s.skipped(wk, r)
			if wk.kind != kindTakeover { // which was fired
				s.metrics.job(j.label).missed.Add(1)
			}
		}
	})
	return true
}

// discard takes a tick out of the due set that nobody will ever fire.
func (w *watcher) discard(ctx context.Context, d lock.Due, why string) {
	w.beside(d.Member(), func() {
		if ours, err := w.sidecar.store.Drop(ctx, d.Member()); ours && err == nil {
			w.sidecar.log.Warn("a due tick is dropped", "job", d.Job, "tick", stamp(d.Tick), "kind", d.Kind, "why", why)
		}
	})
}

// beside does something about a due member beside the looks, unless something is being done about it here: thousands that
// are too late, a round trip each, would hold up the one behind them that is not.
func (w *watcher) beside(member string, do func()) {
	if _, busy := w.busy.LoadOrStore(member, true); busy {
		return
	}
	w.sidecar.runs.Go(func() {
		defer w.busy.Delete(member)
		do()
	})
}

// pauseRetry is how long a due tick that met with a pause is left alone, unless somebody resumes the job.
const pauseRetry = time.Minute

// spareEvery bounds how often a look is made because places have become free: many may in a short time.
const spareEvery = 50 * time.Millisecond

// putOff tells whether a due tick, or all timers, were refused lately.
func (w *watcher) putOff(what string) bool {
	_, ok := w.later.Load(what)
	return ok
}

// fire starts a due tick, unless a fire here is busy with it already.
func (w *watcher) fire(j *job, d lock.Due) {
	s := w.sidecar
	wk := j.dueWake(d)
	if _, busy := w.busy.LoadOrStore(wk.member, true); busy {
		return
	}
	if wk.place = s.admission.try(j); wk.place == nil {
		w.leave(wk.member)
		return
	}
	release := s.metrics.hold(j.label)
	s.runs.Go(func() {
		defer release()
		defer w.busy.Delete(wk.member)
		s.fire(wk)
		switch wk.refused {
		case paused:
			w.later.Store(wk.member, w.pauseOver(wk))
		case queued, overlap: // something is in its way that no look shows; its place is another's meanwhile
			w.later.Store(wk.member, time.Now().Add(lookEvery))
			w.spare()
		}
	})
}

// resume is for what was put off until now.
func (w *watcher) resume(now time.Time) {
	w.later.Range(func(what, until any) bool {
		if !now.Before(until.(time.Time)) {
			w.later.Delete(what)
		}
		return true
	})
}

// pauseOver is until when what met with a pause is left alone.
func (w *watcher) pauseOver(wk *wake) time.Time {
	wait := pauseRetry
	if !wk.until.IsZero() {
		wait = min(wait, wk.until.Sub(w.sidecar.clock.Now()))
	}
	return time.Now().Add(wait)
}

// leave leaves what is due to other replicas, until there is a place for it here.
func (w *watcher) leave(member string) {
	w.busy.Delete(member)
	w.left.Store(true)
}

// spare is called when a place has become free.
func (w *watcher) spare() {
	if w.left.Swap(false) {
		time.AfterFunc(spareEvery, func() { w.nudge("") })
	}
}

// register tells Redis of the jobs that it has not been told of today. When it has forgotten one it is told of all: data
// that was lost was lost whole, and each job would pay for it with its next tick.
func (w *watcher) register(ctx context.Context, born time.Time) {
	s := w.sidecar
	all := append(slices.AppendSeq(make([]*job, 0, len(s.jobs())+1), maps.Values(s.jobs())), s.timers)
	if !s.timers.registerDue() && !born.Equal(s.timers.bornAt()) {
		s.log.Warn("Redis has lost its data: registering all jobs anew")
		for _, j := range all {
			j.forget()
		}
	}
	var registering sync.WaitGroup
	slots := make(chan struct{}, registerAtOnce)
	for _, j := range all {
		if !j.registerDue() {
			continue
		}
		slots <- struct{}{}
		registering.Go(func() {
			defer func() { <-slots }()
			if l, err := s.store.Register(ctx, j.Name, j.Fingerprint); err == nil {
				j.registeredAs(l)
			} else if ctx.Err() == nil {
				s.log.Warn("the job is not known to Redis yet", "job", j.Name, "err", err)
			}
		})
	}
	registering.Wait()
	w.gone.Range(func(name, gone any) bool {
		w.deregister(ctx, gone.(*job))
		return ctx.Err() == nil
	})
}

// noTicks is the fingerprint of a job that left the table: should it come back, it has missed nothing in between.
const noTicks = "none"

// deregister tells Redis that the job has left the table. Where another replica has it still, nothing comes of that but
// ticks missed before this moment that are not counted.
func (w *watcher) deregister(ctx context.Context, j *job) {
	s := w.sidecar
	if s.job(j.Name) == nil && j.Guarantee != config.EveryReplica {
		if _, err := s.store.Register(ctx, j.Name, noTicks); err != nil {
			return // and tries again at the next look
		}
	}
	w.gone.CompareAndDelete(j.Name, j)
}
