package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/trace"
)

// Notifier tells others of runs, and returns at once: see notify.Pinger.
type Notifier interface {
	Send(notify.Ping)
	Tell(notify.Message)
}

// recorder is the one place that turns outcomes into log lines, counters and pings. The script that settles the run
// writes the history: see entry. It is immutable.
type recorder struct {
	*life
	service   string
	replica   string
	store     *service.Store
	clock     *clock
	log       *slog.Logger
	metrics   *metrics
	heartbeat *heartbeat
	notify    Notifier
	spans     *trace.Exporter // nil = there are none
	began     time.Time       // when this process did, on this machine's clock
}

// fired counts the start of a job. It comes from the executor, the moment the job has begun. run is the context of the
// run with all its attempts.
func (r *recorder) fired(run context.Context, w *wake, h *held) {
	delay := r.clock.Now().Sub(w.due)
	t := r.metrics.tally(w.spec.label)
	t.fires.Add(1)
	if !w.byHand() && w.kind != kindTakeover { // whose ticks are long past
		r.metrics.fireDelay.Observe(max(delay, 0).Seconds())
	}
	t.lastFire.set(seconds(r.clock.Now()))
	t.running.Add(1)
	t.began(service.RunState{Run: h.run, Since: r.clock.onRedis(r.clock.Now()),
		Record: lock.Record{Tick: w.tick, Replica: r.replica, Kind: w.kind, Attempt: w.attempt}})
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "fired", append(w.attrs(), slog.String("run", h.run),
		slog.Duration("delay", delay.Round(time.Microsecond)), slog.Int64("token", h.token))...)
	r.ping(w.spec, h.run, notify.Started, false)
	r.watch(run, w, h, delay)
}

// accepted logs that the app has accepted a run, which it ends by itself.
func (r *recorder) accepted(w *wake, h *held) {
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "accepted", append(w.attrs(), slog.String("run", h.run),
		slog.Duration("heartbeat", w.spec.Reports().Heartbeat))...)
}

// skipped counts a wake that did not fire.
func (r *recorder) skipped(w *wake, why skip) skip {
	because := why.reason
	w.close(because != redisError)
	r.heartbeat.noteSkip(w, because)
	r.metrics.tally(w.spec.label).skipped(because)
	level := slog.LevelInfo
	switch because {
	case redisError, notReady, startFailed:
		level = slog.LevelWarn
	case firedElsewhere: // the normal case: on three replicas, two lines of three
		level = slog.LevelDebug
	}
	if r.log.Enabled(context.Background(), level) {
		attrs := append(w.attrs(), slog.String("reason", string(because)))
		r.log.LogAttrs(context.Background(), level, "skipped", append(attrs, why.attrs...)...)
	}
	return why
}

// retrying counts an attempt that is to follow.
func (r *recorder) retrying(w *wake, h *held, e *ended, wait time.Duration) {
	r.metrics.tally(w.spec.label).retries.Add(1)
	attrs := append(w.attrs(), slog.String("run", h.run), slog.Int("attempt", e.attempt),
		slog.String("outcome", string(e.outcome)), slog.Duration("wait", wait.Round(time.Millisecond)))
	if e.result.Err != nil {
		attrs = append(attrs, slog.String("err", e.result.Err.Error()))
	}
	r.log.LogAttrs(context.Background(), slog.LevelWarn, "trying again", attrs...)
}

// finished counts the end of a run. If another replica has counted the run as interrupted, it has failed already, and
// does not fail a second time.
func (r *recorder) finished(w *wake, h *held, end *ended, settled lock.Settled) {
	t, o, last := r.metrics.tally(w.spec.label), end.outcome, end.result
	t.ran(o)
	if !end.start.IsZero() {
		t.running.Add(-1)
		t.runDuration.observe(end.took.Seconds(), h.run, r.clock.Now())
	}
	attrs := append(w.attrs(), slog.String("run", h.run), slog.String("outcome", string(o)),
		slog.Duration("duration", end.took.Round(time.Microsecond)))
	level := slog.LevelInfo
	asFailed := w.spec.countsAsFailed(o)
	entry := r.entry(w, h, end)
	t.ended(entry, o, asFailed, r.clock.Now())
	if asFailed {
		level = slog.LevelError
	}
	if end.attempt > 1 {
		attrs = append(attrs, slog.Int("attempt", end.attempt))
	}
	if last.Code >= 0 {
		attrs = append(attrs, slog.Int("code", last.Code))
	}
	if last.Status == execute.Canceled && end.cause != nil {
		attrs = append(attrs, slog.String("cause", end.cause.Error()))
	}
	if last.Err != nil {
		attrs = append(attrs, slog.String("err", last.Err.Error()))
	}
	if last.RetryAfter > 0 {
		attrs = append(attrs, slog.Duration("retryAfter", last.RetryAfter))
	}
	if level == slog.LevelError && last.Output != "" {
		attrs = append(attrs, slog.String("output", last.Output))
	}
	r.log.LogAttrs(context.Background(), level, "finished", attrs...)
	if r.spans != nil && !end.start.IsZero() {
		r.spans.Record(runSpan(w, h, end))
	}
	if settled.Before != settled.Now {
		r.turned(w.spec, settled.Streak, entry)
	}
	if asFailed && settled.Verdict == lock.Late {
		return
	}
	if asFailed {
		t.failures.Add(1)
	}
	r.ping(w.spec, h.run, string(o), asFailed)
}

// ping tells other services of a run. They watch for the work itself, so a job that is observed only sends none.
func (r *recorder) ping(sp *spec, run, outcome string, failed bool) {
	if !sp.observed {
		r.notify.Send(notify.Ping{Job: sp.Name, To: sp.Notify, Run: run, Outcome: outcome, Failed: failed})
	}
}

// interrupted counts a run of another replica that this one took over when its table had the job as sp says; nil = it
// had not, or the job is a timer.
func (r *recorder) interrupted(sp *spec, name, run string, rec lock.Reaped, detail string) {
	name = service.SeriesJob(name)
	label := name
	if service.IsTimer(name) {
		label = service.TimerJobs
	}
	o, level := leftAs(rec.Record), slog.LevelInfo
	failed := sp.failsAs(o)
	if failed {
		level = slog.LevelError
	}
	if sp != nil {
		r.ping(sp, run, string(o), failed)
		r.turned(sp, rec.Streak, &service.Entry{Tick: rec.Tick, Run: run, Replica: rec.Replica, Outcome: string(o),
			Detail: detail})
	}
	t := r.metrics.tally(label)
	t.takeovers.Add(1)
	t.ran(o)
	if failed {
		t.failures.Add(1)
	}
	r.log.Log(context.Background(), level, "finished", "job", name, "tick", stamp(rec.Tick), "run", run,
		"outcome", string(o), "replica", rec.Replica, "err", detail)
}

// sprung counts the times of a timer with a schedule that are passed over, by the code of Spring.
func (r *recorder) sprung(p *service.Spring, code service.Sprung) {
	t, n := r.metrics.tally(service.TimerJobs), p.Missed.Count
	switch code {
	case service.SprungPast:
		return
	case service.SprungReplaced:
		n++
	}
	if n > 0 {
		t.missed.Add(uint64(n))
		r.log.Warn("missed ticks that no replica fired", "job", p.Of.Job, "ticks", n, "before", stamp(p.Tick))
	}
	if code == service.SprungOverlapped {
		t.skipped(overlap)
		r.log.Info("skipped", "job", p.Of.Job, "tick", stamp(p.Tick), "kind", "timer", "reason", string(overlap))
	}
}

// book counts ticks that no replica fired, which an answer of Redis told of. The first replica counts them, once for
// all. It does so in a goroutine, so that the wake goes on.
func (r *recorder) book(sp *spec, gaps string) {
	if gaps == "" {
		return
	}
	r.fires.Go(func() {
		all, err := lock.ParseGaps(gaps)
		if err != nil {
			r.log.Error("missed ticks cannot be counted", "job", sp.Name, "err", err)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), sp.Lock.TTL)
		defer cancel()
		defer context.AfterFunc(r.working, cancel)()
		var bookings []lock.Booking
		missed := notify.Message{Event: config.TicksMissed}
		var newest time.Time
		for _, g := range all {
			e := service.Entry{Job: sp.Name, Outcome: g.Fate, Ended: r.clock.onRedis(r.clock.Now())}
			if tick, one := g.Tick(); one { // it was a tick when Redis settled it, whatever the schedule says now
				e.Count, e.First, e.Tick = 1, tick, tick
			} else if e.Count, e.First, e.Tick = sp.series.within(g.From, g.To, maxCount); e.Count == 0 {
				continue
			}
			if g.Fate == lock.Missed {
				e.Detail = cmp.Or(r.deadRun(ctx, sp, &e), r.whyMissed(&e))
				if e.Detail == "" && sp.asks() {
					e.Detail = "no app asked for it"
				}
				missed.Detail = cmp.Or(e.Detail, missed.Detail)
			}
			if g.Fate == lock.Missed || g.Fate == lock.Displaced {
				if missed.Count == 0 || e.First.Before(missed.First) {
					missed.First = e.First
				}
				missed.Count, missed.Tick = missed.Count+e.Count, newestOf(missed.Tick, e.Tick)
				newest = newestOf(newest, g.To)
			}
			bookings = append(bookings, e.Booking())
		}
		switch ours, err := r.store.Locks.Book(ctx, sp.Name, gaps, bookings); {
		case err != nil: // the next claim is told of them
			r.log.Debug("missed ticks are not counted yet", "job", sp.Name, "err", err)
		case ours && missed.Count > 0:
			r.metrics.tally(sp.label).missed.Add(uint64(missed.Count))
			r.log.Warn("missed ticks that no replica fired", "job", sp.Name, "ticks", missed.Count,
				"before", stamp(newest))
			r.tell(sp, missed)
		}
	})
}

// deadRun is the dead run that was in the way of ticks; "" if there was none, as always under Allow.
func (r *recorder) deadRun(ctx context.Context, sp *spec, e *service.Entry) string {
	if sp.hasRoom(math.MaxInt) {
		return ""
	}
	dead, _ := r.store.Search(ctx, service.Search{Jobs: []string{e.Job}, Outcomes: []string{string(wasInterrupted)},
		Since: e.Tick, Limit: runsAfterTick})
	for _, run := range dead {
		if run.Count == 0 && run.Tick.Before(e.First) {
			return fmt.Sprintf("the run of %s on %s, which had died, was not over", stamp(run.Tick), run.Replica)
		}
	}
	return ""
}

// whyMissed is why no replica fired ticks, as far as this one can tell: "" if it cannot.
func (r *recorder) whyMissed(e *service.Entry) string {
	switch skipped, ok := r.heartbeat.skipOf(e.Job); {
	case ok && !skipped.Tick.Before(e.First) && !skipped.Tick.After(e.Tick):
		if words := skipWords[reason(skipped.Reason)]; words != "" {
			return fmt.Sprintf("replica %s skipped it: %s", r.replica, words)
		}
	case r.began.After(e.Tick):
		return fmt.Sprintf("no replica claimed it before replica %s started", r.replica)
	}
	return ""
}

// runsAfterTick is how many runs are looked through for why a tick was not fired.
const runsAfterTick = 20

// refusedWhy says who could not start a tick, and why the last of them could not.
func (r *recorder) refusedWhy(ctx context.Context, d *lock.Due) error {
	words := d.RefusedBy()
	handed, _ := r.store.Search(ctx, service.Search{Jobs: []string{service.SeriesJob(d.Job)},
		Outcomes: []string{service.HandedOver}, Since: d.Tick.Add(-punctual), Limit: runsAfterTick})
	for _, e := range handed {
		if e.Tick.Equal(d.Tick) && e.Detail != "" {
			return errors.New(words + ": " + e.Detail)
		}
	}
	return errors.New(words)
}

// entry is the record of a run in the history.
func (r *recorder) entry(w *wake, h *held, end *ended) *service.Entry {
	e := &service.Entry{
		Job: w.spec.Name, Tick: w.tick, Run: h.run, Replica: r.replica, Kind: w.kind,
		Attempt: end.attempt, Outcome: string(end.outcome), Failed: w.spec.countsAsFailed(end.outcome),
		Ended: r.clock.onRedis(r.clock.Now()), Took: end.took,
	}
	if e.Took > 0 {
		e.Took = max(e.Took, time.Millisecond) // the history knows no less, and 0 stands for a run that never began
	}
	if end.result.Err != nil {
		e.Detail = strings.TrimPrefix(end.result.Err.Error(), string(cancelled)+" ") // which the outcome says
		if e.Failed && end.result.Reason != "" {
			e.Detail += ": " + end.result.Reason
		}
		e.Detail = truncate(text.OneLine(e.Detail), maxDetail)
	}
	return e
}
