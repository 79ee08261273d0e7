package sidecar

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/lock"
)

// lookEvery is how often a replica looks at what runs and what is due: one round trip, which also reads Redis' time.
const lookEvery = time.Second

// watcher looks at the service's runs and due ticks, once a second, for as long as the replica accepts work.
type watcher struct {
	sidecar  *Sidecar
	takeover takeover
	register registrar
	deferred deferred
	nudged   chan struct{} // something became due
	timing   atomic.Int64  // timers that a fire here is busy with
	strange  int64         // members among the timers that the last look passed over
	dynamic  int64         // revision of the jobs made through the API that are at work
	spared   atomic.Bool   // something due was left to other replicas, for want of a slot or of the app
	next     time.Time     // when something else comes due, by Redis' time; zero = nothing is known to
	up       bool
	last     time.Time // the cluster clock at its last check
	checked  time.Time // when that was, on the machine's monotonic clock
	wild     bool      // Redis' clock and ours lie too far apart

	answeredOnce atomic.Bool

	trouble   trouble // with Redis
	announced string  // what announce has said last
}

func (w *watcher) run(ctx context.Context) {
	for w.wait(ctx) {
		w.look(ctx)
		w.announce()
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
// it is that; of any job when a resumption may not have been heard.
func (w *watcher) nudge(resumed string) {
	if resumed != "" {
		w.deferred.resume(resumed)
	}
	select {
	case w.nudged <- struct{}{}:
	default: // it is about to look
	}
}

func (w *watcher) look(ctx context.Context) {
	s := w.sidecar
	w.next = time.Time{}
	w.deferred.expire(time.Now())
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
	w.next = w.comesNext(seen)
	w.strange = min(seen.Strange, maxStrange)
	w.takeDynamic(ctx, seen.Jobs)
	switch refused, err := w.register.all(ctx, seen.Born); {
	case err != nil: // Redis answers and takes no jobs: it is a replica, or its user may not write
		w.trouble.tell(s.log, diagnosis.Of(err), "job", refused)
	case ctx.Err() == nil && w.trouble.says != "":
		s.log.Info("Redis takes the jobs")
		w.trouble.over()
	}
	w.readHolds(ctx)
	w.answeredOnce.Store(true)
	w.takeover.look(ctx, seen.Runs)
	w.takeDue(ctx, seen.Runs, seen.Due)
}

// comesNext is when there is something else to take, as far as a look has seen. The next timer is nothing to look for while
// none can be taken: when thousands come due meanwhile, each would cost a look.
func (w *watcher) comesNext(seen lock.Sight) time.Time {
	now, _ := w.sidecar.store.Now()
	switch {
	case seen.NextTimer.IsZero() || !seen.Next.IsZero() && seen.Next.Before(seen.NextTimer):
		return seen.Next
	case w.deferred.leaves(lock.TimerJobs):
		return seen.Next
	case w.timersRoom() == 0:
		if seen.NextTimer.Sub(now) < lookEvery {
			w.spared.Store(true) // whoever makes room says so
		}
		return seen.Next
	}
	return seen.NextTimer
}

// checkClock deals with steps of the cluster clock that gocron's timers cannot. After a step back the ticks that come
// again are this replica's to take; else a tick that is due and that no timer woke for is woken for here. The claims see
// to it that nothing is fired twice.
func (w *watcher) checkClock() {
	s := w.sidecar
	now, sinceLast := s.clock.Now(), time.Since(w.checked)
	back := now.Before(w.last.Add(-glance))
	w.last, w.checked = now, time.Now()
	if back {
		s.setBack(now.Add(-sinceLast))
	} else {
		for name, j := range s.jobs() {
			if j.overdue(now.Add(-glance)) { // for what came due since, a timer may be about to wake
				s.wake(name)
			}
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

// answered says when Redis is of no use, and when it is again. True when it has come: back, or for the first time.
func (w *watcher) answered(err error) (came bool) {
	s := w.sidecar
	came = err == nil && (!w.up || !w.answeredOnce.Load())
	switch {
	case err == nil && !w.up:
		s.log.Info("Redis answers")
		w.trouble.over()
	case err != nil:
		w.trouble.tell(s.log, diagnosis.Of(err))
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
