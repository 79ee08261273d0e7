package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// refusals are answers by which Redis says that it did not run the script.
var refusals = []string{
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica. script: 1234, on @user_script:64.",
	"OOM command not allowed when used memory > 'maxmemory'. script: 1234, on @user_script:64.",
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
			onEvery(t, func(w *world) {
				w.warm()
				w.born()
				a, b := w.replica("a"), w.replica("b")
				asked := a.proxy.Count(lossy.Script(lock.AcquireSHA))
				first := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Refuse(text))
				second := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Copy)
				l, _ := a.wins(a.claim(1))
				if asked.N() != 2 || first.Words()[7] != l.Run() || second.Words()[7] != l.Run() {
					w.Errorf("asked %d times, by %v and %v", asked.N(), first.Words(), second.Words())
				}
				// A loser has nothing to take back, since no copy can be under way.
				b.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Refuse(text))
				settled := b.proxy.Count(lossy.Script(lock.SettleSHA))
				b.loses(b.claim(2), lock.Overlap)
				if settled.N() != 0 {
					w.Errorf("abandoned %d times", settled.N())
				}
				a.proxy.On(lossy.Script(lock.SettleSHA), 1, lossy.Refuse(text))
				a.finishes(l, 0)
			})
		})
	}
}

func TestErrorHalfWayLeavesTheEffectOpenAndIsTakenBack(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.replica("a")
		// The due set is of the wrong type when the script comes to it; what it wrote before stays written.
		c := a.claim(3)
		c.OlderThan, c.Older = w.start.Add(-time.Hour).Truncate(time.Millisecond), pasts(w.tick(3))
		w.must(w.admin.Set(w.Context(), dueSet, "not a sorted set", 0).Err())
		ctx, cancel := context.WithTimeout(w.Context(), a.timeout/4)
		defer cancel()
		l, _, err := a.Store.Acquire(ctx, c)
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %v", l, err)
		}
		if w.runs() != 0 || w.owner() != "" {
			w.Errorf("%s", w.dump())
		}
		w.must(w.admin.Del(w.Context(), dueSet).Err())
		a.wins(a.claim(3))
	})
}

func TestEveryScriptIsSentAgainAfterItsCacheWasFlushed(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		flush := func() { w.must(w.admin.ScriptFlush(w.Context()).Err()) }
		flush()
		_, err := a.Register(w.Context(), job, "")
		w.must(err)
		flush()
		l, _ := a.wins(a.claim(1))
		flush()
		w.must(l.Verify(w.Context()))
		flush()
		b.loses(b.claim(2), lock.Overlap)
		flush()
		a.finishes(l, time.Minute)
		flush()
		w.must(l.Release(w.Context()))
		if w.owner() != "" {
			w.Errorf("the lock is still %q's", w.owner())
		}
		flush()
		a.sets("x", w.tick(0), "source", true)
		flush()
		a.setsJob("j", "source", true)
		ctx, cancel := context.WithTimeout(w.Context(), w.ttl)
		defer cancel()
		flush()
		if _, err := a.Trigger(ctx, job, uuid.NewString()); err != nil || len(w.dues()) != 2 { // beside the timer
			w.Errorf("a trigger: %v; due are %+v", err, w.dues())
		}
		flush()
		if err := a.Pause(ctx, job, "", time.Time{}); err != nil || w.field("paused") == "" {
			w.Errorf("a pause: %v, %q", err, w.field("paused"))
		}
	})
}

func TestRunEndsInOrderWhenRedisMemoryIsFull(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) { // miniredis has no limit
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		b.loses(b.claim(2), lock.Overlap)
		w.must(w.admin.ConfigSet(w.Context(), "maxmemory", "1").Err())

		ctx, cancel := context.WithTimeout(w.Context(), a.timeout)
		defer cancel()
		other := b.claim(1)
		other.Job = "other"
		if _, _, err := b.Store.Acquire(ctx, other); err == nil || !redis.HasErrorPrefix(last(err), "OOM") {
			w.Errorf("a claim: %v", err)
		}
		w.must(l.Verify(w.Context()))
		ctx, cancel = context.WithTimeout(w.Context(), a.timeout)
		defer cancel()
		if got, err := l.Finish(ctx, time.Minute, &lock.Entry{Outcome: "succeeded"}); err != nil || got != lock.OK {
			w.Fatalf("finish: %s, %v", got, err)
		}
		if w.runs() != 0 || w.field("overlap") != fmtInt(w.tick(2).UnixMilli()) {
			w.Errorf("%s", w.dump())
		}
		w.must(l.Release(w.Context()))
	}, "--maxmemory-policy", "noeviction")
}

// last is the innermost error that Redis itself gave.
func last(err error) error {
	var re redis.Error
	if errors.As(err, &re) {
		return re
	}
	return err
}

func TestRedisThatComesBackEmptyFiresNothingTwice(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) { // a crash of the process itself
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		ctx, stop := l.Keep(w.Context())
		defer stop()
		w.server.Restart()
		b.loses(b.claim(1), lock.Fired)
		if err := w.ended(ctx); !errors.Is(err, lock.ErrLost) {
			w.Errorf("cause: %v", err)
		}
	})
}

func TestRedisThatCrashesWithItsDataKeptLosesNothing(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		w.server.Restart()
		b.loses(b.claim(2), lock.Overlap)
		for try := 0; ; try++ { // the first may find the old connection
			err := l.Verify(w.Context())
			if err == nil {
				break
			}
			if errors.Is(err, lock.ErrLost) || try > 3 {
				w.Fatal(err)
			}
		}
		a.finishes(l, 0)
		b.loses(b.claim(2), lock.Fired)
	}, "--appendonly", "yes", "--appendfsync", "always")
}

func TestFrozenRedisIsNoAnswerAndNeverHeldOrFree(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) {
		w.warm()
		w.born()
		a := w.slowReplica("a", 300*time.Millisecond)
		w.must(a.Sync(w.Context()))
		w.server.Freeze()
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, cancel)
		time.AfterFunc(2*time.Second, w.server.Thaw)
		l, got, err := a.Store.Acquire(ctx, a.claim(1))
		if l != nil || got.Code != "" || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %+v, %v", l, got, err)
		}
		// The copies that waited in the sockets won, for nobody, and were taken back.
		if w.runs() != 0 || w.owner() != "" {
			w.Errorf("%s", w.dump())
		}
		w.dueTicks(1)
	})
}

func TestClientThatResendsByItselfIsRefused(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer c.Close()
	if _, err := lock.New(c, service, lock.Options{}); err == nil {
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
