package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

func TestUnansweredClaimIsAskedAgainAndWinsOnce(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		asked := a.Proxy.Count(lossy.Script(lock.AcquireSHA))
		a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, loss)
		before := w.Field("tick")
		l, won := a.Wins(a.Claim(5))
		if asked.N() != 2 {
			w.Errorf("asked %d times", asked.N())
		}
		if w.Owner() != l.Run() || w.Runs() != 1 {
			w.Errorf("lock of %q, %d runs; the run is %q", w.Owner(), w.Runs(), l.Run())
		}
		// The repeated answer carries what the first one did.
		if got := fmtInt(l.Token); got != w.Field("token") || won.Token != l.Token {
			w.Errorf("token %s of the lease, %d of the answer, %s of the ledger", got, won.Token, w.Field("token"))
		}
		if got := fmtInt(won.Prev.UnixMilli()); got != before {
			w.Errorf("previous tick %s, want %s", got, before)
		}
		b.Loses(b.Claim(5), lock.Fired)
		a.Finishes(l, 0)
	})
}

func TestUnansweredExtensionSaysNothingAndTheNextOneIsBelieved(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a := w.Replica("a")
		l, _ := a.Wins(a.Claim(1))
		a.Proxy.On(lossy.Script(lock.ExtendSHA), 1, loss)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrNoAnswer) || errors.Is(err, lock.ErrLost) {
			w.Fatalf("Verify: %v", err)
		}
		if !l.Trusted() {
			w.Fatal("an extension without an answer took the trust away")
		}
		w.Must(l.Verify(w.Context()))
	})
}

func TestUnansweredFinishIsRepeatedAndCountsOnce(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		b.Loses(b.Claim(2), lock.Overlap)
		a.Proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		got, err := l.Finish(w.Context(), time.Second, lock.Ending{Entry: "succeeded"})
		if err != nil || got.Verdict != lock.OK && got.Verdict != lock.None {
			w.Fatalf("finish: %s, %v", got.Verdict, err)
		}
		entries, err := w.Admin.XRange(w.Context(), "solotick:{svc}:history:"+job, "-", "+").Result()
		if err != nil || len(entries) != 2 || entries[0].Values["tick"] == nil || entries[1].Values["run"] != "succeeded" {
			w.Errorf("want the overlap and the run in the history, got %v, %v", entries, err)
		}
		if w.Runs() != 0 || len(w.Dues()) != 0 || w.Field("overlap") != fmtInt(w.Tick(2).UnixMilli()) {
			w.Errorf("after finish: %s", w.Dump())
		}
		b.Wins(b.Claim(3))
	})
}

// The settlement that decides how the job stands is told so, even if its first answer was lost, and nobody else is.
func TestASettlementTellsHowManyTicksInARowHaveFailed(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		for n, c := range []struct {
			fate string
			want lock.Streak
		}{{"succeeded", lock.Streak{}}, {"failed", lock.Streak{Now: 1}}, {"failed", lock.Streak{Before: 1, Now: 2}}, {"declined", lock.Streak{Before: 2, Now: 2}},
			{"succeeded", lock.Streak{Before: 2}}} {
			l, _ := a.Wins(a.Claim(n + 1))
			if c.fate != "declined" { // which changes nothing, so nothing is kept of it for a repeated question
				a.Proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
			}
			got, err := l.Finish(w.Context(), 0, lock.Ending{Entry: c.fate, Fate: c.fate, Failed: c.fate == "failed"})
			if err != nil || got.Streak != c.want {
				w.Errorf("tick %d, %s: %+v, %v, want %+v", n+1, c.fate, got, err, c.want)
			}
		}
		l, _ := a.Wins(a.Claim(6))
		watch := b.NewWatcher()
		for _, r := range b.Unchanged(watch, w.TTL) {
			rec, ok, err := watch.Reap(w.Context(), r, func(lock.Record) lock.Ending {
				return lock.Ending{Entry: "interrupted", Fate: "interrupted", Failed: true}
			})
			if err != nil || !ok || rec.Streak != (lock.Streak{Now: 1}) {
				w.Errorf("taken over: %+v, %v, %v", rec, ok, err)
			}
		}
		a.Proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		if got, err := l.Finish(w.Context(), 0, lock.Ending{Entry: "failed", Fate: "failed", Failed: true}); err != nil || got.Streak != (lock.Streak{}) {
			w.Errorf("the replica that was taken over is told %+v, %v", got, err)
		}
	})
}

func TestUnansweredHandoverHandsTheTickOnOnce(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		a.Proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		if _, err := l.Handover(w.Context(), 0, lock.Ending{}); err != nil {
			w.Fatal(err)
		}
		ds := w.Dues()
		if len(ds) != 1 || !slices.Equal(ds[0].Refused, []string{"a"}) || ds[0].Rounds != 0 || ds[0].Kind != "handover" ||
			!ds[0].Tick.Equal(w.Tick(1)) {
			w.Fatalf("due: %+v", ds)
		}
		c := b.Claim(1)
		c.Member = ds[0].Member()
		b.Wins(c)
		if len(w.Dues()) != 0 {
			w.Errorf("still due: %+v", w.Dues())
		}
	})
}

func TestUnansweredReleaseLeavesNobodyElsesLockDeleted(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := a.Wins(a.Claim(1))
		a.Finishes(l, time.Minute)
		a.Proxy.On(lossy.Script(lock.ReleaseSHA), 1, loss)
		if err := l.Release(0)(w.Context()); err == nil {
			w.Fatal("no error")
		}
		next, _ := b.Wins(b.Claim(2))
		w.Must(l.Release(0)(w.Context()))
		if w.Owner() != next.Run() {
			w.Fatalf("the lock is %q's, not %q's", w.Owner(), next.Run())
		}
	})
}

func TestUnansweredRegistrationIsHarmless(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		a := w.Replica("a")
		a.Proxy.On(lossy.Script(lock.RegisterSHA), 1, loss)
		if _, err := a.Register(w.Context(), "fresh", "x"); err == nil {
			w.Fatal("no error")
		}
		first, err := a.Register(w.Context(), "fresh", "x")
		w.Must(err)
		again, err := a.Register(w.Context(), "fresh", "x")
		w.Must(err)
		if again != first || first.Born.IsZero() {
			w.Fatalf("%+v, then %+v", first, again)
		}
	})
}

// A caller registers its table, gives a copy up, and asks again. Others have reloaded when the copy arrives.
func TestRegistrationThatArrivesAfterItsSenderGaveUpChangesNothing(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(a.Sync(w.Context()))
		f := a.Proxy.On(lossy.Script(lock.RegisterSHA), 1, lossy.HangRequest)
		if _, err := a.Register(w.Context(), job, "x"); err == nil {
			w.Fatal("no error")
		}
		registers(a, "x", lock.Before{})
		changed := registers(b, "y", lock.Before{})
		w.Must(w.Admin.HSet(w.Context(), ledger, "gaps", "100-200 ").Err())
		w.Pass(2*a.Timeout + lock.Margin)
		deliverStale(w, f)
		if got := registers(b, "y", lock.Before{}); !got.Since.Equal(changed.Since) {
			w.Errorf("the ticks begin anew at %s, had begun at %s", got.Since, changed.Since)
		}
	})
}

func TestRegistrationMadeFromAWrongEstimateOfRedisClockIsSentAgain(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		registers(a, "x", lock.Before{})
		copies := a.Proxy.Count(lossy.Script(lock.RegisterSHA))
		w.Mini.SetTime(time.Now().Add(time.Hour)) // every `until` made from the estimate has passed
		if l := registers(a, "y", lock.Before{}); time.Until(l.Since) < 59*time.Minute || copies.N() != 2 {
			w.Errorf("%d copies: %+v", copies.N(), l)
		}

		w.Mini.SetTime(time.Now().Add(2 * time.Hour))
		ctx, cancel := context.WithTimeout(w.Context(), time.Millisecond)
		defer cancel()
		if _, err := a.Register(ctx, job, "z"); !errors.Is(err, context.DeadlineExceeded) || w.Field("schedule") != "y" {
			w.Errorf("given up: %v, with the schedule %s", err, w.Field("schedule"))
		}
	})
}

func TestRequestThatArrivesAfterItsSenderGaveUpHasNoEffect(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
		ctx, cancel := context.WithCancel(w.Context())
		go func() { <-f.Struck(); cancel() }()
		began := time.Now()
		l, _, err := a.Store.Acquire(ctx, a.Claim(1))
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, context.Canceled) {
			w.Fatalf("%v, %v", l, err)
		}
		if d := time.Since(began); d < w.TTL-lock.Margin {
			w.Errorf("gave up after %s, when the copy under way could still claim", d)
		}
		deliverStale(w, f)
		b.Wins(b.Claim(1))
	})
}

// deliverStale delivers the late copy of a request, which is refused and changes nothing.
func deliverStale(w *redisworld.World, f *lossy.Fault) {
	w.Helper()
	before := w.Dump()
	reply, err := f.Deliver(w.Context())
	if err != nil || !strings.Contains(reply, "STALE") {
		w.Fatalf("the late copy: %q, %v", reply, err)
	}
	if after := w.Dump(); after != before {
		w.Errorf("the late copy changed\n%s\nto\n%s", before, after)
	}
}

// Copies wait in the buffers of a Redis that stands still. If one of them claims a tick when it goes on, it is in the
// way of the next ticks for as long as nobody gives it back.
func TestClaimOfACopyThatArrivesAfterItsSenderGaveUpIsTakenBackLongBeforeItsWindowIsOver(t *testing.T) {
	for _, replicas := range []int{0, 1} { // those that are waited for may know the claim and not its end
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			redisworld.InBubble(t, func(w *redisworld.World) { playLateClaim(w, replicas) })
		})
	}
	t.Run("1 replica, which confirms all", func(t *testing.T) { // a failover may choose another one
		redisworld.InBubble(t, func(w *redisworld.World) {
			w.Warm() // the server begins with the first connection
			w.Mini.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				confirmed := strings.EqualFold(cmd, "WAIT")
				if confirmed {
					c.WriteInt(1)
				}
				return confirmed
			})
			playLateClaim(w, 1)
		})
	})
}

func playLateClaim(w *redisworld.World, replicas int) {
	w.Warm()
	w.Born()
	proxy := lossy.New(w.Dial)
	defer proxy.Close()
	a, b := w.ReplicaOf("a", redis.UniversalOptions{Addrs: []string{"redis:6379"}, Dialer: proxy.Dial}, replicas), w.Replica("b")
	f := proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
	ctx, cancel := context.WithCancel(w.Context()) // whose end, unlike a deadline, no copy knows beforehand
	go func() { <-f.Struck(); cancel() }()
	asked, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		if l, _, err := a.Store.Acquire(ctx, a.Claim(1)); l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("%v, %v", l, err)
		}
	}()
	<-f.Struck()
	time.Sleep(2 * time.Second)
	if reply, err := f.Deliver(w.Context()); err != nil || !strings.Contains(reply, "WON") {
		w.Fatalf("the late copy: %q, %v", reply, err)
	}
	time.Sleep(4 * time.Second)
	ds := w.Dues()
	if len(ds) != 1 || !ds[0].Tick.Equal(w.Tick(1)) || w.Owner() != "" || w.Runs() != 0 {
		w.Fatalf("due: %+v, lock of %q, %d runs", ds, w.Owner(), w.Runs())
	}
	b.Wins(b.Claim(2))
	last := proxy.Count(lossy.Script(lock.SettleSHA))
	<-ended
	if took := time.Since(asked); (took >= w.TTL) != (replicas > 0) || (last.N() > 0) != (replicas > 0) {
		w.Errorf("it returned after %s, and abandoned %d times more", took, last.N())
	}
}

func TestClaimThatWasAnsweredToNobodyIsTakenBack(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
		go func() {
			<-f.Struck()
			cancel()
		}()
		c := a.Claim(1)
		l, _, err := a.Store.Acquire(ctx, c)
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, context.Canceled) {
			w.Fatalf("%v, %v", l, err)
		}
		ds := w.Dues()
		if len(ds) != 1 || !ds[0].Tick.Equal(w.Tick(1)) || ds[0].Nonce != c.Run || ds[0].Attempt != 1 {
			w.Fatalf("due: %+v", ds)
		}
		if w.Owner() != "" || w.Runs() != 0 {
			w.Errorf("lock of %q, %d runs", w.Owner(), w.Runs())
		}
		// A copy of the claim does not pop what was put back.
		if reply, err := f.Deliver(w.Context()); err != nil || strings.Contains(reply, "WON") {
			w.Fatalf("the late copy: %q, %v", reply, err)
		}
		again := b.Claim(1)
		again.Member = ds[0].Member()
		b.Wins(again)
	})
}

// Taken back after a loss of all data, it made the tick due that another replica had claimed meanwhile.
func TestAQuestionThatCannotWinIsNotTakenBack(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.Replica("a")
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
		settled := a.Proxy.Count(lossy.Script(lock.SettleSHA))
		go func() {
			<-f.Struck()
			cancel()
		}()
		c := a.Claim(1)
		c.MayNotWin, c.Again = true, true
		if l, _, err := a.Store.Acquire(ctx, c); l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %v", l, err)
		}
		if settled.N() != 0 || len(w.Dues()) != 0 {
			w.Errorf("settled %d times, due: %+v", settled.N(), w.Dues())
		}
	})
}

func TestLoserAfterAnUnansweredClaimDoesNotWaitForACopyThatCannotWin(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		b.Wins(b.Claim(1))
		a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseRequest)
		settled := a.Proxy.Count(lossy.Script(lock.SettleSHA))
		began := time.Now()
		a.Loses(a.Claim(1), lock.Fired)
		if d := time.Since(began); d > time.Second {
			w.Errorf("took %s", d)
		}
		if settled.N() != 1 { // the FIRED may have been its own claim, reaped
			w.Errorf("abandoned %d times", settled.N())
		}
	})
}

func TestLoserWhoseCopyCouldStillWinWaitsAndTakesItBack(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		l, _ := b.Wins(b.Claim(1))
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseRequest)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Loses(a.Claim(2), lock.Overlap)
		}()
		<-f.Struck()
		time.Sleep(2 * time.Second)
		// The run in the way is handed on, so that the tick is free, and only then does the first copy arrive.
		_, err := l.Handover(w.Context(), time.Hour, lock.Ending{})
		w.Must(err)
		w.Must(w.Admin.HSet(w.Context(), ledger, "tick", w.Tick(1).UnixMilli()).Err())
		if reply, err := f.Deliver(w.Context()); err != nil || !strings.Contains(reply, "WON") {
			w.Fatalf("the late copy: %q, %v", reply, err)
		}
		<-done
		if w.Runs() != 0 || w.Owner() != "" {
			w.Errorf("claimed by nobody: %s", w.Dump())
		}
	})
}

func TestReplyPastTheLeaseIsExtendedBeforeAnythingRuns(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.SlowReplica("a", 10*w.TTL)
		w.Must(a.Sync(w.Context()))
		extended := a.Proxy.Count(lossy.Script(lock.ExtendSHA))
		a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(w.TTL))
		l, _ := a.Wins(a.Claim(1))
		if extended.N() != 1 {
			w.Errorf("extended %d times", extended.N())
		}
		if w.Owner() != l.Run() {
			w.Errorf("the lock is %q's", w.Owner())
		}
	})
}

func TestReplyPastTheLeaseThatCannotBeExtendedIsGivenBack(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.SlowReplica("a", 10*w.TTL)
		w.Must(a.Sync(w.Context()))
		a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(w.TTL))
		a.Proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.Delay(w.TTL))
		l, _, err := a.Asks(a.Claim(1))
		if l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Fatalf("%v, %v", l, err)
		}
		if ds := w.Dues(); len(ds) != 1 || !ds[0].Tick.Equal(w.Tick(1)) || w.Runs() != 0 {
			w.Errorf("%s", w.Dump())
		}
	})
}

func TestReplyPastTheLeaseOfARunThatWasReapedMakesTheTickDueAgain(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.SlowReplica("a", 10*w.TTL), w.Replica("b")
		w.Must(a.Sync(w.Context()))
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(2*w.TTL))
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Loses(a.Claim(1), lock.Lost)
		}()
		<-f.Struck()
		b.Reaps(1)
		<-done
		if ds := w.Dues(); len(ds) != 1 || !ds[0].Tick.Equal(w.Tick(1)) {
			w.Errorf("due: %+v", ds)
		}
	})
}

func TestReapedClaimThatIsAskedForAgainIsKnownNotToHaveStarted(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a, b := w.Replica("a"), w.Replica("b")
		w.Must(a.Sync(w.Context()))
		f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-f.Struck()
			w.Must(a.Proxy.Refuse(true))
			b.Reaps(1)
			w.Must(a.Proxy.Refuse(false))
		}()
		a.Loses(a.Claim(1), lock.Fired)
		<-done
		if ds := w.Dues(); len(ds) != 1 || !ds[0].Tick.Equal(w.Tick(1)) {
			w.Errorf("due: %+v", ds)
		}
		if dump := w.Dump(); strings.Contains(dump, "dead ") {
			w.Errorf("the evidence that was used is still there: %s", dump)
		}
	})
}

func TestShutdownEndsTheWaitForLateCopies(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Born()
		a := w.Replica("a")
		a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangRequest)
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		time.AfterFunc(2*time.Second, a.BeginShutdown)
		began := time.Now()
		if l, _, err := a.Store.Acquire(ctx, a.Claim(1)); l != nil || !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("%v, %v; want no answer", l, err)
		}
		if took := time.Since(began); took < 2*time.Second || took > 4*time.Second {
			w.Errorf("it waited for %s, want until the shutdown began", took)
		}
	})
}

func TestOtherRequestsFailureInTheCauseSaysNothingOfThisRequest(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		w.Warm()
		w.Born()
		a := w.Replica("a")
		w.Must(a.Sync(w.Context()))
		for name, cause := range map[string]error{
			"a dial that failed": &net.OpError{Op: "dial", Err: errors.New("connection refused")},
			"a closed client":    redis.ErrClosed,
			"a refusal of Redis": redis.ErrNoScript,
		} {
			ctx, cancel := context.WithCancelCause(w.Context())
			f := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.HangReply)
			go func() {
				<-f.Struck()
				cancel(fmt.Errorf("another job: %w", cause))
			}()
			l, _, err := a.Store.Acquire(ctx, lock.Claim{Job: job, Tick: w.Tick(1), TTL: w.TTL, Run: name[:1] + "-run"})
			if l != nil || !errors.Is(err, cause) {
				w.Fatalf("%s: %v, %v", name, l, err)
			}
			a.Proxy.Heal()
			if w.Runs() != 0 {
				w.Errorf("%s: a claim was left with nobody", name)
			}
			w.Must(w.Admin.HSet(w.Context(), ledger, "tick", 1).Err())
		}
	})
}
