package lock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

func TestProtocolOnSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1, 1)
	w := redisworld.OnServer(t, s.Servers[0])
	for _, sentinel := range s.Watch {
		w.Ask(sentinel, "ACL SETUSER "+strings.TrimPrefix(aclLine(t, "watcher"), "user "))
		w.Ask(sentinel, "ACL SETUSER default off")
	}
	o := redis.UniversalOptions{Addrs: s.Addrs(), MasterName: redistest.MasterName, SentinelUsername: "watcher", SentinelPassword: "PASSWORD"}
	playProtocol(w, w.LossyReplica("a", o, 1), w.LossyReplica("b", o, 0))
}

func TestProtocolOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	w := redisworld.OnServer(t, c.Owner(ledger))
	user := strings.ReplaceAll(strings.TrimPrefix(aclLine(t, "solotick"), "user "), "{billing}", "{"+redisworld.Service+"}")
	for _, m := range c.Masters {
		w.Ask(m, "ACL SETUSER "+user+" "+rightFor(t, "a Cluster"))
	}
	o := redis.UniversalOptions{Addrs: c.Addrs(), IsClusterMode: true, Username: "solotick", Password: "PASSWORD"}
	playProtocol(w, w.LossyReplica("a", o, 0), w.LossyReplica("b", o, 0))

	// The clock of another node is another one; and what the client asks for by itself nobody gave it the right to.
	reader := w.ReplicaOf("reader", o, 0)
	_, err := reader.Service.States(t.Context(), []string{job})
	w.Must(err)
	_, err = reader.Service.History(t.Context(), job, 10)
	w.Must(err)
	_, err = reader.Service.Replicas(t.Context())
	w.Must(err)
	for _, m := range c.Masters {
		stats, err := m.Ask("INFO commandstats")
		w.Must(err)
		for _, command := range []string{"time", "evalsha", "xrevrange", "hgetall", "command"} {
			if calls := redistest.Field(stats, "cmdstat_"+command); calls != "" && (m != w.Server || command == "command") {
				t.Errorf("%s was asked of %s: %s", command, m.Addr(), calls)
			}
		}
	}
}

func TestProtocolOverTLS(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	server := redistest.Start(t, append(ca.Server("127.0.0.1"), "--tls-auth-clients", "no")...)
	w := redisworld.OnServer(t, server)
	pem, err := os.ReadFile(ca.File)
	w.Must(err)
	o := redis.UniversalOptions{Addrs: []string{server.TLSAddr()}, TLSConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
	o.TLSConfig.RootCAs.AppendCertsFromPEM(pem)
	playProtocol(w, w.ReplicaOf("a", o, 0), w.ReplicaOf("b", o, 0))
}

// playProtocol plays what two replicas do with each other, whatever the way to Redis.
func playProtocol(w *redisworld.World, a, b *redisworld.Replica) {
	w.Helper()
	playRun(w, a, b)
	playHandover(w, a, b)
	playTakeover(w, a, b)
	playBurst(w, a, b)
	playChanges(w, a, b)
	if a.Proxy != nil {
		playLostReplies(w, a, b)
	}
}

func playRun(w *redisworld.World, a, b *redisworld.Replica) {
	w.Helper()
	a.Loses(a.Claim(1), lock.Fired) // a ledger that is new
	w.Born()
	l, _ := a.Wins(a.Claim(1))
	b.Loses(b.Claim(1), lock.Fired)
	b.Loses(b.Claim(2), lock.Overlap)
	w.Must(l.Verify(w.Context()))
	a.Finishes(l, time.Minute)
	b.Loses(b.Claim(2), lock.Fired)
	w.Must(l.Release(0)(w.Context()))
	if w.Owner() != "" || w.Runs() != 0 {
		w.Fatalf("after the run: %s", w.Dump())
	}
}

func playHandover(w *redisworld.World, a, b *redisworld.Replica) {
	w.Helper()
	heard, claims := make(chan string, 10), make(chan lock.Heard, 10)
	ctx, stop := context.WithCancel(w.Context())
	var listening sync.WaitGroup
	listening.Go(func() { b.Service.Listen(ctx, func(job string) { heard <- job }, func(h lock.Heard) { claims <- h }) })
	defer listening.Wait()
	defer stop()
	for job := ""; job != service.AnyJob; job = <-heard {
	}
	l, _ := a.Wins(a.Claim(3))
	if h := <-claims; !h.Tick.Equal(w.Tick(3)) || h.Answer.Holder != "a" {
		w.Fatalf("heard of %+v", h)
	}
	if got, err := l.Handover(w.Context(), 0, lock.Ending{Entry: "handed_over"}); err != nil || got.Verdict != lock.OK {
		w.Fatalf("handover: %s, %v", got.Verdict, err)
	}
	for job := service.RunBegan; job != ""; job = <-heard {
	}
	seen, err := b.Service.Look(w.Context(), 10)
	w.Must(err)
	if len(seen.Due) != 1 || !slices.Equal(seen.Due[0].Refused, []string{"a"}) {
		w.Fatalf("due: %+v", seen.Due)
	}
	c := b.Claim(3)
	c.Member = seen.Due[0].Member()
	l, _ = b.Wins(c)
	b.Finishes(l, 0)
}

func playTakeover(w *redisworld.World, a, b *redisworld.Replica) {
	w.Helper()
	dead := a.Claim(4)
	dead.TTL, dead.Again = 1200*time.Millisecond, true
	a.Wins(dead)
	watch := b.NewWatcher()
	for {
		seen, err := b.Service.Look(w.Context(), 10)
		w.Must(err)
		if old := watch.Unchanged(seen.Runs, func(string) time.Duration { return dead.TTL }); len(old) == 1 {
			_, done, err := watch.Reap(w.Context(), old[0], interrupted)
			w.Must(err)
			if !done {
				w.Fatal("not taken over")
			}
			break
		}
		w.Pass(50 * time.Millisecond)
	}
	w.DueTicks(4)
	w.Must(w.Admin.Del(w.Context(), dueSet).Err())
}

// playBurst has both ask for hundreds of jobs at once: each is won once.
func playBurst(w *redisworld.World, a, b *redisworld.Replica) {
	w.Helper()
	const jobs = 300
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range jobs {
		w.Born("many" + strconv.Itoa(i))
		for _, r := range []*redisworld.Replica{a, b} {
			wg.Go(func() {
				c := r.Claim(1)
				c.Job = "many" + strconv.Itoa(i)
				l, answer, err := r.Asks(c)
				if err != nil || l == nil && answer.Code != lock.Fired {
					w.Errorf("%+v, %v", answer, err)
				}
				if l == nil {
					return
				}
				won.Add(1)
				if got, err := l.Finish(w.Context(), 0, lock.Ending{}); err != nil || got.Verdict != lock.OK {
					w.Errorf("finish: %s, %v", got.Verdict, err)
				}
			})
		}
	}
	wg.Wait()
	if won.Load() != jobs {
		w.Errorf("%d of %d jobs were won", won.Load(), jobs)
	}
}

// playChanges sets timers, and fires one of them.
func playChanges(w *redisworld.World, a, b *redisworld.Replica) {
	w.Helper()
	w.KnowsTimers()
	a.Sets("x", w.Now().Add(time.Hour), "one", true)
	b.Sets("x", w.Tick(-1), "two", false)
	a.Sets("y", w.Now().Add(time.Hour), "three", true)
	if timers, err := b.Service.Timers(w.Context(), 10); err != nil || len(timers) != 2 || timers[1].ID != "y" {
		w.Errorf("timers: %+v, %v", timers, err)
	}
	if ok, err := b.Service.DeleteTimer(w.Context(), "y"); !ok || err != nil {
		w.Errorf("delete: %t, %v", ok, err)
	}
	l, _ := b.Wins(b.ClaimOf(a.Sees()))
	b.Finishes(l, 0)
	a.ComesTooLate("x")
}

// playLostReplies loses a claim's answer, and sends another claim when nobody waits for it any more.
func playLostReplies(w *redisworld.World, a, b *redisworld.Replica) {
	w.Helper()
	asked := a.Proxy.Count(lossy.Script(lock.AcquireSHA))
	lost := a.Proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
	l, _ := a.Wins(a.Claim(5))
	if asked.N() != 2 || lost.Words()[8] != l.Run() {
		w.Errorf("asked %d times, at first by %v", asked.N(), lost.Words())
	}
	sent := a.Proxy.Count(lossy.Script(lock.ExtendSHA))
	a.Proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.LoseReply)
	if err := l.Verify(w.Context()); err == nil || sent.N() != 1 {
		w.Errorf("sent %d times: %v", sent.N(), err)
	}
	a.Finishes(l, 0)
	b.Loses(b.Claim(5), lock.Fired)
}
