package lock

import (
	"context"
	"flag"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
)

var (
	walks    = flag.Int("walks", 0, "random walks per store; 0 = as many as fit into a few seconds, 300 at most")
	walkFrom = flag.Uint64("walk.from", 1, "seed of the first random walk")
)

// walkTime bounds the walks of one store where their number is not asked for.
const walkTime = 8 * time.Second

func miniClient(t *testing.T) redis.UniversalClient {
	m := miniredis.NewMiniRedis()
	return walkClient(t, func(context.Context, string, string) (net.Conn, error) { return m.Dial() }, m.Close)
}

func realClient(t *testing.T) redis.UniversalClient {
	s := redistest.Start(t)
	return walkClient(t, func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Addr())
	}, func() {})
}

func walkClient(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), stop func()) redis.UniversalClient {
	c := NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: dial, Protocol: 2}, 30*time.Second)
	t.Cleanup(func() {
		_ = c.Close()
		stop()
	})
	return c
}

func load(t *testing.T, rdb redis.UniversalClient, s walkScripts) {
	t.Helper()
	clocked := s.clocked()
	for _, sc := range append(s.all(), clocked.all()...) {
		if err := rdb.ScriptLoad(context.Background(), (*sc).Source).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRandomWalksBreakNoPromise(t *testing.T) {
	for name, client := range map[string]func(*testing.T) redis.UniversalClient{"miniredis": miniClient, "redis": realClient} {
		t.Run(name, func(t *testing.T) {
			rdb := client(t)
			load(t, rdb, realScripts())
			n, end := *walks, time.Now().Add(time.Hour)
			if n == 0 {
				n, end = 300, time.Now().Add(walkTime)
			}
			done := 0
			for ; done < n && time.Now().Before(end); done++ {
				seed := *walkFrom + uint64(done)
				if trace, err := play(rdb, realScripts(), seed); err != nil {
					t.Fatalf("%v\n  %s\nagain: go test ./lock -run '%s' -walk.from=%d -walks=1", err, strings.Join(trace, "\n  "), t.Name(), seed)
				}
			}
			t.Logf("%d walks from seed %d", done, *walkFrom)
		})
	}
}
