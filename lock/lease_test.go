package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

func TestKeeperKeepsALeaseForHours(t *testing.T) {
	inBubble(t, func(w *world) { // three hours
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		extended := a.proxy.Count(lossy.Script(lock.ExtendSHA))
		ctx, stop := l.Keep(w.Context())
		w.pass(3 * time.Hour)
		if ctx.Err() != nil || !l.Trusted() || w.owner() != l.Run() {
			w.Fatalf("%v, trusted %v, lock of %q", context.Cause(ctx), l.Trusted(), w.owner())
		}
		if n, want := extended.N(), int(3*time.Hour/(w.ttl/3)); n < want-1 || n > want+1 {
			w.Errorf("extended %d times, want %d", n, want)
		}
		b.loses(b.claim(2), lock.Overlap)
		stop()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			w.Errorf("cause: %v", context.Cause(ctx))
		}
		stop() // twice is harmless
		a.finishes(l, 0)
	})
}

func TestKeeperExtendsAShortLeaseInTime(t *testing.T) {
	for _, ttl := range []time.Duration{1100 * time.Millisecond, 1500 * time.Millisecond, 2 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			inBubble(t, func(w *world) { // a minute
				w.ttl = ttl
				w.born()
				a := w.replica("a")
				l, _ := a.wins(a.claim(1))
				ctx, stop := l.Keep(w.Context())
				defer stop()
				w.pass(time.Minute)
				if ctx.Err() != nil {
					w.Error(context.Cause(ctx))
				}
			})
		})
	}
}

func TestKeeperThatStartsLateStillExtendsInTime(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		l, _ := a.wins(a.claim(1))
		w.pass(w.ttl - lock.Margin - time.Second)
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.pass(w.ttl)
		if ctx.Err() != nil {
			w.Error(context.Cause(ctx))
		}
	})
}

// cutOff lets nothing through to Redis any more.
func (r *replica) cutOff() {
	r.w.Helper()
	r.w.must(r.proxy.Refuse(true))
	r.proxy.Cut()
}

func TestKeeperEndsTheRunBeforeTheLeaseEnds(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.replica("a")
		sent := time.Now()
		l, _ := a.wins(a.claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		a.cutOff()
		if err := w.ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if w.owner() != l.Run() {
			w.Errorf("the run outlived its lock, which is %q's", w.owner())
		}
		if d := time.Since(sent); w.mini != nil && d != w.ttl-lock.Margin {
			w.Errorf("ended after %s", d)
		}
	})
}

func TestExtensionThatHangsDoesNotHoldTheEndOfTheRunBack(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.slowReplica("a", 3*w.ttl)
		sent := time.Now()
		l, _ := a.wins(a.claim(1))
		a.proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.HangRequest)
		ctx, stop := l.Keep(w.Context())
		if err := w.ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if w.owner() != l.Run() {
			w.Errorf("the run outlived its lock, which is %q's", w.owner())
		}
		if d := time.Since(sent); w.mini != nil && d != w.ttl-lock.Margin {
			w.Errorf("ended after %s", d)
		}
		stop()
	})
}

func TestKeeperSurvivesOneLostExtension(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a := w.slowReplica("a", w.ttl/8) // quick enough for a second try
		l, _ := a.wins(a.claim(1))
		f := a.proxy.On(lossy.Script(lock.ExtendSHA), 1, loss)
		ctx, stop := l.Keep(w.Context())
		defer stop()
		<-f.Struck()
		w.pass(w.ttl)
		if ctx.Err() != nil || !l.Trusted() {
			w.Error(context.Cause(ctx))
		}
	})
}

func TestSlowExtendDoesNotStretchTrust(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.slowReplica("a", 3*w.ttl)
		l, _ := a.wins(a.claim(1))
		slow := w.ttl / 2
		a.proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.Delay(slow))
		w.must(l.Verify(w.Context()))
		if left := lock.TrustLeft(l); left > w.ttl-lock.Margin-slow {
			w.Errorf("trusts for another %s", left)
		}
		a.proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.Delay(w.ttl))
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("an answer from after its own lease: %v", err)
		}
	})
}

func TestTrustIsCountedFromTheRequestThatWasAnswered(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.slowReplica("a", 3*w.ttl)
		w.must(a.Sync(w.Context()))
		slow := w.ttl / 4
		a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(slow))
		l, _ := a.wins(a.claim(1))
		if left := lock.TrustLeft(l); left > w.ttl-lock.Margin-slow {
			w.Errorf("trusts for %s", left)
		}
	})
}

func TestSuspendEndsTheTrust(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		l, _ := a.wins(a.claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.pass(10 * time.Millisecond) // the keeper sleeps
		a.suspend(time.Hour)
		if l.Trusted() {
			w.Error("trusted after an hour of sleep")
		}
		began := time.Now()
		if err := w.ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if d := time.Since(began); w.mini != nil && d > time.Second {
			w.Errorf("noticed after %s", d)
		}
	})
}

func TestStolenLockEndsTheRunAndIsLeftToTheThief(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		c := a.claim(1)
		l, _ := a.wins(c)
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.must(w.admin.Set(w.Context(), lockKey, "a thief", 0).Err())
		if err := w.ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if l.Trusted() {
			w.Error("still trusted")
		}
		a.loses(c, lock.Lost) // asked again; it never started, as far as this call knows
		w.dueTicks(1)
		if got, err := l.Finish(w.Context(), 0, nil); err != nil || got != lock.None {
			w.Errorf("finish: %s, %v", got, err)
		}
		w.must(l.Release(w.Context()))
		b.loses(b.claim(2), lock.Locked)
		if w.owner() != "a thief" {
			w.Errorf("the lock is %q's", w.owner())
		}
	})
}

func TestExpiredLockIsRestoredWhileTheRunIsItsOwn(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		w.must(w.admin.Del(w.Context(), lockKey).Err())
		b.loses(b.claim(2), lock.Overlap) // the entry, not the key, is asked
		w.must(l.Verify(w.Context()))
		if w.owner() != l.Run() {
			w.Errorf("the lock is %q's", w.owner())
		}
	})
}

func TestRunThatWasTakenOverIsToldSoEvenWhenItsKeyIsFree(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		b.reaps(1)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrLost) {
			w.Fatalf("Verify: %v", err)
		}
		if w.owner() != "" || w.runs() != 0 {
			w.Errorf("%s", w.dump())
		}
		if got, err := l.Finish(w.Context(), 0, &lock.Entry{Outcome: "succeeded"}); err != nil || got != lock.Late {
			w.Errorf("finish: %s, %v", got, err)
		}
		if got, err := l.Finish(w.Context(), 0, nil); err != nil || got != lock.None {
			w.Errorf("finish again: %s, %v", got, err)
		}
	})
}

func TestLossOfAllDataInMidRunFiresNothingTwice(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.must(w.admin.FlushAll(w.Context()).Err())
		b.loses(b.claim(1), lock.Fired)
		if err := w.ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if got, err := l.Finish(w.Context(), 0, nil); err != nil || got != lock.None {
			w.Errorf("finish: %s, %v", got, err)
		}
		w.pass(time.Second) // ticks of the second after the loss count as settled
		c := b.claim(0)
		c.Tick = w.now()
		w.pass(10 * time.Millisecond)
		next, _ := b.wins(c)
		if next.Token <= l.Token {
			w.Errorf("the token fell from %d to %d", l.Token, next.Token)
		}
	})
}

func TestTickClaimedEarlyIsNotFiredAgainAfterTheLossOfAllData(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("fast"), w.replica("b")
		c := a.claim(1)
		c.Tick = w.now().Add(900 * time.Millisecond) // within the tolerance
		a.wins(c)
		w.must(w.admin.FlushAll(w.Context()).Err())
		again := b.claim(1)
		again.Tick = c.Tick
		b.loses(again, lock.Fired)
	})
}

func TestNewLedgerRefusesWhatCameBeforeIt(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		got, err := a.Register(w.Context(), job, "0 9 * * *")
		w.must(err)
		if got.Born.IsZero() || !got.Since.Equal(got.Tick) || !got.Tick.Equal(got.Born.Add(time.Second)) || !got.Back.IsZero() {
			w.Errorf("%+v", got)
		}
		a.loses(a.claim(0), lock.Fired)
		w.pass(1100 * time.Millisecond)
		c := a.claim(0)
		c.Tick = got.Tick.Add(time.Millisecond)
		l, won := a.wins(c)
		if !won.Prev.Equal(got.Tick) {
			w.Errorf("previous tick %s, want %s", won.Prev, got.Tick)
		}
		a.finishes(l, 0)
		same, err := a.Register(w.Context(), job, "0 9 * * *")
		w.must(err)
		if !same.Born.Equal(got.Born) || !same.Since.Equal(got.Since) || !same.Tick.Equal(c.Tick) {
			w.Errorf("registered again: %+v, first %+v", same, got)
		}
		changed, err := a.Register(w.Context(), job, "0 10 * * *")
		w.must(err)
		if !changed.Since.After(got.Since) || !changed.Born.Equal(got.Born) || !changed.Tick.Equal(c.Tick) {
			w.Errorf("with another schedule: %+v", changed)
		}
	})
}
