package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
)

// reason says why a wake did not fire.
type reason string

const (
	firedElsewhere reason = "fired_elsewhere" // another replica claimed the tick: the normal case
	overlap        reason = "overlap"         // the job's previous run is not over
	queued         reason = "queued"          // a due tick has to wait for the present run
	superseded     reason = "superseded"      // a newer tick was claimed first
	paused         reason = "paused"
	suspended      reason = "suspended"
	notReady       reason = "not_ready"    // the readiness gate: the app says that it is not ready
	startFailed    reason = "start_failed" // the job could not be started here
	noSlot         reason = "no_slot"
	tooLate        reason = "too_late" // past the starting deadline
	outsideWindow  reason = "outside_window"
	draining       reason = "draining"
	redisError     reason = "redis_error" // no clear answer while the tick was worth firing
)

var reasons = [...]reason{firedElsewhere, overlap, queued, superseded, paused, suspended, notReady, startFailed, noSlot, tooLate,
	outsideWindow, draining, redisError}

// outcome says what ended a run.
type outcome string

const (
	succeeded      outcome = "succeeded"
	failed         outcome = "failed"
	timedOut       outcome = "timed_out"
	lostLock       outcome = "lost_lock"
	replaced       outcome = "replaced"
	declined       outcome = "declined"    // the app says that it runs already
	notStarted     outcome = "not_started" // it could not be started, and nobody is left to hand it to
	wasInterrupted outcome = "interrupted" // its replica is gone
	shutdown       outcome = "shutdown"
)

// handedOver stands in the history for a tick that this replica could not start and gave to another one. No run has ended
// by it, so it is none of the outcomes that are counted.
const handedOver outcome = lock.HandedOver

var outcomes = [...]outcome{succeeded, failed, timedOut, lostLock, replaced, declined, notStarted, wasInterrupted, shutdown}

// endedBy tells what ended an attempt that began, from the executor's result and the cause of the attempt's context.
func endedBy(r execute.Result, cause error) outcome {
	switch r.Status {
	case execute.Succeeded:
		return succeeded
	case execute.Declined:
		return declined
	case execute.Canceled:
		return cutOff(cause)
	}
	return failed
}

// cutOff tells what ended a run from the cause of its context.
func cutOff(cause error) outcome {
	switch {
	case errors.Is(cause, errTimeout):
		return timedOut
	case errors.Is(cause, lock.ErrLost):
		return lostLock
	case errors.Is(cause, lock.ErrReplaced):
		return replaced
	case errors.Is(cause, errShutdown):
		return shutdown
	}
	return failed
}

// refusal translates Redis' answer to a claim that was not won. The newest claimed tick is all that Redis remembers, so
// of an older one it is only known that it is settled.
func refusal(w *wake, a lock.Answer) reason {
	switch a.Code {
	case lock.Overlap, lock.Locked:
		return overlap
	case lock.Queued, lock.Held, lock.Waits:
		return queued
	case lock.Paused:
		return paused
	case lock.Fired:
		switch {
		case w.tick.Equal(a.Overlap):
			return overlap
		case !w.tick.After(a.PausedTo):
			return paused
		case w.tick.Before(a.Prev):
			return superseded
		}
	}
	return firedElsewhere
}

// What follows is the one place where outcomes become log lines and counters. The third record, the history entry, is
// written by the script that settles the run: see history.

// fired counts the start of a job. It comes from the executor, the moment the job has begun.
func (s *Sidecar) fired(w *wake, h *held) {
	delay := s.clock.Now().Sub(w.due)
	t := s.metrics.job(w.spec.label)
	t.fires.Add(1)
	if !w.byHand() && w.kind != kindTakeover { // whose ticks are long past
		t.fireDelay.observe(max(delay, 0).Seconds())
	}
	t.lastFire.set(seconds(s.clock.Now()))
	t.running.Add(1)
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "fired", append(w.attrs(), slog.String("run", h.run),
		slog.Duration("delay", delay.Round(time.Microsecond)), slog.Int64("token", h.token))...)
	s.notify.Send(notify.Ping{Job: w.spec.Name, To: w.spec.Notify, Run: h.run, Outcome: notify.Started})
}

// skip is why a wake did not fire. Nothing stands against a wake while it has no reason.
type skip struct {
	reason reason
	until  time.Time   // when the pause that it met with ends; zero = nobody knows
	attrs  []slog.Attr // what the log tells besides
}

// skipped counts a wake that did not fire.
func (s *Sidecar) skipped(w *wake, why skip) skip {
	r := why.reason
	w.close(r != redisError)
	s.heartbeat.note(w, r)
	s.metrics.job(w.spec.label).skipped(r)
	level := slog.LevelInfo
	switch r {
	case redisError, notReady, startFailed:
		level = slog.LevelWarn
	case firedElsewhere: // the normal case: on three replicas, two lines of three
		level = slog.LevelDebug
	}
	if s.log.Enabled(context.Background(), level) {
		s.log.LogAttrs(context.Background(), level, "skipped", append(append(w.attrs(), slog.String("reason", string(r))), why.attrs...)...)
	}
	return why
}

// finished counts the end of a run. A run that another replica has counted as interrupted has failed already, and does not fail
// a second time.
func (s *Sidecar) finished(w *wake, h *held, end *ended, counted bool) {
	t, o, r := s.metrics.job(w.spec.label), end.outcome, end.result
	t.ran(o)
	if o != notStarted {
		t.running.Add(-1)
		t.runDuration.observe(end.took.Seconds())
	}
	attrs := append(w.attrs(), slog.String("run", h.run), slog.String("outcome", string(o)),
		slog.Duration("duration", end.took.Round(time.Microsecond)))
	level := slog.LevelInfo
	if o == succeeded {
		t.lastSuccess.set(seconds(s.clock.Now()))
	}
	bad := w.spec.bad(o)
	if bad {
		level = slog.LevelError
	}
	if end.attempt > 1 {
		attrs = append(attrs, slog.Int("attempt", end.attempt))
	}
	if r.Code >= 0 {
		attrs = append(attrs, slog.Int("code", r.Code))
	}
	if r.Status == execute.Canceled && end.cause != nil {
		attrs = append(attrs, slog.String("cause", end.cause.Error()))
	}
	if r.Err != nil {
		attrs = append(attrs, slog.String("err", r.Err.Error()))
	}
	if r.RetryAfter > 0 {
		attrs = append(attrs, slog.Duration("retryAfter", r.RetryAfter))
	}
	if level == slog.LevelError && r.Output != "" {
		attrs = append(attrs, slog.String("output", r.Output))
	}
	s.log.LogAttrs(context.Background(), level, "finished", attrs...)
	if bad && counted {
		return
	}
	if bad {
		t.failures.Add(1)
	}
	s.notify.Send(notify.Ping{Job: w.spec.Name, To: w.spec.Notify, Run: h.run, Outcome: string(o), Failed: bad})
}

// interrupted counts a run of another replica that this one took over. Its job may have left the table meanwhile.
func (s *Sidecar) interrupted(name, run string, rec lock.Record, detail string) {
	label := name
	if isTimer(name) {
		label = lock.TimerJobs
	}
	sp := s.spec(name)
	if sp != nil {
		s.notify.Send(notify.Ping{Job: name, To: sp.Notify, Run: run, Outcome: string(wasInterrupted), Failed: true})
	}
	if sp != nil || label != name {
		t := s.metrics.job(label)
		t.takeovers.Add(1)
		t.ran(wasInterrupted)
		t.failures.Add(1)
	}
	s.log.Error("finished", "job", name, "tick", stamp(rec.Tick), "run", run, "outcome", string(wasInterrupted), "replica", rec.Replica,
		"err", detail)
}

// book has missed ticks counted of which an answer of Redis has told: once over all replicas, whoever comes first, and beside
// what the wake has to do.
func (s *Sidecar) book(sp *spec, gaps string) {
	if gaps == "" {
		return
	}
	s.runs.Go(func() {
		all, err := lock.ParseGaps(gaps)
		if err != nil {
			s.log.Error("missed ticks cannot be counted", "job", sp.Name, "err", err)
			return
		}
		n := 0
		var newest time.Time
		for _, g := range all {
			n += sp.series.count(g.From, g.To)
			newest = newestOf(newest, g.To)
		}
		ctx, cancel := context.WithTimeout(context.Background(), sp.Lock.TTL)
		defer cancel()
		defer context.AfterFunc(s.working, cancel)()
		switch ours, err := s.store.Book(ctx, sp.Name, gaps, n); {
		case err != nil: // whoever asks next will be told of them
			s.log.Debug("missed ticks are not counted yet", "job", sp.Name, "err", err)
		case ours && n > 0:
			s.metrics.job(sp.label).missed.Add(uint64(n))
			s.log.Warn("missed ticks that no replica fired", "job", sp.Name, "ticks", n, "before", stamp(newest))
		}
	})
}

// entry is what the history in Redis keeps of a run.
func (s *Sidecar) entry(sp *spec, end *ended) *lock.Entry {
	e := &lock.Entry{
		Attempt: end.attempt, Outcome: string(end.outcome), Failed: sp.bad(end.outcome),
		Ended: s.onRedis(s.clock.Now()), Took: end.took,
	}
	if e.Took > 0 {
		e.Took = max(e.Took, time.Millisecond) // the history knows no less, and 0 stands for a run that never began
	}
	if end.result.Err != nil {
		e.Detail = end.result.Err.Error()
		if e.Failed && end.result.Reason != "" {
			e.Detail += ": " + end.result.Reason
		}
		e.Detail = truncate(lock.OneLine(e.Detail), maxDetail)
	}
	return e
}

// bad tells whether a run that ended so has failed. It is the one answer: the log's level, the history's `failed`, the metric
// failures_total, and by these the page, the alerts and the notifications go by it. A run that the shutdown cut off has not
// failed if another replica runs it again.
func (sp *spec) bad(o outcome) bool {
	switch o {
	case succeeded, declined, replaced, handedOver:
		return false
	case shutdown:
		return sp.Guarantee != config.AtLeastOnce
	}
	return true
}

// maxDetail bounds what the history keeps of a failure.
const maxDetail = 512

func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 { // not in the middle of a character
		n--
	}
	return s[:n]
}

// stamp writes a tick as the job is told it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
