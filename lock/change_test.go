package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

// A change is each of the requests that set or delete something, and how to see whether it is done.
type change struct {
	name   string
	script string
	do     func(ctx context.Context, r *replica) (bool, error)
	undo   func(ctx context.Context, r *replica) (bool, error)
	done   func(r *replica) bool
}

var changes = []change{
	{"a timer is set", lock.TimerSHA, setX, deleteX, hasX},
	{"a timer is deleted", lock.TimerSHA, deleteX, setX, func(r *replica) bool { return !hasX(r) }},
	{"a job is set", lock.DynamicSHA, setJ, deleteJ, hasJ},
	{"a job is deleted", lock.DynamicSHA, deleteJ, setJ, func(r *replica) bool { return !hasJ(r) }},
}

func setX(ctx context.Context, r *replica) (bool, error) {
	return r.SetTimer(ctx, "x", r.w.start.Add(time.Hour), []byte("source"))
}
func deleteX(ctx context.Context, r *replica) (bool, error) { return r.DeleteTimer(ctx, "x") }
func hasX(r *replica) bool                                  { return r.source("x") != "" && len(r.w.dues()) == 1 }
func setJ(ctx context.Context, r *replica) (bool, error)    { return r.SetJob(ctx, "j", []byte("source")) }
func deleteJ(ctx context.Context, r *replica) (bool, error) { return r.DeleteJob(ctx, "j") }
func hasJ(r *replica) bool {
	r.w.Helper()
	_, jobs, err := r.DynamicJobs(r.w.Context())
	r.w.must(err)
	return len(jobs) == 1
}

// prepare makes Redis know the scripts, and leaves it so that the change is one.
func (w *world) prepare(c change) {
	w.Helper()
	r := w.replica("warm")
	for _, act := range []func(context.Context, *replica) (bool, error){setX, setJ, deleteX, deleteJ, c.undo} {
		_, err := act(w.Context(), r)
		w.must(err)
	}
	if c.done(r) {
		w.Fatalf("done before it is done: %s", w.dump())
	}
}

func TestUnansweredChangeIsAskedForAgainAndAnsweredTheSame(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			onEveryLoss(t, func(w *world, loss lossy.Action) {
				w.prepare(c)
				a := w.slowReplica("a", 500*time.Millisecond)
				asked := a.proxy.Count(lossy.Script(c.script))
				a.proxy.On(lossy.Script(c.script), 1, loss)
				if ok, err := c.do(w.Context(), a); !ok || err != nil || asked.N() != 2 {
					w.Fatalf("%t, %v, asked %d times", ok, err, asked.N())
				}
				if !c.done(a) {
					w.Errorf("not done: %s", w.dump())
				}
			})
		})
	}
}

// TestCopyThatIsStillUnderWayHasNoEffectWhenItsSenderHasReturned delivers the first copy of a request after what was done
// when its sender had returned, whatever its sender was told.
func TestCopyThatIsStillUnderWayHasNoEffectWhenItsSenderHasReturned(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			onEvery(t, func(w *world) {
				w.prepare(c)
				a, b := w.slowReplica("a", 500*time.Millisecond), w.replica("b")
				w.must(a.Sync(w.Context()))
				late := a.proxy.On(lossy.Script(c.script), 1, lossy.HangRequest)
				short, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := c.do(short, a); !errors.Is(err, lock.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) {
					w.Fatalf("%v", err)
				}
				later := a.proxy.On(lossy.Script(c.script), 1, lossy.HangRequest)
				if ok, err := c.do(w.Context(), a); !ok || err != nil {
					w.Fatalf("%t, %v", ok, err)
				}
				if _, err := c.undo(w.Context(), b); err != nil {
					w.Fatal(err)
				}
				before := w.dump()
				for _, f := range []*lossy.Fault{late, later} {
					_, err := f.Deliver(w.Context())
					w.must(err)
				}
				if after := w.dump(); after != before {
					w.Errorf("a late copy changed\n%s\nto\n%s", before, after)
				}
			})
		})
	}
}

func TestSecondCopyOfAChangeIsNotSentWhileTheFirstCanHaveAnEffect(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.replica("a")
		w.must(a.Sync(w.Context()))
		first := a.proxy.On(lossy.Script(lock.TimerSHA), 1, lossy.LoseRequest)
		second := a.proxy.On(lossy.Script(lock.TimerSHA), 1, lossy.Copy)
		asked := a.proxy.Count(lossy.Script(lock.TimerSHA))
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.sets("x", w.tick(0), "", true)
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
	inBubble(t, func(w *world) {
		a := w.replica("a")
		w.must(a.Sync(w.Context()))
		a.proxy.On(lossy.Script(lock.TimerSHA), 1, lossy.Delay(200*time.Millisecond))
		short, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		if ok, err := a.SetTimer(short, "x", w.tick(0), nil); !ok || err != nil {
			w.Errorf("%t, %v", ok, err)
		}
	})
}

func TestHurryEndsTheWaitForCopiesOfAChange(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.replica("a")
		a.proxy.On(lossy.Script(lock.TimerSHA), 1, lossy.LoseRequest)
		a.Hurry()
		began := time.Now()
		if _, err := a.SetTimer(w.Context(), "x", w.tick(0), nil); !errors.Is(err, lock.ErrNoAnswer) {
			w.Errorf("%v", err)
		}
		if took := time.Since(began); took > 600*time.Millisecond {
			w.Errorf("it took %s", took)
		}
	})
}

func TestChangeGoesOnWhenRedisClockIsNotWhereItWasThoughtToBe(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.replica("a")
		w.must(a.Sync(w.Context()))
		w.mini.SetTime(time.Now().Add(time.Hour))
		a.sets("x", w.tick(0), "", true)
	})
}

// TestTimerThatFiresBeforeItsSenderHearsOfItWasSet has the whole life of a timer between the two copies of its request.
func TestTimerThatFiresBeforeItsSenderHearsOfItWasSet(t *testing.T) {
	inBubble(t, func(w *world) {
		w.prepare(changes[1])
		w.must(w.admin.Del(w.Context(), dueTimers, timerKey+"y").Err())
		w.knowsTimers()
		a, b := w.replica("a"), w.replica("b")
		f := a.proxy.On(lossy.Script(lock.TimerSHA), 1, lossy.LoseReply)
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.sets("y", w.tick(0), "source", true)
		}()
		<-f.Struck()
		l, _ := b.wins(b.claimOf(b.sees()))
		b.finishes(l, 0)
		<-done
		if len(w.dues()) != 0 {
			w.Errorf("it is due again: %+v", w.dues())
		}
	})
}

func TestUnansweredEndOfATimersRunForgetsIt(t *testing.T) {
	onEveryLoss(t, func(w *world, loss lossy.Action) {
		w.prepare(changes[1])
		w.must(w.admin.Del(w.Context(), dueTimers, timerKey+"y").Err())
		w.knowsTimers()
		a := w.replica("a")
		a.sets("y", w.tick(0), "source", true)
		l, _ := a.wins(a.claimOf(a.sees()))
		a.proxy.On(lossy.Script(lock.SettleSHA), 1, loss)
		if got, err := l.Finish(w.Context(), 0, nil); got != lock.OK && got != lock.None || err != nil {
			w.Errorf("finish: %s, %v", got, err)
		}
		if a.source("y") != "" {
			w.Error("its source is kept")
		}
		a.comesTooLate("y")
	})
}

func TestTimerThatNeverStartedIsDueAgainAlthoughItWasReaped(t *testing.T) {
	onEvery(t, func(w *world) {
		w.warm()
		w.knowsTimers()
		a, b := w.slowReplica("a", 10*w.ttl), w.replica("b")
		a.sets("x", w.tick(0), "source", true)
		c := a.claimOf(a.sees())
		f := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Delay(2*w.ttl))
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.loses(c, lock.Lost)
		}()
		<-f.Struck()
		b.reaps(1)
		<-done
		d := b.sees()
		if b.source("x") != "source" {
			w.Error("its source is gone")
		}
		l, _ := b.wins(b.claimOf(d))
		b.finishes(l, 0)
	})
}

func TestTimersAreDeletedAndRunToTheirEndWhenRedisMemoryIsFull(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) { // miniredis has no limit
		w.prepare(changes[1])
		w.knowsTimers()
		a := w.replica("a")
		a.sets("y", w.tick(0), "source", true)
		l, _ := a.wins(a.claimOf(a.sees()))
		a.setsJob("j", "source", true)
		w.must(w.admin.ConfigSet(w.Context(), "maxmemory", "1").Err())
		before := w.dump()
		// The caller gives up while the request is under way: the request ends with its answer, however late.
		asked := a.proxy.On(lossy.Script(lock.TimerSHA), 1, lossy.Copy)
		ctx, giveUp := context.WithCancel(w.Context())
		set := make(chan error)
		go func() {
			_, err := a.SetTimer(ctx, "z", w.tick(0), nil)
			set <- err
		}()
		<-asked.Struck()
		giveUp()
		if err := <-set; err == nil || !redis.HasErrorPrefix(last(err), "OOM") {
			w.Errorf("set: %v", err)
		}
		if after := w.dump(); after != before {
			w.Errorf("it has changed\n%s\nto\n%s", before, after)
		}
		if ok, err := deleteX(w.Context(), a); !ok || err != nil {
			w.Errorf("delete: %t, %v", ok, err)
		}
		a.finishes(l, 0)
		if a.source("y") != "" || a.source("x") != "" {
			w.Errorf("left: %s", w.dump())
		}
		a.deletesJob("j", true)
	}, "--maxmemory-policy", "noeviction")
}

// TestChangeThatTooFewReplicasHaveIsNoAnswer is for each of them: what is promised must outlive a failover.
func TestChangeThatTooFewReplicasHaveIsNoAnswer(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a, b := p.contender("a", 1), p.contender("b", 0)
	for _, c := range changes {
		p.prepare(c)
		if ok, err := c.do(t.Context(), a); !ok || err != nil {
			t.Errorf("%s: %t, %v", c.name, ok, err)
		}
	}
	p.cut()
	for _, c := range changes {
		if _, err := c.undo(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := c.do(short, a); !errors.Is(err, lock.ErrNoAnswer) {
			t.Errorf("%s: %v", c.name, err)
		}
		cancel()
	}
}
