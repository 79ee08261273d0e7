package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// losses are the ways in which a single request fails to be answered.
var losses = map[string]lossy.Action{
	"reply lost and connection cut":     lossy.LoseReply,
	"reply lost and connection silent":  lossy.HangReply,
	"request lost and connection cut":   lossy.LoseRequest,
	"request lost, connection silent":   lossy.HangRequest,
	"refused while Redis loads":         lossy.Refuse("LOADING Redis is loading the dataset in memory"),
	"an error of which nothing follows": lossy.Refuse("ERR something went wrong"),
}

// onEveryLoss plays a case with each of them.
func onEveryLoss(t *testing.T, play func(w *world, loss lossy.Action)) {
	with := func(loss lossy.Action) func(w *world) {
		return func(w *world) {
			w.warm()
			w.born()
			play(w, loss)
		}
	}
	for name, loss := range losses {
		t.Run(name+"/miniredis", func(t *testing.T) { inBubble(t, with(loss)) })
	}
	t.Parallel()
	for name, loss := range losses {
		t.Run(name+"/redis", func(t *testing.T) {
			t.Parallel()
			onReal(t, with(loss))
		})
	}
}

func TestUnansweredClaimIsAskedAgainAndWinsOnce(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		asked := a.proxy.Count(lossy.Script(lock.AcquireSHA))
		a.proxy.On(lossy.Script(lock.AcquireSHA), 1, loss)
		before := w.field("tick")
		l, won := a.wins(a.claim(5))
		if asked.N() != 2 {
			w.Errorf("asked %d times", asked.N())
		}
		if w.owner() != l.Run() || w.runs() != 1 {
			w.Errorf("lock of %q, %d runs; the run is %q", w.owner(), w.runs(), l.Run())
		}
		// The repeated answer carries what the first one did.
		if got := fmtInt(l.Token); got != w.field("token") || won.Token != l.Token {
			w.Errorf("token %s of the lease, %d of the answer, %s of the ledger", got, won.Token, w.field("token"))
		}
		if got := fmtInt(won.Prev.UnixMilli()); got != before {
			w.Errorf("previous tick %s, want %s", got, before)
		}
		b.loses(b.claim(5), lock.Fired)
		a.finishes(l, 0)
	})
}

func TestUnansweredExtensionSaysNothingAndTheNextOneIsBelieved(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a := w.replica("a")
		l, _ := a.wins(a.claim(1))
		a.proxy.On(lossy.Script(lock.ExtendSHA), 1, loss)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrNoAnswer) || errors.Is(err, lock.ErrLost) {
			w.Fatalf("Verify: %v", err)
		}
		if !l.Trusted() {
			w.Fatal("an extension without an answer took the trust away")
		}
		w.must(l.Verify(w.Context()))
	})
}

func TestUnansweredFinishIsRepeatedAndCountsOnce(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		b.loses(b.claim(2), lock.Overlap)
		a.proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		got, err := l.Finish(w.Context(), time.Second, &lock.Entry{Outcome: "succeeded"})
		if err != nil || got != lock.OK && got != lock.None {
			w.Fatalf("finish: %s, %v", got, err)
		}
		n, err := w.admin.XLen(w.Context(), "solotick:{svc}:runs").Result()
		if err != nil || n != 1 {
			w.Errorf("%d history entries, %v", n, err)
		}
		if w.runs() != 0 || len(w.dues()) != 0 || w.field("overlap") != fmtInt(w.tick(2).UnixMilli()) {
			w.Errorf("after finish: %s", w.dump())
		}
		b.wins(b.claim(3))
	})
}

func TestUnansweredHandoverHandsTheTickOnOnce(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		a.proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		if _, err := l.Handover(w.Context(), 0, nil); err != nil {
			w.Fatal(err)
		}
		ds := w.dues()
		if len(ds) != 1 || !slices.Equal(ds[0].Refused, []string{"a"}) || ds[0].Rounds != 0 || ds[0].Kind != "handover" ||
			!ds[0].Tick.Equal(w.tick(1)) {
			w.Fatalf("due: %+v", ds)
		}
		c := b.claim(1)
		c.Member = ds[0].Member()
		b.wins(c)
		if len(w.dues()) != 0 {
			w.Errorf("still due: %+v", w.dues())
		}
	})
}

func TestUnansweredReleaseLeavesNobodyElsesLockDeleted(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a, b := w.replica("a"), w.replica("b")
		l, _ := a.wins(a.claim(1))
		a.finishes(l, time.Minute)
		a.proxy.On(lossy.Script(lock.ReleaseSHA), 1, loss)
		if err := l.Release(w.Context()); err == nil {
			w.Fatal("no error")
		}
		next, _ := b.wins(b.claim(2))
		w.must(l.Release(w.Context()))
		if w.owner() != next.Run() {
			w.Fatalf("the lock is %q's, not %q's", w.owner(), next.Run())
		}
	})
}

func TestUnansweredRegistrationIsHarmless(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		a := w.replica("a")
		a.proxy.On(lossy.Script(lock.RegisterSHA), 1, loss)
		if _, err := a.Register(w.Context(), "fresh", "x"); err == nil {
			w.Fatal("no error")
		}
		first, err := a.Register(w.Context(), "fresh", "x")
		w.must(err)
		again, err := a.Register(w.Context(), "fresh", "x")
		w.must(err)
		if again != first || first.Born.IsZero() {
			w.Fatalf("%+v, then %+v", first, again)
		}
	})
}

func TestRequestThatArrivesAfterItsSenderGaveUpHasNoEffect(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(a.timeout/2, cancel)
		began := time.Now()
		l, _, err := a.Store.Acquire(ctx, a.claim(1))
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, context.Canceled) {
			w.Fatalf("%v, %v", l, err)
		}
		if d := time.Since(began); d < w.ttl-lock.Margin {
			w.Errorf("gave up after %s, when the copy under way could still claim", d)
		}
		w.staleCopy(f)
		b.wins(b.claim(1))
	})
}

// staleCopy delivers the late copy of a request, which is refused and changes nothing.
func (w *world) staleCopy(f *lossy.Fault) {
	w.Helper()
	before := w.dump()
	reply, err := f.Deliver(w.Context())
	if err != nil || !strings.Contains(reply, "STALE") {
		w.Fatalf("the late copy: %q, %v", reply, err)
	}
	if after := w.dump(); after != before {
		w.Errorf("the late copy changed\n%s\nto\n%s", before, after)
	}
}

// Copies wait in the buffers of a Redis that stands still. What one of them claims when it goes on is in the way of the
// next ticks for as long as nobody gives it back.
func TestClaimOfACopyThatArrivesAfterItsSenderGaveUpIsTakenBackLongBeforeItsWindowIsOver(t *testing.T) {
	for _, replicas := range []int{0, 1} { // those that are waited for may know the claim and not its end
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			inBubble(t, func(w *world) { w.playLateClaim(replicas) })
		})
	}
}

func (w *world) playLateClaim(replicas int) {
	w.warm()
	w.born()
	proxy := lossy.New(w.dial)
	defer proxy.Close()
	a, b := w.replicaOf("a", redis.UniversalOptions{Addrs: []string{"redis:6379"}, Dialer: proxy.Dial}, replicas), w.replica("b")
	f := proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
	ctx, cancel := context.WithCancel(w.Context()) // whose end, unlike a deadline, no copy knows beforehand
	time.AfterFunc(a.timeout/2, cancel)
	asked, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		if l, _, err := a.Store.Acquire(ctx, a.claim(1)); l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("%v, %v", l, err)
		}
	}()
	<-f.Struck()
	time.Sleep(2 * time.Second)
	if reply, err := f.Deliver(w.Context()); err != nil || !strings.Contains(reply, "WON") {
		w.Fatalf("the late copy: %q, %v", reply, err)
	}
	time.Sleep(4 * time.Second)
	ds := w.dues()
	if len(ds) != 1 || !ds[0].Tick.Equal(w.tick(1)) || w.owner() != "" || w.runs() != 0 {
		w.Fatalf("due: %+v, lock of %q, %d runs", ds, w.owner(), w.runs())
	}
	b.wins(b.claim(2))
	last := proxy.Count(lossy.Script(lock.SettleSHA))
	<-ended
	if took := time.Since(asked); (took >= w.ttl) != (replicas > 0) || (last.N() > 0) != (replicas > 0) {
		w.Errorf("it returned after %s, and abandoned %d times more", took, last.N())
	}
}

func TestClaimThatWasAnsweredToNobodyIsTakenBack(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
		go func() {
			<-f.Struck()
			cancel()
		}()
		c := a.claim(1)
		l, _, err := a.Store.Acquire(ctx, c)
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, context.Canceled) {
			w.Fatalf("%v, %v", l, err)
		}
		ds := w.dues()
		if len(ds) != 1 || !ds[0].Tick.Equal(w.tick(1)) || ds[0].Nonce != c.Run || ds[0].Attempt != 1 {
			w.Fatalf("due: %+v", ds)
		}
		if w.owner() != "" || w.runs() != 0 {
			w.Errorf("lock of %q, %d runs", w.owner(), w.runs())
		}
		// A copy of the claim does not pop what was put back.
		if reply, err := f.Deliver(w.Context()); err != nil || strings.Contains(reply, "WON") {
			w.Fatalf("the late copy: %q, %v", reply, err)
		}
		again := b.claim(1)
		again.Member = ds[0].Member()
		b.wins(again)
	})
}

func TestLoserAfterAnUnansweredClaimDoesNotWaitForACopyThatCannotWin(t *testing.T) {
	inBubble(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		b.wins(b.claim(1))
		a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseRequest)
		settled := a.proxy.Count(lossy.Script(lock.SettleSHA))
		began := time.Now()
		a.loses(a.claim(1), lock.Fired)
		if d := time.Since(began); d > time.Second {
			w.Errorf("took %s", d)
		}
		if settled.N() != 1 { // the FIRED may have been its own claim, reaped
			w.Errorf("abandoned %d times", settled.N())
		}
	})
}

func TestLoserWhoseCopyCouldStillWinWaitsAndTakesItBack(t *testing.T) {
	inBubble(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		l, _ := b.wins(b.claim(1))
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseRequest)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.loses(a.claim(2), lock.Overlap)
		}()
		<-f.Struck()
		time.Sleep(2 * time.Second)
		// The run in the way is handed on, so that the tick is free, and only then does the first copy arrive.
		_, err := l.Handover(w.Context(), time.Hour, nil)
		w.must(err)
		w.must(w.admin.HSet(w.Context(), ledger, "tick", w.tick(1).UnixMilli()).Err())
		if reply, err := f.Deliver(w.Context()); err != nil || !strings.Contains(reply, "WON") {
			w.Fatalf("the late copy: %q, %v", reply, err)
		}
		<-done
		if w.runs() != 0 || w.owner() != "" {
			w.Errorf("claimed by nobody: %s", w.dump())
		}
	})
}

func TestReplyPastTheLeaseIsExtendedBeforeAnythingRuns(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.slowReplica("a", 10*w.ttl)
		w.must(a.Sync(w.Context()))
		extended := a.proxy.Count(lossy.Script(lock.ExtendSHA))
		a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(w.ttl))
		l, _ := a.wins(a.claim(1))
		if extended.N() != 1 {
			w.Errorf("extended %d times", extended.N())
		}
		if w.owner() != l.Run() {
			w.Errorf("the lock is %q's", w.owner())
		}
	})
}

func TestReplyPastTheLeaseThatCannotBeExtendedIsGivenBack(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a := w.slowReplica("a", 10*w.ttl)
		w.must(a.Sync(w.Context()))
		a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(w.ttl))
		a.proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.Delay(w.ttl))
		l, _, err := a.acquire(a.claim(1))
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %v", l, err)
		}
		if ds := w.dues(); len(ds) != 1 || !ds[0].Tick.Equal(w.tick(1)) || w.runs() != 0 {
			w.Errorf("%s", w.dump())
		}
	})
}

func TestReplyPastTheLeaseOfARunThatWasReapedMakesTheTickDueAgain(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.slowReplica("a", 10*w.ttl), w.replica("b")
		w.must(a.Sync(w.Context()))
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(2*w.ttl))
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.loses(a.claim(1), lock.Lost)
		}()
		<-f.Struck()
		b.reaps(1)
		<-done
		if ds := w.dues(); len(ds) != 1 || !ds[0].Tick.Equal(w.tick(1)) {
			w.Errorf("due: %+v", ds)
		}
	})
}

func TestReapedClaimThatIsAskedForAgainIsKnownNotToHaveStarted(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.born()
		a, b := w.replica("a"), w.replica("b")
		w.must(a.Sync(w.Context()))
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-f.Struck()
			w.must(a.proxy.Refuse(true))
			b.reaps(1)
			w.must(a.proxy.Refuse(false))
		}()
		a.loses(a.claim(1), lock.Fired)
		<-done
		if ds := w.dues(); len(ds) != 1 || !ds[0].Tick.Equal(w.tick(1)) {
			w.Errorf("due: %+v", ds)
		}
		if dump := w.dump(); strings.Contains(dump, ":memo:") {
			w.Errorf("the evidence that was used is still there: %s", dump)
		}
	})
}

func TestHurryEndsTheWaitForLateCopies(t *testing.T) {
	inBubble(t, func(w *world) {
		w.born()
		a := w.replica("a")
		a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		time.AfterFunc(2*time.Second, a.Store.Hurry)
		began := time.Now()
		if l, _, err := a.Store.Acquire(ctx, a.claim(1)); l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("%v, %v; want no answer", l, err)
		}
		if took := time.Since(began); took < 2*time.Second || took > 4*time.Second {
			w.Errorf("it waited for %s, want until it was told to hurry", took)
		}
	})
}
