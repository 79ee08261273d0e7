package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

// refusals are answers by which Redis says that it did not run the script.
var refusals = []string{
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica. script: 1234, on @user_script:64.",
	"OOM command not allowed when used memory > 'maxmemory'. script: 1234, on @user_script:64.",
	"ERR Error running script (call to f_1234): @user_script:64: @user_script: 64: -OOM command not allowed when used memory > 'maxmemory'.", // 6.2
	"@user_script: 186: -READONLY You can't write against a read only replica.",                                                              // 6.2, of a call whose error the script returns
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"CLUSTERDOWN The cluster is down",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"MISCONF Errors writing to the AOF file: No space left on device",
	"NOREPLICAS Not enough good replicas to write.",
	"BUSY Redis is busy running a script.",
	"ERR max number of clients reached",
}

func TestRefusalIsADefiniteAnswerAndTheClaimIsRepeated(t *testing.T) {
	for _, text := range refusals {
		t.Run(text, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) {
				w.Warm()
				w.Born()
				a, b := w.Replica("a"), w.Replica("b")
				asked := a.Proxy.Count(lossy.Script(lock.AcquireSHA))
				first := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Refuse(text))
				second := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Copy)
				l, _ := a.Wins(a.Claim(1))
				if asked.N() != 2 || first.Words()[8] != l.Run() || second.Words()[8] != l.Run() {
					w.Errorf("asked %d times, by %v and %v", asked.N(), first.Words(), second.Words())
				}
				// A loser has nothing to take back, since no copy can be under way.
				b.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Refuse(text))
				settled := b.Proxy.Count(lossy.Script(lock.SettleSHA))
				b.Loses(b.Claim(2), lock.Overlap)
				if settled.N() != 0 {
					w.Errorf("abandoned %d times", settled.N())
				}
				a.Proxy.On(lossy.Script(lock.SettleSHA), 1, lossy.Refuse(text))
				a.Finishes(l, 0)
			})
		})
	}
}

func TestErrorHalfWayLeavesTheEffectOpenAndIsTakenBack(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.Replica("a")
		// The due set is of the wrong type when the script comes to it; what it wrote before stays written.
		c := a.Claim(3)
		c.OlderThan, c.Older = w.Start.Add(-time.Hour).Truncate(time.Millisecond), pasts(w.Tick(3))
		w.Must(w.Admin.Set(w.Context(), dueSet, "not a sorted set", 0).Err())
		ctx, cancel := context.WithTimeout(w.Context(), a.Timeout)
		defer cancel()
		l, _, err := a.Store.Acquire(ctx, c)
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %v", l, err)
		}
		if w.Runs() != 0 || w.Owner() != "" {
			w.Errorf("%s", w.Dump())
		}
		w.Must(w.Admin.Del(w.Context(), dueSet).Err())
		a.Wins(a.Claim(3))
	})
}

func TestEveryScriptIsSentAgainAfterItsCacheWasFlushed(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		flush := func() { w.Must(w.Admin.ScriptFlush(w.Context()).Err()) }
		flush()
		_, err := a.Register(w.Context(), job, "")
		w.Must(err)
		flush()
		l, _ := a.Wins(a.Claim(1))
		flush()
		w.Must(l.Verify(w.Context()))
		flush()
		b.Loses(b.Claim(2), lock.Overlap)
		flush()
		a.Finishes(l, time.Minute)
		flush()
		w.Must(l.Release(0)(w.Context()))
		if w.Owner() != "" {
			w.Errorf("the lock is still %q's", w.Owner())
		}
		flush()
		a.Sets("x", w.Tick(0), "source", true)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		flush()
		if _, err := a.Service.Trigger(ctx, job, uuid.NewString()); err != nil || len(w.Dues()) != 2 { // beside the timer
			w.Errorf("a trigger: %v; due are %+v", err, w.Dues())
		}
		flush()
		if err := a.Service.Pause(ctx, job, "", time.Time{}); err != nil || w.Field("paused") == "" {
			w.Errorf("a pause: %v, %q", err, w.Field("paused"))
		}
	})
}

func TestRunEndsInOrderWhenRedisMemoryIsFull(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) { // miniredis has no limit
		w.TTL = time.Hour // the claims below take seconds, and a lock that is gone could not be set again
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		b.Loses(b.Claim(2), lock.Overlap)
		w.Must(w.Admin.ConfigSet(w.Context(), "maxmemory", "1").Err())

		other := b.Claim(1)
		other.Job = "other"
		for limit := a.Timeout; ; limit *= 2 { // a busy Redis may not have answered at all by then
			_, _, err := b.AsksFor(limit, other)
			if err != nil && strings.Contains(redisworld.LastAnswer(err).Error(), "OOM command not allowed") {
				break
			}
			if !errors.Is(err, context.DeadlineExceeded) || limit > time.Minute {
				w.Fatalf("a claim: %v", err)
			}
		}
		w.Must(l.Verify(w.Context()))
		if got, err := l.Finish(w.Context(), time.Minute, lock.Ending{Entry: "succeeded"}); err != nil || got.Verdict != lock.OK {
			w.Fatalf("finish: %s, %v", got.Verdict, err)
		}
		if w.Runs() != 0 || w.Field("overlap") != fmtInt(w.Tick(2).UnixMilli()) {
			w.Errorf("%s", w.Dump())
		}
		w.Must(l.Release(0)(w.Context()))
	}, "--maxmemory-policy", "noeviction")
}

func TestRedisThatComesBackEmptyFiresNothingTwice(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) { // a crash of the process itself
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.Server.Restart()
		b.Loses(b.Claim(1), lock.Fired)
		if err := w.Ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
	})
}

func TestRedisThatCrashesWithItsDataKeptLosesNothing(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		w.Server.Restart()
		b.Loses(b.Claim(2), lock.Overlap)
		for try := 0; ; try++ { // the first may find the old connection
			err := l.Verify(w.Context())
			if err == nil {
				break
			}
			if errors.Is(err, lock.ErrLost) || try > 3 {
				w.Fatal(err)
			}
		}
		a.Finishes(l, 0)
		b.Loses(b.Claim(2), lock.Fired)
	}, "--appendonly", "yes", "--appendfsync", "always")
}

func TestFrozenRedisIsNoAnswerAndNeverHeldOrFree(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.SlowReplica("a", 300*time.Millisecond)
		w.Must(a.Sync(w.Context()))
		w.Server.Freeze()
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, func() { // the thaw is later, however late this is
			cancel()
			time.AfterFunc(time.Second, w.Server.Thaw)
		})
		l, got, err := a.Store.Acquire(ctx, a.Claim(1))
		if l != nil || got.Code != "" || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %+v, %v", l, got, err)
		}
		// The copies that waited in the sockets won, for nobody, and were taken back.
		if w.Runs() != 0 || w.Owner() != "" {
			w.Errorf("%s", w.Dump())
		}
		w.DueTicks(1)
	})
}

func TestClientThatResendsByItselfIsRefused(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer c.Close()
	if _, err := lock.New(c, redisworld.Service, lock.Options{}); err == nil {
		t.Error("a client with the default retries was accepted")
	}
	ok := lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}, 0)
	defer ok.Close()
	for _, name := range []string{"", "a b", "a{b", "a}b", "a\nb"} {
		if _, err := lock.New(ok, name, lock.Options{}); err == nil {
			t.Errorf("service %q was accepted", name)
		}
	}
}
