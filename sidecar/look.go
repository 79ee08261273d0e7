package sidecar

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/sidecar/service"
)

// looker reads the service's runs and due members once a second, for as long as the replica accepts work. It hands
// the answer to the parts that deal with it, one after the other.
type looker struct {
	store     *service.Store
	jobs      func() roster
	nudges    *nudges   // all parts use them
	deferred  *deferred // looks, fires and nudges use it
	redis     redisStatus
	refusal   func() error // of the last heartbeat
	registrar *registrar   // wakes use it, too
	takeover  takeover
	dynamic   dynamicJobs
	dueTicks  *dueTicks
	timers    *timers
	steps     steps

	reconnected atomic.Bool // since the last look, perhaps to a Redis that was restarted. Written by onMessage and looks
	next        time.Time   // the loop's alone: when something else comes due, by Redis' time; zero = nothing is known to
}

func (l *looker) run(ctx context.Context) {
	for l.wait(ctx) {
		l.look(ctx)
		l.redis.announce()
		l.steps.check()
		if l.redis.up {
			l.steps.catchUp()
		}
	}
}

// wait waits for the next look: a second, or until something is due. False when ctx ended first.
func (l *looker) wait(ctx context.Context) bool {
	wait := lookEvery
	if !l.redis.up { // a restart of Redis cuts all connections, and each look may find only one of them cut
		wait /= 4
	}
	if now, ok := l.store.Now(); ok && !l.next.IsZero() {
		wait = max(min(wait, l.next.Sub(now)), time.Millisecond)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.nudges.nudged:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// onMessage has the looker look at once. Replicas send a message when something is due. resumed is the job whose
// pause ended, service.AnyJob if a message may have been lost, "" for anything else.
func (l *looker) onMessage(resumed string) {
	if resumed != "" {
		l.deferred.resume(resumed)
	}
	l.reconnected.CompareAndSwap(false, resumed == service.AnyJob)
	l.nudges.nudge()
}

func (l *looker) look(ctx context.Context) {
	l.next = time.Time{}
	l.deferred.expire(time.Now())
	seen, err := l.store.Look(ctx, l.timers.limit())
	if ctx.Err() != nil {
		return
	}
	came := l.redis.answered(cmp.Or(err, l.refusal()))
	if err != nil {
		l.dueTicks.leaveLine(false) // a slot that is not used may be another's
		return
	}
	if came {
		l.redis.checkFitness(ctx)
	}
	l.timers.undecodable = min(seen.Undecodable, maxUndecodable)
	l.takeover.look(ctx, seen.Runs) // before a new process registers its jobs, which may be many
	l.dynamic.adopt(ctx, seen.Jobs)
	refused, err := l.registrar.registerAll(ctx, seen.Born, l.reconnected.Swap(false) || came)
	l.redis.registered(ctx, refused, err)
	readPauses(ctx, l.store, l.jobs())
	l.redis.answeredOnce.Store(true)
	l.dueTicks.fireDue(ctx, seen.Runs, seen.Due)
	l.next = l.nextLook(seen)
}

// nextLook is when the next member comes due, as far as this look has seen. It leaves out the next timer while one
// waits here: if thousands come due meanwhile, each would cost a look.
func (l *looker) nextLook(seen service.Snapshot) time.Time {
	switch {
	case seen.NextTimer.IsZero(), !seen.Next.IsZero() && seen.Next.Before(seen.NextTimer), l.deferred.isDeferred(service.TimerJobs):
		return seen.Next
	case l.dueTicks.line[service.TimerJobs] != nil, l.timers.firing.Load() >= timersAtOnce:
		return seen.Next
	}
	return seen.NextTimer
}
