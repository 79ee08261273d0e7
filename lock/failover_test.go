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

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/internal/proof/redistest"
	"github.com/solotick/solotick/lock"
)

// pair is a master and its replica behind one address, which is turned to the other by hand: as a name or a service that
// follows the master does.
type pair struct {
	*world
	master, replica *redistest.Server
	present         atomic.Pointer[redistest.Server]
}

func newPair(t *testing.T) *pair {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	p := &pair{world: onServer(t, master), master: master}
	p.replica = redistest.Start(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(master.Port()))
	p.replica.AwaitCopy(master)
	p.present.Store(master)
	p.dial = func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, p.present.Load().Addr()) }
	return p
}

// contender has a proxy of its own, and believes a claim when so many replicas of Redis have it.
func (p *pair) contender(name string, wait int) *replica { return p.contenderAt(name, wait, p.dial) }

func (p *pair) contenderAt(name string, wait int, dial func(context.Context) (net.Conn, error)) *replica {
	proxy := lossy.New(dial)
	r := p.replicaOf(name, redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: proxy.Dial}, wait)
	r.proxy = proxy
	p.Cleanup(proxy.Close)
	return r
}

// ask has a server do something that must not fail.
func (w *world) ask(s *redistest.Server, command string) {
	w.Helper()
	answer, err := s.Ask(command)
	if err != nil || answer != "+OK" {
		w.Fatalf("%s: %s, %v", command, answer, err)
	}
}

// cut takes the replica away from its master, which it then does not find again, and waits until the master knows.
func (p *pair) cut() {
	p.Helper()
	p.ask(p.replica, "REPLICAOF 127.0.0.1 1")
	for {
		info, err := p.master.Ask("INFO replication")
		p.must(err)
		if redistest.Field(info, "connected_slaves") == "0" {
			return
		}
		p.must(p.Context().Err())
	}
}

func TestClaimThatTooFewReplicasHaveIsNoAnswerAndIsTakenBack(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.born()
	a := p.contender("a", 1)
	l, _ := a.wins(a.claim(1))
	a.finishes(l, 0)

	p.cut()
	b := p.contender("b", 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l, got, err := a.Store.Acquire(ctx, a.claim(2))
	if l != nil || got.Code != "" || !errors.Is(err, lock.ErrNoAnswer) {
		t.Fatalf("%v, %+v, %v", l, got, err)
	}
	p.dueTicks(2)
	b.loses(b.claim(2), lock.Waits)

	p.ask(p.replica, "REPLICAOF 127.0.0.1 "+strconv.Itoa(p.master.Port()))
	c := a.claim(2)
	c.Member = p.dues()[0].Member()
	l, _ = a.wins(c) // as soon as the replica is in step, by whichever copy of the question
	a.finishes(l, 0)
}

func TestWaitGoesWithPromisesAlone(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.born()
	a := p.contender("a", 1)
	waits, asked := a.proxy.Count(lossy.Command("wait")), a.proxy.Count(lossy.Script(lock.AcquireSHA))
	l, _ := a.wins(a.claim(1))
	if waits.N() != asked.N() { // the script's source may have had to follow its name
		t.Errorf("%d claims, %d times WAIT", asked.N(), waits.N())
	}
	before := waits.N()
	p.must(l.Verify(t.Context()))
	p.must(a.Sync(t.Context()))
	if waits.N() != before {
		t.Error("WAIT behind something else")
	}

	// One WAIT is enough for all claims of a batch.
	for i := range 100 {
		p.born("many" + strconv.Itoa(i)) // before Redis is occupied, or it would wait for the end of that
	}
	before = waits.N()
	done := a.occupy(300 * time.Millisecond)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			c := a.claim(2)
			c.Job = "many" + strconv.Itoa(i)
			if l, answer, err := a.acquire(c); l == nil {
				t.Errorf("%+v, %v", answer, err)
			}
		})
	}
	wg.Wait()
	done()
	if n := waits.N() - before; n == 0 || n > 50 {
		t.Errorf("%d times WAIT for 100 claims", n)
	}
}

// TestFailoverForgetsNoClaimThatWasBelieved has the master die when its replica does not have the claim: that is the tick
// fired twice without waitReplicas, and the reason to set it.
func TestFailoverForgetsNoClaimThatWasBelieved(t *testing.T) {
	t.Parallel()
	for wait, want := range []int64{2, 1} {
		t.Run("waitReplicas "+strconv.Itoa(wait), func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			third := redistest.Start(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(p.replica.Port())) // which confirms the new master's answers
			third.AwaitCopy(p.replica)
			p.born()
			a := p.contender("a", wait)
			b := p.contenderAt("b", 0, func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, p.replica.Addr()) })
			p.replica.AwaitCopy(p.master)
			p.cut()
			var fired atomic.Int64
			contend := func(r *replica) {
				l, answer, err := r.acquire(r.claim(1))
				if l != nil {
					fired.Add(1)
				} else if answer.Code != lock.Fired && answer.Code != lock.Overlap {
					t.Errorf("%s: %+v, %v", r.name, answer, err)
				}
			}
			claimed := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.Copy)
			var asking sync.WaitGroup
			asking.Go(func() { contend(a) })
			<-claimed.Struck()
			for p.runs() == 0 {
				p.must(t.Context().Err())
			}
			if wait == 0 {
				asking.Wait()
			}
			p.master.Kill()
			p.ask(p.replica, "REPLICAOF NO ONE")
			contend(b)
			p.present.Store(p.replica)
			asking.Wait()
			if got := fired.Load(); got != want {
				t.Errorf("fired %d times, want %d", got, want)
			}
		})
	}
}

func TestRefusalOfADemotedMasterIsAskedOfTheNewOne(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.born()
	a := p.contender("a", 0)
	l, _ := a.wins(a.claim(1)) // a connection to the old one
	p.replica.AwaitCopy(p.master)
	p.ask(p.replica, "REPLICAOF NO ONE")
	p.ask(p.master, "REPLICAOF 127.0.0.1 "+strconv.Itoa(p.replica.Port()))
	asked, settled := a.proxy.Count(lossy.Script(lock.AcquireSHA)), a.proxy.Count(lossy.Script(lock.SettleSHA))

	// The address still leads to the old one: it refuses, and that is an answer.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if l, _, err := a.Store.Acquire(ctx, a.claim(2)); l != nil || !redis.IsReadOnlyError(last(err)) {
		t.Fatalf("%v, %v", l, err)
	}
	if asked.N() < 2 || settled.N() != 0 {
		t.Errorf("asked %d times, and took %d claims back that were never made", asked.N(), settled.N())
	}

	p.present.Store(p.replica)
	a.loses(a.claim(2), lock.Overlap)
	p.must(l.Verify(t.Context()))
	a.finishes(l, 0)
	if asked.N() < 3 || settled.N() > 2 {
		t.Errorf("asked %d times, settled %d", asked.N(), settled.N())
	}
}

func TestRunOutlivesAFailoverBySentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 2, 1) // so that the new master has a replica, too, which confirms the end of the run
	w := onServer(t, s.Servers[0])
	w.ttl = 20 * time.Second
	o := redis.UniversalOptions{Addrs: s.Addrs(), MasterName: redistest.MasterName}
	a, b := w.replicaOf("a", o, 1), w.replicaOf("b", o, 0)
	w.born()
	l, _ := a.wins(a.claim(1))
	ctx, stop := l.Keep(t.Context())
	defer stop()
	w.must(b.Sync(t.Context()))
	for _, r := range s.Servers[1:] { // one of the two has confirmed the run; the Sentinels may choose the other
		r.AwaitCopy(w.server)
	}
	w.server.Kill()
	w.server = s.AwaitMaster(w.server)

	b.loses(b.claim(1), lock.Fired)
	b.loses(b.claim(2), lock.Overlap)
	for l.Verify(t.Context()) != nil { // the first may meet what is left of the old one
		w.must(ctx.Err())
	}
	if ctx.Err() != nil || !l.Trusted() {
		t.Errorf("the run ended: %v", context.Cause(ctx))
	}
	stop()
	a.finishes(l, 0)
	b.loses(b.claim(2), lock.Fired)
}

func TestSlotThatMovedIsFollowed(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, "--cluster-require-full-coverage", "no")
	old := c.Owner(ledger)
	i := slices.Index(c.Masters, old)
	next, other := c.Masters[(i+1)%3], c.Masters[(i+2)%3]
	w := onServer(t, old)
	w.ttl = 10 * time.Second
	o := redis.UniversalOptions{Addrs: []string{other.Addr()}, IsClusterMode: true}
	a := w.lossyReplica("a", o, 0)
	w.must(a.Sync(t.Context())) // knows where the slot is
	asked := a.proxy.Count(lossy.Script(lock.AcquireSHA))
	c.Move(ledger, old, next)
	at := onServer(t, next)
	at.start = w.start
	at.born()
	b := at.replica("b")
	b.wins(b.claim(1))
	began := time.Now()
	a.loses(a.claim(2), lock.Overlap)
	if took := time.Since(began); asked.N() == 0 || took >= w.ttl {
		t.Errorf("the old one was asked %d times; %s is as long as a claim is waited for that may have been made", asked.N(), took)
	}

	// A node that died is asked no more than it takes to learn that another has its slots.
	at.must(at.admin.FlushAll(t.Context()).Err())
	next.Kill()
	c.Move(ledger, old, other)
	at = onServer(t, other)
	at.start = w.start
	at.born()
	a.wins(a.claim(1)) // within a time that is shorter than the client's own patience with a dead node
}

// promise is something of which a failover must not know less than whoever asked for it.
type promise struct {
	name string
	ask  func(ctx context.Context, r *replica) error
}

// promises are for two replicas while a run of the job lives: each can be asked for again, with the same id where it has one.
func (w *world) promises(run, ends *lock.Lease) []promise {
	claim := func(policy lock.Policy, n int) func(context.Context, *replica) error {
		c := (&replica{w: w, name: "a"}).claimUnder(policy, n)
		c.TTL = 1200 * time.Millisecond
		return func(ctx context.Context, r *replica) error {
			_, _, err := r.Store.Acquire(ctx, c)
			return err
		}
	}
	trigger, backfill := uuid.NewString(), uuid.NewString()
	return []promise{
		{"a tick that is refused", claim(lock.Forbid, 4)},
		{"a tick that is in nobody's way", func(ctx context.Context, r *replica) error {
			c := r.claimUnder(lock.Allow, 4)
			c.Look, c.TTL = true, 1200*time.Millisecond
			_, _, err := r.Store.Acquire(ctx, c)
			return err
		}},
		{"a tick that waits", claim(lock.Queue, 5)},
		{"a tick that was fired", claim(lock.Forbid, 1)},
		{"a trigger", func(ctx context.Context, r *replica) error {
			_, err := r.Trigger(ctx, job, trigger)
			return err
		}},
		{"a backfill", func(ctx context.Context, r *replica) error {
			_, err := r.Backfill(ctx, job, []time.Time{w.tick(-10)}, backfill)
			return err
		}},
		{"a pause", func(ctx context.Context, r *replica) error { return r.Pause(ctx, "other", "", time.Time{}) }},
		{"a resumed job", func(ctx context.Context, r *replica) error {
			_, err := r.Resume(ctx, "other")
			return err
		}},
		{"what was missed", func(ctx context.Context, r *replica) error {
			_, err := r.Book(ctx, job, "1-3 ", 1)
			return err
		}},
		{"a tick that is dropped", func(ctx context.Context, r *replica) error {
			_, _, err := r.Drop(ctx, lock.Due{Tick: w.tick(-10), Job: job, Kind: "backfill", Attempt: 1, Nonce: backfill}, true)
			if err != nil {
				return fmt.Errorf("%w: %w", lock.ErrNoAnswer, err) // it is not asked for again
			}
			return nil
		}},
		{"the end of a run", func(ctx context.Context, _ *replica) error {
			_, err := ends.Finish(ctx, 0, nil)
			return err
		}},
		{"a tick that is handed on", func(ctx context.Context, _ *replica) error {
			_, err := run.Handover(ctx, 0, nil)
			return err
		}},
	}
}

// TestWhatIsPromisedIsConfirmedByAReplicaOfRedisAlsoWhenItIsAskedForAgain asks for all of it while there is one, and again
// when there is none.
func TestWhatIsPromisedIsConfirmedByAReplicaOfRedisAlsoWhenItIsAskedForAgain(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.born("other", "ends")
	a := p.contender("a", 1)
	hasty, err := lock.New(a.rdb, service, lock.Options{Timeout: 600 * time.Millisecond, WaitReplicas: 1})
	p.must(err)
	a.Store = hasty
	run, _ := a.wins(a.claim(1))
	c := a.claim(1)
	c.Job = "ends"
	ends, _ := a.wins(c)
	promises := p.promises(run, ends)
	waits := a.proxy.Count(lossy.Command("wait"))
	for i, promised := range promises {
		if err := promised.ask(t.Context(), a); err != nil || waits.N() < i+1 {
			t.Errorf("%s: %v, %d times WAIT for %d of them", promised.name, err, waits.N(), i+1)
		}
	}
	p.cut()
	a.Hurry() // the copies of claims are not waited for
	for _, promised := range promises {
		short, cancel := context.WithTimeout(t.Context(), time.Second) // for what the one before has left under way, too
		if err := promised.ask(short, a); !errors.Is(err, lock.ErrNoAnswer) {
			t.Errorf("%s, of which no replica is sure: %v", promised.name, err)
		}
		cancel()
	}
}

// TestClaimWithSecondAsksTheScriptWhereReplicasAreWaitedFor has a replica believe nothing that another master might not know.
func TestClaimWithSecondAsksTheScriptWhereReplicasAreWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.born()
	a, b := p.contender("a", 1), p.contender("b", 1)
	a.wins(a.claim(1))
	reads := b.proxy.Count(lossy.Command("hmget"))
	c := b.claim(1)
	c.Second = true
	b.loses(c, lock.Fired)
	if reads.N() != 0 {
		t.Error("it has read the ledger, and believed it")
	}
}
