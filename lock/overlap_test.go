package lock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

func TestOverlapIsSettledByTheFinishOfTheRunInTheWay(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		got := b.Loses(b.Claim(2), lock.Overlap)
		if got.Holder != "a" || !got.Prev.Equal(w.Tick(1)) {
			w.Errorf("%+v", got)
		}
		a.Finishes(l, 0)
		late := b.Loses(b.Claim(2), lock.Fired) // never fired once counted
		if !late.Overlap.Equal(w.Tick(2)) {
			w.Errorf("%+v", late)
		}
		if len(w.Dues()) != 0 {
			w.Errorf("due: %+v", w.Dues())
		}
		b.Wins(b.Claim(3))
	})
}

func TestOverlapWithARunThatNeverStartedWasNone(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		b.Loses(b.Claim(2), lock.Overlap)
		_, err := l.Handover(w.Context(), 0, lock.Ending{})
		w.Must(err)
		w.DueTicks(1, 2)
		if w.Field("tick") != fmtInt(w.Tick(2).UnixMilli()) || w.Number("overlap") != 0 {
			w.Errorf("%s", w.Dump())
		}
		b.Loses(b.Claim(2), lock.Waits) // only as a due member
		c := b.Claim(2)
		c.Member = w.Dues()[1].Member()
		two, _ := b.Wins(c)
		held := a.Claim(1)
		held.Member = w.Dues()[0].Member()
		a.Loses(held, lock.Held)
		b.Finishes(two, 0)
		a.Wins(held)
	})
}

func TestOverlapWithARunThatDiedWasNone(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		a.Wins(a.Claim(1))
		w.Pass(10 * time.Millisecond)
		b.Loses(b.Claim(2), lock.Overlap)
		b.Reaps(1)
		w.DueTicks(2) // what died ran, perhaps: at most once
		c := b.Claim(2)
		c.Member = w.Dues()[0].Member()
		b.Wins(c)
	})
}

func TestOverlapWithAClaimThatWasTakenBackWasNone(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
		for range 20 { // whatever a asks again has no effect until b has asked
			a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Refuse("LOADING Redis is loading the dataset in memory"))
		}
		go func() {
			<-f.Struck()
			b.Loses(b.Claim(2), lock.Overlap)
			cancel()
		}()
		if l, _, err := a.Store.Acquire(ctx, a.Claim(1)); l != nil || err == nil {
			w.Fatalf("%v, %v; want no answer", l, err)
		}
		w.DueTicks(1, 2)
	})
}

func TestQueueHoldsOneTickAndReplaceTellsTheRunToEnd(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		queue := b.Claim(2)
		queue.Policy = lock.Queue
		b.Loses(queue, lock.Queued)
		full := b.Claim(3)
		full.Policy = lock.Queue
		b.Loses(full, lock.Overlap)
		w.Must(l.Verify(w.Context()))
		replace := b.Claim(4)
		replace.Policy = lock.Replace
		b.Loses(replace, lock.Queued)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrReplaced) {
			w.Fatalf("Verify: %v", err)
		}
		a.Finishes(l, 0)
		w.DueTicks(4)
	})
}

func TestHandedOnTickCanBeHandedOnAgainAsANewMember(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		_, err := l.Handover(w.Context(), 0, lock.Ending{})
		w.Must(err)
		first := w.Dues()[0]
		c := a.Claim(1)
		c.Member, c.Refused = first.Member(), first.Refused
		again, _ := a.Wins(c)
		_, err = again.NextRound(w.Context(), 0, lock.Ending{})
		w.Must(err)
		second := w.Dues()[0]
		if second.Member() == first.Member() || second.Rounds != 1 || !slices.Equal(second.Refused, []string{lock.LastAsked + "a"}) ||
			first.Rounds != 0 || !slices.Equal(first.Refused, []string{"a"}) {
			w.Errorf("first %+v, second %+v", first, second)
		}
	})
}

func TestAllThatWasRefusedBehindARunThatNeverStartedIsDue(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		b.Loses(b.Claim(2), lock.Overlap)
		b.Loses(b.Claim(3), lock.Overlap)
		b.Loses(b.Claim(3), lock.Overlap)
		b.Loses(b.Claim(6), lock.Overlap)
		b.Loses(b.Claim(5), lock.Fired) // it was passed over
		_, err := l.GiveUp(w.Context(), lock.Ending{Entry: "not_started"})
		w.Must(err)
		w.DueTicks(2, 3, 6)
		if w.Field("tick") != fmtInt(w.Tick(6).UnixMilli()) || w.Number("overlap") != 0 || w.Owner() != "" {
			w.Errorf("%s", w.Dump())
		}
	})
}

// A run that was told to end keeps its lease until it has, however long it takes.
func TestAReplacedRunKeepsItsLeaseUntilItEnds(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		c := a.Claim(1)
		c.Policy = lock.Replace
		l, _ := a.Wins(c)
		ctx, stop := l.Keep(w.Context())
		newer := b.Claim(2)
		newer.Policy = lock.Replace
		b.Loses(newer, lock.Queued)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), lock.ErrReplaced) {
			w.Errorf("the run was told to end by %v", context.Cause(ctx))
		}
		for range 3 {
			w.Pass(w.TTL / 2)
			if !l.Trusted() || w.Owner() != l.Run() {
				w.Fatalf("trusted %v, the lock's owner is %q, the run %s", l.Trusted(), w.Owner(), l.Run())
			}
		}
		stop()
		a.Finishes(l, 0)
		w.DueTicks(2)
	})
}
