package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

func TestKeeperKeepsALeaseForHours(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // three hours
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		extended := a.Proxy.Count(lossy.Script(lock.ExtendSHA))
		ctx, stop := l.Keep(w.Context())
		w.Pass(3 * time.Hour)
		if ctx.Err() != nil || !l.Trusted() || w.Owner() != l.Run() {
			w.Fatalf("%v, trusted %v, lock of %q", context.Cause(ctx), l.Trusted(), w.Owner())
		}
		if n, want := extended.N(), int(3*time.Hour/(w.TTL/3)); n < want-1 || n > want+1 {
			w.Errorf("extended %d times, want %d", n, want)
		}
		b.Loses(b.Claim(2), lock.Overlap)
		stop()
		if !errors.Is(context.Cause(ctx), context.Canceled) {
			w.Errorf("cause: %v", context.Cause(ctx))
		}
		stop() // twice is harmless
		a.Finishes(l, 0)
	})
}

func TestKeeperExtendsAShortLeaseInTime(t *testing.T) {
	for _, ttl := range []time.Duration{1100 * time.Millisecond, 1500 * time.Millisecond, 2 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			redisworld.InBubble(t, func(w *redisworld.World) { // a minute
				w.TTL = ttl
				w.Born()
				a := w.Replica("a")
				l, _ := a.Wins(a.Claim(1))
				ctx, stop := l.Keep(w.Context())
				defer stop()
				w.Pass(time.Minute)
				if ctx.Err() != nil {
					w.Error(context.Cause(ctx))
				}
			})
		})
	}
}

func TestKeeperThatStartsLateStillExtendsInTime(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		w.Pass(w.TTL - lock.Margin - time.Second)
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.Pass(w.TTL)
		if ctx.Err() != nil {
			w.Error(context.Cause(ctx))
		}
	})
}

func TestKeeperEndsTheRunBeforeTheLeaseEnds(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.Replica("a")
		sent := time.Now()
		l, _ := a.Wins(a.Claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		a.CutOff()
		if err := w.Ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if w.Owner() != l.Run() {
			w.Errorf("the run outlived its lock, which is %q's", w.Owner())
		}
		if d := time.Since(sent); w.Mini != nil && d != w.TTL-lock.Margin {
			w.Errorf("ended after %s", d)
		}
	})
}

func TestExtensionThatHangsDoesNotHoldTheEndOfTheRunBack(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.SlowReplica("a", 3*w.TTL)
		sent := time.Now()
		l, _ := a.Wins(a.Claim(1))
		a.Proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.HangRequest)
		ctx, stop := l.Keep(w.Context())
		if err := w.Ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if w.Owner() != l.Run() {
			w.Errorf("the run outlived its lock, which is %q's", w.Owner())
		}
		if d := time.Since(sent); w.Mini != nil && d != w.TTL-lock.Margin {
			w.Errorf("ended after %s", d)
		}
		stop()
	})
}

func TestKeeperSurvivesOneLostExtension(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a := w.SlowReplica("a", w.TTL/8) // quick enough for a second try
		l, _ := a.Wins(a.Claim(1))
		f := a.Proxy.On(lossy.Script(lock.ExtendSHA), 1, loss)
		ctx, stop := l.Keep(w.Context())
		defer stop()
		<-f.Struck()
		w.Pass(w.TTL)
		if ctx.Err() != nil || !l.Trusted() {
			w.Error(context.Cause(ctx))
		}
	})
}

func TestSlowExtendDoesNotStretchTrust(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.SlowReplica("a", 3*w.TTL)
		l, _ := a.Wins(a.Claim(1))
		slow := w.TTL / 2
		a.Proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.Delay(slow))
		w.Must(l.Verify(w.Context()))
		if left := lock.TrustLeft(l); left > w.TTL-lock.Margin-slow {
			w.Errorf("trusts for another %s", left)
		}
		a.Proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.Delay(w.TTL))
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("an answer from after its own lease: %v", err)
		}
	})
}

func TestTrustIsCountedFromTheRequestThatWasAnswered(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.SlowReplica("a", 3*w.TTL)
		w.Must(a.Sync(w.Context()))
		slow := w.TTL / 4
		a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(slow))
		l, _ := a.Wins(a.Claim(1))
		if left := lock.TrustLeft(l); left > w.TTL-lock.Margin-slow {
			w.Errorf("trusts for %s", left)
		}
	})
}

func TestSuspendEndsTheTrust(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.Pass(10 * time.Millisecond) // the keeper sleeps
		a.Suspend(time.Hour)
		if l.Trusted() {
			w.Error("trusted after an hour of sleep")
		}
		began := time.Now()
		if err := w.Ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if d := time.Since(began); w.Mini != nil && d > time.Second {
			w.Errorf("noticed after %s", d)
		}
	})
}

func TestStolenLockEndsTheRunAndIsLeftToTheThief(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		c := a.Claim(1)
		l, _ := a.Wins(c)
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.Must(w.Admin.Set(w.Context(), lockKey, "a thief", 0).Err())
		if err := w.Ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if l.Trusted() {
			w.Error("still trusted")
		}
		a.Loses(c, lock.Lost) // asked again; it never started, as far as this call knows
		w.DueTicks(1)
		if got, err := l.Finish(w.Context(), 0, lock.Ending{}); err != nil || got.Verdict != lock.None {
			w.Errorf("finish: %s, %v", got.Verdict, err)
		}
		w.Must(l.Release(0)(w.Context()))
		b.Loses(b.Claim(2), lock.Locked)
		if w.Owner() != "a thief" {
			w.Errorf("the lock is %q's", w.Owner())
		}
	})
}

func TestExpiredLockIsRestoredWhileTheRunIsItsOwn(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		w.Must(w.Admin.Del(w.Context(), lockKey).Err())
		b.Loses(b.Claim(2), lock.Overlap) // the entry, not the key, is asked
		w.Must(l.Verify(w.Context()))
		if w.Owner() != l.Run() {
			w.Errorf("the lock is %q's", w.Owner())
		}
	})
}

func TestRunThatWasTakenOverIsToldSoEvenWhenItsKeyIsFree(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		b.Reaps(1)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrLost) {
			w.Fatalf("Verify: %v", err)
		}
		if w.Owner() != "" || w.Runs() != 0 {
			w.Errorf("%s", w.Dump())
		}
		if got, err := l.Finish(w.Context(), 0, lock.Ending{Entry: "succeeded"}); err != nil || got.Verdict != lock.Late {
			w.Errorf("finish: %s, %v", got.Verdict, err)
		}
		if got, err := l.Finish(w.Context(), 0, lock.Ending{}); err != nil || got.Verdict != lock.None {
			w.Errorf("finish again: %s, %v", got.Verdict, err)
		}
	})
}

func TestLossOfAllDataInMidRunFiresNothingTwice(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.Must(w.Admin.FlushAll(w.Context()).Err())
		b.Loses(b.Claim(1), lock.Fired)
		if err := w.Ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
		if got, err := l.Finish(w.Context(), 0, lock.Ending{}); err != nil || got.Verdict != lock.None {
			w.Errorf("finish: %s, %v", got.Verdict, err)
		}
		w.Pass(time.Second) // ticks of the second after the loss count as settled
		c := b.Claim(0)
		c.Tick = w.Now()
		w.Pass(10 * time.Millisecond)
		next, _ := b.Wins(c)
		if next.Token <= l.Token {
			w.Errorf("the token fell from %d to %d", l.Token, next.Token)
		}
	})
}

func TestTickClaimedEarlyIsNotFiredAgainAfterTheLossOfAllData(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("fast"), w.Replica("b")
		c := a.Claim(1)
		c.Tick = w.Now().Add(900 * time.Millisecond) // within the tolerance
		a.Wins(c)
		w.Must(w.Admin.FlushAll(w.Context()).Err())
		again := b.Claim(1)
		again.Tick = c.Tick
		b.Loses(again, lock.Fired)
	})
}

func TestNewLedgerRefusesWhatCameBeforeIt(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		a := w.Replica("a")
		got, err := a.Register(w.Context(), job, "0 9 * * *")
		w.Must(err)
		if got.Born.IsZero() || !got.Since.Equal(got.Tick) || !got.Tick.Equal(got.Born.Add(time.Second)) || !got.Back.IsZero() {
			w.Errorf("%+v", got)
		}
		a.Loses(a.Claim(0), lock.Fired)
		w.Pass(1100 * time.Millisecond)
		c := a.Claim(0)
		c.Tick = got.Tick.Add(time.Millisecond)
		l, won := a.Wins(c)
		if !won.Prev.Equal(got.Tick) {
			w.Errorf("previous tick %s, want %s", won.Prev, got.Tick)
		}
		a.Finishes(l, 0)
		same, err := a.Register(w.Context(), job, "0 9 * * *")
		w.Must(err)
		if !same.Born.Equal(got.Born) || !same.Since.Equal(got.Since) || !same.Tick.Equal(c.Tick) {
			w.Errorf("registered again: %+v, first %+v", same, got)
		}
		changed, err := a.Register(w.Context(), job, "0 10 * * *")
		w.Must(err)
		if !changed.Since.After(got.Since) || !changed.Born.Equal(got.Born) || !changed.Tick.Equal(c.Tick) {
			w.Errorf("with another schedule: %+v", changed)
		}
	})
}
