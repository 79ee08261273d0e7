package sidecar

import (
	"cmp"
	"context"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
)

// Messages for people. Each change is told by one replica: the one to which Redis gave the answer that decides it, or
// the one that runs the job.

// tell sends a message, if the job wants one of its kind.
func (r *recorder) tell(sp *spec, m notify.Message) {
	if !sp.Change.Wanted(m.Event) {
		return
	}
	m.To, m.Service, m.Job, m.At = sp.Change, r.service, sp.Name, r.clock.Now()
	m.Description, m.Owner, m.Runbook = sp.Description, sp.Owner, sp.Runbook
	m.Replica = cmp.Or(m.Replica, r.replica)
	r.notify.Tell(m)
}

// turned tells that a row of failures began or ended, by the settlement that decided it.
func (r *recorder) turned(sp *spec, streak lock.Streak, e *service.Entry) {
	if event := sp.Change.OfStreak(streak.Before, streak.Now); event != "" {
		r.tell(sp, notify.Message{Event: event, Tick: e.Tick, Run: e.Run, Replica: e.Replica, Outcome: e.Outcome,
			Detail: e.Detail, Failures: max(streak.Before, streak.Now)})
	}
}

// watch tells of a run that began late, and, while ctx lasts, that it takes too long. A run by hand, or in
// place of a run that was cut short, is not late.
func (r *recorder) watch(ctx context.Context, w *wake, h *held, delay time.Duration) {
	sp := w.spec
	if limit := sp.Change.Late; limit > 0 && delay > limit && !w.byHand() && w.kind != kindTakeover {
		r.tell(sp, notify.Message{Event: config.StartedLate, Tick: w.tick, Run: h.run, After: delay})
	}
	if limit := sp.Change.Long; limit > 0 {
		m := notify.Message{Event: config.TakesTooLong, Tick: w.tick, Run: h.run, After: limit}
		timer := time.AfterFunc(limit, func() { r.tell(sp, m) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
}
