package redisworld

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// The service of every case, its job, and the keys of both.
const (
	Service     = "svc"
	Job         = "billing"
	LockKey     = "solotick:{svc}:lock:billing"
	Ledger      = "solotick:{svc}:job:billing"
	Running     = "solotick:{svc}:running"
	DueSet      = "solotick:{svc}:due"
	DueTimers   = "solotick:{svc}:timers:due"
	TimerKey    = "solotick:{svc}:timer:" // and its id
	TimerLedger = "solotick:{svc}:job:@timers"
)

// World is one Redis, over which a case is played: miniredis in a bubble, or a redis-server in real time.
type World struct {
	*testing.T
	Mini   *miniredis.Miniredis // nil: a real one
	Server *redistest.Server    // nil: miniredis
	TTL    time.Duration
	Start  time.Time
	Dial   func(context.Context) (net.Conn, error)
	Admin  redis.UniversalClient // not through a proxy

	claims sync.Map // that were won, by their runs
}

// OnEvery plays a case on miniredis in a bubble, and on a redis-server: there beside the others, when all bubbles are
// done, since it is time and not work that it takes.
func OnEvery(t *testing.T, play func(w *World)) {
	t.Run("miniredis", func(t *testing.T) { InBubble(t, play) })
	t.Parallel()
	t.Run("redis", func(t *testing.T) { OnReal(t, play) })
}

// InBubble is for cases that need hours, or a Redis whose clock can be set.
func InBubble(t *testing.T, play func(w *World)) {
	synctest.Test(t, func(t *testing.T) {
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true)
		w := &World{T: t, Mini: mini, TTL: 15 * time.Second, Start: time.Now(),
			Dial: func(context.Context) (net.Conn, error) { return mini.Dial() }}
		t.Cleanup(mini.Close)
		w.Admin = w.client()
		play(w)
	})
}

// OnReal plays a case on a redis-server of its own, with args on its command line.
func OnReal(t *testing.T, play func(w *World), args ...string) {
	play(OnServer(t, redistest.Start(t, args...)))
}

// OnServer is a World whose keys are on that server, at least for now.
func OnServer(t *testing.T, server *redistest.Server) *World {
	w := &World{T: t, Server: server, TTL: 8 * time.Second, Start: time.Now()}
	w.Dial = func(ctx context.Context) (net.Conn, error) { return DialTCP(ctx, server.Addr()) }
	w.Admin = w.client()
	return w
}

// DialTCP opens a connection to an address.
func DialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// client asks whatever w.Dial leads to at that moment.
func (w *World) client() redis.UniversalClient {
	c := lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"},
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx) }}, w.Timeout())
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// Timeout of a round trip: on the real one long enough for a busy machine.
func (w *World) Timeout() time.Duration {
	if w.Mini != nil {
		return 500 * time.Millisecond
	}
	return 3 * time.Second
}

// Pass lets d pass on Redis' clock and on everybody's.
func (w *World) Pass(d time.Duration) {
	w.Helper()
	if w.Mini != nil {
		time.Sleep(d)
		return
	}
	// A real Redis cannot be told the time; the wait is on its clock: nobody ever pushes to that list.
	c := redis.NewClient(&redis.Options{Addr: w.Server.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	defer c.Close()
	for until := w.Now().Add(d); w.Now().Before(until); {
		left := max(time.Until(until), 10*time.Millisecond).Seconds()
		if err := c.Do(w.Context(), "blpop", "nothing comes to {svc}", left).Err(); !errors.Is(err, redis.Nil) {
			w.Fatalf("waiting: %v", err)
		}
	}
}

// Now is Redis' time.
func (w *World) Now() time.Time {
	w.Helper()
	t, err := w.Admin.Time(w.Context()).Result()
	w.Must(err)
	return t
}

// Must ends the test with an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Ask has a server do something that must not fail.
func (w *World) Ask(s *redistest.Server, command string) {
	w.Helper()
	answer, err := s.Ask(command)
	if err != nil || answer != "+OK" {
		w.Fatalf("%s: %s, %v", command, answer, err)
	}
}

// Tick is the nth nominal second after the case began, in the past for Redis as soon as it comes to be asked for.
func (w *World) Tick(n int) time.Time {
	return w.Start.Truncate(time.Millisecond).Add(time.Duration(n) * time.Millisecond)
}

// Warm makes Redis know the scripts, so that a case counts requests and not NOSCRIPT.
func (w *World) Warm() {
	w.Helper()
	r := w.Replica("warm")
	w.Born("warm")
	l, _ := r.Wins(lock.Claim{Job: "warm", Tick: w.Tick(0), TTL: w.TTL})
	w.Must(l.Verify(w.Context()))
	r.Finishes(l, 0)
	w.Must(l.Release(0)(w.Context()))
	_, err := r.Register(w.Context(), "warm", "")
	w.Must(err)
	w.Must(w.Admin.Del(w.Context(), ledgerOf("warm"), "solotick:{svc}:history:warm").Err())
}

// Born gives the case's job, and others, a ledger that is old enough for all ticks of the case. Register would refuse
// those of its first second, and so has a test of its own.
func (w *World) Born(others ...string) {
	w.Helper()
	for _, j := range append(others, Job) {
		w.Must(w.Admin.HSet(w.Context(), ledgerOf(j), "born", 1, "since", 1, "schedule", "",
			"tick", w.Start.Add(-time.Hour).UnixMilli()).Err())
	}
}

// KnowsTimers gives the timers a ledger.
func (w *World) KnowsTimers() {
	w.Helper()
	w.Born(service.TimerJobs)
}

func ledgerOf(job string) string { return strings.TrimSuffix(Ledger, Job) + job }

// Owner is what stands in the lock key; "" when nothing does.
func (w *World) Owner() string {
	w.Helper()
	v, err := w.Admin.Get(w.Context(), LockKey).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.Fatal(err)
	}
	return v
}

// Field of the job's ledger; "" when there is none.
func (w *World) Field(name string) string {
	w.Helper()
	v, err := w.Admin.HGet(w.Context(), Ledger, name).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.Fatal(err)
	}
	return v
}

// Number is a field of the job's ledger that is there, and is one.
func (w *World) Number(field string) int64 {
	w.Helper()
	n, err := w.Admin.HGet(w.Context(), Ledger, field).Int64()
	w.Must(err)
	return n
}

// Dues are the members of both sets of what is due, parsed.
func (w *World) Dues() []lock.Due {
	w.Helper()
	members, err := w.Admin.ZRange(w.Context(), DueSet, 0, -1).Result()
	w.Must(err)
	timers, err := w.Admin.ZRange(w.Context(), DueTimers, 0, -1).Result()
	w.Must(err)
	var ds []lock.Due
	for _, m := range append(members, timers...) {
		d, err := lock.ParseDue(m)
		w.Must(err)
		ds = append(ds, d)
	}
	return ds
}

// DueTicks demands that exactly these are due.
func (w *World) DueTicks(ns ...int) {
	w.Helper()
	ds := w.Dues()
	ok := len(ds) == len(ns)
	for i := 0; ok && i < len(ns); i++ {
		ok = ds[i].Tick.Equal(w.Tick(ns[i]))
	}
	if !ok {
		w.Errorf("due: %+v, want ticks %v", ds, ns)
	}
}

// Same reports whether two members are one.
func Same(a, b lock.Due) bool { return a.Member() == b.Member() }

// Runs is how many entries the set of runs has.
func (w *World) Runs() int {
	w.Helper()
	n, err := w.Admin.ZCard(w.Context(), Running).Result()
	w.Must(err)
	return int(n)
}

// Dump is all that Redis holds, without TTLs.
func (w *World) Dump() string {
	w.Helper()
	ctx := w.Context()
	keys, err := w.Admin.Keys(ctx, "*").Result()
	w.Must(err)
	all := map[string]string{}
	for _, k := range keys {
		kind, err := w.Admin.Type(ctx, k).Result()
		w.Must(err)
		switch kind {
		case "string":
			all[k] = w.Admin.Get(ctx, k).Val()
		case "hash":
			all[k] = fmt.Sprint(w.Admin.HGetAll(ctx, k).Val())
		case "zset":
			all[k] = fmt.Sprint(w.Admin.ZRangeWithScores(ctx, k, 0, -1).Val())
		case "stream":
			all[k] = fmt.Sprint(w.Admin.XRange(ctx, k, "-", "+").Val())
		}
	}
	return fmt.Sprint(all) // maps print sorted
}

// Ended waits for a context and returns its cause.
func (w *World) Ended(ctx context.Context) error {
	w.Helper()
	limit, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), 2*w.TTL)
	defer cancel()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.Done():
		w.Fatal("the context did not end")
		return nil
	}
}

// Heard counts the nudges `due` from now on; the function returned waits for the first.
func (w *World) Heard() (first func()) {
	w.Helper()
	sub := w.Admin.Subscribe(w.Context(), "solotick:{svc}:events")
	w.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(w.Context())
	w.Must(err)
	return func() {
		w.Helper()
		m, err := sub.ReceiveMessage(w.Context())
		_ = sub.Close()                                                  // miniredis waits for those who do not read
		if err != nil || m.Payload != "due" && m.Payload != "due "+Job { // the latter of a resumed job
			w.Errorf("heard %v, %v", m, err)
		}
	}
}

// LastAnswer is the innermost error that Redis itself gave.
func LastAnswer(err error) error {
	var re redis.Error
	if errors.As(err, &re) {
		return re
	}
	return err
}
