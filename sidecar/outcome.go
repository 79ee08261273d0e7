package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

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
	notReady       reason = "not_ready" // the job could not be started here
	noSlot         reason = "no_slot"
	tooLate        reason = "too_late" // past the starting deadline
	outsideWindow  reason = "outside_window"
	draining       reason = "draining"
	redisError     reason = "redis_error" // no clear answer while the tick was worth firing
)

var reasons = [...]reason{firedElsewhere, overlap, queued, superseded, paused, suspended, notReady, noSlot, tooLate,
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
	case lock.Queued, lock.Held:
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
	t := s.metrics.job(w.job.label)
	t.fires.Add(1)
	if !w.byHand() && w.kind != kindTakeover { // whose ticks are long past
		t.fireDelay.observe(max(delay, 0).Seconds())
	}
	t.lastFire.set(seconds(s.clock.Now()))
	t.running.Add(1)
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "fired", append(w.attrs(),
		slog.Duration("delay", delay.Round(time.Microsecond)), slog.Int64("token", h.token))...)
	s.notify.Send(notify.Ping{Job: w.job.Name, To: w.job.Notify, Run: h.run, Outcome: notify.Started})
}

// skipped counts a wake that did not fire.
func (s *Sidecar) skipped(w *wake, r reason, attrs ...slog.Attr) {
	w.refused = r
	w.close(r != redisError)
	s.heart.note(w, r)
	s.metrics.job(w.job.label).skipped(r)
	level := slog.LevelInfo
	if r == redisError || r == notReady {
		level = slog.LevelWarn
	}
	s.log.LogAttrs(context.Background(), level, "skipped", append(append(w.attrs(), slog.String("reason", string(r))), attrs...)...)
}

// finished counts the end of a run.
func (s *Sidecar) finished(w *wake, h *held, end *ended) {
	t, o, r := s.metrics.job(w.job.label), end.outcome, end.result
	t.ran(o)
	if o != notStarted {
		t.running.Add(-1)
		t.runDuration.observe(end.took.Seconds())
	}
	attrs := append(w.attrs(), slog.String("outcome", string(o)), slog.Duration("duration", end.took.Round(time.Microsecond)))
	level := slog.LevelInfo
	if o == succeeded {
		t.lastSuccess.set(seconds(s.clock.Now()))
	}
	if o.bad() {
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
	s.notify.Send(notify.Ping{Job: w.job.Name, To: w.job.Notify, Run: h.run, Outcome: string(o)})
}

func (w *wake) attrs() []slog.Attr {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("job", w.job.Name), slog.String("tick", stamp(w.tick)))
	if w.kind != kindSchedule {
		attrs = append(attrs, slog.String("kind", w.kind))
	}
	return attrs
}

// interrupted counts a run of another replica that this one took over. Its job may have left the table meanwhile.
func (s *Sidecar) interrupted(name, run string, rec lock.Record) {
	label := name
	if isTimer(name) {
		label = s.timers.label
	}
	j := s.job(name)
	if j != nil {
		s.notify.Send(notify.Ping{Job: name, To: j.Notify, Run: run, Outcome: string(wasInterrupted)})
	}
	if j != nil || label != name {
		t := s.metrics.job(label)
		t.takeovers.Add(1)
		t.ran(wasInterrupted)
	}
	s.log.Error("finished", "job", name, "tick", stamp(rec.Tick), "outcome", string(wasInterrupted), "replica", rec.Replica)
}

// missed counts the ticks between the newest one claimed before and the one just claimed. Each such interval is claimed
// once, so over all replicas each missed tick is counted once. A series that Redis saw first later has missed nothing
// before that. Of the ticks in between, those that the claim made due are fired late instead.
func (s *Sidecar) missed(w *wake, a lock.Answer, late int) {
	since := w.job.knownSince()
	if w.member != "" || since.IsZero() {
		return
	}
	n := max(w.job.series.count(newestOf(a.Prev, since, a.PausedTo), w.tick)-late, 0)
	if !a.Waited.IsZero() {
		n++ // it waited for the end of the run, and a newer one took its place
	}
	if n > 0 {
		s.metrics.job(w.job.label).missed.Add(uint64(n))
		s.log.Warn("missed ticks that no replica fired", "job", w.job.Name, "ticks", n, "before", stamp(w.tick))
	}
	if late > 0 {
		s.log.Warn("firing missed ticks late", "job", w.job.Name, "ticks", late, "before", stamp(w.tick))
	}
}

// entry is what the history in Redis keeps of a run.
func (s *Sidecar) entry(end *ended) *lock.Entry {
	e := &lock.Entry{Attempt: end.attempt, Outcome: string(end.outcome), Ended: s.clock.Now(), Took: end.took, Failed: end.outcome.bad()}
	if end.result.Err != nil {
		e.Detail = end.result.Err.Error()
		if last := end.result.Output[strings.LastIndexByte(end.result.Output, '\n')+1:]; e.Failed && last != "" {
			e.Detail += ": " + last
		}
		e.Detail = truncate(lock.OneLine(e.Detail), maxDetail)
	}
	return e
}

// bad tells whether somebody may want to look into an outcome.
func (o outcome) bad() bool {
	switch o {
	case succeeded, declined, replaced, shutdown:
		return false
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
