package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

// whatMeetsARun are the rows of the one rule for policies: it is the policy of the one who comes that decides.
var whatMeetsARun = map[lock.Policy]struct {
	told     lock.Code
	replaced bool
	due      []int // when the run has ended
}{
	lock.Forbid:  {told: lock.Overlap},
	lock.Queue:   {told: lock.Queued, due: []int{2}},
	lock.Replace: {told: lock.Queued, replaced: true, due: []int{2}},
	lock.Allow:   {told: lock.Won},
}

func TestPolicyOfTheOneWhoComesDecidesWhateverTheRunsIs(t *testing.T) {
	for of := range whatMeetsARun {
		for meets, want := range whatMeetsARun {
			t.Run(string(of)+" and "+string(meets), func(t *testing.T) {
				redisworld.InBubble(t, func(w *redisworld.World) {
					w.Born()
					a, b := w.Replica("a"), w.Replica("b")
					l, _ := a.Wins(a.ClaimUnder(of, 1))
					if want.told == lock.Won {
						b.Wins(b.ClaimUnder(meets, 2))
					} else {
						b.Loses(b.ClaimUnder(meets, 2), want.told)
					}
					if err := l.Verify(w.Context()); errors.Is(err, lock.ErrReplaced) != want.replaced || err != nil && !want.replaced {
						w.Errorf("the run is told: %v", err)
					}
					a.Finishes(l, 0)
					w.DueTicks(want.due...)
					if overlap := w.Field("overlap") == fmtInt(w.Tick(2).UnixMilli()); overlap != (meets == lock.Forbid) {
						w.Errorf("an overlap: %t", overlap)
					}
				})
			})
		}
	}
}

// TestAllowWithALimitRunsAsManyTicksAtOnceAndNoMore on real stores: runs of all policies count, and what was refused is
// settled.
func TestAllowWithALimitRunsAsManyTicksAtOnceAndNoMore(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		limited := func(r *redisworld.Replica, n int) lock.Claim {
			c := r.ClaimUnder(lock.Allow, n)
			c.Limit = 2
			return c
		}
		one, _ := a.Wins(a.ClaimUnder(lock.Forbid, 1))
		two, _ := b.Wins(limited(b, 2))
		a.Loses(limited(a, 3), lock.Overlap)
		if got := b.Loses(limited(b, 3), lock.Fired); !got.Overlap.Equal(w.Tick(3)) {
			w.Errorf("the other is told %+v", got)
		}
		a.Finishes(one, 0)
		three, _ := a.Wins(limited(a, 4))
		b.Loses(limited(b, 5), lock.Overlap)
		b.Finishes(two, 0)
		a.Finishes(three, 0)
		w.DueTicks()
		b.Wins(limited(b, 6))
	})
}

// TestDueMemberWaitsForEveryRunUnlessItsPolicyIsAllow is the rule for what is handed on.
func TestDueMemberWaitsForEveryRunUnlessItsPolicyIsAllow(t *testing.T) {
	for of := range whatMeetsARun {
		for meets := range whatMeetsARun {
			t.Run(string(of)+" and "+string(meets), func(t *testing.T) {
				redisworld.InBubble(t, func(w *redisworld.World) {
					w.Born()
					a, b := w.Replica("a"), w.Replica("b")
					l, _ := a.Wins(a.ClaimUnder(of, 1))
					if _, err := l.Handover(w.Context(), 0, lock.Ending{}); err != nil {
						w.Fatal(err)
					}
					run, _ := a.Wins(a.ClaimUnder(of, 2))
					c := b.ClaimUnder(meets, 1)
					c.Member = w.Dues()[0].Member()
					if meets == lock.Allow {
						b.Wins(c)
						return
					}
					b.Loses(c, lock.Held)
					a.Finishes(run, 0)
					b.Wins(c)
				})
			})
		}
	}
}

// TestTickThatWaitsIsSetFreeByTheEndOfTheLastRun is a rollout from Replace to Allow.
func TestTickThatWaitsIsSetFreeByTheEndOfTheLastRun(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("old"), w.Replica("new")
		one, _ := a.Wins(a.ClaimUnder(lock.Replace, 1))
		a.Loses(a.ClaimUnder(lock.Replace, 2), lock.Queued)
		two, _ := b.Wins(b.ClaimUnder(lock.Allow, 3))
		w.Must(two.Verify(w.Context())) // it began after the ticks that wait
		b.Finishes(two, 0)
		w.DueTicks()
		for range 2 { // and is told for as long as it runs
			if err := one.Verify(w.Context()); !errors.Is(err, lock.ErrReplaced) {
				w.Errorf("the run to be replaced is told: %v", err)
			}
		}
		a.Finishes(one, 0)
		w.DueTicks(2)
	})
}

// TestRunOfAllowIsInTheWayOfForbid is a rollout, or a reload, from Allow to Forbid: the overlap is one of the last
// run's.
func TestRunOfAllowIsInTheWayOfForbid(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("old"), w.Replica("new")
		one, _ := a.Wins(a.ClaimUnder(lock.Allow, 1))
		two, _ := a.Wins(a.ClaimUnder(lock.Allow, 2))
		b.Loses(b.ClaimUnder(lock.Forbid, 3), lock.Overlap)
		if _, err := two.Handover(w.Context(), time.Hour, lock.Ending{}); err != nil { // which says nothing of the other
			w.Fatal(err)
		}
		b.Loses(b.ClaimUnder(lock.Forbid, 3), lock.Overlap)
		a.Finishes(one, 0)
		if got := b.Loses(b.ClaimUnder(lock.Forbid, 3), lock.Fired); !got.Overlap.Equal(w.Tick(3)) {
			w.Errorf("%+v", got)
		}
		w.DueTicks(2)
	})
}

// TestReapSettlesWhatOverlappedAndSetsFreeWhatCameAfterTheLastSignOfLife has a run renew its lease once, and die.
func TestReapSettlesWhatOverlappedAndSetsFreeWhatCameAfterTheLastSignOfLife(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		for n := 2; n <= 3; n++ {
			w.Pass(20 * time.Millisecond)
			b.Loses(b.Claim(n), lock.Overlap)
		}
		w.Pass(20 * time.Millisecond)
		w.Must(l.Verify(w.Context()))
		w.Pass(20 * time.Millisecond)
		for n := 4; n <= 5; n++ {
			b.Loses(b.Claim(n), lock.Overlap)
		}
		b.Reaps(1)
		w.DueTicks(4, 5)
		if got := b.Loses(b.Claim(3), lock.Fired); !got.Overlap.Equal(w.Tick(3)) {
			w.Errorf("%+v", got)
		}
	})
}

func TestReapSetsOneTickFreeUnderQueue(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		a.Wins(a.ClaimUnder(lock.Queue, 1))
		w.Pass(20 * time.Millisecond)
		b.Loses(b.ClaimUnder(lock.Queue, 2), lock.Queued)
		for n := 3; n <= 9; n++ {
			b.Loses(b.ClaimUnder(lock.Queue, n), lock.Overlap)
			if got := a.Loses(a.ClaimUnder(lock.Queue, n), lock.Fired); !got.Overlap.Equal(w.Tick(n)) {
				w.Errorf("T%d, settled at once: %+v", n, got)
			}
		}
		b.Reaps(1)
		w.DueTicks(2)
	})
}

// TestTickThatComesDueByJitterOverlapsWithTheRunOfThatMoment: its nominal time tells nothing of that.
func TestTickThatComesDueByJitterOverlapsWithTheRunOfThatMoment(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) { // to the millisecond
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(-9))
		late := b.Claim(-8)
		late.Due = w.Start.Add(700 * time.Millisecond)
		done := make(chan struct{})
		go func() { // a clock that is ahead
			defer close(done)
			if l, got, err := b.Asks(late); l == nil {
				w.Errorf("%+v, %v: the run was over when it came due", got, err)
			}
		}()
		w.Pass(300 * time.Millisecond)
		a.Finishes(l, 0)
		<-done
	})
}

func TestAClaimThatLooksNeverWinsAndHearsWhatIsInItsWay(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		looks := func(policy lock.Policy, n int, want lock.Code) {
			w.Helper()
			c := b.ClaimUnder(policy, n)
			c.MayNotWin = true
			b.Loses(c, want)
		}
		before := w.Dump()
		looks(lock.Forbid, 1, lock.Free)
		looks(lock.Allow, 1, lock.Free)
		if after := w.Dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		l, _ := a.Wins(a.ClaimUnder(lock.Replace, 1))
		looks(lock.Forbid, 1, lock.Fired)
		looks(lock.Forbid, 2, lock.Overlap)
		looks(lock.Allow, 3, lock.Free)
		looks(lock.Queue, 3, lock.Queued)
		looks(lock.Replace, 4, lock.Queued)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrReplaced) {
			w.Errorf("the run is told: %v", err)
		}
		a.Finishes(l, 0)
		w.DueTicks(4)
	})
}
