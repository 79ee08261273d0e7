package lock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
)

// TestForsakenTimersAreForgottenAfterADay leaves timers behind in all the states that there are.
func TestForsakenTimersAreForgottenAfterADay(t *testing.T) {
	inBubble(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		claim := func(id string, at time.Time, ttl time.Duration) *lock.Lease {
			a.sets(id, at, "source", true)
			seen, err := b.Look(w.Context(), 10)
			w.must(err)
			c := b.claimOf(seen.Due[0])
			c.TTL = ttl
			l, _ := b.wins(c)
			return l
		}
		for _, id := range []string{"reaped", "reaped-2"} {
			claim(id, w.tick(0), w.ttl)
		}
		a.reaps(2)
		held := claim("running", w.tick(0), 100*time.Hour)
		handed := claim("late", w.tick(0).Add(-25*time.Hour), w.ttl)
		if _, err := handed.Handover(w.Context(), time.Hour, nil); err != nil { // which is cut to minutes
			w.Fatal(err)
		}
		a.sets("waiting", w.now().Add(time.Hour), "source", true)
		a.sets("overdue", w.tick(0), "source", true)
		w.must(w.admin.HSet(w.Context(), timersKey, "foreign", "written by another version").Err())
		clean := func(id string, want bool) {
			w.Helper()
			w.must(a.CleanTimers(w.Context()))
			if got := a.source(id) == ""; got != want {
				w.Errorf("after %s: %s is forgotten: %t", w.now().Sub(w.start), id, got)
			}
		}
		clean("reaped", false)
		clean("late", false)
		w.pass(24*time.Hour - 2*w.ttl)
		clean("reaped", false)
		w.pass(2*w.ttl + time.Millisecond)
		clean("reaped", true)
		for _, id := range []string{"running", "late", "waiting", "overdue"} {
			clean(id, false)
		}
		if w.admin.HExists(w.Context(), timersKey, "foreign").Val() != true {
			w.Error("what another version wrote is gone")
		}
		w.must(held.Verify(w.Context()))
		// It counts as fired just now; and one that nobody cleaned does so from when it is asked for.
		a.comesTooLate("reaped")
		w.pass(24*time.Hour - time.Second)
		a.comesTooLate("reaped")
		w.pass(time.Second)
		a.sets("reaped", w.now(), "anew", true)
	})
}

func TestForsakenTimerIsForgottenWhenItIsSetAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		a.sets("x", w.tick(0), "source", true)
		b.wins(b.claimOf(b.sees()))
		a.reaps(1)
		w.pass(25 * time.Hour)
		for range 2 {
			if _, err := a.SetTimer(w.Context(), "x", w.tick(1), nil); !errors.Is(err, lock.ErrTimerFired) {
				w.Errorf("set: %v", err)
			}
			if a.source("x") != "" {
				w.Error("its source is kept")
			}
			w.pass(12*time.Hour - time.Second)
		}
		w.pass(2 * time.Second)
		a.sets("x", w.tick(1), "", true)
	})
}

func TestTimerAmongAThousandThatAreDueIsNotTakenForForsaken(t *testing.T) {
	inBubble(t, func(w *world) {
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		a.sets("x", w.tick(0), "source", true)
		b.wins(b.claimOf(b.sees()))
		a.reaps(1)
		w.pass(25 * time.Hour)
		for n := range 1000 {
			w.must(w.admin.ZAdd(w.Context(), dueSet, redis.Z{Score: float64(timersBehind + n),
				Member: fmt.Sprint("1 timer:other x 1 0 0 ", n)}).Err())
		}
		w.must(a.CleanTimers(w.Context()))
		if a.source("x") == "" {
			w.Error("forgotten")
		}
		w.must(w.admin.ZRem(w.Context(), dueSet, "1 timer:other x 1 0 0 0").Err())
		w.must(a.CleanTimers(w.Context()))
		if a.source("x") != "" {
			w.Error("not forgotten")
		}
	})
}

func TestAllForsakenTimersAreFoundAmongMany(t *testing.T) {
	onEvery(t, func(w *world) {
		a := w.replica("a")
		now, entries := fmtInt(w.now().UnixMilli()), map[string]any{}
		for n := range 1000 {
			entries[fmt.Sprint("young", n)] = now + " nonce 1 source"
		}
		for n := range 20 {
			entries[fmt.Sprint("old", n)] = "1 nonce 1 source"
		}
		w.must(w.admin.HSet(w.Context(), timersKey, entries).Err())
		for range 30 {
			w.must(a.CleanTimers(w.Context()))
		}
		if n := w.admin.HLen(w.Context(), timersKey).Val(); n != 1000 {
			w.Errorf("%d timers are left", n)
		}
	})
}
