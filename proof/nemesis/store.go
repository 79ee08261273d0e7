package nemesis

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
)

// single is one redis-server that writes its commands down.
type single struct {
	server *redistest.Server
	rdb    redis.UniversalClient
}

// newSingle starts one; fsync is its appendfsync, addrs where it listens besides the loopback interface.
func newSingle(t testing.TB, fsync string, addrs ...string) *single {
	args := append([]string{"--appendonly", "yes", "--appendfsync", fsync, "--protected-mode", "no",
		"--dir", inMemory(t), "--auto-aof-rewrite-min-size", "8mb", "--bind", "127.0.0.1"}, addrs...)
	s := &single{server: redistest.Start(t, args...)}
	s.rdb = redis.NewClient(&redis.Options{Addr: s.server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = s.rdb.Close() })
	return s
}

// inMemory makes a directory in memory. On a busy disk an fsync can take a second, and Redis stands still without a
// fault of ours. The files survive a crash of Redis in memory, too.
func inMemory(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "solotick-nemesis-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *single) client() redis.UniversalClient { return s.rdb }
func (s *single) table(addr string) string {
	return fmt.Sprintf("{url: redis://%s/0, history: %d}", addr, keptHistory)
}

// killRedis kills the server, which comes back with what it wrote down.
func (s *single) killRedis(w *world, until time.Time) {
	for time.Now().Before(until) {
		over := w.record.begin(away, theRedis)
		s.server.Kill()
		time.Sleep(w.between(100*time.Millisecond, 2*ttl))
		s.server.Restart()
		over()
		time.Sleep(w.between(4*time.Second, 8*time.Second))
	}
}

// stopRedis stops the server and lets it go on: it does then what it was asked meanwhile, also by those who have given
// up.
func (s *single) stopRedis(w *world, until time.Time) {
	for time.Now().Before(until) {
		s.stop(w, w.between(2*time.Second, 8*time.Second))
		time.Sleep(w.between(2*time.Second, 4*time.Second))
	}
}

// stop stops the server for so long.
func (s *single) stop(w *world, length time.Duration) {
	over := w.record.begin(stalled, theRedis)
	s.server.Freeze()
	time.Sleep(length)
	s.server.Thaw()
	over()
}

// drainHolders stops Redis and drains a replica that has just begun a run. The run ends while Redis stands still, which
// goes on while the run's lease lasts: so its end can still be told.
func (s *single) drainHolders(w *world, until time.Time) {
	for time.Now().Before(until) {
		r := w.await(w.replicas, 2*longLease, func(j job) bool { return j.ttl == longLease && !j.async })
		stopping := w.record.begin(drained, r.name)
		asked := make(chan error, 1)
		go func() { asked <- r.process.Signal(syscall.SIGTERM) }()
		s.stop(w, w.between(5300*time.Millisecond, 6300*time.Millisecond))
		w.check(<-asked)
		w.check(rig.Until(grace, r.name+" to end", r.process.Ended))
		w.check(r.process.Stop(grace)) // how it ended
		w.start(r)
		stopping()
		time.Sleep(w.between(time.Second, 2*time.Second))
	}
}

// watched is a master with two replicas, and Sentinels that see to it that there is a master. A claim waits for
// one replica.
type watched struct {
	*redistest.Sentinel
	rdb redis.UniversalClient
}

func newWatched(t testing.TB) *watched {
	s := &watched{Sentinel: redistest.StartSentinel(t, 2, 3)}
	// nobody but the nemesis is to fail a master over, and a busy one can be silent for a while
	for _, w := range s.Watch {
		must(t)(w.Ask("SENTINEL SET " + redistest.MasterName + " down-after-milliseconds 2000"))
	}
	s.rdb = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.MasterName,
		SentinelAddrs: s.Addrs(), MaxRetries: -1})
	t.Cleanup(func() { _ = s.rdb.Close() })
	return s
}

func (s *watched) client() redis.UniversalClient { return s.rdb }
func (s *watched) table(string) string {
	return fmt.Sprintf("{sentinel: {master: %s, addrs: [%s]}, waitReplicas: 1, history: %d}",
		redistest.MasterName, strings.Join(s.Addrs(), ", "), keptHistory)
}

// failOver takes the master away, so that another one takes its place: by a kill, or by a stop, after which it goes on
// with what it was asked before. Back again, it is made a replica.
func (s *watched) failOver(take, giveBack func(*redistest.Server)) func(w *world, until time.Time) {
	return func(w *world, until time.Time) {
		for time.Now().Before(until) {
			old := s.AwaitMaster(nil)
			over := w.record.begin(away, theRedis)
			take(old)
			master := s.AwaitMaster(old)
			over()
			time.Sleep(w.between(0, ttl))
			giveBack(old)
			// It still takes itself for the master, until Sentinel tells it otherwise, or we do.
			time.Sleep(w.between(time.Second, 10*time.Second))
			must(w.t)(old.Ask(fmt.Sprintf("REPLICAOF 127.0.0.1 %d", master.Port())))
			old.AwaitCopy(master)
			time.Sleep(w.between(time.Second, 5*time.Second))
		}
	}
}

// must checks Redis' answer to what it cannot refuse.
func must(t testing.TB) func(answer string, err error) {
	return func(answer string, err error) {
		t.Helper()
		if err != nil || !strings.HasPrefix(answer, "+OK") {
			t.Fatalf("asking Redis: %s, %v", answer, err)
		}
	}
}
