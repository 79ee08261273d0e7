package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// held is the right to run a job for a tick.
type held struct {
	lease
	run   string // UUID
	token int64
}

// lease is what fire needs of a lock.Lease.
type lease interface {
	Trusted() bool
	Keep(context.Context) (context.Context, func())
	Finish(ctx context.Context, delay time.Duration, e *lock.Entry) (lock.Settled, error)
	Requeue(ctx context.Context, e *lock.Entry) (lock.Settled, error)
	GiveUp(ctx context.Context, e *lock.Entry) (lock.Settled, error)
	Handover(ctx context.Context, wait time.Duration, e *lock.Entry) (lock.Settled, error)
	Release(context.Context) error
}

// fire takes one wake from its tick to a counted outcome. It is the only way in which a job is ever started. The steps
// are those of the life of a tick in the design.
func (s *Sidecar) fire(w *wake) {
	// 1. Wake: a moment ahead of the tick, one replica before the others. An earlier one waits; the wake of a drained
	// replica ends here.
	leave := sync.OnceFunc(func() { s.leave(w) })
	defer leave()
	w.second = s.turn.second(w)
	if !s.clock.sleep(s.accepting, w.awake()) {
		s.skipped(w, draining)
		return
	}

	// 2. Gate: what needs no Redis. While the app is not ready, or no slot is free, the tick is left to other replicas.
	if r := s.enter(w); r != "" {
		s.skipped(w, r)
		return
	}

	// 3. Acquire.
	h := s.acquire(w)
	if h == nil {
		return
	}

	// 4. Trust window: a lease that comes back may be trusted now, and is kept until the run is settled.
	kept, stop := h.Keep(s.working)
	defer stop()

	// 5. Execute on the tick, in a context that ends at the timeout, the lost lock, or the end of the shutdown grace.
	end := s.attempts(kept, w, h)

	// 6. Finish: outcome and history in one step with the end of the lease. A job that never began goes to another replica.
	if end.outcome == notStarted && s.handover(w, h, &end) {
		return
	}
	s.settle(w, h, &end)
	stop()
	leave()
	s.watcher.spare() // for what was due, too

	// 7. Count.
	if end.outcome == notStarted {
		s.skipped(w, notReady)
	}
	s.finished(w, h, &end)

	// Release after the safety delay, for which shutdown does not wait: the lock expires by itself.
	if delay := w.job.safetyDelay(); delay > 0 && pause(s.accepting, delay) {
		s.release(w, h)
	}
}

// gate refuses what is not to be fired at all.
func (s *Sidecar) gate(w *wake) reason {
	j := w.job
	switch {
	case w.byHand():
	case j.Suspend:
		return suspended
	case !j.Start.IsZero() && w.tick.Before(j.Start), !j.End.IsZero() && !w.tick.Before(j.End):
		return outsideWindow
	case !w.deadline().IsZero() && s.clock.Now().After(w.deadline()):
		return tooLate
	}
	return ""
}

// enter waits until the wake may contend, as long as its tick is worth firing and its job is in the table as it was. Of
// a job that was changed meanwhile, the wake is the new one's from then on.
func (s *Sidecar) enter(w *wake) reason {
	for {
		if w.orphaned() {
			return superseded
		}
		if r := s.gate(w); r != "" || w.place != nil {
			return r
		}
		if w.place = s.admission.try(w.job); w.place != nil {
			return ""
		}
		r := s.await(w)
		switch {
		case r == "":
			return ""
		case s.accepting.Err() != nil:
			return draining
		case w.job.life.Err() == nil:
			return r
		}
	}
}

// await waits for the app, or for a slot, and says what was missing to the end.
func (s *Sidecar) await(w *wake) (r reason) {
	ctx, cancel := context.WithCancel(s.accepting)
	defer cancel()
	defer context.AfterFunc(w.job.life, cancel)()
	if until := w.worthUntil(); !until.IsZero() {
		defer s.clock.AfterFunc(until.Sub(s.clock.Now()), cancel).Stop()
	}
	w.place, r = s.admission.enter(ctx, w.job)
	return r
}

// leave gives the wake's slot back, if it has one. What was due and is refused tells nobody: it would be asked for again at
// once, by turns with what it made room for.
func (s *Sidecar) leave(w *wake) {
	if w.place == nil {
		return
	}
	s.admission.leave(w.place)
	if w.member == "" {
		s.watcher.spare()
	}
}

// acquire races for the tick, while it is worth firing. Nil when this replica is not the one, which is counted then.
func (s *Sidecar) acquire(w *wake) *held {
	if w.job.Guarantee == config.EveryReplica {
		if !w.begins() {
			return s.again(w)
		}
		run := uuid.NewString()
		return &held{lease: unlocked{s, w, run}, run: run}
	}
	ctx, cancel := context.WithCancel(s.accepting)
	defer cancel()
	defer context.AfterFunc(w.job.life, cancel)()
	if until := w.worthUntil(); !until.IsZero() {
		if !s.clock.Now().Before(until) { // the process stood still
			s.skipped(w, superseded)
			return nil
		}
		now := s.clock.Now()
		if at, ok := s.store.Now(); ok && at.Before(now) {
			now = at // a tick that Redis calls early is worth firing for as long after that
		}
		var over context.CancelFunc
		ctx, over = context.WithTimeout(ctx, max(until.Sub(now), 0))
		defer over()
	}

	asked := time.Now()
	l, a, late, err := s.ask(ctx, w)
	s.metrics.acquireDuration.Observe(time.Since(asked).Seconds())
	switch {
	case err != nil && s.accepting.Err() != nil:
		s.skipped(w, draining)
	case err != nil && w.job.life.Err() != nil:
		return s.again(w)
	case err != nil:
		s.skipped(w, redisError, slog.String("err", err.Error()))
	case l == nil:
		switch a.Code {
		case lock.Queued:
			s.missed(w, a, late)
		case lock.Overlap: // for those before it, too, the run in the way is no excuse that anybody counts
			s.missed(w, a, 0)
		}
		w.until = a.Until
		s.skipped(w, refusal(w, a), by(a)...)
	default:
		w.close(true)
		w.claimed = true
		s.missed(w, a, late)
		return &held{lease: l, run: l.Run(), token: l.Token}
	}
	return nil
}

// again races for a tick whose job was changed meanwhile, if it still has it.
func (s *Sidecar) again(w *wake) *held {
	if r := s.enter(w); r != "" {
		s.skipped(w, r)
		return nil
	}
	return s.acquire(w)
}

// ask puts the question, anew when the ticks before this one were not those that this replica knew of. late is how many
// of them the claim made due.
func (s *Sidecar) ask(ctx context.Context, w *wake) (l *lock.Lease, a lock.Answer, late int, err error) {
	if err := s.introduce(ctx, w.job); err != nil {
		return nil, a, 0, err
	}
	for {
		c, before := s.claim(w), w.job.heardBefore()
		if l, a, err = s.store.Acquire(ctx, c); err == nil {
			w.job.heard(w, a)
		}
		if err != nil || a.Code != lock.Gap {
			a.Prev = newestOf(a.Prev, before) // what a failover forgot is none of the missed ticks
			return l, a, max(len(c.Older)-1, 0), err
		}
	}
}

// introduce makes a job known to Redis before it is first asked for: what was missed is told by that.
func (s *Sidecar) introduce(ctx context.Context, j *job) error {
	for j.knownSince().IsZero() {
		l, err := s.store.Register(ctx, j.Name, j.Fingerprint)
		if err == nil {
			j.registeredAs(l)
		} else if !pause(ctx, lookEvery/4) {
			return err
		}
	}
	return nil
}

// handovers bounds how often a tick goes round before it is given up as not started.
const handovers = 5

// handover gives the tick to another replica. False when there is no use in it: it went round often enough, a newer tick
// is due, or nobody would fare better. Without an answer it is asked for once more, and then left to a takeover: giving
// the tick up would be another question, and might be the one that arrives.
func (s *Sidecar) handover(w *wake, h *held, end *ended) bool {
	until := w.worthUntil()
	if end.result.Status == execute.Failed || w.handovers >= handovers || !until.IsZero() && !s.clock.Now().Before(until) ||
		w.job.Guarantee == config.EveryReplica {
		return false
	}
	// The first goes to whoever is there; after that, each waits longer.
	wait := time.Duration(0)
	if w.handovers > 0 {
		wait = time.Second << (w.handovers - 1)
	}
	hand := func() error {
		ctx, cancel := s.afterwards(w)
		defer cancel()
		// That the run is not known any more is the answer to a repeated question: it was handed over by the first one.
		_, err := h.Handover(ctx, wait, s.entry(end))
		return err
	}
	err := hand()
	if err != nil && s.accepting.Err() == nil {
		err = hand()
	}
	if err != nil {
		s.unrecorded(w, err)
	} else {
		s.metrics.job(w.job.label).handovers.Add(1)
	}
	s.skipped(w, notReady, slog.String("err", end.result.Err.Error()))
	return true
}

// settle tells Redis that the run is over: ended, never begun, or cut short, in which case it may be run again. Should Redis stay
// away, a takeover will find the run without a lease.
func (s *Sidecar) settle(w *wake, h *held, end *ended) {
	ctx, cancel := s.afterwards(w)
	defer cancel()
	var settled lock.Settled
	var err error
	switch {
	case end.outcome == notStarted:
		settled, err = h.GiveUp(ctx, s.entry(end))
	case end.cutShort() && w.job.Guarantee == config.AtLeastOnce:
		settled, err = h.Requeue(ctx, s.entry(end))
	default:
		settled, err = h.Finish(ctx, w.job.safetyDelay(), s.entry(end))
	}
	if w.member != "" {
		s.watcher.nudge("") // there may be more for this job
	}
	switch {
	case err != nil:
		s.unrecorded(w, err)
	case settled != lock.OK:
		s.log.LogAttrs(ctx, slog.LevelWarn, "the run was taken for dead before it ended", w.attrs()...)
	}
}

func (s *Sidecar) unrecorded(w *wake, err error) {
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "the end of the run is not recorded in Redis", append(w.attrs(), slog.String("err", err.Error()))...)
}

// release deletes the lock early. What goes wrong here costs nothing: the lock expires by itself.
func (s *Sidecar) release(w *wake, h *held) {
	ctx, cancel := s.afterwards(w)
	defer cancel()
	if err := h.Release(ctx); err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "the lock was left to expire", append(w.attrs(), slog.String("err", err.Error()))...)
	}
}

// afterwards is a context for what must still be done when the run is over, however it ended. It lasts as long as the
// lease would, but a shutdown does not wait for Redis as long as that.
func (s *Sidecar) afterwards(w *wake) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), w.job.Lock.TTL)
	stop := context.AfterFunc(s.accepting, func() {
		if pause(ctx, 3*lock.Margin) {
			cancel()
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// by names who was there first, where Redis knows.
func by(a lock.Answer) []slog.Attr {
	if a.Holder == "" {
		return nil
	}
	return []slog.Attr{slog.String("by", a.Holder)}
}

// unlocked is the lease of a job that runs on every replica: there is none, only a history.
type unlocked struct {
	sidecar *Sidecar
	wake    *wake
	run     string
}

func (unlocked) Trusted() bool                                      { return true }
func (unlocked) Keep(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
func (u unlocked) Finish(ctx context.Context, _ time.Duration, e *lock.Entry) (lock.Settled, error) {
	w := u.wake
	e.Job, e.Tick, e.Run, e.Replica, e.Kind = w.job.Name, w.tick, u.run, u.sidecar.replica, w.kind
	return lock.OK, u.sidecar.store.Note(ctx, e)
}
func (u unlocked) Requeue(ctx context.Context, e *lock.Entry) (lock.Settled, error) {
	return u.Finish(ctx, 0, e)
}
func (u unlocked) GiveUp(ctx context.Context, e *lock.Entry) (lock.Settled, error) {
	return u.Finish(ctx, 0, e)
}
func (unlocked) Handover(context.Context, time.Duration, *lock.Entry) (lock.Settled, error) {
	return "", errors.New("a job that runs on every replica is not handed over")
}
func (unlocked) Release(context.Context) error { return nil }
