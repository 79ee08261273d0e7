package lock_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/internal/proof/redistest"
	"github.com/solotick/solotick/lock"
)

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	_ = flag.Set("test.parallel", "32") // the cases on a real Redis wait for it; they do not compute
	goleak.VerifyTestMain(m)
}

// quiet drops what the client logs of connections that the cases cut.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

const (
	service = "svc"
	job     = "billing"
	lockKey = "solotick:{svc}:lock:billing"
	ledger  = "solotick:{svc}:job:billing"
	running = "solotick:{svc}:running"
	dueSet  = "solotick:{svc}:due"
)

// world is one Redis, over which a case is played: miniredis in a bubble, or a redis-server in real time.
type world struct {
	*testing.T
	mini   *miniredis.Miniredis // nil: a real one
	server *redistest.Server    // nil: miniredis
	ttl    time.Duration
	start  time.Time
	dial   func(context.Context) (net.Conn, error)
	admin  redis.UniversalClient // not through a proxy
}

// onEvery plays a case on miniredis in a bubble, and on a redis-server: there beside the others, when all bubbles are
// done, since it is time and not work that it takes.
func onEvery(t *testing.T, play func(w *world)) {
	t.Run("miniredis", func(t *testing.T) { inBubble(t, play) })
	t.Parallel()
	t.Run("redis", func(t *testing.T) { onReal(t, play) })
}

// inBubble is for cases that need hours, or a Redis whose clock can be set.
func inBubble(t *testing.T, play func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true)
		w := &world{T: t, mini: mini, ttl: 15 * time.Second, start: time.Now(),
			dial: func(context.Context) (net.Conn, error) { return mini.Dial() }}
		t.Cleanup(mini.Close)
		w.admin = w.client(func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx) })
		play(w)
	})
}

func onReal(t *testing.T, play func(w *world), args ...string) {
	server := redistest.Start(t, args...)
	w := &world{T: t, server: server, ttl: 4 * time.Second, start: time.Now(),
		dial: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", server.Addr())
		}}
	w.admin = w.client(func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx) })
	play(w)
}

func (w *world) client(dial func(ctx context.Context, network, addr string) (net.Conn, error)) redis.UniversalClient {
	c := lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: dial}, w.timeout())
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// timeout of a round trip: on the real one long enough for a busy machine.
func (w *world) timeout() time.Duration {
	if w.mini != nil {
		return 500 * time.Millisecond
	}
	return 2 * time.Second
}

// pass lets d pass on Redis' clock and on everybody's.
func (w *world) pass(d time.Duration) {
	w.Helper()
	if w.mini != nil {
		time.Sleep(d)
		return
	}
	// A real Redis cannot be told the time; the wait is on its clock: nobody ever pushes to that list.
	c := redis.NewClient(&redis.Options{Addr: w.server.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	defer c.Close()
	for until := w.now().Add(d); w.now().Before(until); {
		left := max(time.Until(until), 10*time.Millisecond).Seconds()
		if err := c.Do(w.Context(), "blpop", "nothing comes to {svc}", left).Err(); !errors.Is(err, redis.Nil) {
			w.Fatalf("waiting: %v", err)
		}
	}
}

// now is Redis' time.
func (w *world) now() time.Time {
	w.Helper()
	t, err := w.admin.Time(w.Context()).Result()
	w.must(err)
	return t
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// tick is the nth nominal second after the case began, in the past for Redis as soon as it comes to be asked for.
func (w *world) tick(n int) time.Time {
	return w.start.Truncate(time.Millisecond).Add(time.Duration(n) * time.Millisecond)
}

// warm makes Redis know the scripts, so that a case counts requests and not NOSCRIPT.
func (w *world) warm() {
	w.Helper()
	r := w.replica("warm")
	w.born("warm")
	l, _ := r.wins(lock.Claim{Job: "warm", Tick: w.tick(0), TTL: w.ttl})
	w.must(l.Verify(w.Context()))
	r.finishes(l, 0)
	w.must(l.Release(w.Context()))
	_, err := r.Register(w.Context(), "warm", "")
	w.must(err)
	w.must(w.admin.Del(w.Context(), strings.TrimSuffix(ledger, job)+"warm", "solotick:{svc}:runs").Err())
}

// born gives a job a ledger that is old enough for all ticks of the case. Register would refuse those of its first
// second, and so has a test of its own.
func (w *world) born(jobs ...string) {
	w.Helper()
	for _, j := range append(jobs, job) {
		key := strings.TrimSuffix(ledger, job) + j
		w.must(w.admin.HSet(w.Context(), key, "born", 1, "since", 1, "schedule", "", "tick", w.start.Add(-time.Hour).UnixMilli()).Err())
	}
}

// replica is one process: a Store with a proxy and clocks of its own.
type replica struct {
	*lock.Store
	w       *world
	name    string
	proxy   *lossy.Proxy
	rdb     redis.UniversalClient
	asleep  atomic.Int64 // how far its CLOCK_BOOTTIME has run ahead of its timers
	timeout time.Duration
}

func (w *world) replica(name string) *replica { return w.slowReplica(name, w.timeout()) }

// slowReplica is more patient with a round trip than is usual.
func (w *world) slowReplica(name string, timeout time.Duration) *replica {
	w.Helper()
	r := &replica{w: w, name: name, proxy: lossy.New(w.dial), timeout: timeout}
	r.rdb = lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: r.proxy.Dial}, timeout)
	s, err := lock.New(r.rdb, service, lock.Options{Timeout: timeout, Boottime: r.boottime})
	w.must(err)
	r.Store = s
	w.Cleanup(func() {
		_ = r.rdb.Close()
		r.proxy.Close()
		if w.mini != nil {
			time.Sleep(time.Second) // so often a client that was cut off for long looks whether it was closed
		}
	})
	return r
}

func (r *replica) boottime() time.Duration {
	return time.Since(r.w.start) + time.Duration(r.asleep.Load())
}

// suspend lets the machine sleep: CLOCK_BOOTTIME goes on, timers stand still.
func (r *replica) suspend(d time.Duration) { r.asleep.Add(int64(d)) }

// claim is for a tick that comes due at this moment.
func (r *replica) claim(n int) lock.Claim {
	return lock.Claim{Job: job, Tick: r.w.tick(n), Due: time.Now().Truncate(time.Millisecond), TTL: r.w.ttl, Replica: r.name,
		Run: uuid.NewString()}
}

// acquire asks within a time that is ample for any answer.
func (r *replica) acquire(c lock.Claim) (*lock.Lease, lock.Answer, error) {
	ctx, cancel := context.WithTimeout(r.w.Context(), 4*r.w.ttl)
	defer cancel()
	return r.Store.Acquire(ctx, c)
}

// acquireFor asks until a time is over.
func (r *replica) acquireFor(d time.Duration, c lock.Claim) (*lock.Lease, lock.Answer, error) {
	ctx, cancel := context.WithTimeout(r.w.Context(), d)
	defer cancel()
	return r.Store.Acquire(ctx, c)
}

func (r *replica) wins(c lock.Claim) (*lock.Lease, lock.Answer) {
	r.w.Helper()
	l, a, err := r.acquire(c)
	if err != nil || l == nil || a.Code != lock.Won {
		r.w.Fatalf("%s did not win: %+v, %v", r.name, a, err)
	}
	if !l.Trusted() {
		r.w.Fatal("a lease that is not trusted was handed out")
	}
	return l, a
}

func (r *replica) loses(c lock.Claim, want lock.Code) lock.Answer {
	r.w.Helper()
	l, a, err := r.acquire(c)
	if err != nil || l != nil || a.Code != want {
		r.w.Fatalf("%s: %+v, %v; want %s", r.name, a, err, want)
	}
	return a
}

func (r *replica) finishes(l *lock.Lease, delay time.Duration) {
	r.w.Helper()
	if got, err := l.Finish(r.w.Context(), delay, &lock.Entry{Outcome: "succeeded"}); err != nil || got != lock.OK {
		r.w.Fatalf("finish: %s, %v", got, err)
	}
}

// owner is what stands in the lock key; "" when nothing does.
func (w *world) owner() string {
	w.Helper()
	v, err := w.admin.Get(w.Context(), lockKey).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.Fatal(err)
	}
	return v
}

// field of the job's ledger.
func (w *world) field(name string) string {
	w.Helper()
	v, err := w.admin.HGet(w.Context(), ledger, name).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.Fatal(err)
	}
	return v
}

// dues are the members of both sets of what is due, parsed.
func (w *world) dues() []lock.Due {
	w.Helper()
	members, err := w.admin.ZRange(w.Context(), dueSet, 0, -1).Result()
	w.must(err)
	timers, err := w.admin.ZRange(w.Context(), dueTimers, 0, -1).Result()
	w.must(err)
	var ds []lock.Due
	for _, m := range append(members, timers...) {
		d, err := lock.ParseDue(m)
		w.must(err)
		ds = append(ds, d)
	}
	return ds
}

// runs is how many entries the set of runs has.
func (w *world) runs() int {
	w.Helper()
	n, err := w.admin.ZCard(w.Context(), running).Result()
	w.must(err)
	return int(n)
}

// dump is all that Redis holds but TTLs.
func (w *world) dump() string {
	w.Helper()
	ctx := w.Context()
	keys, err := w.admin.Keys(ctx, "*").Result()
	w.must(err)
	all := map[string]string{}
	for _, k := range keys {
		kind, err := w.admin.Type(ctx, k).Result()
		w.must(err)
		switch kind {
		case "string":
			all[k] = w.admin.Get(ctx, k).Val()
		case "hash":
			all[k] = fmt.Sprint(w.admin.HGetAll(ctx, k).Val())
		case "zset":
			all[k] = fmt.Sprint(w.admin.ZRangeWithScores(ctx, k, 0, -1).Val())
		case "stream":
			all[k] = fmt.Sprint(w.admin.XRange(ctx, k, "-", "+").Val())
		}
	}
	return fmt.Sprint(all) // maps print sorted
}

// ended waits for a context and returns its cause.
func (w *world) ended(ctx context.Context) error {
	w.Helper()
	limit, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), 2*w.ttl)
	defer cancel()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.Done():
		w.Fatal("the context did not end")
		return nil
	}
}
