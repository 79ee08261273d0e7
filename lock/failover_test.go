package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestClaimThatTooFewReplicasHaveIsNoAnswerAndIsTakenBack(t *testing.T) {
	t.Parallel()
	p := redisworld.NewPair(t)
	p.Born()
	a := p.Contender("a", 1)
	l, _ := a.Wins(a.Claim(1))
	a.Finishes(l, 0)

	p.Cut()
	b := p.Contender("b", 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	again := a.Proxy.On(lossy.Command("wait"), 2, lossy.Copy) // the first has counted too few
	go func() {
		select {
		case <-again.Struck():
			cancel()
		case <-ctx.Done():
		}
	}()
	l, got, err := a.Store.Acquire(ctx, a.Claim(2))
	if l != nil || got.Code != "" || !errors.Is(err, lock.ErrNoAnswer) {
		t.Fatalf("%v, %+v, %v", l, got, err)
	}
	p.DueTicks(2)
	b.Loses(b.Claim(2), lock.Waits)

	p.Ask(p.Copy, "REPLICAOF 127.0.0.1 "+strconv.Itoa(p.Master.Port()))
	c := a.Claim(2)
	c.Member = p.Dues()[0].Member()
	l, _ = a.Wins(c) // as soon as the replica is in step, by whichever copy of the question
	a.Finishes(l, 0)
}

func TestWaitGoesWithPromisesAlone(t *testing.T) {
	t.Parallel()
	p := redisworld.NewPair(t)
	p.Born()
	a := p.Contender("a", 1)
	waits, asked := a.Proxy.Count(lossy.Command("wait")), a.Proxy.Count(lossy.Script(lock.AcquireSHA))
	l, _ := a.Wins(a.Claim(1))
	if waits.N() != asked.N() { // the script's source may have had to follow its name
		t.Errorf("%d claims, %d times WAIT", asked.N(), waits.N())
	}
	before := waits.N()
	p.Must(l.Verify(t.Context()))
	p.Must(a.Sync(t.Context()))
	if waits.N() != before {
		t.Error("WAIT behind something else")
	}

	// One WAIT is enough for all claims of a batch.
	for i := range 100 {
		p.Born("many" + strconv.Itoa(i)) // before Redis is occupied, or it would wait for the end of that
	}
	before = waits.N()
	a.Gather(100, func(i int) {
		c := a.Claim(2)
		c.Job = "many" + strconv.Itoa(i)
		if l, answer, err := a.Asks(c); l == nil {
			t.Errorf("%+v, %v", answer, err)
		}
	})
	if n := waits.N() - before; n == 0 || n > 50 {
		t.Errorf("%d times WAIT for 100 claims", n)
	}
}

// TestFailoverForgetsNoClaimThatWasBelieved has the master die when its replica does not have the claim: that is the
// tick fired twice without waitReplicas, and the reason to set it.
func TestFailoverForgetsNoClaimThatWasBelieved(t *testing.T) {
	t.Parallel()
	for wait, want := range []int64{2, 1} {
		t.Run("waitReplicas "+strconv.Itoa(wait), func(t *testing.T) {
			t.Parallel()
			p := redisworld.NewPair(t)
			third := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(p.Copy.Port())) // which confirms the new master's answers
			third.AwaitCopy(p.Copy)
			p.Born()
			a := p.Contender("a", wait)
			b := p.ContenderAt("b", 0, func(ctx context.Context) (net.Conn, error) { return redisworld.DialTCP(ctx, p.Copy.Addr()) })
			p.Copy.AwaitCopy(p.Master)
			p.Cut()
			var fired atomic.Int64
			contend := func(r *redisworld.Replica) {
				l, answer, err := r.Asks(r.Claim(1))
				if l != nil {
					fired.Add(1)
				} else if answer.Code != lock.Fired && answer.Code != lock.Overlap {
					t.Errorf("%s: %+v, %v", r.Name, answer, err)
				}
			}
			claimed := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Copy)
			var asking sync.WaitGroup
			asking.Go(func() { contend(a) })
			<-claimed.Struck()
			for p.Runs() == 0 {
				p.Must(t.Context().Err())
			}
			if wait == 0 {
				asking.Wait()
			}
			p.Master.Kill()
			p.Ask(p.Copy, "REPLICAOF NO ONE")
			contend(b)
			p.TurnTo(p.Copy)
			asking.Wait()
			if got := fired.Load(); got != want {
				t.Errorf("fired %d times, want %d", got, want)
			}
		})
	}
}

func TestRefusalOfADemotedMasterIsAskedOfTheNewOne(t *testing.T) {
	t.Parallel()
	p := redisworld.NewPair(t)
	p.Born()
	a := p.Contender("a", 0)
	l, _ := a.Wins(a.Claim(1)) // a connection to the old one
	p.Copy.AwaitCopy(p.Master)
	p.Ask(p.Copy, "REPLICAOF NO ONE")
	p.Ask(p.Master, "REPLICAOF 127.0.0.1 "+strconv.Itoa(p.Copy.Port()))
	asked, settled := a.Proxy.Count(lossy.Script(lock.AcquireSHA)), a.Proxy.Count(lossy.Script(lock.SettleSHA))

	// The address still leads to the old one: it refuses, and that is an answer.
	ctx := contextUntil(t, func() bool { return asked.N() >= 3 })
	if l, _, err := a.Store.Acquire(ctx, a.Claim(2)); l != nil || !redis.IsReadOnlyError(redisworld.LastAnswer(err)) {
		t.Fatalf("%v, %v", l, err)
	}
	before := asked.N()
	if settled.N() != 0 {
		t.Errorf("it took %d claims back that were never made", settled.N())
	}

	p.TurnTo(p.Copy)
	a.Loses(a.Claim(2), lock.Overlap)
	p.Must(l.Verify(t.Context()))
	a.Finishes(l, 0)
	if asked.N() == before || settled.N() > 2 {
		t.Errorf("asked %d times, settled %d", asked.N(), settled.N())
	}
}

func TestRunOutlivesAFailoverBySentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 2, 1) // so that the new master has a replica, too, which confirms the end of the run
	w := redisworld.OnServer(t, s.Servers[0])
	w.TTL = 20 * time.Second
	o := redis.UniversalOptions{Addrs: s.Addrs(), MasterName: redistest.MasterName}
	a, b := w.ReplicaOf("a", o, 1), w.ReplicaOf("b", o, 0)
	w.Born()
	l, _ := a.Wins(a.Claim(1))
	ctx, stop := l.Keep(t.Context())
	defer stop()
	w.Must(b.Sync(t.Context()))
	for _, r := range s.Servers[1:] { // one of the two has confirmed the run; the Sentinels may choose the other
		r.AwaitCopy(w.Server)
	}
	w.Server.Kill()
	w.Server = s.AwaitMaster(w.Server)

	b.Loses(b.Claim(1), lock.Fired)
	b.Loses(b.Claim(2), lock.Overlap)
	for l.Verify(t.Context()) != nil { // the first may meet what is left of the old one
		w.Must(ctx.Err())
	}
	if ctx.Err() != nil || !l.Trusted() {
		t.Errorf("the run ended: %v", context.Cause(ctx))
	}
	stop()
	// On a busy machine the answer may come too late. Then the question is asked again, and nothing is known of the run
	// any more.
	entry := w.Entry(l, "succeeded")
	settled, err := l.Finish(t.Context(), 0, entry.Ending())
	ended, errEnded := b.Service.History(t.Context(), job, 2)
	recorded := errEnded == nil && len(ended) == 1 && ended[0].Run == l.Run()
	if err != nil || settled.Verdict != lock.OK && settled.Verdict != lock.None || !recorded {
		t.Errorf("finish: %s, %v; the history is %+v, %v", settled.Verdict, err, ended, errEnded)
	}
	b.Loses(b.Claim(2), lock.Fired)
}

func TestSlotThatMovedIsFollowed(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, "--cluster-require-full-coverage", "no")
	old := c.Owner(ledger)
	i := slices.Index(c.Masters, old)
	next, other := c.Masters[(i+1)%3], c.Masters[(i+2)%3]
	w := redisworld.OnServer(t, old)
	w.TTL = 10 * time.Second
	o := redis.UniversalOptions{Addrs: []string{other.Addr()}, IsClusterMode: true}
	a := w.LossyReplica("a", o, 0)
	w.Must(a.Sync(t.Context())) // knows where the slot is
	asked := a.Proxy.Count(lossy.Script(lock.AcquireSHA))
	c.Move(ledger, old, next)
	at := redisworld.OnServer(t, next)
	at.Start = w.Start
	at.Born()
	b := at.Replica("b")
	b.Wins(b.Claim(1))
	began := time.Now()
	a.Loses(a.Claim(2), lock.Overlap)
	if took := time.Since(began); asked.N() == 0 || took >= w.TTL {
		t.Errorf("the old one was asked %d times; %s is as long as a claim is waited for that may have been made", asked.N(), took)
	}

	// A node that died is asked no more than it takes to learn that another has its slots.
	at.Must(at.Admin.FlushAll(t.Context()).Err())
	next.Kill()
	c.Move(ledger, old, other)
	at = redisworld.OnServer(t, other)
	at.Start = w.Start
	at.Born()
	a.Wins(a.Claim(1)) // within a time that is shorter than the client's own patience with a dead node
}

// promise is something of which a failover must not know less than whoever asked for it.
type promise struct {
	name string
	ask  func(ctx context.Context, r *redisworld.Replica) error
}

// promisesOf are for two replicas while a run of the job lives: each can be asked for again, with the same id where it
// has one.
func promisesOf(w *redisworld.World, run, ends *lock.Lease) []promise {
	claim := func(policy lock.Policy, n int) func(context.Context, *redisworld.Replica) error {
		c := (&redisworld.Replica{World: w, Name: "a"}).ClaimUnder(policy, n)
		c.TTL = 1200 * time.Millisecond
		return func(ctx context.Context, r *redisworld.Replica) error {
			_, _, err := r.Store.Acquire(ctx, c)
			return err
		}
	}
	trigger, backfill := uuid.NewString(), uuid.NewString()
	return []promise{
		{"a tick that is refused", claim(lock.Forbid, 4)},
		{"a tick that is in nobody's way", func(ctx context.Context, r *redisworld.Replica) error {
			c := r.ClaimUnder(lock.Allow, 4)
			c.MayNotWin, c.TTL = true, 1200*time.Millisecond
			_, _, err := r.Store.Acquire(ctx, c)
			return err
		}},
		{"a tick that waits", claim(lock.Queue, 5)},
		{"a tick that was fired", claim(lock.Forbid, 1)},
		{"a trigger", func(ctx context.Context, r *redisworld.Replica) error {
			_, err := r.Service.Trigger(ctx, job, trigger)
			return err
		}},
		{"a backfill", func(ctx context.Context, r *redisworld.Replica) error {
			_, err := r.Service.Backfill(ctx, job, []time.Time{w.Tick(-10)}, backfill, false)
			return err
		}},
		{"a pause", func(ctx context.Context, r *redisworld.Replica) error {
			return r.Service.Pause(ctx, "other", "", time.Time{})
		}},
		{"a resumed job", func(ctx context.Context, r *redisworld.Replica) error {
			_, err := r.Service.Resume(ctx, "other")
			return err
		}},
		{"what was missed", func(ctx context.Context, r *redisworld.Replica) error {
			_, err := r.Book(ctx, job, "1-3 ", nil)
			return err
		}},
		{"a tick that is dropped", func(ctx context.Context, r *redisworld.Replica) error {
			_, _, err := r.Drop(ctx, lock.Due{Tick: w.Tick(-10), Job: job, Kind: "backfill", Attempt: 1, Nonce: backfill}, lock.Missed)
			if err != nil {
				return fmt.Errorf("%w: %w", lock.ErrNoAnswer, err) // it is not asked for again
			}
			return nil
		}},
		{"what a registration reads", func(ctx context.Context, r *redisworld.Replica) error {
			if _, err := r.Store.Register(ctx, "other", ""); err != nil {
				return fmt.Errorf("%w: %w", lock.ErrNoAnswer, err) // as above
			}
			return nil
		}},
		{"the end of a run", func(ctx context.Context, _ *redisworld.Replica) error {
			_, err := ends.Finish(ctx, 0, lock.Ending{})
			return err
		}},
		{"a tick that is handed on", func(ctx context.Context, _ *redisworld.Replica) error {
			_, err := run.Handover(ctx, 0, lock.Ending{})
			return err
		}},
	}
}

// TestWhatIsPromisedIsConfirmedByAReplicaOfRedisAlsoWhenItIsAskedForAgain asks for all of it while there is one, and
// again when there is none.
func TestWhatIsPromisedIsConfirmedByAReplicaOfRedisAlsoWhenItIsAskedForAgain(t *testing.T) {
	t.Parallel()
	p := redisworld.NewPair(t)
	p.Born("other", "ends")
	a := p.Contender("a", 1)
	run, _ := a.Wins(a.Claim(1))
	c := a.Claim(1)
	c.Job = "ends"
	ends, _ := a.Wins(c)
	promises := promisesOf(p.World, run, ends)
	waits := a.Proxy.Count(lossy.Command("wait"))
	for i, promised := range promises {
		if err := promised.ask(t.Context(), a); err != nil || waits.N() < i+1 {
			t.Errorf("%s: %v, %d times WAIT for %d of them", promised.name, err, waits.N(), i+1)
		}
	}
	p.Cut()
	a.Reopen(lock.Options{Timeout: 600 * time.Millisecond, WaitReplicas: 1}) // hasty, as no replica comes
	a.BeginShutdown()                                                        // the copies of claims are not waited for
	for _, promised := range promises {
		before := waits.N() // the one before has left a WAIT under way
		if err := promised.ask(contextUntil(t, func() bool { return waits.N() >= before+2 }), a); !errors.Is(err, lock.ErrNoAnswer) {
			t.Errorf("%s, of which no replica is sure: %v", promised.name, err)
		}
	}
}

// A failover could forget the claim of which was heard: the script, which waits for replicas, has to be asked.
func TestNoClaimIsHeardOfWhereReplicasAreWaitedFor(t *testing.T) {
	t.Parallel()
	p := redisworld.NewPair(t)
	p.Born()
	a, waits, trusts := p.Contender("a", 1), p.Contender("b", 1), p.Contender("c", 0)
	ctx, stop := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	nudges, heard := make(chan string, 10), make(chan lock.Heard, 10)
	listening.Go(func() {
		waits.Service.Listen(ctx, func(what string) { nudges <- what }, func(h lock.Heard) { t.Errorf("%+v", h) })
	})
	listening.Go(func() {
		trusts.Service.Listen(ctx, func(what string) { nudges <- what }, func(h lock.Heard) { heard <- h })
	})
	for range 2 {
		if what := <-nudges; what != service.AnyJob {
			t.Fatal(what)
		}
	}
	a.Wins(a.Claim(1))
	if what := <-nudges; what != service.RunBegan {
		t.Fatal(what)
	}
	if h := <-heard; h.Job != redisworld.Job || !h.Tick.Equal(p.Tick(1)) || h.Answer.Holder != "a" || h.Answer.Born.IsZero() {
		t.Errorf("%+v", h)
	}
}

// contextUntil returns a context that ends soon after done says so, so that a test waits for what happens and not for a
// time.
func contextUntil(t *testing.T, done func() bool) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		defer cancel()
		for ctx.Err() == nil && !done() {
			time.Sleep(10 * time.Millisecond)
		}
	})
	t.Cleanup(asking.Wait)
	return ctx
}
