package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// lease is what fire needs of a lock.Lease.
type lease interface {
	Keep(context.Context) (context.Context, func())
	Finish(ctx context.Context, delay time.Duration, entry ...any) (lock.Settled, error)
	Handover(ctx context.Context, wait time.Duration, entry ...any) (lock.Settled, error)
	Release(context.Context) error
}

// fire takes one wake from its tick to a counted outcome. It is the only way in which a job is ever started. The steps
// are those of the life of a tick in the design.
func (s *Sidecar) fire(w *wake) {
	// 1. Wake: a moment ahead of the tick. An earlier one waits; the wake of a drained replica ends here.
	if !s.clock.sleep(s.accepting, w.due.Add(-ahead)) {
		s.skipped(w, draining)
		return
	}

	// 2. Gate: what needs no Redis.
	if r := s.gate(w); r != "" {
		s.skipped(w, r)
		return
	}

	// 3. Acquire.
	held, run, token, ok := s.acquire(w)
	if !ok {
		return
	}

	// 4. Trust window: a lease that comes back may be trusted now, and is kept until the run is settled.
	kept, stop := held.Keep(s.working)
	defer stop()

	// 5. Execute on the tick, in a context that ends at the timeout, the lost lock, or the end of the shutdown grace.
	ctx, cancel := context.WithTimeoutCause(kept, w.job.Timeout, errTimeout)
	var start time.Time // zero = the job never began
	result := w.job.executor.Execute(ctx, execute.Run{
		Service: s.service, Job: w.job.Name, Tick: w.tick, ID: run, Attempt: w.attempt, Token: token, Replica: s.replica, Kind: w.kind,
		Await: func(ctx context.Context) { s.clock.sleep(ctx, w.due) },
		Started: func() {
			start = time.Now()
			s.fired(w, token)
		},
	})
	took := time.Since(start)
	cause := context.Cause(ctx)
	cancel()

	// 6. Finish: outcome and history in one step with the end of the lease. A job that never began goes to another replica.
	o := ended(result, cause)
	if start.IsZero() {
		o, took = notStarted, 0
	}
	entry := history{job: w.job.Name, tick: w.tick, run: run, replica: s.replica, kind: w.kind, attempt: w.attempt,
		outcome: o, ended: s.clock.Now(), took: took, detail: detail(result)}.fields()
	if o == notStarted && s.handover(w, held, result, entry) {
		return
	}
	s.settle(w, held, entry)

	// 7. Count.
	if o == notStarted {
		s.skipped(w, notReady)
	}
	s.finished(w, o, took, result, cause)

	// Release after the safety delay, for which shutdown does not wait: the lock expires by itself.
	if delay := w.job.safetyDelay(); delay > 0 && pause(s.accepting, delay) {
		s.release(w, held)
	}
}

// gate refuses what is not to be fired at all.
func (s *Sidecar) gate(w *wake) reason {
	j := w.job
	switch {
	case j.Suspend:
		return suspended
	case !j.Start.IsZero() && w.tick.Before(j.Start), !j.End.IsZero() && !w.tick.Before(j.End):
		return outsideWindow
	case j.StartingDeadline > 0 && s.clock.Now().After(w.tick.Add(j.StartingDeadline)):
		return tooLate
	}
	return ""
}

// acquire races for the tick, while it is worth firing. False when this replica is not the one, which is counted then.
func (s *Sidecar) acquire(w *wake) (held lease, run string, token int64, ok bool) {
	if w.job.Guarantee == config.EveryReplica {
		return unlocked{}, uuid.NewString(), 0, true
	}
	ctx, cancel := s.accepting, context.CancelFunc(func() {})
	if until := w.worthUntil(); !until.IsZero() {
		now := s.clock.Now()
		if at, ok := s.store.Now(); ok && at.Before(now) {
			now = at // a tick that Redis calls early is worth firing for as long after that
		}
		ctx, cancel = context.WithTimeout(ctx, max(until.Sub(now), 0))
	}
	defer cancel()

	asked := time.Now()
	l, a, err := s.store.Acquire(ctx, s.claim(*w))
	s.metrics.acquireDuration.Observe(time.Since(asked).Seconds())
	switch {
	case err != nil && s.accepting.Err() != nil:
		s.skipped(w, draining)
	case err != nil:
		s.skipped(w, redisError, slog.String("err", err.Error()))
	case l == nil:
		s.skipped(w, refusal(w, a), by(a)...)
	default:
		s.missed(w, a)
		return l, l.Run(), l.Token, true
	}
	return nil, "", 0, false
}

// handovers bounds how often a tick goes round before it is given up as not started.
const handovers = 5

// handover gives the tick to another replica. False when there is no use in it: it went round often enough, a newer tick
// is due, or nobody would fare better.
func (s *Sidecar) handover(w *wake, held lease, r execute.Result, entry []any) bool {
	if until := w.worthUntil(); r.Status == execute.Failed || w.handovers >= handovers || !until.IsZero() && !s.clock.Now().Before(until) {
		return false
	}
	ctx, cancel := s.afterwards(w)
	defer cancel()
	// The first goes to whoever is there; after that, each waits longer.
	wait := time.Duration(0)
	if w.handovers > 0 {
		wait = time.Second << (w.handovers - 1)
	}
	// That the run is not known any more is the answer to a repeated question: it was handed over by the first one.
	if _, err := held.Handover(ctx, wait, entry...); err != nil {
		return false
	}
	s.metrics.handovers.WithLabelValues(w.job.Name).Inc()
	s.skipped(w, notReady, slog.String("err", r.Err.Error()))
	return true
}

// settle tells Redis that the run is over. Should Redis stay away, a takeover will find the run without a lease.
func (s *Sidecar) settle(w *wake, held lease, entry []any) {
	ctx, cancel := s.afterwards(w)
	defer cancel()
	settled, err := held.Finish(ctx, w.job.safetyDelay(), entry...)
	switch {
	case err != nil:
		s.log.LogAttrs(ctx, slog.LevelWarn, "the end of the run is not recorded in Redis", append(w.attrs(), slog.String("err", err.Error()))...)
	case settled != lock.OK:
		s.log.LogAttrs(ctx, slog.LevelWarn, "the run was taken for dead before it ended", w.attrs()...)
	}
}

// release deletes the lock early. What goes wrong here costs nothing: the lock expires by itself.
func (s *Sidecar) release(w *wake, held lease) {
	ctx, cancel := s.afterwards(w)
	defer cancel()
	if err := held.Release(ctx); err != nil {
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

func detail(r execute.Result) string {
	if r.Err == nil {
		return ""
	}
	return r.Err.Error()
}

// unlocked is the lease of a job that runs on every replica: there is none.
type unlocked struct{}

func (unlocked) Keep(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
func (unlocked) Finish(context.Context, time.Duration, ...any) (lock.Settled, error) {
	return lock.OK, nil
}
func (unlocked) Handover(context.Context, time.Duration, ...any) (lock.Settled, error) {
	return "", errors.New("a job that runs on every replica is not handed over")
}
func (unlocked) Release(context.Context) error { return nil }
