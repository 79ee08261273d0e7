package lock_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/internal/proof/redistest"
	"github.com/solotick/solotick/lock"
)

// onServer is a world whose keys are on that server, at least for now.
func onServer(t *testing.T, server *redistest.Server) *world {
	w := &world{T: t, server: server, ttl: 4 * time.Second, start: time.Now()}
	w.dial = func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, server.Addr()) }
	w.admin = w.client(func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx) })
	return w
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// replicaOf is a replica whose client has options of its own, and believes a claim when so many replicas of Redis have it.
func (w *world) replicaOf(name string, o redis.UniversalOptions, wait int) *replica {
	w.Helper()
	r := &replica{w: w, name: name, timeout: w.timeout(), rdb: lock.NewClient(o, w.timeout())}
	w.Cleanup(func() { _ = r.rdb.Close() })
	s, err := lock.New(r.rdb, service, lock.Options{Timeout: r.timeout, Boottime: r.boottime, WaitReplicas: wait})
	w.must(err)
	r.Store = s
	return r
}

// throughProxy puts a lossy proxy before the server that holds the keys, and leaves the way to all others as it is.
func (r *replica) throughProxy(o redis.UniversalOptions, wait int) *replica {
	w, addr := r.w, r.w.server.Addr()
	proxy := lossy.New(w.dial)
	o.Dialer = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == addr {
			return proxy.Dial(ctx, network, to)
		}
		return dialTCP(ctx, to)
	}
	p := w.replicaOf(r.name, o, wait)
	p.proxy = proxy
	w.Cleanup(proxy.Close)
	return p
}

func (w *world) lossyReplica(name string, o redis.UniversalOptions, wait int) *replica {
	return (&replica{w: w, name: name}).throughProxy(o, wait)
}

func TestProtocolOnSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1, 1)
	w := onServer(t, s.Servers[0])
	for _, sentinel := range s.Watch {
		w.ask(sentinel, "ACL SETUSER "+strings.TrimPrefix(aclLine(t, "watcher"), "user "))
		w.ask(sentinel, "ACL SETUSER default off")
	}
	o := redis.UniversalOptions{Addrs: s.Addrs(), MasterName: redistest.MasterName, SentinelUsername: "watcher", SentinelPassword: "PASSWORD"}
	w.playProtocol(w.lossyReplica("a", o, 1), w.lossyReplica("b", o, 0))
}

func TestProtocolOnCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	w := onServer(t, c.Owner(ledger))
	user := strings.ReplaceAll(strings.TrimPrefix(aclLine(t, "solotick"), "user "), "{billing}", "{"+service+"}")
	for _, m := range c.Masters {
		w.ask(m, "ACL SETUSER "+user+" "+rightFor(t, "a Cluster"))
	}
	o := redis.UniversalOptions{Addrs: c.Addrs(), IsClusterMode: true, Username: "solotick", Password: "PASSWORD"}
	w.playProtocol(w.lossyReplica("a", o, 0), w.lossyReplica("b", o, 0))

	// The clock of another node is another one; and what the client asks for by itself nobody gave it the right to.
	reader := w.replicaOf("reader", o, 0)
	_, err := reader.States(t.Context(), []string{job})
	w.must(err)
	_, err = reader.History(t.Context(), "", 10)
	w.must(err)
	_, err = reader.Replicas(t.Context())
	w.must(err)
	for _, m := range c.Masters {
		stats, err := m.Ask("INFO commandstats")
		w.must(err)
		for _, command := range []string{"time", "evalsha", "xrevrange", "hgetall", "command"} {
			if calls := redistest.Field(stats, "cmdstat_"+command); calls != "" && (m != w.server || command == "command") {
				t.Errorf("%s was asked of %s: %s", command, m.Addr(), calls)
			}
		}
	}
}

func TestClientAsksMastersAlone(t *testing.T) {
	o := redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, IsClusterMode: true, ReadOnly: true, RouteByLatency: true, RouteRandomly: true}
	cluster := lock.NewClient(o, 0)
	defer cluster.Close()
	if c, ok := cluster.(*redis.ClusterClient); !ok || c.Options().ReadOnly || c.Options().RouteByLatency || c.Options().RouteRandomly {
		t.Error("replicas of a Cluster would be asked")
	}
	o.IsClusterMode, o.MasterName = false, "m"
	sentinel := lock.NewClient(o, 0)
	defer sentinel.Close()
	if _, ok := sentinel.(*redis.Client); !ok {
		t.Errorf("%T would ask replicas of the master too", sentinel)
	}
}

func TestProtocolOverTLS(t *testing.T) {
	t.Parallel()
	ca := redistest.NewCA(t)
	server := redistest.Start(t, append(ca.Server("127.0.0.1"), "--tls-auth-clients", "no")...)
	w := onServer(t, server)
	pem, err := os.ReadFile(ca.File)
	w.must(err)
	o := redis.UniversalOptions{Addrs: []string{server.TLSAddr()}, TLSConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
	o.TLSConfig.RootCAs.AppendCertsFromPEM(pem)
	w.playProtocol(w.replicaOf("a", o, 0), w.replicaOf("b", o, 0))
}

// playProtocol plays what two replicas do with each other, whatever the way to Redis.
func (w *world) playProtocol(a, b *replica) {
	w.Helper()
	w.playRun(a, b)
	w.playHandover(a, b)
	w.playTakeover(a, b)
	w.playBurst(a, b)
	w.playChanges(a, b)
	if a.proxy != nil {
		w.playLostReplies(a, b)
	}
}

func (w *world) playRun(a, b *replica) {
	w.Helper()
	a.loses(a.claim(1), lock.Fired) // a ledger that is new
	w.born()
	l, _ := a.wins(a.claim(1))
	b.loses(b.claim(1), lock.Fired)
	b.loses(b.claim(2), lock.Overlap)
	w.must(l.Verify(w.Context()))
	a.finishes(l, time.Minute)
	b.loses(b.claim(2), lock.Fired)
	w.must(l.Release(w.Context()))
	if w.owner() != "" || w.runs() != 0 {
		w.Fatalf("after the run: %s", w.dump())
	}
}

func (w *world) playHandover(a, b *replica) {
	w.Helper()
	heard := make(chan string, 10)
	ctx, stop := context.WithCancel(w.Context())
	var listening sync.WaitGroup
	listening.Go(func() { b.Listen(ctx, func(job string) { heard <- job }) })
	defer listening.Wait()
	defer stop()
	for job := ""; job != lock.AnyJob; job = <-heard {
	}
	l, _ := a.wins(a.claim(3))
	if got, err := l.Handover(w.Context(), 0, &lock.Entry{Outcome: "handed_over"}); err != nil || got != lock.OK {
		w.Fatalf("handover: %s, %v", got, err)
	}
	<-heard
	seen, err := b.Look(w.Context(), 10)
	w.must(err)
	if len(seen.Due) != 1 || !slices.Equal(seen.Due[0].Refused, []string{"a"}) {
		w.Fatalf("due: %+v", seen.Due)
	}
	c := b.claim(3)
	c.Member = seen.Due[0].Member()
	l, _ = b.wins(c)
	b.finishes(l, 0)
}

func (w *world) playTakeover(a, b *replica) {
	w.Helper()
	dead := a.claim(4)
	dead.TTL, dead.Again = 1200*time.Millisecond, true
	a.wins(dead)
	watch := b.NewWatcher()
	for {
		seen, err := b.Look(w.Context(), 10)
		w.must(err)
		if old := watch.Unchanged(seen.Runs, func(string) time.Duration { return dead.TTL }); len(old) == 1 {
			_, done, err := watch.Reap(w.Context(), old[0], func(lock.Record) lock.Entry { return lock.Entry{Outcome: "interrupted"} })
			w.must(err)
			if !done {
				w.Fatal("not taken over")
			}
			break
		}
		w.pass(50 * time.Millisecond)
	}
	w.dueTicks(4)
	w.must(w.admin.Del(w.Context(), dueSet).Err())
}

// playBurst has both ask for hundreds of jobs at once: each is won once.
func (w *world) playBurst(a, b *replica) {
	w.Helper()
	const jobs = 300
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range jobs {
		w.born("many" + strconv.Itoa(i))
		for _, r := range []*replica{a, b} {
			wg.Go(func() {
				c := r.claim(1)
				c.Job = "many" + strconv.Itoa(i)
				l, answer, err := r.acquire(c)
				if err != nil || l == nil && answer.Code != lock.Fired {
					w.Errorf("%+v, %v", answer, err)
				}
				if l == nil {
					return
				}
				won.Add(1)
				if got, err := l.Finish(w.Context(), 0, nil); err != nil || got != lock.OK {
					w.Errorf("finish: %s, %v", got, err)
				}
			})
		}
	}
	wg.Wait()
	if won.Load() != jobs {
		w.Errorf("%d of %d jobs were won", won.Load(), jobs)
	}
}

// playChanges sets timers and a dynamic job, and fires one of the timers.
func (w *world) playChanges(a, b *replica) {
	w.Helper()
	w.knowsTimers()
	a.sets("x", w.now().Add(time.Hour), "one", true)
	b.sets("x", w.tick(-1), "two", false)
	a.sets("y", w.now().Add(time.Hour), "three", true)
	if timers, err := b.Timers(w.Context(), 10); err != nil || len(timers) != 2 || timers[1].ID != "y" {
		w.Errorf("timers: %+v, %v", timers, err)
	}
	if ok, err := b.DeleteTimer(w.Context(), "y"); !ok || err != nil {
		w.Errorf("delete: %t, %v", ok, err)
	}
	l, _ := b.wins(b.claimOf(a.sees()))
	b.finishes(l, 0)
	a.comesTooLate("x")
	a.setsJob("j", "source", true)
	if rev, jobs := b.jobs(); rev == 0 || jobs != "map[j:source]" {
		w.Errorf("revision %d, %s", rev, jobs)
	}
	a.deletesJob("j", true)
}

// playLostReplies loses a claim's answer, and sends another claim when nobody waits for it any more.
func (w *world) playLostReplies(a, b *replica) {
	w.Helper()
	asked := a.proxy.Count(lossy.Script(lock.AcquireSHA))
	lost := a.proxy.On(lossy.Script(lock.AcquireSHA), 1, lossy.LoseReply)
	l, _ := a.wins(a.claim(5))
	if asked.N() != 2 || lost.Words()[7] != l.Run() {
		w.Errorf("asked %d times, at first by %v", asked.N(), lost.Words())
	}
	sent := a.proxy.Count(lossy.Script(lock.ExtendSHA))
	a.proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.LoseReply)
	if err := l.Verify(w.Context()); err == nil || sent.N() != 1 {
		w.Errorf("sent %d times: %v", sent.N(), err)
	}
	a.finishes(l, 0)
	b.loses(b.claim(5), lock.Fired)
}
