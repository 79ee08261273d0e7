package sidecar

import (
	"log/slog"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// wake is one reason to fire one tick: a timer's, a catch-up's, or a due entry's.
type wake struct {
	job     *job
	spec    *spec     // the spec in force when it was last refreshed; written by its own fire
	tick    time.Time // nominal
	due     time.Time // when it came due: tick plus jitter
	kind    string
	attempt int
	of      lock.Due // the due member that it is for; the zero Due for a tick of the table
	member  string   // of the due set; "" for a tick of the table
	claimed bool     // the tick was claimed from the table: here, or before it became due
	asked   bool     // it has asked whether something is in its way, without a slot to win for
	asking  bool     // it counts in ticks.asking
	data    []byte   // that a run by hand brought; nil = none, or not read yet. Written by its own fire
	slot    *slot    // that it has asked for; nil = none. Written by its own fire, once that has begun
}

// The kinds of wakes, as the job is told them.
const (
	kindSchedule = "schedule"
	kindCatchup  = "catchup"
	kindTakeover = "takeover"
	kindManual   = "manual"
	kindBackfill = "backfill"
)

// ahead is how long before its tick a wake claims it. So the job starts on the tick, not a round trip later.
const ahead = 25 * time.Millisecond

// punctual is how late a wake may be without being a catch-up.
const punctual = 5 * time.Second

// take tells which tick a timer woke for, which gocron does not: see ticks.take. The wake then has to be closed.
func (j *job) take(upTo time.Time) (wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spec == nil {
		return wake{}, false
	}
	tick, ok := j.ticks.take(&j.spec.series, upTo)
	if !ok {
		return wake{}, false
	}
	w := j.tableWake(tick, kindSchedule)
	if upTo.Sub(w.due) > punctual {
		w.kind = kindCatchup
	}
	return w, true
}

// missedTick returns a wake for a tick that came due and whose fate this replica does not know: no replica was there,
// or Redis was not. Replicas check this continuously: a client that hides an outage also hides its end. The wake then
// has to be closed.
func (j *job) missedTick(at time.Time) (wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spec == nil || !j.ticks.missedTick(&j.spec.series, at) || !j.spec.claims() || j.spec.Missed == config.Skip {
		return wake{}, false
	}
	return j.tableWake(j.ticks.taken, kindCatchup), true
}

// tableWake is called with mu locked.
func (j *job) tableWake(tick time.Time, kind string) wake {
	j.ticks.asking++
	return wake{job: j, spec: j.spec, tick: tick, due: j.spec.series.due(tick), kind: kind, attempt: 1, asking: true}
}

// dueWake is the wake for a member of the due set. A manual run is due at once: its tick is by Redis' clock, and only
// ticks of the table have jitter.
func (j *job) dueWake(sp *spec, d lock.Due, now time.Time) *wake {
	w := &wake{job: j, spec: sp, tick: d.Tick, due: sp.series.due(d.Tick), kind: d.Kind, attempt: d.Attempt,
		of: d, member: d.Member(), claimed: true}
	if w.byHand() {
		w.due = now
		if d.Tick.Before(now) {
			w.due = d.Tick
		}
	}
	return w
}

// askAt is when a wake asks for its tick.
func (w *wake) askAt() time.Time { return w.due.Add(-ahead) }

// byHand tells whether an operator asked for this run. Then neither the table's conditions nor newer ticks are in its
// way.
func (w *wake) byHand() bool { return w.kind == kindManual || w.kind == kindBackfill }

// releaseSlot gives the wake's slot back, if it has asked for one.
func (w *wake) releaseSlot(g *slots) {
	if w.slot != nil {
		g.release(w.slot)
		w.slot = nil
	}
}

// refresh makes the wake go on by the spec in force. False if its job has left the table, or has other ticks now.
func (w *wake) refresh() bool {
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	if !w.job.sharesTicks(w.spec) {
		return false
	}
	w.spec = w.job.spec
	return true
}

// close ends the question of a wake. known tells that the fate of its tick is known.
func (w *wake) close(known bool) {
	if !w.asking {
		return
	}
	w.asking = false
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	if w.job.sharesTicks(w.spec) { // otherwise the tick is not the job's any more
		w.job.ticks.close(w.tick, known)
	}
}

// startUnclaimed tells whether a wake that makes no claim may fire, and then counts its tick as settled. False after
// a reload: the wake has to pass the gate again, by the new spec.
func (w *wake) startUnclaimed() bool {
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	if !w.asking {
		return true
	}
	if w.job.spec != w.spec {
		return false
	}
	w.asking = false
	w.job.ticks.close(w.tick, true)
	return true
}

// observe records Redis' answer about the job's ticks. True if Redis has lost its data.
func (w *wake) observe(a lock.Answer) (lost bool) {
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	return w.job.sharesTicks(w.spec) && w.job.ticks.observe(w.tick, w.member == "", a)
}

// worthUntil is the instant after which a wake is not worth firing any more: its starting deadline, or the next tick,
// which takes its place. Zero when there is neither.
func (w *wake) worthUntil() time.Time {
	until, sp := w.deadline(), w.spec
	lasting := w.claimed && (sp.Missed == config.All || sp.ConcurrencyPolicy == config.Queue ||
		sp.Guarantee == config.AtLeastOnce && w.kind != kindCatchup)
	if w.byHand() || w.kind == kindTakeover || lasting {
		return until
	}
	next := sp.series.due(sp.series.schedule.Next(w.tick))
	if until.IsZero() || !next.IsZero() && next.Before(until) {
		return next
	}
	return until
}

// expired tells whether the wake is not worth firing any more.
func (w *wake) expired(c *clock) bool { return w.expiresWithin(0, c) }

// expiresWithin tells whether the wake is not worth firing any more when a time has passed.
func (w *wake) expiresWithin(d time.Duration, c *clock) bool {
	until := w.worthUntil()
	return !until.IsZero() && !c.tickNow(w.spec).Add(d).Before(until)
}

// deadline is when it is too late to start a tick; zero if it never is. A tick that has run before has no deadline,
// and neither has a manual run.
func (w *wake) deadline() time.Time {
	switch sp := w.spec; {
	case w.byHand() || w.kind == kindTakeover:
	case sp.StartingDeadline > 0:
		return w.tick.Add(sp.StartingDeadline)
	case sp.Missed == config.Skip && w.member == "": // a due member was claimed in time
		return w.due.Add(punctual)
	}
	return time.Time{}
}

func (w *wake) attrs() []slog.Attr {
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs, slog.String("job", w.spec.Name), slog.String("tick", stamp(w.tick)))
	if w.kind != kindSchedule {
		attrs = append(attrs, slog.String("kind", w.kind))
	}
	return attrs
}
