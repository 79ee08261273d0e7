package lock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/proof/lossy"
	"github.com/solotick/solotick/lock"
)

func TestClusterClientDoesNotResendBehindOurBack(t *testing.T) {
	t.Parallel()
	onReal(t, func(w *world) { // a cluster of one node, which owns all slots
		w.must(w.admin.Do(w.Context(), "cluster", "addslotsrange", 0, 16383).Err())
		for !strings.Contains(w.admin.ClusterInfo(w.Context()).Val(), "cluster_state:ok") {
			w.pass(1)
		}
		proxy := lossy.New(w.dial)
		rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{w.server.Addr()}, IsClusterMode: true, Dialer: proxy.Dial}, w.timeout())
		t.Cleanup(func() {
			_ = rdb.Close()
			proxy.Close()
		})
		store, err := lock.New(rdb, service, lock.Options{Timeout: w.timeout()})
		w.must(err)
		w.born()
		l, _, err := store.Acquire(w.Context(), lock.Claim{Job: job, Tick: w.tick(1), TTL: w.ttl})
		if l == nil || err != nil {
			w.Fatal(err)
		}
		w.must(l.Verify(w.Context()))
		sent := proxy.Count(lossy.Script(lock.ExtendSHA))
		proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.LoseReply)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrNoAnswer) || sent.N() != 1 {
			w.Errorf("sent %d times: %v", sent.N(), err)
		}
		if got, err := l.Finish(w.Context(), 0, &lock.Entry{Outcome: "succeeded"}); err != nil || got != lock.OK {
			w.Errorf("finish: %s, %v", got, err)
		}
	}, "--cluster-enabled", "yes")
}
