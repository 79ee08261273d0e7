package lock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

func TestOverlapIsSettledByTheFinishOfTheRunInTheWay(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		got := b.loses(b.claim(2), lock.Overlap)
		if got.Holder != "a" || !got.Prev.Equal(w.tick(1)) || !got.LeaseEnd.After(w.now()) {
			w.Errorf("%+v", got)
		}
		a.finishes(l, 0)
		late := b.loses(b.claim(2), lock.Fired) // never fired once counted
		if !late.Overlap.Equal(w.tick(2)) {
			w.Errorf("%+v", late)
		}
		if len(w.dues()) != 0 {
			w.Errorf("due: %+v", w.dues())
		}
		b.wins(b.claim(3))
	})
}

func TestOverlapWithARunThatNeverStartedWasNone(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		b.loses(b.claim(2), lock.Overlap)
		_, err := l.Handover(w.Context(), 0, nil)
		w.must(err)
		w.dueTicks(1, 2)
		if w.field("tick") != fmtInt(w.tick(2).UnixMilli()) || number(w, "overlap") != 0 {
			w.Errorf("%s", w.dump())
		}
		b.loses(b.claim(2), lock.Waits) // only as a due member
		c := b.claim(2)
		c.Member = w.dues()[1].Member()
		two, _ := b.wins(c)
		held := a.claim(1)
		held.Member = w.dues()[0].Member()
		a.loses(held, lock.Held)
		b.finishes(two, 0)
		a.wins(held)
	})
}

func (w *world) dueTicks(ns ...int) {
	w.Helper()
	ds := w.dues()
	ok := len(ds) == len(ns)
	for i := 0; ok && i < len(ns); i++ {
		ok = ds[i].Tick.Equal(w.tick(ns[i]))
	}
	if !ok {
		w.Errorf("due: %+v, want ticks %v", ds, ns)
	}
}

func TestOverlapWithARunThatDiedWasNone(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		a.wins(a.claim(1))
		w.pass(10 * time.Millisecond)
		b.loses(b.claim(2), lock.Overlap)
		b.reaps(1)
		w.dueTicks(2) // what died ran, perhaps: at most once
		c := b.claim(2)
		c.Member = w.dues()[0].Member()
		b.wins(c)
	})
}

func TestOverlapWithAClaimThatWasTakenBackWasNone(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
		for range 20 { // whatever a asks again has no effect until b has asked
			a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Refuse("LOADING Redis is loading the dataset in memory"))
		}
		go func() {
			<-f.Struck()
			b.loses(b.claim(2), lock.Overlap)
			cancel()
		}()
		if l, _, err := a.Store.Acquire(ctx, a.claim(1)); l != nil || err == nil {
			w.Fatalf("%v, %v; want no answer", l, err)
		}
		w.dueTicks(1, 2)
	})
}

func TestQueueHoldsOneTickAndReplaceTellsTheRunToEnd(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		queue := b.claim(2)
		queue.Policy = lock.Queue
		b.loses(queue, lock.Queued)
		full := b.claim(3)
		full.Policy = lock.Queue
		b.loses(full, lock.Overlap)
		w.must(l.Verify(w.Context()))
		replace := b.claim(4)
		replace.Policy = lock.Replace
		b.loses(replace, lock.Queued)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrReplaced) {
			w.Fatalf("Verify: %v", err)
		}
		a.finishes(l, 0)
		w.dueTicks(4)
	})
}

func TestHandedOnTickCanBeHandedOnAgainAsANewMember(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a := w.replica("a")
		l, _ := a.wins(a.claim(1))
		_, err := l.Handover(w.Context(), 0, nil)
		w.must(err)
		first := w.dues()[0]
		c := a.claim(1)
		c.Member, c.Refused = first.Member(), first.Refused
		again, _ := a.wins(c)
		_, err = again.NextRound(w.Context(), 0, nil)
		w.must(err)
		second := w.dues()[0]
		if second.Member() == first.Member() || second.Rounds != 1 || !slices.Equal(second.Refused, []string{lock.LastAsked + "a"}) ||
			first.Rounds != 0 || !slices.Equal(first.Refused, []string{"a"}) {
			w.Errorf("first %+v, second %+v", first, second)
		}
	})
}

func TestAllThatWasRefusedBehindARunThatNeverStartedIsDue(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		b.loses(b.claim(2), lock.Overlap)
		b.loses(b.claim(3), lock.Overlap)
		b.loses(b.claim(3), lock.Overlap)
		b.loses(b.claim(6), lock.Overlap)
		b.loses(b.claim(5), lock.Fired) // it was passed over
		_, err := l.GiveUp(w.Context(), &lock.Entry{Outcome: "not_started"})
		w.must(err)
		w.dueTicks(2, 3, 6)
		if w.field("tick") != fmtInt(w.tick(6).UnixMilli()) || number(w, "overlap") != 0 || w.owner() != "" {
			w.Errorf("%s", w.dump())
		}
	})
}

// A run that was told to end keeps its lease until it has, however long it takes.
func TestAReplacedRunKeepsItsLeaseUntilItEnds(t *testing.T) {
	onEvery(t, func(w *world) {
		w.born()
		a, b := w.replica("a"), w.replica("b")
		c := a.claim(1)
		c.Policy = lock.Replace
		l, _ := a.wins(c)
		ctx, stop := l.Keep(w.Context())
		newer := b.claim(2)
		newer.Policy = lock.Replace
		b.loses(newer, lock.Queued)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), lock.ErrReplaced) {
			w.Errorf("the run was told to end by %v", context.Cause(ctx))
		}
		for range 3 {
			w.pass(w.ttl / 2)
			if !l.Trusted() || w.owner() != l.Run() {
				w.Fatalf("trusted %v, the lock's owner is %q, the run %s", l.Trusted(), w.owner(), l.Run())
			}
		}
		stop()
		a.finishes(l, 0)
		w.dueTicks(2)
	})
}
