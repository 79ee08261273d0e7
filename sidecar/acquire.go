package sidecar

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// claimer asks Redis for ticks. It is immutable.
type claimer struct {
	*life
	replica   string
	process   string // its UUID
	store     *service.Store
	clock     *clock
	log       *slog.Logger
	slots     *slots
	registrar *registrar
	nudges    *nudges
	record    *recorder
}

// held is the right to run a job for a tick.
type held struct {
	*lock.Lease        // nil: every replica has that right
	run         string // UUID
	token       int64
	since       time.Time // see lock.Lease.Since
}

// Trusted is that of the lease.
func (h *held) Trusted() bool { return h.Lease == nil || h.Lease.Trusted() }

// TrustedFor is that of the lease.
func (h *held) TrustedFor(d time.Duration) bool { return h.Lease == nil || h.Lease.TrustedFor(d) }

// acquire races for the tick while it is worth firing. It returns the right to fire it, or why this replica does not
// fire it. If it returns neither, the wake has to pass the gate again.
func (c *claimer) acquire(w *wake) (*held, skip) {
	if w.expired(c.clock) { // the process stood still
		return nil, skip{reason: superseded}
	}
	ctx, stop := c.whileWorth(w)
	defer stop()
	asked := time.Now()
	l, a, err := c.ask(ctx, w, false)
	c.record.metrics.acquireDuration.Observe(time.Since(asked).Seconds())
	switch {
	case err != nil && c.accepting.Err() == nil && w.spec.life.Err() != nil:
		return nil, skip{}
	case err == nil && a.Code == lock.Early:
		return nil, c.untilRedis(w)
	case l == nil:
		return nil, c.refused(w, a, err)
	}
	w.close(true)
	w.claimed = true
	return &held{Lease: l, run: l.Run(), token: l.Token, since: l.Since}, skip{}
}

// askWithoutSlot asks whether a run is in the way of a tick for which there is no slot. It returns why the tick is
// settled, or that Redis gave no answer while the tick was worth firing. It returns nothing if the wake has to wait
// for a slot, or to ask again. missing is why it has none.
func (c *claimer) askWithoutSlot(w *wake, missing reason) skip {
	ctx, stop := c.whileWorth(w)
	defer stop()
	l, a, err := c.ask(ctx, w, true)
	switch {
	case l != nil: // a claim that may not win never does
		c.log.Error("a claim that must not win has won", "job", w.spec.Name, "tick", stamp(w.tick))
	case err != nil && w.spec.life.Err() != nil:
		return skip{} // and looks again, for the job as it is now
	case err == nil && a.Code == lock.Early:
		return c.untilRedis(w) // and looks again
	case err == nil && a.Code == lock.Free:
		w.asked = true
		return skip{}
	case err == nil && a.Code == lock.Fired && refusal(w, a) == firedElsewhere && w.asker == nil:
		// There, nothing was missing.
		return skip{reason: missing, attrs: c.by(a)}
	}
	return c.refused(w, a, err)
}

// untilRedis waits until a wake's tick is due on Redis' clock, which may be behind, or until its job is changed. It
// looks at that clock again and again, since an operator may set it, and leaves its slot to others meanwhile. It
// returns superseded or draining; nothing if the wake has to ask again.
func (c *claimer) untilRedis(w *wake) skip {
	w.releaseSlot(c.slots)
	ctx, cancel := context.WithCancel(c.accepting)
	defer cancel()
	defer context.AfterFunc(w.spec.life, cancel)()
	for {
		left := w.due.Sub(w.spec.now(c.clock))
		switch {
		case w.expired(c.clock):
			return skip{reason: superseded}
		case left <= 0 || w.spec.life.Err() != nil:
			return skip{}
		case !beat.Sleep(ctx, min(left, lookEvery)) && c.accepting.Err() != nil:
			return skip{reason: draining}
		}
	}
}

// ask sends the claim. It asks anew if the ticks before this one were not those that this replica knew.
func (c *claimer) ask(ctx context.Context, w *wake, mayNotWin bool) (l *lock.Lease, a lock.Answer, err error) {
	if err := c.ensureRegistered(ctx, w); err != nil {
		return nil, a, err
	}
	for {
		q := c.claim(w)
		q.MayNotWin = mayNotWin
		if until := w.worthUntil(); !until.IsZero() {
			q.Until = c.clock.onRedis(until)
		}
		l, a, err = c.store.Locks.Acquire(ctx, q)
		lost := err == nil && w.observe(a)
		if lost {
			c.nudges.nudge() // Redis has lost its data: the sooner that is looked at, the fewer ticks it costs
		}
		// It came too late, or Redis' clock was set after q.Until was made.
		if err == nil && (a.Code == lock.Stale || a.Code == lock.Gap && lost) {
			if !beat.Sleep(ctx, staleRetry) {
				return nil, a, context.Cause(ctx)
			}
			continue
		}
		if err != nil || a.Code != lock.Gap {
			c.record.book(w.spec, a.Gaps)
			if late := len(q.Older) - 1; late > 0 && a.Code == lock.Queued {
				c.log.Warn("firing missed ticks late", "job", q.Job, "ticks", late, "before", stamp(q.Tick))
			}
			return l, a, err
		}
	}
}

// staleRetry is how soon a claim is made again that came too late by Redis' clock.
const staleRetry = 50 * time.Millisecond

// ensureRegistered makes the wake's job known to Redis before its first claim: Redis counts missed ticks from then on.
func (c *claimer) ensureRegistered(ctx context.Context, w *wake) error {
	for !w.job.isKnown() {
		if err := c.registrar.register(ctx, w.job); err != nil && !beat.Sleep(ctx, lookEvery/4) {
			return err
		}
	}
	return nil
}

// whileWorth returns a context that lasts while the wake's tick is worth firing, its job has not changed, and the
// replica takes ticks.
func (c *claimer) whileWorth(w *wake) (ctx context.Context, over func()) {
	var cancel context.CancelFunc
	if until := w.worthUntil(); until.IsZero() {
		ctx, cancel = context.WithCancel(c.accepting)
	} else {
		ctx, cancel = context.WithTimeout(c.accepting, max(until.Sub(w.spec.now(c.clock)), 0))
	}
	stop := context.AfterFunc(w.spec.life, cancel)
	if w.asker != nil {
		context.AfterFunc(w.asker.waits, cancel)
	}
	return ctx, func() { stop(); cancel() }
}

// refused tells why a claim did not win.
func (c *claimer) refused(w *wake, a lock.Answer, err error) skip {
	switch {
	case err != nil && c.accepting.Err() != nil:
		return skip{reason: draining}
	case err != nil:
		return skip{reason: redisError, attrs: []slog.Attr{slog.String("err", err.Error())}}
	}
	return skip{reason: refusal(w, a), until: a.Until, holder: a.Holder, attrs: c.by(a)}
}

// refusal translates Redis' answer to a claim that was not won. The newest claimed tick is all that Redis remembers, so
// of an older one it is only known that it is settled.
func refusal(w *wake, a lock.Answer) reason {
	switch a.Code {
	case lock.Overlap, lock.Locked:
		return overlap
	case lock.Held, lock.Queued, lock.Waits:
		if w.asker != nil { // no tick waits for an app, and a lease is another's
			return overlap
		}
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

// by names the replica that was there first, where Redis knows it.
func (c *claimer) by(a lock.Answer) []slog.Attr {
	switch {
	case a.Holder == "", a.Code == lock.Gone: // Redis does not know who has the due member
		return nil
	case a.Holder == c.replica:
		return []slog.Attr{slog.String("by", "this replica, in an earlier wake")}
	}
	return []slog.Attr{slog.String("by", a.Holder)}
}

// newRun makes the UUID of a run. A run that its app may end by itself is of no process in particular: when this
// process is known to be dead, the app may still work for as long as the lease lasts.
func (c *claimer) newRun(w *wake) string {
	if w.spec.Reports() != nil {
		return lock.NewRun("")
	}
	return lock.NewRun(c.process)
}

// claim is the question that a wake asks Redis.
func (c *claimer) claim(w *wake) lock.Claim {
	sp := w.spec
	q := lock.Claim{
		Job: sp.Name, Tick: w.tick, Due: c.clock.onRedis(w.due), Run: c.newRun(w), Replica: c.replica,
		TTL: sp.Lock.TTL, Policy: lock.Policy(sp.ConcurrencyPolicy), Limit: sp.Concurrency,
		Kind: w.kind, Key: w.of.Key, Attempt: w.attempt, Retries: sp.Retry.Limit, Rounds: w.of.Rounds,
		Deaths: w.of.Deaths, Refused: w.of.Refused, Again: sp.Guarantee == config.AtLeastOnce,
		Fingerprint: sp.Fingerprint, Member: w.member,
	}
	if w.member != "" {
		q.Job = w.of.Job
		return q
	}
	if sp.Schedule.IsLease() {
		q.Policy = lock.HeldByOne
	}
	known := w.job.known(sp)
	q.Known = known.maxLedgerTick
	if sp.Missed == config.All {
		c.addOlder(&q, sp, &known)
	}
	before := sp.series.before(w.tick)
	if !before.IsZero() {
		q.Period = w.tick.Sub(before)
	}
	if unready := c.unready(sp, &known); unready.After(q.Known) && before.After(q.Known) {
		q.Known, q.OlderThan = slices.MinFunc([]time.Time{unready, before}, time.Time.Compare), known.ledgerTick
	}
	if len(q.Older) > 0 {
		before = sp.series.before(q.Older[0].Tick)
	}
	if before.After(q.Known) { // else there is no tick in between
		q.Before = before
	}
	return q
}

// unready is the newest tick of a new job that came due while the app was not ready at first, if this replica was there
// for all ticks of the job; zero = there is none, or the job is older than this process and its peers. As far as this
// replica knows, none of them was claimed. A job is no new one because its schedule has changed.
func (c *claimer) unready(sp *spec, known *ticks) time.Time {
	ready := c.slots.ready.Load()
	newest := func(t time.Time) time.Time { return sp.series.newest(c.clock.Now().Add(-time.Since(t))) }
	at := newestOf(known.back, slices.MinFunc([]time.Time{known.since, known.born.Add(time.Second)}, time.Time.Compare))
	if ready == nil || ready.IsZero() || known.ledgerTick.After(at) || newest(c.record.began).After(at) ||
		c.clock.Now().Sub(known.born) > time.Since(c.record.began)+time.Minute {
		return time.Time{}
	}
	return newest(*ready)
}

// addOlder adds the ticks to a claim that no replica fired before it. Redis then makes them due, and the claimed tick
// after them.
func (c *claimer) addOlder(q *lock.Claim, sp *spec, known *ticks) {
	if known.ledgerTick.IsZero() {
		return
	}
	from := newestOf(known.maxLedgerTick, known.overlappedTick, known.since, known.pausedTo)
	if d := sp.StartingDeadline; d > 0 {
		from = newestOf(from, sp.now(c.clock).Add(-d))
	}
	q.OlderThan = known.ledgerTick
	older := sp.series.between(from, q.Tick, maxOlder)
	if len(older) == 0 {
		return
	}
	q.Older = sp.series.past(append(older, q.Tick))
	for i := range q.Older {
		q.Older[i].Due = c.clock.onRedis(q.Older[i].Due)
	}
}
