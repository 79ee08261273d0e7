package lock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/lossy"
	"github.com/solotick/solotick/internal/testing/redisworld"
	"github.com/solotick/solotick/lock"
)

func TestClusterClientDoesNotResendBehindOurBack(t *testing.T) {
	t.Parallel()
	redisworld.OnReal(t, func(w *redisworld.World) { // a cluster of one node, which owns all slots
		w.Must(w.Admin.ClusterAddSlotsRange(w.Context(), 0, 16383).Err())
		for !strings.Contains(w.Admin.ClusterInfo(w.Context()).Val(), "cluster_state:ok") {
			w.Pass(1)
		}
		proxy := lossy.New(w.Dial)
		rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{w.Server.Addr()}, IsClusterMode: true, Dialer: proxy.Dial}, w.Timeout())
		t.Cleanup(func() {
			_ = rdb.Close()
			proxy.Close()
		})
		store, err := lock.New(rdb, redisworld.Service, lock.Options{Timeout: w.Timeout()})
		w.Must(err)
		w.Born()
		l, _, err := store.Acquire(w.Context(), lock.Claim{Job: job, Tick: w.Tick(1), TTL: w.TTL})
		if l == nil || err != nil {
			w.Fatal(err)
		}
		w.Must(l.Verify(w.Context()))
		sent := proxy.Count(lossy.Script(lock.ExtendSHA))
		proxy.On(lossy.Script(lock.ExtendSHA), 1, lossy.LoseReply)
		if err := l.Verify(w.Context()); !errors.Is(err, lock.ErrNoAnswer) || sent.N() != 1 {
			w.Errorf("sent %d times: %v", sent.N(), err)
		}
		if got, err := l.Finish(w.Context(), 0, lock.Ending{Entry: "succeeded"}); err != nil || got.Verdict != lock.OK {
			w.Errorf("finish: %s, %v", got.Verdict, err)
		}
	}, "--cluster-enabled", "yes")
}
