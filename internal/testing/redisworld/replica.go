package redisworld

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// Replica is one process: two Stores over one connection, with a proxy and clocks of its own.
type Replica struct {
	*lock.Store
	Service *service.Store
	World   *World
	Name    string
	Proxy   *lossy.Proxy // nil: it has none
	Client  redis.UniversalClient
	Timeout time.Duration

	asleep atomic.Int64 // how far its CLOCK_BOOTTIME has run ahead of its timers
}

// Sync asks Redis for its time until it is answered: on a busy machine the first answer may take longer than the round
// trip that a test has its replica wait for.
func (r *Replica) Sync(ctx context.Context) error {
	for {
		err := r.Store.Sync(ctx)
		if late := net.Error(nil); !errors.As(err, &late) || !late.Timeout() || ctx.Err() != nil {
			return err
		}
	}
}

// Replica is one behind a proxy of its own.
func (w *World) Replica(name string) *Replica { return w.SlowReplica(name, w.Timeout()) }

// SlowReplica is more patient with a round trip than is usual.
func (w *World) SlowReplica(name string, timeout time.Duration) *Replica {
	w.Helper()
	r := &Replica{World: w, Name: name, Proxy: lossy.New(w.Dial), Timeout: timeout}
	r.Client = lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: r.Proxy.Dial}, timeout)
	r.open(0)
	w.Cleanup(func() {
		_ = r.Client.Close()
		r.Proxy.Close()
		if w.Mini != nil {
			time.Sleep(time.Second) // so often a client that was cut off for long looks whether it was closed
		}
	})
	return r
}

// ReplicaOf is a replica whose client has options of its own, and believes a claim when so many replicas of Redis have
// it.
func (w *World) ReplicaOf(name string, o redis.UniversalOptions, wait int) *Replica {
	w.Helper()
	r := &Replica{World: w, Name: name, Timeout: w.Timeout(), Client: lock.NewClient(o, w.Timeout())}
	w.Cleanup(func() { _ = r.Client.Close() })
	r.open(wait)
	return r
}

// LossyReplica is ReplicaOf with a proxy before the server that holds the keys now. The way to all others is as it was.
func (w *World) LossyReplica(name string, o redis.UniversalOptions, wait int) *Replica {
	w.Helper()
	addr, proxy := w.Server.Addr(), lossy.New(w.Dial)
	o.Dialer = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == addr {
			return proxy.Dial(ctx, network, to)
		}
		return DialTCP(ctx, to)
	}
	r := w.ReplicaOf(name, o, wait)
	r.Proxy = proxy
	w.Cleanup(proxy.Close)
	return r
}

func (r *Replica) open(wait int) {
	r.World.Helper()
	r.Reopen(lock.Options{Timeout: r.Timeout, Boottime: r.boottime, WaitReplicas: wait})
}

// Reopen gives the replica Stores with other options.
func (r *Replica) Reopen(o lock.Options) {
	r.World.Helper()
	s, err := service.New(r.Client, Service, o)
	r.World.Must(err)
	r.Service, r.Store = s, s.Locks
}

func (r *Replica) boottime() time.Duration {
	return time.Since(r.World.Start) + time.Duration(r.asleep.Load())
}

// Suspend lets the machine sleep: CLOCK_BOOTTIME goes on, timers stand still.
func (r *Replica) Suspend(d time.Duration) { r.asleep.Add(int64(d)) }

// CutOff lets nothing through to Redis any more.
func (r *Replica) CutOff() {
	r.World.Helper()
	r.World.Must(r.Proxy.Refuse(true))
	r.Proxy.Cut()
}

// Claim is for a tick that comes due at this moment.
func (r *Replica) Claim(n int) lock.Claim {
	return lock.Claim{Job: Job, Tick: r.World.Tick(n), Due: time.Now().Truncate(time.Millisecond), TTL: r.World.TTL,
		Replica: r.Name, Run: uuid.NewString()}
}

// ClaimUnder is the claim of a tick under a policy.
func (r *Replica) ClaimUnder(policy lock.Policy, n int) lock.Claim {
	c := r.Claim(n)
	c.Policy = policy
	return c
}

// ClaimOf is the claim of a due member.
func (r *Replica) ClaimOf(d lock.Due) lock.Claim {
	return lock.Claim{Job: d.Job, Tick: d.Tick, TTL: r.World.TTL, Replica: r.Name, Run: uuid.NewString(), Kind: d.Kind,
		Attempt: d.Attempt, Rounds: d.Rounds, Deaths: d.Deaths, Refused: d.Refused, Member: d.Member()}
}

// Asks makes a claim within a time that is ample for any answer.
func (r *Replica) Asks(c lock.Claim) (*lock.Lease, lock.Answer, error) {
	return r.AsksFor(4*r.World.TTL, c)
}

// AsksFor makes a claim until a time is over.
func (r *Replica) AsksFor(d time.Duration, c lock.Claim) (*lock.Lease, lock.Answer, error) {
	ctx, cancel := context.WithTimeout(r.World.Context(), d)
	defer cancel()
	l, a, err := r.Acquire(ctx, c)
	if l != nil {
		r.World.claims.Store(l.Run(), c)
	}
	return l, a, err
}

// Wins makes a claim, and demands that it is won.
func (r *Replica) Wins(c lock.Claim) (*lock.Lease, lock.Answer) {
	r.World.Helper()
	l, a, err := r.Asks(c)
	if err != nil || l == nil || a.Code != lock.Won {
		r.World.Fatalf("%s did not win: %+v, %v", r.Name, a, err)
	}
	if !l.Trusted() {
		r.World.Fatal("a lease that is not trusted was handed out")
	}
	return l, a
}

// Loses makes a claim, and demands an answer to it.
func (r *Replica) Loses(c lock.Claim, want lock.Code) lock.Answer {
	r.World.Helper()
	l, a, err := r.Asks(c)
	if err != nil || l != nil || a.Code != want {
		r.World.Fatalf("%s: %+v, %v; want %s", r.Name, a, err, want)
	}
	return a
}

// Entry is the history entry of a run that a replica of this world has won by Wins or Asks.
func (w *World) Entry(l *lock.Lease, outcome string) service.Entry {
	w.Helper()
	claimed, ok := w.claims.Load(l.Run())
	if !ok {
		w.Fatalf("nobody has won run %s", l.Run())
	}
	c := claimed.(lock.Claim)
	return service.Entry{Job: c.Job, Tick: c.Tick, Run: l.Run(), Replica: cmp.Or(c.Replica, "-"),
		Kind: cmp.Or(c.Kind, "schedule"), Attempt: max(c.Attempt, 1), Outcome: outcome}
}

// Finishes ends a run that has succeeded.
func (r *Replica) Finishes(l *lock.Lease, delay time.Duration) {
	r.World.Helper()
	e := r.World.Entry(l, "succeeded")
	if got, err := l.Finish(r.World.Context(), delay, e.Ending()); err != nil || got.Verdict != lock.OK {
		r.World.Fatalf("finish: %s, %v", got.Verdict, err)
	}
}

// Looks is what one look sees of the runs.
func (r *Replica) Looks() []lock.Running {
	r.World.Helper()
	seen, err := r.Service.Look(r.World.Context(), 100)
	r.World.Must(err)
	return seen.Runs
}

// Sees is the only member that is due.
func (r *Replica) Sees() lock.Due {
	r.World.Helper()
	seen, err := r.Service.Look(r.World.Context(), 10)
	if err != nil || len(seen.Due) != 1 {
		r.World.Fatalf("due: %+v, %v", seen, err)
	}
	return seen.Due[0]
}

// Unchanged watches for d and returns what has not moved.
func (r *Replica) Unchanged(watch *lock.Watcher, d time.Duration) []lock.Running {
	r.World.Helper()
	ttl := func(string) time.Duration { return r.World.TTL }
	if old := watch.Unchanged(r.Looks(), ttl); len(old) != 0 {
		r.World.Fatalf("unchanged at first sight: %v", old)
	}
	r.World.Pass(d)
	return watch.Unchanged(r.Looks(), ttl)
}

// Reaps watches for a whole ttl, and takes over n runs.
func (r *Replica) Reaps(n int) {
	r.World.Helper()
	watch := r.NewWatcher()
	old := r.Unchanged(watch, r.World.TTL)
	if len(old) != n {
		r.World.Errorf("%d runs unchanged, want %d", len(old), n)
	}
	for _, run := range old {
		_, ok, err := watch.Reap(r.World.Context(), run, func(rec lock.Record) lock.Ending {
			e := service.Entry{Job: run.Job, Tick: rec.Tick, Run: run.Run, Replica: rec.Replica, Kind: rec.Kind,
				Attempt: rec.Attempt, Outcome: "interrupted"}
			return e.Ending()
		})
		if err != nil || !ok {
			r.World.Errorf("reap: %v, %v", ok, err)
		}
	}
}
