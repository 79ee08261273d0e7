package lock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// registers makes the case's job known, by one who knew it before.
func (r *replica) registers(fingerprint string, known lock.Before) lock.Ledger {
	r.w.Helper()
	got, err := r.RegisterAgain(r.w.Context(), job, fingerprint, known)
	r.w.must(err)
	return got
}

func TestAfterALossTheTicksSinceAreMissedUnderAtMostOnce(t *testing.T) {
	onEvery(t, func(w *world) {
		a, b, c := w.replica("a"), w.replica("b"), w.replica("c")
		before := a.registers("x", lock.Before{})
		known := lock.Before{Born: before.Born, Tick: before.Tick}
		w.must(w.admin.FlushAll(w.Context()).Err())
		w.pass(20 * time.Millisecond)
		c.registers("x", lock.Before{}) // it has just begun, and says nothing
		got := a.registers("x", known)
		b.registers("x", lock.Before{Born: before.Born, Tick: before.Tick.Add(-time.Minute)})
		if !got.Born.After(before.Born) || !got.Tick.Equal(got.Born.Add(time.Second)) || !got.Since.Equal(got.Tick) {
			w.Errorf("before %+v, after %+v", before, got)
		}
		w.gaps(w.field("gaps"), before.Tick, got.Tick.Add(time.Millisecond))
		w.dueTicks()
	})
}

func TestAfterALossOwedTicksAreDueOnceUnderAtLeastOnce(t *testing.T) {
	for name, newcomer := range map[string]bool{"one who knew it comes first": false, "one who knew nothing comes first": true} {
		t.Run(name, func(t *testing.T) {
			onEvery(t, func(w *world) { w.playOwed(newcomer) })
		})
	}
}

func (w *world) playOwed(newcomer bool) {
	a, b, c := w.replica("a"), w.replica("b"), w.replica("c")
	before := a.registers("x", lock.Before{})
	known := lock.Before{Born: before.Born, Tick: w.tick(-9000), Again: true, Owed: pasts(w.tick(-3000), w.tick(-2000))}
	w.must(w.admin.FlushAll(w.Context()).Err())
	w.pass(20 * time.Millisecond)
	if newcomer {
		c.registers("x", lock.Before{Again: true})
	}
	first := w.heard()
	got := a.registers("x", known)
	first()
	for _, r := range []*replica{b, a} {
		again := r.registers("x", known)
		if again.Born != got.Born || again.Tick != got.Tick {
			w.Errorf("%s: %+v, want %+v", r.name, again, got)
		}
	}
	if !got.Tick.Equal(w.tick(-2000)) || !got.Since.Equal(got.Tick) {
		w.Errorf("the newest claimed tick is %s, and what came after %s can be claimed, want %s", got.Tick, got.Since, w.tick(-2000))
	}
	w.dueTicks(-3000, -2000)
	w.gaps(w.field("gaps"), w.tick(-9000), w.tick(-3000))
	for _, d := range w.dues() {
		l, _ := b.wins(b.claimOf(d))
		b.finishes(l, 0)
	}
	b.registers("x", known)
	w.dueTicks()
}

// TestRunThatIsCutShortAfterALossIsRunAgainOnce: its replica goes on, and is the only one who knows of it.
func TestRunThatIsCutShortAfterALossIsRunAgainOnce(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		c := a.claim(1)
		c.Again, c.Retries = true, 2
		l, _ := a.wins(c)
		w.must(w.admin.FlushAll(w.Context()).Err())
		w.pass(10 * time.Millisecond)
		b.registers("", lock.Before{Again: true})
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrLost) {
			w.Errorf("verified: %v", err)
		}
		a.proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		if got, err := l.Requeue(w.Context(), nil); err != nil || got != lock.None {
			w.Fatalf("requeue: %s, %v", got, err)
		}
		ds := w.dues()
		if len(ds) != 1 || !ds[0].Tick.Equal(w.tick(1)) || ds[0].Kind != "takeover" || ds[0].Attempt != 4 {
			w.Fatalf("due: %+v", ds)
		}
		again, _ := b.wins(b.claimOf(ds[0]))
		b.finishes(again, 0)
		if _, err := l.Requeue(w.Context(), nil); err != nil {
			w.Error(err)
		}
		w.dueTicks()
	})
}

// TestRequeueThatIsRepeatedAddsNothing is for a Redis that has lost nothing.
func TestRequeueThatIsRepeatedAddsNothing(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		for n, again := range []bool{false, true} {
			c := a.claim(n + 1)
			c.Again = again
			l, _ := a.wins(c)
			_, err := l.Requeue(w.Context(), nil)
			w.must(err)
			for _, d := range w.dues() {
				run, _ := b.wins(b.claimOf(d))
				b.finishes(run, 0)
			}
			if got, err := l.Requeue(w.Context(), nil); got != lock.None || err != nil {
				w.Errorf("requeued again: %s, %v", got, err)
			}
			if members := w.admin.ZRange(w.Context(), dueSet, 0, -1).Val(); len(members) != 0 {
				w.Errorf("due: %q", members)
			}
		}
	})
}

func TestJobThatLeftAndIsBackHasMissedNothing(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		a.registers("x", lock.Before{})
		w.must(w.admin.HSet(w.Context(), ledger, "tick", w.start.Add(-time.Hour).UnixMilli()).Err())
		l, _ := a.wins(a.claimUnder(lock.Queue, 1))
		a.loses(a.claimUnder(lock.Queue, 2), lock.Queued)
		gone := a.registers(lock.NoTicks, lock.Before{})
		if !gone.Back.IsZero() || !gone.Tick.Equal(w.tick(2)) {
			w.Errorf("it has left: %+v", gone)
		}
		a.finishes(l, 0)
		w.pass(20 * time.Millisecond)
		at := w.now()
		back := a.registers("x", lock.Before{})
		if late := back.Back.Sub(at); late < -time.Millisecond || late > w.ttl || !back.Tick.Equal(back.Back) || !back.Since.Equal(back.Back) {
			w.Errorf("it is back: %+v, at %s", back, at)
		}
		if again := a.registers("x", lock.Before{}); again.Back != back.Back || again.Tick != back.Tick {
			w.Errorf("and again: %+v, want %+v", again, back)
		}
		between := a.claim(0)
		between.Tick = at.Add(-10 * time.Millisecond).Truncate(time.Millisecond)
		between.Before = between.Tick.Add(-time.Millisecond)
		a.loses(between, lock.Fired)
		if ds := w.dues(); len(ds) != 1 || !ds[0].Tick.Before(back.Back) { // by which it is told from others
			w.Errorf("due: %+v", ds)
		}
		w.pass(10 * time.Millisecond)
		next := a.claim(0)
		next.Tick = w.now().Truncate(time.Millisecond)
		if _, won := a.wins(next); won.Gaps != "" {
			w.Errorf("it has missed %q", won.Gaps)
		}
	})
}

// TestEveryTimerOfManyWhoseClaimsWereNeverAnsweredIsDueAgain cuts a replica off that has claimed forty, for so long that
// they are taken over.
func TestEveryTimerOfManyWhoseClaimsWereNeverAnsweredIsDueAgain(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		w.must(a.Sync(w.Context()))
		const many = 40
		for n := range many {
			b.sets(fmt.Sprint("t", n), w.tick(0), "source", true)
		}
		for range 10 * many { // a busy machine asks again before all have been asked for
			a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangReply)
		}
		done := make(chan error)
		seen, err := b.Look(w.Context(), many)
		w.must(err)
		for _, d := range seen.Due {
			go func() {
				l, got, err := a.acquire(a.claimOf(d))
				if l != nil || got.Code != lock.Gone {
					err = fmt.Errorf("%+v: %v, %+v, %w", d, l, got, err)
				}
				done <- err
			}()
		}
		for w.runs() < many {
			w.pass(10 * time.Millisecond)
		}
		a.cutOff()
		b.reaps(many)
		a.proxy.Heal()
		w.must(a.proxy.Refuse(false))
		for range many {
			if err := <-done; err != nil {
				w.Error(err)
			}
		}
		if n := len(w.dues()); n != many {
			w.Fatalf("%d timers are due again, want %d", n, many)
		}
		for _, d := range w.dues() {
			if id, _ := lock.TimerID(d.Job); b.source(id) != "source" {
				w.Errorf("%s is due without its source", d.Job)
			}
			l, _ := b.wins(b.claimOf(d))
			b.finishes(l, 0)
		}
		if left := len(w.dues()) + w.runs(); left != 0 {
			w.Errorf("%d are left", left)
		}
	})
}

// TestWhatSomebodyAskedForStaysThatHoweverOftenItIsRunAgain follows a manual run through a shutdown and three deaths.
func TestWhatSomebodyAskedForStaysThatHoweverOftenItIsRunAgain(t *testing.T) {
	for kind, then := range map[string]string{"manual": "manual", "backfill": "backfill", "schedule": "takeover"} {
		t.Run(kind, func(t *testing.T) {
			onEvery(t, func(w *world) {
				w.born()
				a := w.replica("a")
				c := a.claim(1)
				c.Kind, c.Again, c.Retries, c.Attempt = kind, true, 5, 1
				l, _ := a.wins(c)
				_, err := l.Requeue(w.Context(), nil)
				w.must(err)
				for deaths := range 4 {
					ds := w.dues()
					if len(ds) != 1 || ds[0].Kind != then || ds[0].Attempt != 7+6*deaths || ds[0].Deaths != deaths || ds[0].Rounds != 0 ||
						ds[0].Refused != nil {
						w.Fatalf("after %d deaths: %+v", deaths, ds)
					}
					c = a.claimOf(ds[0])
					c.Again, c.Retries, c.Rounds, c.Refused = true, 5, 2, []string{"b"}
					a.wins(c)
					a.reaps(1)
				}
				w.dueTicks()
			})
		})
	}
}

func TestCopyOfAClaimThatIsNotWorthARunAnyMoreHasNoEffect(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.replica("a")
		w.must(a.Sync(w.Context()))
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
		worth := a.timeout / 2
		c := a.claim(1)
		c.Until = w.now().Add(worth)
		began := time.Now()
		if l, _, err := a.acquireFor(worth, c); l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %v", l, err)
		}
		if took := time.Since(began); took >= w.ttl-lock.Margin {
			w.Errorf("it waited for %s, as for a copy that can have an effect", took)
		}
		w.staleCopy(f)
	})
}

// TestFrozenRedisClaimsNothingThatIsNotWorthARunAnyMore has a tick asked for in a stall of Redis.
func TestFrozenRedisClaimsNothingThatIsNotWorthARunAnyMore(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.slowReplica("a", 300*time.Millisecond), w.replica("b")
		w.must(a.Sync(w.Context()))
		c := a.claim(1)
		c.Until = w.now().Add(time.Second)
		w.server.Freeze()
		time.AfterFunc(2*time.Second, w.server.Thaw)
		if l, got, err := a.acquireFor(time.Second, c); l != nil || got.Code != "" || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %+v, %v", l, got, err)
		}
		if w.runs() != 0 || w.owner() != "" || number(w, "tick") >= w.tick(1).UnixMilli() {
			w.Errorf("%s", w.dump())
		}
		w.dueTicks()
		b.wins(b.claim(1)) // who comes late all the same finds nothing in its way
	})
}

func TestTickIsRefusedAndItsRunEndsWhenRedisMemoryIsFull(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) { // miniredis has no limit
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		w.must(w.admin.ConfigSet(w.Context(), "maxmemory", "1").Err())
		before := w.dump()
		for _, n := range []int{2, 3} {
			if got := b.loses(b.claim(n), lock.Overlap); got.LeaseEnd.IsZero() || got.Holder != "a" {
				w.Errorf("%+v", got)
			}
		}
		if after := w.dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		a.finishes(l, time.Second)
		if w.runs() != 0 || w.field("runs") != "" {
			w.Errorf("%s", w.dump())
		}
	}, "--maxmemory-policy", "noeviction")
}

func TestWhatWasAskedForByHandIsDueAtOnceWhateverBecomesOfRedisClock(t *testing.T) {
	inBubble(t, func(w *world) { // only miniredis' clock can be set
		w.born()
		a := w.replica("a")
		w.mini.SetTime(w.start.Add(time.Hour))
		d, err := a.Trigger(w.Context(), job, uuid.NewString())
		w.must(err)
		w.mini.SetTime(w.start)
		again, err := a.Trigger(w.Context(), job, uuid.NewString()) // whose tick is later than the other's
		w.must(err)
		seen, err := a.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 2 || !same(seen.Due[0], d) || !same(seen.Due[1], again) || seen.Due[0].Age != 0 {
			w.Fatalf("due: %+v, %v", seen, err)
		}
		w.pass(time.Second)
		a.wins(a.claimOf(d))
	})
}

func TestWhatWasEnqueuedByAClockThatWasAheadIsDueWhenItIsSetRight(t *testing.T) {
	inBubble(t, func(w *world) { // only miniredis' clock can be set
		w.born()
		a := w.replica("a")
		w.mini.SetTime(w.start.Add(time.Hour))
		l, _ := a.wins(a.claim(1))
		if _, err := l.Handover(w.Context(), time.Second, nil); err != nil {
			w.Fatal(err)
		}
		if n, err := a.Backfill(w.Context(), job, []time.Time{w.tick(2)}, uuid.NewString()); n != 1 || err != nil {
			w.Fatalf("%d, %v", n, err)
		}
		w.mini.SetTime(w.start)
		seen, err := a.Look(w.Context(), 10)
		if err != nil || len(seen.Due) != 0 && len(seen.Due) != 2 {
			w.Errorf("%+v, %v", seen, err)
		}
		w.pass(3 * time.Second) // a look may have come by the clock as it was
		seen, err = a.Look(w.Context(), 10)
		if err != nil || len(seen.Due) == 0 {
			w.Fatalf("due: %+v, %v", seen, err)
		}
		for range 2 {
			seen, err = a.Look(w.Context(), 10)
			if err != nil || len(seen.Due) == 0 {
				w.Fatalf("due: %+v, %v", seen, err)
			}
			run, _ := a.wins(a.claimOf(seen.Due[0]))
			a.finishes(run, 0)
		}
	})
}
