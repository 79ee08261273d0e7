package sidecar

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// runner runs jobs. Nothing of it changes once the replica is made.
type runner struct {
	service, replica string
	clock            *clock
	record           *recorder
}

// attempts runs the job, again when it failed and the table says so, as long as ctx lasts: under the same lock, on the
// same replica. The timeout is each attempt's own.
func (r *runner) attempts(ctx context.Context, w *wake, h *held) ended {
	var start time.Time // zero = the job never began
	for n := 0; ; n++ {
		e := r.attempt(ctx, w, h, w.attempt+n, &start)
		if start.IsZero() {
			e.outcome = notStarted
			return e
		}
		e.took = time.Since(start)
		wait, again := r.retryIn(ctx, w, &e, n)
		if !again {
			return e
		}
		r.record.retrying(w, h, &e, wait)
		if !pause(ctx, wait) {
			e.cause = context.Cause(ctx)
			e.outcome = outcomeOf(e.cause)
			return e
		}
	}
}

// attempt runs the job once. At the last moment it asks the lease, and not the context alone, whether the job may begin:
// in a process that stood still the lease's end may be known to nobody yet.
func (r *runner) attempt(ctx context.Context, w *wake, h *held, number int, start *time.Time) ended {
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	early := min(max(0, w.due.Sub(r.clock.Now())), ahead) // that the claim is ahead of its tick is not the job's to pay for
	ctx, cancel := context.WithTimeoutCause(ctx, early+w.spec.Timeout, errTimeout)
	defer cancel()
	result := w.spec.executor.Execute(ctx, execute.Run{
		Service: r.service, Job: w.spec.Name, Tick: w.tick, ID: h.run, Attempt: number, Token: h.token, Replica: r.replica,
		Kind: w.kind, Key: w.key(),
		Await: func(ctx context.Context) {
			r.clock.sleep(ctx, w.due)
			if !h.Trusted() {
				lose(lock.ErrLost)
			}
		},
		Started: func() {
			if start.IsZero() {
				*start = time.Now()
				r.record.fired(w, h)
			}
		},
	})
	cause := context.Cause(ctx)
	return ended{outcome: endedBy(result, cause), result: result, cause: cause, attempt: number}
}

// retryIn tells whether a run that ended so is tried once more, and after how long. n is the number of attempts before
// the last one.
func (r *runner) retryIn(ctx context.Context, w *wake, e *ended, n int) (time.Duration, bool) {
	sp, result := w.spec, e.result
	if n >= sp.Retry.Limit || e.outcome != failed && e.outcome != timedOut || !sp.mayRepeat(result) || ctx.Err() != nil {
		return 0, false
	}
	wait := sp.Retry.Backoff
	for range n {
		wait = min(2*wait, sp.Retry.MaxBackoff)
	}
	wait = wait/2 + rand.N(wait/2+1) // so that what failed together is not tried again together
	if wait >= result.RetryAfter {
		return wait, true
	}
	next := sp.series.due(sp.series.schedule.Next(w.tick))
	return result.RetryAfter, next.IsZero() || r.clock.Now().Add(result.RetryAfter).Before(next)
}

// repeats tells whether an attempt that failed so may be made again: of an answer the table says so. What may have run
// although no answer came, or one that broke off, is not run again, unless the job allows that.
func (sp *spec) mayRepeat(r execute.Result) bool {
	switch {
	case sp.Exec != nil, r.Status == execute.NotStarted:
		return true
	case r.Code >= 0 && !sp.HTTP.Succeeds(r.Code): // a success that failed has broken off
		return sp.Retry.After(r.Code)
	}
	return sp.Guarantee != config.AtMostOnce
}
