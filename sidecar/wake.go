package sidecar

import (
	"log/slog"
	"math"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// wake is one reason to fire one tick: a timer's, a catch-up's, or a due entry's.
type wake struct {
	job     *job
	spec    *spec     // the spec in force when it was last refreshed; written by its own fire
	tick    time.Time // nominal
	due     time.Time // when it came due: tick plus jitter
	kind    string
	herd    time.Duration // aheadOf the herd that it is of; 0 = it asks by itself
	attempt int
	of      lock.Due // the due member that it is for; the zero Due for a tick of the table
	member  string   // of the due set; "" for a tick of the table
	claimed bool     // the tick was claimed from the table: here, or before it became due
	asked   bool     // it has asked whether something is in its way, without a slot to win for
	asking  bool     // it counts in ticks.asking
	slot    *slot    // that it has asked for; nil = none. Written by its own fire, once that has begun
	asker   *asker   // the app that asks for the tick; nil = none: the job is not of an app that asks
}

// ahead is how long before its tick a wake claims it, at least. So the job starts on the tick, not a round trip later.
const ahead = 25 * time.Millisecond

// aheadOf is ahead for one of so many jobs: they may all have the same tick, and a thousand claims take some 75 ms.
func aheadOf(jobs int) time.Duration {
	return min(max(ahead, time.Duration(jobs)*75*time.Microsecond), 100*time.Millisecond)
}

// punctual is how late a wake may be without being a catch-up.
const punctual = 5 * time.Second

// askAt is when a wake asks for its tick.
func (w *wake) askAt() time.Time { return w.due.Add(-max(ahead, w.herd)) }

// byHand reports whether an operator asked for this run: neither the table nor newer ticks are in its way.
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

// executor runs the job for the wake.
func (w *wake) executor() execute.Executor {
	if w.asker != nil {
		w.asker.async = w.spec.Claim
		return w.asker
	}
	return w.spec.executor
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

// startUnclaimed reports whether a wake that makes no claim may fire, and then counts its tick as settled. False after
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

// asksWithoutSlot reports whether a wake without a slot asks Redis all the same, once, unless the policy allows any
// number of runs. The run that holds the slot may be in the tick's way: the question ends it (Replace), or has the tick
// counted as overlapped.
func (w *wake) asksWithoutSlot() bool {
	return !w.asked && w.member == "" && !w.spec.hasRoom(math.MaxInt)
}

// observe records Redis' answer about the job's ticks. True if Redis has lost its data.
func (w *wake) observe(a lock.Answer) (lost bool) {
	w.job.mu.Lock()
	defer w.job.mu.Unlock()
	return w.job.sharesTicks(w.spec) && w.job.ticks.observe(w.tick, w.member == "", a)
}

// worthUntil is when a wake is no longer worth firing: at its deadline, or at the next tick. Zero: there is neither.
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

// expired reports whether the wake is not worth firing any more.
func (w *wake) expired(c *clock) bool { return w.expiresWithin(0, c) }

// expiresWithin reports whether the wake is not worth firing any more when a time has passed.
func (w *wake) expiresWithin(d time.Duration, c *clock) bool {
	until := w.worthUntil()
	return !until.IsZero() && !w.spec.now(c).Add(d).Before(until)
}

// deadline is when it is too late to start a tick; zero = never, as if it has run before, or somebody asked for it.
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

// attrs are those of each line about the wake. It is inlined, so that the array stays on the stack of its caller.
func (w *wake) attrs() []slog.Attr { return w.appendTo(make([]slog.Attr, 0, 12)) }

func (w *wake) appendTo(attrs []slog.Attr) []slog.Attr {
	attrs = append(attrs, slog.String("job", w.spec.Name), slog.String("tick", stamp(w.tick)))
	if w.kind != kindSchedule {
		attrs = append(attrs, slog.String("kind", w.kind))
	}
	return attrs
}
