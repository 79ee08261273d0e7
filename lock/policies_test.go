package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
)

// claimUnder is the claim of a tick under a policy.
func (r *replica) claimUnder(policy lock.Policy, n int) lock.Claim {
	c := r.claim(n)
	c.Policy = policy
	return c
}

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
				inBubble(t, func(w *world) {
					w.born()
					a, b := w.replica("a"), w.replica("b")
					l, _ := a.wins(a.claimUnder(of, 1))
					if want.told == lock.Won {
						b.wins(b.claimUnder(meets, 2))
					} else {
						b.loses(b.claimUnder(meets, 2), want.told)
					}
					if err := l.Verify(w.Context()); errors.Is(err, lock.ErrReplaced) != want.replaced || err != nil && !want.replaced {
						w.Errorf("the run is told: %v", err)
					}
					a.finishes(l, 0)
					w.dueTicks(want.due...)
					if overlap := w.field("overlap") == fmtInt(w.tick(2).UnixMilli()); overlap != (meets == lock.Forbid) {
						w.Errorf("an overlap: %t", overlap)
					}
				})
			})
		}
	}
}

// TestDueMemberWaitsForEveryRunUnlessItsPolicyIsAllow is the rule for what is handed on.
func TestDueMemberWaitsForEveryRunUnlessItsPolicyIsAllow(t *testing.T) {
	for of := range whatMeetsARun {
		for meets := range whatMeetsARun {
			t.Run(string(of)+" and "+string(meets), func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.born()
					a, b := w.replica("a"), w.replica("b")
					l, _ := a.wins(a.claimUnder(of, 1))
					if _, err := l.Handover(w.Context(), 0, nil); err != nil {
						w.Fatal(err)
					}
					run, _ := a.wins(a.claimUnder(of, 2))
					c := b.claimUnder(meets, 1)
					c.Member = w.dues()[0].Member()
					if meets == lock.Allow {
						b.wins(c)
						return
					}
					b.loses(c, lock.Held)
					a.finishes(run, 0)
					b.wins(c)
				})
			})
		}
	}
}

// TestTickThatWaitsIsSetFreeByTheEndOfTheLastRun is a rollout from Replace to Allow.
func TestTickThatWaitsIsSetFreeByTheEndOfTheLastRun(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("old"), w.replica("new")
		one, _ := a.wins(a.claimUnder(lock.Replace, 1))
		a.loses(a.claimUnder(lock.Replace, 2), lock.Queued)
		two, _ := b.wins(b.claimUnder(lock.Allow, 3))
		w.must(two.Verify(w.Context())) // it began after the ticks that wait
		b.finishes(two, 0)
		w.dueTicks()
		for range 2 { // and is told for as long as it runs
			if err := one.Verify(w.Context()); !errors.Is(err, lock.ErrReplaced) {
				w.Errorf("the run to be replaced is told: %v", err)
			}
		}
		a.finishes(one, 0)
		w.dueTicks(2)
	})
}

// TestRunOfAllowIsInTheWayOfForbid is a rollout, or a reload, from Allow to Forbid: the overlap is one of the last run's.
func TestRunOfAllowIsInTheWayOfForbid(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("old"), w.replica("new")
		one, _ := a.wins(a.claimUnder(lock.Allow, 1))
		two, _ := a.wins(a.claimUnder(lock.Allow, 2))
		if got := b.loses(b.claimUnder(lock.Forbid, 3), lock.Overlap); got.LeaseEnd.IsZero() {
			w.Errorf("%+v", got)
		}
		if _, err := two.Handover(w.Context(), time.Hour, nil); err != nil { // which says nothing of the other
			w.Fatal(err)
		}
		b.loses(b.claimUnder(lock.Forbid, 3), lock.Overlap)
		a.finishes(one, 0)
		if got := b.loses(b.claimUnder(lock.Forbid, 3), lock.Fired); !got.Overlap.Equal(w.tick(3)) {
			w.Errorf("%+v", got)
		}
		w.dueTicks(2)
	})
}

// TestReapSettlesWhatOverlappedAndSetsFreeWhatCameAfterTheLastSignOfLife has a run renew its lease once, and die.
func TestReapSettlesWhatOverlappedAndSetsFreeWhatCameAfterTheLastSignOfLife(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		for n := 2; n <= 3; n++ {
			w.pass(20 * time.Millisecond)
			b.loses(b.claim(n), lock.Overlap)
		}
		w.pass(20 * time.Millisecond)
		w.must(l.Verify(w.Context()))
		w.pass(20 * time.Millisecond)
		for n := 4; n <= 5; n++ {
			b.loses(b.claim(n), lock.Overlap)
		}
		b.reaps(1)
		w.dueTicks(4, 5)
		if got := b.loses(b.claim(3), lock.Fired); !got.Overlap.Equal(w.tick(3)) {
			w.Errorf("%+v", got)
		}
	})
}

func TestReapSetsOneTickFreeUnderQueue(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		a.wins(a.claimUnder(lock.Queue, 1))
		w.pass(20 * time.Millisecond)
		b.loses(b.claimUnder(lock.Queue, 2), lock.Queued)
		for n := 3; n <= 9; n++ {
			b.loses(b.claimUnder(lock.Queue, n), lock.Overlap)
			if got := a.loses(a.claimUnder(lock.Queue, n), lock.Fired); !got.Overlap.Equal(w.tick(n)) {
				w.Errorf("T%d, settled at once: %+v", n, got)
			}
		}
		b.reaps(1)
		w.dueTicks(2)
	})
}

// TestTickThatComesDueByJitterOverlapsWithTheRunOfThatMoment: its nominal time tells nothing of that.
func TestTickThatComesDueByJitterOverlapsWithTheRunOfThatMoment(t *testing.T) {
	inBubble(t, func(w *world) { // to the millisecond
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(-9))
		late := b.claim(-8)
		late.Due = w.start.Add(700 * time.Millisecond)
		done := make(chan struct{})
		go func() { // a clock that is ahead
			defer close(done)
			if l, got, err := b.acquire(late); l == nil {
				w.Errorf("%+v, %v: the run was over when it came due", got, err)
			}
		}()
		w.pass(300 * time.Millisecond)
		a.finishes(l, 0)
		<-done
	})
}

func TestAClaimThatLooksNeverWinsAndHearsWhatIsInItsWay(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		looks := func(policy lock.Policy, n int, want lock.Code) {
			w.Helper()
			c := b.claimUnder(policy, n)
			c.Look = true
			b.loses(c, want)
		}
		before := w.dump()
		looks(lock.Forbid, 1, lock.Free)
		looks(lock.Allow, 1, lock.Free)
		if after := w.dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		l, _ := a.wins(a.claimUnder(lock.Replace, 1))
		looks(lock.Forbid, 1, lock.Fired)
		looks(lock.Forbid, 2, lock.Overlap)
		looks(lock.Allow, 3, lock.Free)
		looks(lock.Queue, 3, lock.Queued)
		looks(lock.Replace, 4, lock.Queued)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrReplaced) {
			w.Errorf("the run is told: %v", err)
		}
		a.finishes(l, 0)
		w.dueTicks(4)
	})
}
