package lock_test

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

const (
	seenKey = "solotick:{svc}:seen"
	long    = 15 * time.Second // a lease
)

func longTTL(string) time.Duration { return long }

// looks has a watcher look once a second for so long, as a replica does, and returns what it then finds unchanged.
func looks(w *redisworld.World, by *redisworld.Replica, watch *lock.Watcher, d time.Duration) (old []lock.Running) {
	w.Helper()
	for at := time.Duration(0); ; at += time.Second {
		runs := by.Looks()
		w.Must(watch.Learn(w.Context(), runs))
		old = watch.Unchanged(runs, longTTL)
		w.Must(watch.Tell(w.Context(), runs, longTTL))
		if at >= d || len(old) > 0 {
			return old
		}
		w.Pass(time.Second)
	}
}

// told is the number of runs of which watchers tell in Redis.
func told(w *redisworld.World) int64 {
	w.Helper()
	n, err := w.Admin.HLen(w.Context(), seenKey).Result()
	w.Must(err)
	return n
}

// abandoned is a run with a long lease that nobody keeps.
func abandoned(w *redisworld.World) *lock.Lease {
	w.Helper()
	w.Born()
	a := w.Replica("a")
	c := a.Claim(1)
	c.TTL = long
	l, _ := a.Wins(c)
	return l
}

func TestAWatcherGoesOnWhereAnotherOneWas(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		l := abandoned(w)
		b, began := w.Replica("b"), time.Now()
		if old := looks(w, b, b.NewWatcher(), 10*time.Second); len(old) != 0 {
			w.Fatalf("found too early: %v", old)
		}
		if told(w) != 1 || w.Admin.PTTL(w.Context(), seenKey).Val() <= long {
			w.Fatalf("told: %d", told(w))
		}
		c := w.Replica("c")
		watch := c.NewWatcher()
		old := looks(w, c, watch, time.Minute)
		if after := time.Since(began); len(old) != 1 || old[0].Run != l.Run() || after < long || after > long+time.Second {
			w.Fatalf("found %v after %s", old, after)
		}
		if _, ok, err := watch.Reap(w.Context(), old[0], interrupted); !ok || err != nil {
			w.Fatalf("taken over: %v, %v", ok, err)
		}
		if old := looks(w, c, watch, 0); len(old) != 0 || told(w) != 0 {
			w.Errorf("found %v, and %d told", old, told(w))
		}
	})
}

func TestWatchersThatAreRestartedAgainAndAgainFindADeadRun(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		abandoned(w)
		b, began := w.Replica("b"), time.Now()
		for lives := 0; ; lives++ {
			old := looks(w, b, b.NewWatcher(), 2*time.Second)
			after := time.Since(began)
			if len(old) == 1 && after >= long {
				w.Logf("found by watcher %d after %s", lives+1, after)
				break
			}
			if len(old) > 0 || after > 40*time.Second {
				w.Fatalf("found %v after %s", old, after)
			}
			w.Pass(time.Second) // until the next one has begun
		}
	})
}

func TestWhatWasToldOfALeaseCountsForThatLeaseAlone(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		l := abandoned(w)
		b, c := w.Replica("b"), w.Replica("c")
		looks(w, b, b.NewWatcher(), 10*time.Second)
		w.Must(l.Verify(w.Context())) // its holder was only slow
		watch, renewed := c.NewWatcher(), time.Now()
		old := looks(w, c, watch, time.Minute)
		if after := time.Since(renewed); len(old) != 1 || after < long {
			w.Errorf("found %v, %s after it was renewed", old, after)
		}
	})
}

// Redis' clock may say that a lease is long overdue: then watchers tell how long they have really seen it.
func TestAStepOfRedisClockAddsNothingToWhatWatchersTell(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		abandoned(w)
		began := time.Now()
		w.Mini.SetTime(began.Add(time.Hour))
		var old []lock.Running
		for range 20 {
			b := w.Replica("b")
			if old = looks(w, b, b.NewWatcher(), time.Second); len(old) > 0 {
				break
			}
		}
		if after := time.Since(began); len(old) != 1 || after < long || after > long+2*time.Second {
			w.Errorf("found %v after %s", old, after)
		}
	})
}

func TestOfLeasesThatAreRenewedNothingIsTold(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		l := abandoned(w)
		b := w.Replica("b")
		watch := b.NewWatcher()
		for range 4 {
			looks(w, b, watch, 6*time.Second)
			w.Must(l.Verify(w.Context()))
			if n := told(w); n != 0 {
				w.Fatalf("%d runs are told of", n)
			}
		}
		looks(w, b, watch, 8*time.Second)
		if told(w) != 1 {
			w.Fatal("nothing is told of a lease that is overdue")
		}
		w.Must(l.Verify(w.Context()))
		if looks(w, b, watch, 0); told(w) != 0 {
			w.Error("what was told of a lease stays when it is renewed")
		}
	})
}

func TestWhatNoWatcherHasWrittenIsPassedOver(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		l := abandoned(w)
		b := w.Replica("b")
		end := fmtInt(int64(w.Admin.ZScore(w.Context(), running, l.Run()+" "+job).Val()))
		for _, text := range []string{"", "x", end, end + " ", end + " x", end + " -20000", "x 20000", end + " 20000 1", end + " 9999999999999"} {
			w.Must(w.Admin.HSet(w.Context(), seenKey, l.Run(), text).Err())
			if old := looks(w, b, b.NewWatcher(), 0); len(old) != 0 {
				w.Errorf("%q: found %v", text, old)
			}
		}
		w.Must(w.Admin.HSet(w.Context(), seenKey, l.Run(), end+" 20000").Err())
		if old := looks(w, b, b.NewWatcher(), 0); len(old) != 1 {
			w.Error("not found although it was told that it has been unchanged for long enough")
		}
	})
}

func TestAWatcherThatGotNoAnswerAsksOthersAgain(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		abandoned(w)
		b, c := w.Replica("b"), w.Replica("c")
		looks(w, b, b.NewWatcher(), 14*time.Second)
		runs, watch := c.Looks(), c.NewWatcher()
		c.CutOff()
		if err := watch.Learn(w.Context(), runs); err == nil {
			w.Fatal("it has learned without Redis")
		}
		watch.Unchanged(runs, longTTL)
		w.Must(c.Proxy.Refuse(false))
		if old := looks(w, c, watch, 2*time.Second); len(old) != 1 {
			w.Error("not found although another one has told of it")
		}
	})
}
