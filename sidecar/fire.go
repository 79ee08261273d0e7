package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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
	NextRound(ctx context.Context, wait time.Duration, e *lock.Entry) (lock.Settled, error)
	Release(context.Context) error
}

// fire takes one wake from its tick to a counted outcome, and returns why it did not fire. It is the only way in which a job is
// ever started. The steps are those of the life of a tick in the design.
func (s *Sidecar) fire(w *wake) skip {
	// 1. Wake: a moment ahead of the tick, one replica before the others. An earlier one waits; the wake of a drained
	// replica ends here.
	leave := sync.OnceFunc(func() { s.leave(w) })
	defer leave()
	w.second = s.rendezvous.second(w)
	if !s.clock.sleep(s.accepting, w.awake()) {
		return s.skipped(w, skip{reason: draining})
	}

	var h *held
	for h == nil {
		// 2. Gate: what needs no Redis. While the app is not ready, or no slot is free, the tick is left to other replicas.
		if why := s.enter(w); why.reason != "" {
			return s.skipped(w, why)
		}

		// 3. Acquire. If the job was changed meanwhile, or Redis' clock is behind, the gate comes again.
		var why skip
		if h, why = s.acquire(w); why.reason != "" {
			return s.skipped(w, why)
		}
	}

	// 4. Trust window: a lease that comes back may be trusted now, and is kept until the run is settled.
	kept, stop := h.Keep(s.working)
	defer stop()

	// 5. Execute on the tick, in a context that ends at the timeout, the lost lock, or the end of the shutdown grace.
	end := s.attempts(kept, w, h)

	// 6. Finish: outcome and history in one step with the end of the lease. A job that never began goes to another replica.
	if end.outcome == notStarted && s.handover(w, h, &end) {
		return s.skipped(w, skip{reason: startFailed, attrs: []slog.Attr{slog.String("err", end.result.Err.Error())}})
	}
	counted := s.settle(w, h, &end)
	stop()
	leave()
	s.watcher.spare() // for what was due, too

	// 7. Count.
	var why skip
	if end.outcome == notStarted {
		why = s.skipped(w, skip{reason: startFailed})
	}
	s.finished(w, h, &end, counted)

	// Release after the safety delay, for which shutdown does not wait: the lock expires by itself.
	if delay := w.spec.safetyDelay(); delay > 0 && pause(s.accepting, delay) {
		s.release(w, h)
	}
	return why
}

// gate refuses what is not to be fired at all.
func (s *Sidecar) gate(w *wake) reason {
	sp, now := w.spec, s.clock.Now()
	if sp.claims() {
		now = s.slower() // what Redis calls early is not too late after that
	}
	switch {
	case w.byHand():
	case sp.Suspend:
		return suspended
	case w.heldBack():
		return paused
	case !sp.Start.IsZero() && w.tick.Before(sp.Start), !sp.End.IsZero() && !w.tick.Before(sp.End):
		return outsideWindow
	case !w.deadline().IsZero() && now.After(w.deadline()):
		return tooLate
	}
	return ""
}

// enter waits for a slot while the tick is worth firing and its job is in the table. After each change of the job the wake goes on
// by the new spec. It returns why the wake may not contend.
func (s *Sidecar) enter(w *wake) skip {
	for {
		if !w.renew() {
			return skip{reason: superseded}
		}
		if r := s.gate(w); r != "" {
			return skip{reason: r}
		}
		if w.place == nil {
			w.place = s.admission.try(w.spec)
		}
		if w.place != nil {
			return skip{}
		}
		if w.looksFirst() {
			if why := s.look(w); why.reason != "" {
				return why
			}
		}
		r := s.await(w)
		switch {
		case r == "" && w.heldBack(): // a pause began while the tick waited
			return skip{reason: paused}
		case r == "":
			return skip{}
		case s.accepting.Err() != nil:
			return skip{reason: draining}
		case w.spec.life.Err() == nil:
			return skip{reason: r}
		}
	}
}

// looksFirst tells whether a wake that has no place asks Redis all the same, once: what is in the way of its tick may be what
// has the place, and is told to end or made to count only by a question that comes while it is there.
func (w *wake) looksFirst() bool {
	return !w.looked && w.member == "" && w.spec.claims() && w.spec.ConcurrencyPolicy != config.Allow
}

// look asks whether something is in the way of a tick for which there is no place. It returns why the tick is settled, or that nobody
// could tell while it was worth firing; nothing when the wake is to wait for a place.
func (s *Sidecar) look(w *wake) skip {
	missing := s.admission.missing()
	ctx, stop := s.whileWorth(w)
	defer stop()
	l, a, err := s.ask(ctx, w, true)
	switch {
	case l != nil: // which cannot be
		s.log.Error("a claim that must not win has won", "job", w.spec.Name, "tick", stamp(w.tick))
	case err != nil && w.spec.life.Err() != nil:
		return skip{} // and looks again, for the job as it is now
	case err == nil && a.Code == lock.Early:
		return s.untilRedis(w) // and looks again
	case err == nil && a.Code == lock.Free:
		w.looked = true
		return skip{}
	case err == nil && a.Code == lock.Fired && refusal(w, a) == firedElsewhere: // where it was not missing
		return skip{reason: missing, attrs: s.by(a)}
	}
	return s.refused(w, a, err)
}

// await waits for the app, or for a slot, and says what was missing to the end.
func (s *Sidecar) await(w *wake) (r reason) {
	ctx, cancel := context.WithCancel(s.accepting)
	defer cancel()
	defer context.AfterFunc(w.spec.life, cancel)()
	if until := w.worthUntil(); !until.IsZero() {
		defer s.clock.AfterFunc(until.Sub(s.clock.Now()), cancel).Stop()
	}
	w.place, r = s.admission.enter(ctx, w.spec)
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

// acquire races for the tick, while it is worth firing. It returns the right to fire it, or why this replica is not the one. With
// neither, the wake has to go back to the gate.
func (s *Sidecar) acquire(w *wake) (*held, skip) {
	if !w.spec.claims() {
		if !w.begins() {
			return nil, skip{}
		}
		run := uuid.NewString()
		return &held{lease: unlocked{s, w, run}, run: run}, skip{}
	}
	if until := w.worthUntil(); !until.IsZero() && !s.slower().Before(until) { // the process stood still
		return nil, skip{reason: superseded}
	}
	ctx, stop := s.whileWorth(w)
	defer stop()
	asked := time.Now()
	l, a, err := s.ask(ctx, w, false)
	s.metrics.acquireDuration.Observe(time.Since(asked).Seconds())
	switch {
	case err != nil && s.accepting.Err() == nil && w.spec.life.Err() != nil:
		return nil, skip{}
	case err == nil && a.Code == lock.Early:
		return nil, s.untilRedis(w)
	case l == nil:
		return nil, s.refused(w, a, err)
	}
	w.close(true)
	w.claimed = true
	return &held{lease: l, run: l.Run(), token: l.Token}, skip{}
}

// untilRedis waits until a wake's tick is due on Redis' clock, which may be behind, or its job is changed. It looks at the clock
// again and again, since it may be set right, and leaves its place to others meanwhile. It returns superseded or draining; nothing
// when the wake is to ask again.
func (s *Sidecar) untilRedis(w *wake) skip {
	if w.place != nil {
		s.admission.leave(w.place)
		w.place = nil
	}
	ctx, cancel := context.WithCancel(s.accepting)
	defer cancel()
	defer context.AfterFunc(w.spec.life, cancel)()
	for {
		now := s.slower()
		left := w.due.Sub(now)
		switch until := w.worthUntil(); {
		case !until.IsZero() && !now.Before(until):
			return skip{reason: superseded}
		case left <= 0 || w.spec.life.Err() != nil:
			return skip{}
		case !pause(ctx, min(left, lookEvery)) && s.accepting.Err() != nil:
			return skip{reason: draining}
		}
	}
}

// slower is the time on the slower of the cluster clock and Redis': a tick that Redis calls early is worth firing for as
// long after that.
func (s *Sidecar) slower() time.Time {
	now := s.clock.Now()
	if at, ok := s.store.Now(); ok && at.Before(now) {
		return at
	}
	return now
}

// onRedis is an instant of the cluster clock on Redis' clock: the same, except where Redis' is ahead and not believed. Where it
// is behind, a tick is worth firing until Redis' clock has come there.
func (s *Sidecar) onRedis(t time.Time) time.Time {
	at, ok := s.store.Now()
	if ahead := at.Sub(s.clock.Now()); ok && ahead > time.Second {
		return t.Add(ahead)
	}
	return t
}

// refused tells why a claim did not win.
func (s *Sidecar) refused(w *wake, a lock.Answer, err error) skip {
	switch {
	case err != nil && s.accepting.Err() != nil:
		return skip{reason: draining}
	case err != nil:
		return skip{reason: redisError, attrs: []slog.Attr{slog.String("err", err.Error())}}
	}
	return skip{reason: refusal(w, a), until: a.Until, attrs: s.by(a)}
}

// whileWorth is a context for as long as a wake's tick is worth firing by its job, which has not changed, on a replica that
// takes ticks.
func (s *Sidecar) whileWorth(w *wake) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(s.accepting)
	stop := context.AfterFunc(w.spec.life, cancel)
	until := w.worthUntil()
	if until.IsZero() {
		return ctx, func() { stop(); cancel() }
	}
	limited, over := context.WithTimeout(ctx, max(until.Sub(s.slower()), 0))
	return limited, func() { over(); stop(); cancel() }
}

// ask puts the question, anew when the ticks before this one were not those that this replica knew of.
func (s *Sidecar) ask(ctx context.Context, w *wake, look bool) (l *lock.Lease, a lock.Answer, err error) {
	if err := s.introduce(ctx, w); err != nil {
		return nil, a, err
	}
	for {
		c := s.claim(w)
		c.Look = look
		if until := w.worthUntil(); !until.IsZero() {
			c.Until = s.onRedis(until)
		}
		if l, a, err = s.store.Acquire(ctx, c); err == nil && w.heard(a) {
			s.watcher.nudge("") // Redis has lost its data: the sooner that is looked at, the fewer ticks it costs
		}
		if err == nil && a.Code == lock.Stale { // too late; or Redis' clock was set, and the claim said until when by the old one
			if !pause(ctx, staleRetry) {
				return nil, a, context.Cause(ctx)
			}
			continue
		}
		if err != nil || a.Code != lock.Gap {
			s.book(w.spec, a.Gaps)
			if late := len(c.Older) - 1; late > 0 && a.Code == lock.Queued {
				s.log.Warn("firing missed ticks late", "job", c.Job, "ticks", late, "before", stamp(c.Tick))
			}
			return l, a, err
		}
	}
}

// staleRetry is how soon a claim is made again that came too late by Redis' clock.
const staleRetry = 50 * time.Millisecond

// introduce makes the wake's job known to Redis before it is first asked for: what was missed is told by that.
func (s *Sidecar) introduce(ctx context.Context, w *wake) error {
	for !w.job.isKnown() {
		if err := s.watcher.register.tell(ctx, w.job); err != nil && !pause(ctx, lookEvery/4) {
			return err
		}
	}
	return nil
}

// mostWait bounds how long a tick waits before another round of attempts to start it.
const mostWait = time.Minute

// handover gives the tick to another replica: to one that has not refused it in this round, or, when all have, to
// whichever is first in the next one, after a wait that grows from round to round. False when there is no use in it: there
// were as many rounds as the job says, a newer tick is due, or nobody would fare better. Without an answer it is asked for
// once more, and then left to a takeover: giving the tick up would be another question, and might be the one that arrives.
func (s *Sidecar) handover(w *wake, h *held, end *ended) bool {
	until := w.worthUntil()
	if end.result.Status == execute.Failed || !w.spec.claims() || !until.IsZero() && !s.clock.Now().Before(until) {
		return false
	}
	ctx, cancel := s.afterwards(w)
	defer cancel()
	all := s.rendezvous.allRefused(ctx, append(slices.Clone(w.of.Refused), s.replica))
	if all && w.of.Rounds >= w.spec.StartRetries {
		return false
	}
	everybody := all || len(w.of.Refused) > 0 && w.of.Age >= patience // or who has not refused it is full, or does not come
	next, wait := h.Handover, time.Duration(0)
	if everybody {
		next, wait = h.NextRound, min(time.Second<<min(w.of.Rounds, 6), mostWait)
	}
	handed := *end
	handed.outcome = handedOver
	hand := func() error {
		ctx, cancel := s.afterwards(w)
		defer cancel()
		// That the run is not known any more is the answer to a repeated question: it was handed over by the first one.
		_, err := next(ctx, wait, s.entry(w.spec, &handed))
		return err
	}
	err := hand()
	if err != nil && s.accepting.Err() == nil {
		err = hand()
	}
	if err != nil {
		s.unrecorded(w, h, err)
	} else {
		s.metrics.job(w.spec.label).handovers.Add(1)
	}
	return true
}

// settle tells Redis that the run is over: ended, never begun, or cut short, in which case it may be run again. Should Redis stay
// away, a takeover will find the run without a lease. counted tells whether another replica has taken the run for dead before,
// and has counted it as interrupted.
func (s *Sidecar) settle(w *wake, h *held, end *ended) (counted bool) {
	ctx, cancel := s.afterwards(w)
	defer cancel()
	var settled lock.Settled
	var err error
	switch {
	case end.outcome == notStarted:
		settled, err = h.GiveUp(ctx, s.entry(w.spec, end))
	case end.cutShort() && w.spec.Guarantee == config.AtLeastOnce:
		settled, err = h.Requeue(ctx, s.entry(w.spec, end))
	default:
		settled, err = h.Finish(ctx, w.spec.safetyDelay(), s.entry(w.spec, end))
	}
	if w.member != "" {
		s.watcher.nudge("") // there may be more for this job
	}
	switch {
	case err != nil:
		s.unrecorded(w, h, err)
	case settled != lock.OK:
		s.log.LogAttrs(ctx, slog.LevelWarn, "the run was taken for dead before it ended", append(w.attrs(), slog.String("run", h.run))...)
	}
	return err == nil && settled == lock.Late
}

func (s *Sidecar) unrecorded(w *wake, h *held, err error) {
	s.log.LogAttrs(context.Background(), slog.LevelWarn, "the end of the run is not recorded in Redis",
		append(w.attrs(), slog.String("run", h.run), slog.String("err", err.Error()))...)
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
// lease would, and while a replica drains to little more than the end of its grace.
func (s *Sidecar) afterwards(w *wake) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), w.spec.Lock.TTL)
	stop := context.AfterFunc(s.working, func() {
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
func (s *Sidecar) by(a lock.Answer) []slog.Attr {
	switch {
	case a.Holder == "", a.Code == lock.Gone: // of a due member it does not know who has it
		return nil
	case a.Holder == s.replica:
		return []slog.Attr{slog.String("by", "this replica, in an earlier wake")}
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
	e.Job, e.Tick, e.Run, e.Replica, e.Kind = w.spec.Name, w.tick, u.run, u.sidecar.replica, w.kind
	u.sidecar.heartbeat.result(*e)
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
func (u unlocked) NextRound(ctx context.Context, wait time.Duration, e *lock.Entry) (lock.Settled, error) {
	return u.Handover(ctx, wait, e)
}
func (unlocked) Release(context.Context) error { return nil }
