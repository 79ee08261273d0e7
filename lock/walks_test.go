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
	walks    = flag.Int("walks", 50, "random walks per store")
	walkFrom = flag.Uint64("walk.from", 1, "seed of the first random walk")
)

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
			for n := range *walks {
				seed := *walkFrom + uint64(n)
				if trace, err := play(rdb, realScripts(), seed); err != nil {
					t.Fatalf("%v\n  %s\nagain: go test ./lock -run '%s' -walk.from=%d -walks=1", err, strings.Join(trace, "\n  "), t.Name(), seed)
				}
			}
		})
	}
}
