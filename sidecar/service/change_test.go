package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// A change is each of the requests that set or delete something, and how to see whether it is done.
type change struct {
	name   string
	script string
	do     func(ctx context.Context, r *redisworld.Replica) (bool, error)
	undo   func(ctx context.Context, r *redisworld.Replica) (bool, error)
	done   func(r *redisworld.Replica) bool
}

var changes = []change{
	{"a timer is set", service.TimerSHA, setX, deleteX, hasX},
	{"a timer is deleted", service.TimerSHA, deleteX, setX, func(r *redisworld.Replica) bool { return !hasX(r) }},
}

func setX(ctx context.Context, r *redisworld.Replica) (bool, error) {
	made, err := r.Service.SetTimer(ctx, "x", r.World.Start.Add(time.Hour), []byte("source"))
	return made == service.TimerSet, err
}
func deleteX(ctx context.Context, r *redisworld.Replica) (bool, error) {
	return r.Service.DeleteTimer(ctx, "x")
}
func hasX(r *redisworld.Replica) bool { return r.Source("x") != "" && len(r.World.Dues()) == 1 }

// prepare makes Redis know the scripts, and leaves it so that the change is one.
func prepare(w *redisworld.World, c change) {
	w.Helper()
	r := w.Replica("warm")
	for _, act := range []func(context.Context, *redisworld.Replica) (bool, error){setX, deleteX, c.undo} {
		_, err := act(w.Context(), r)
		w.Must(err)
	}
	if c.done(r) {
		w.Fatalf("done before it is done: %s", w.Dump())
	}
}

func TestUnansweredChangeIsAskedForAgainAndAnsweredTheSame(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
				prepare(w, c)
				a := w.SlowReplica("a", 500*time.Millisecond)
				asked := a.Proxy.Count(lossy.Script(c.script))
				a.Proxy.On(lossy.Script(c.script), 1, loss)
				if ok, err := c.do(w.Context(), a); !ok || err != nil || asked.N() != 2 {
					w.Fatalf("%t, %v, asked %d times", ok, err, asked.N())
				}
				if !c.done(a) {
					w.Errorf("not done: %s", w.Dump())
				}
			})
		})
	}
}

// TestCopyThatIsStillUnderWayHasNoEffectWhenItsSenderHasReturned delivers the first copy of a request after what was
// done when its sender had returned, whatever its sender was told.
func TestCopyThatIsStillUnderWayHasNoEffectWhenItsSenderHasReturned(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			redisworld.OnEvery(t, func(w *redisworld.World) {
				prepare(w, c)
				a, b := w.SlowReplica("a", 2*time.Second), w.Replica("b")
				w.Must(a.Sync(w.Context()))
				late := a.Proxy.On(lossy.Script(c.script), 1, lossy.HangRequest)
				short, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				if _, err := c.do(short, a); !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
					w.Fatalf("%v", err)
				}
				later := a.Proxy.On(lossy.Script(c.script), 1, lossy.HangRequest)
				if ok, err := c.do(w.Context(), a); !ok || err != nil {
					w.Fatalf("%t, %v", ok, err)
				}
				if _, err := c.undo(w.Context(), b); err != nil {
					w.Fatal(err)
				}
				before := w.Dump()
				for _, f := range []*lossy.Fault{late, later} {
					_, err := f.Deliver(w.Context())
					w.Must(err)
				}
				if after := w.Dump(); after != before {
					w.Errorf("a late copy changed\n%s\nto\n%s", before, after)
				}
			})
		})
	}
}

func TestSecondCopyOfAChangeIsNotSentWhileTheFirstCanHaveAnEffect(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		w.Must(a.Sync(w.Context()))
		first := a.Proxy.On(lossy.Script(service.TimerSHA), 1, lossy.LoseRequest)
		second := a.Proxy.On(lossy.Script(service.TimerSHA), 1, lossy.Copy)
		asked := a.Proxy.Count(lossy.Script(service.TimerSHA))
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Sets("x", w.Tick(0), "", true)
		}()
		time.Sleep(time.Second) // the first copy's window
		if asked.N() != 1 {
			w.Errorf("asked %d times within the first window", asked.N())
		}
		<-done
		if took := time.Since(began); took > 2*time.Second {
			w.Errorf("it took %s", took)
		}
		// The request is the same, and the member that its copies make due is not.
		id := first.Words()[8] // EVALSHA, hash, 3, three keys, two more
		if got := second.Words()[8]; got != id+".1" {
			w.Errorf("the second copy of %s is %s", id, got)
		}
	})
}

func TestAnswerThatIsUnderWayIsWaitedForWhenTheContextEnds(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		w.Must(a.Sync(w.Context()))
		a.Proxy.On(lossy.Script(service.TimerSHA), 1, lossy.Delay(200*time.Millisecond))
		short, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		if made, err := a.Service.SetTimer(short, "x", w.Tick(0), nil); made != service.TimerSet || err != nil {
			w.Errorf("%s, %v", made, err)
		}
	})
}

func TestShutdownEndsTheWaitForCopiesOfAChange(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		a.Proxy.On(lossy.Script(service.TimerSHA), 1, lossy.LoseRequest)
		a.BeginShutdown()
		began := time.Now()
		if _, err := a.Service.SetTimer(w.Context(), "x", w.Tick(0), nil); !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("%v", err)
		}
		if took := time.Since(began); took > 600*time.Millisecond {
			w.Errorf("it took %s", took)
		}
	})
}

func TestChangeGoesOnWhenRedisClockIsNotWhereItWasThoughtToBe(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		a := w.Replica("a")
		w.Must(a.Sync(w.Context()))
		w.Mini.SetTime(time.Now().Add(time.Hour))
		a.Sets("x", w.Tick(0), "", true)
	})
}

// TestTimerThatFiresBeforeItsSenderHearsOfItWasSet has the whole life of a timer between the two copies of its request.
func TestTimerThatFiresBeforeItsSenderHearsOfItWasSet(t *testing.T) {
	redisworld.InBubble(t, func(w *redisworld.World) {
		prepare(w, changes[1])
		w.Must(w.Admin.Del(w.Context(), dueTimers, timerKey+"y").Err())
		w.KnowsTimers()
		a, b := w.Replica("a"), w.Replica("b")
		f := a.Proxy.On(lossy.Script(service.TimerSHA), 1, lossy.LoseReply)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Sets("y", w.Tick(0), "source", true)
		}()
		<-f.Struck()
		l, _ := b.Wins(b.ClaimOf(b.Sees()))
		b.Finishes(l, 0)
		<-done
		if len(w.Dues()) != 0 {
			w.Errorf("it is due again: %+v", w.Dues())
		}
	})
}

func TestUnansweredEndOfATimersRunForgetsIt(t *testing.T) {
	redisworld.OnEveryLoss(t, func(w *redisworld.World, loss lossy.Action) {
		prepare(w, changes[1])
		w.Must(w.Admin.Del(w.Context(), dueTimers, timerKey+"y").Err())
		w.KnowsTimers()
		a := w.Replica("a")
		a.Sets("y", w.Tick(0), "source", true)
		l, _ := a.Wins(a.ClaimOf(a.Sees()))
		a.Proxy.On(w.Script("../../lock/settle.lua"), 1, loss)
		if got, err := l.Finish(w.Context(), 0, lock.Ending{}); got.Verdict != lock.OK && got.Verdict != lock.None || err != nil {
			w.Errorf("finish: %s, %v", got.Verdict, err)
		}
		if a.Source("y") != "" {
			w.Error("its source is kept")
		}
		a.ComesTooLate("y")
	})
}

func TestTimerThatNeverStartedIsDueAgainAlthoughItWasReaped(t *testing.T) {
	redisworld.OnEvery(t, func(w *redisworld.World) {
		w.Warm()
		w.KnowsTimers()
		a, b := w.SlowReplica("a", 10*w.TTL), w.Replica("b")
		a.Sets("x", w.Tick(0), "source", true)
		c := a.ClaimOf(a.Sees())
		f := a.Proxy.On(w.Script("../../lock/acquire.lua"), 1, lossy.Delay(2*w.TTL))
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Loses(c, lock.Lost)
		}()
		<-f.Struck()
		b.Reaps(1)
		<-done
		d := b.Sees()
		if b.Source("x") != "source" {
			w.Error("its source is gone")
		}
		l, _ := b.Wins(b.ClaimOf(d))
		b.Finishes(l, 0)
	})
}

func TestTimersAreDeletedAndRunToTheirEndWhenRedisMemoryIsFull(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) { // miniredis has no limit
		prepare(w, changes[1])
		w.KnowsTimers()
		a := w.Replica("a")
		a.Sets("y", w.Tick(0), "source", true)
		l, _ := a.Wins(a.ClaimOf(a.Sees()))
		w.Must(w.Admin.ConfigSet(w.Context(), "maxmemory", "1").Err())
		before := w.Dump()
		// The caller gives up while the request is under way: the request ends with its answer, however late.
		asked := a.Proxy.On(lossy.Script(service.TimerSHA), 1, lossy.Copy)
		ctx, giveUp := context.WithCancel(w.Context())
		set := make(chan error)
		go func() {
			_, err := a.Service.SetTimer(ctx, "z", w.Tick(0), nil)
			set <- err
		}()
		<-asked.Struck()
		giveUp()
		if err := <-set; err == nil || !strings.Contains(redisworld.LastAnswer(err).Error(), "OOM command not allowed") {
			w.Errorf("set: %v", err)
		}
		if after := w.Dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		if ok, err := deleteX(w.Context(), a); !ok || err != nil {
			w.Errorf("delete: %t, %v", ok, err)
		}
		a.Finishes(l, 0)
		if a.Source("y") != "" || a.Source("x") != "" {
			w.Errorf("left: %s", w.Dump())
		}
	}, "--maxmemory-policy", "noeviction")
}

// TestChangeThatTooFewReplicasHaveIsNoAnswer is for each of them: what is promised must outlive a failover.
func TestChangeThatTooFewReplicasHaveIsNoAnswer(t *testing.T) {
	t.Parallel()
	p := redisworld.NewPair(t)
	a, b := p.Contender("a", 1), p.Contender("b", 0)
	for _, c := range changes {
		prepare(p.World, c)
		if ok, err := c.do(t.Context(), a); !ok || err != nil {
			t.Errorf("%s: %t, %v", c.name, ok, err)
		}
	}
	p.Cut()
	for _, c := range changes {
		if _, err := c.undo(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		asked, cancel := context.WithCancel(t.Context())
		counted := a.Proxy.On(lossy.Command("wait"), 1, lossy.Copy)
		go func() {
			select {
			case <-counted.Struck():
				cancel()
			case <-asked.Done():
			}
		}()
		if _, err := c.do(asked, a); !errors.Is(err, lock.ErrNoAnswer) {
			t.Errorf("%s: %v", c.name, err)
		}
		cancel()
	}
}
