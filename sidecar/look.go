package sidecar

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// looker reads the service's runs and due members once a second, at rest less often, for as long as the replica accepts
// work. It hands the answer to the parts that deal with it, one after the other.
type looker struct {
	store     *service.Store
	jobs      func() roster
	nudges    *nudges   // all parts use them
	deferred  *deferred // looks, fires and nudges use it
	redis     redisStatus
	refusal   func() error // of the last heartbeat: Redis answers looks although it refuses what writes
	registrar *registrar   // wakes use it, too
	takeover  takeover
	dueTicks  *dueTicks
	timers    *timers
	steps     steps

	soonest func() time.Time // when the next job is woken, by the cluster clock

	// Since the last look. Messages set them.
	reconnected atomic.Bool   // perhaps to a Redis that was restarted
	began       atomic.Bool   // a run
	sights      atomic.Bool   // a timer is under way that will set began
	proved      atomic.Int64  // when a claim showed that Redis has its data, by the cluster clock, in ns; 0 = none did
	woken       chan struct{} // holds one element then, for a looker that sleeps for longer than lookEvery

	// The loop's alone.
	next    time.Time // when something else comes due, by Redis' time; zero = nothing is known to
	quiet   bool      // the last look has seen nothing that needs another one
	looked  time.Time // when it began, by the cluster clock
	sawDues time.Time // when the last one did that read what is due
}

func (l *looker) run(ctx context.Context) {
	for l.wait(ctx) {
		if !l.rests() {
			l.look(ctx)
			l.redis.announce()
		}
		l.store.Resting.Store(l.rests())
		l.steps.check()
		if l.redis.up {
			l.steps.catchUp()
		}
	}
}

// lookAhead is how long before each tick a replica looks whether Redis has lost its data, and with it the job.
const lookAhead = 2 * time.Second

// rests reports whether a look would find nothing, as the last one did.
func (l *looker) rests() bool {
	now, seen, tick := l.steps.clock.Now(), l.looked, l.beforeTick()
	if proved := l.proved.Load(); proved > 0 && proved <= now.UnixNano() { // else the clock was set back
		seen = time.Unix(0, proved)
	}
	return l.knowsDues(now) && !l.began.Load() && (now.Before(tick) || !seen.Before(tick))
}

// knowsDues reports whether nothing is due, as the last look saw: whoever makes something due before the others expect
// it sends a message. If messages are refused, a look ahead of the next tick finds it.
func (l *looker) knowsDues(now time.Time) bool {
	since := now.Sub(l.sawDues) // less than zero: the clock was set back
	onRedis, _ := l.store.Now()
	reached, _ := l.store.Reached()
	steady, _ := l.store.Steady() // another time while a step of Redis' clock is not followed yet
	return l.quiet && l.store.Listens() && steady.Sub(reached).Abs() <= time.Second && 0 <= since &&
		since < longestRest && (l.next.IsZero() || onRedis.Before(l.next))
}

// beforeTick is when to look ahead of the next tick.
func (l *looker) beforeTick() time.Time { return l.soonest().Add(-lookAhead) }

// wait waits for about a second, at rest five, or until there may be something to look for. False when ctx ended first.
func (l *looker) wait(ctx context.Context) bool {
	wait, left := beat.Near(l.steps.clock.wall(), lookEvery), l.beforeTick().Sub(l.steps.clock.Now())
	var woken <-chan struct{} // nil: a run that begins can wait for the next look
	if left > 0 && l.rests() {
		wait, woken = beat.Near(l.steps.clock.wall(), beat.Rest), l.woken
	}
	if !l.redis.up { // a restart of Redis cuts all connections, and each look may find only one of them cut
		wait = lookEvery / 4
	}
	if now, ok := l.store.Now(); ok && !l.next.IsZero() {
		wait = max(min(wait, l.next.Sub(now)), time.Millisecond)
	}
	if left > 0 {
		wait = min(wait, left)
	}
	select {
	case <-time.After(wait):
	case <-woken:
	case <-l.nudges.nudged:
		l.quiet = false
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// onMessage has the looker look at once, since something is due. resumed is the job whose pause began or ended,
// service.AnyJob if a message may have been lost, "" for anything else. A run that began ends only a longer sleep.
func (l *looker) onMessage(resumed string) {
	if resumed == service.RunBegan {
		l.began.Store(true)
		beat.Kick(l.woken)
		return
	}
	for _, j := range l.jobs() { // its claimant may not have been able to start a tick, and has handed it on
		j.heard.Store(nil)
	}
	if resumed != "" {
		l.deferred.resume(resumed)
	}
	l.reconnected.CompareAndSwap(false, resumed == service.AnyJob)
	l.nudges.nudge()
}

// hear keeps what was heard of a claim for the job's next wakes, and for a takeover. It has the looker look at what
// runs two seconds after the first such claim: by then, most of these runs have ended.
func (l *looker) hear(h lock.Heard) {
	j := l.jobs()[h.Job]
	if j == nil {
		l.onMessage(service.RunBegan)
		return
	}
	j.heard.Store(&h)
	l.takeover.watcher.Hear(h)
	if h.Answer.Born.Equal(j.bornAt()) {
		l.proved.Store(l.steps.clock.Now().UnixNano())
	}
	if l.sights.CompareAndSwap(false, true) {
		time.AfterFunc(2*lookEvery, func() {
			l.sights.Store(false)
			l.onMessage(service.RunBegan)
		})
	}
}

func (l *looker) look(ctx context.Context) {
	l.looked = l.steps.clock.Now()
	l.proved.Store(0)
	timers := int64(-1) // a message told of a run, and none of what is due
	if !l.began.Load() || !l.knowsDues(l.looked) {
		timers, l.next, l.sawDues = l.timers.limit(), time.Time{}, l.looked
	}
	l.quiet = false
	l.began.Store(false)
	l.deferred.expire(time.Now())
	seen, err := l.store.Look(ctx, timers)
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
		l.store.Doubt()
	}
	l.timers.undecodable = min(seen.Undecodable, maxUndecodable)
	l.takeover.look(ctx, seen.Runs) // before a new process registers its jobs, which may be many
	refused, err := l.registrar.registerAll(ctx, seen.Born, l.reconnected.Swap(false) || came)
	l.redis.registered(ctx, refused, err)
	read := readPauses(ctx, l.store, l.jobs())
	l.redis.answeredOnce.Store(true)
	l.dueTicks.fireDue(ctx, seen.Runs, seen.Due)
	if timers >= 0 {
		l.next = l.nextLook(seen)
	}
	nothing := len(seen.Runs)+len(seen.Due) == 0 && seen.Undecodable+seen.UndecodableRuns == 0
	l.quiet = nothing && l.redis.up && err == nil && read &&
		!l.registrar.owes() && !l.deferred.isDeferred(service.TimerJobs)
}

// nextLook is when the next member comes due, as far as this look has seen. It leaves out the next timer while one
// waits here: if thousands come due meanwhile, each would cost a look.
func (l *looker) nextLook(seen service.Snapshot) time.Time {
	if seen.NextTimer.IsZero() || !seen.Next.IsZero() && seen.Next.Before(seen.NextTimer) || l.timers.room() <= 0 ||
		l.deferred.isDeferred(service.TimerJobs) || l.dueTicks.line[service.TimerJobs] != nil {
		return seen.Next
	}
	return seen.NextTimer
}
