package sidecar

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/trace"
)

// runner runs jobs. It is immutable.
type runner struct {
	service, replica string
	clock            *clock
	record           *recorder
	spans            *trace.Exporter // nil = there are none
}

// attempts runs the job, and again if it failed and the table has a retry, as long as ctx lasts. All attempts have
// the same lock and the same replica; each has the whole timeout.
func (r *runner) attempts(ctx context.Context, w *wake, h *held) ended {
	ctx, over := context.WithCancel(ctx)
	defer over()
	var start time.Time // zero = the job never began
	for n := 0; ; n++ {
		e := r.attempt(ctx, w, h, w.attempt+n, &start)
		if start.IsZero() {
			e.outcome = notStarted
			if errors.Is(e.cause, lock.ErrCancelled) {
				e.outcome = cancelled
			}
			return e
		}
		e.start = start
		e.took = time.Since(start)
		wait, again := r.retryIn(ctx, w, &e, n)
		if !again {
			return e
		}
		r.record.retrying(w, h, &e, wait)
		if !beat.Sleep(ctx, wait) {
			e.cause = context.Cause(ctx)
			e.outcome = outcomeOf(e.cause)
			return e
		}
	}
}

// attempt runs the job once. At the last moment it asks the lease itself whether the job may begin. If the process
// stood still, the lease may have ended before ctx.
func (r *runner) attempt(ctx context.Context, w *wake, h *held, number int, start *time.Time) ended {
	run := ctx
	early := func() time.Duration { return min(max(0, w.due.Sub(w.spec.now(r.clock))), lock.EarlyBy) }
	ctx, end, limit := limited(ctx, early(), w.spec.Timeout) // the wait until the tick does not count
	defer end(nil)
	span := spanOf(r.spans, h)
	var began time.Time
	result := w.executor().Execute(ctx, execute.Run{
		Service: r.service, Job: w.spec.Name, Tick: w.tick, Since: h.since, ID: h.run, Attempt: number, Token: h.token,
		Replica: r.replica, Kind: w.kind, Key: w.of.Key, Parent: span.parent(),
		Await: func(ctx context.Context) {
			r.clock.sleepUntil(ctx, w.due, true)
			beat.Sleep(ctx, early())
			if !h.Trusted() {
				end(lock.ErrLost)
			}
		},
		Lasts: h.TrustedFor,
		Accepted: func(longest time.Duration) {
			limit(longest)
			r.record.accepted(w, h)
		},
		Started: func() {
			began = time.Now()
			if start.IsZero() {
				*start = began
				r.record.fired(run, w, h)
			}
		},
	})
	cause := context.Cause(ctx)
	e := ended{outcome: endedBy(result, cause), result: result, cause: cause, attempt: number}
	if !began.IsZero() {
		span.record(w, began, &e)
	}
	return e
}

// limited returns a context that ends with a timeoutError after a wait and a run's timeout. end ends it before, and set
// sets the timeout from now on.
func limited(ctx context.Context, wait, timeout time.Duration) (_ context.Context, end context.CancelCauseFunc,
	set func(time.Duration)) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := &timeoutError{}
	over.after.Store(int64(timeout))
	timer := time.AfterFunc(wait+timeout, func() { cancel(over) })
	return ctx, func(cause error) { timer.Stop(); cancel(cause) }, func(longest time.Duration) {
		over.after.Store(int64(longest))
		timer.Reset(longest)
	}
}

// retryIn reports whether a run that ended so is tried once more, and after how long. n is the number of attempts
// before the last one.
func (r *runner) retryIn(ctx context.Context, w *wake, e *ended, n int) (time.Duration, bool) {
	sp, result := w.spec, e.result
	mayRetry := e.outcome == failed || e.outcome == timedOut
	if n >= sp.Retry.Limit || !mayRetry || !sp.mayRepeat(result) || ctx.Err() != nil {
		return 0, false
	}
	wait := sp.Retry.Backoff
	for range n {
		wait = min(2*wait, sp.Retry.MaxBackoff)
	}
	wait = wait/2 + rand.N(wait/2+1) // jobs that failed together are not tried again together
	if wait >= result.RetryAfter {
		return wait, true
	}
	next := sp.series.due(sp.series.schedule.Next(w.tick))
	return result.RetryAfter, next.IsZero() || sp.now(r.clock).Add(result.RetryAfter).Before(next)
}
