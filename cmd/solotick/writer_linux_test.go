package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// The data that another client writes to the keys of a service took a replica beyond its 64 MiB: 60,000 heartbeats to
// 109 MiB, as many runs to 79 MiB, and with a reader of the status to 239 MiB.
func TestAReplicaOutlivesThoseWhoWriteToItsRedis(t *testing.T) {
	const many, keys = 60_000, "solotick:{shop}:"
	for name, c := range map[string]struct {
		write func(i int) []any
		seen  func(t *testing.T, r *replica, rdb *redis.Client) // the replica has dealt with it
	}{
		"heartbeats": {
			func(i int) []any {
				return []any{"hset", keys + "replicas", i, fmt.Sprintf(`{"seen":%d}`, time.Now().UnixMilli())}
			},
			func(_ *testing.T, r *replica, _ *redis.Client) {
				r.await("the heartbeats of the replicas could not be read")
			},
		},
		"runs": {
			func(i int) []any { return []any{"zadd", keys + "running", i + 1, fmt.Sprintf("%d job%d", i, i%98)} },
			func(t *testing.T, _ *replica, rdb *redis.Client) {
				eventually(t, "takeovers", func() bool { return rdb.ZCard(t.Context(), keys+"running").Val() < many-3000 })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer app.Close()
			s := redistest.Start(t)
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: patience, WriteTimeout: patience})
			defer rdb.Close()
			for from := 0; from < many; from += 5000 {
				pipe := rdb.Pipeline()
				for i := range 5000 {
					pipe.Do(t.Context(), c.write(from+i)...)
				}
				if _, err := pipe.Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var table strings.Builder
			fmt.Fprintf(&table, patient+"service: shop\nredis: {url: %q, timeout: 5s}\nlisten: \"\"\nadmin: \"127.0.0.1:0\"\njobs:\n", s.URL())
			for i := range 100 {
				fmt.Fprintf(&table, "  - {name: job%d, schedule: \"@every 1m\", http: {url: %q}}\n", i, app.URL)
			}
			path := filepath.Join(t.TempDir(), "table.yaml")
			if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(release(t, runtime.GOARCH), "run", "-c", path, "--log-format", "json")
			cmd.Env = bareEnv("GOMEMLIMIT=48MiB") // as the manifest's limit sets it
			r := start(t, cmd)
			r.await("taking ticks")
			c.seen(t, r, rdb)
			answer, err := (&http.Client{Timeout: patience}).Get("http://" + r.await("serving "+servesAdmin).text("addr") + "/v1/status")
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if kb := statusKB(t, r.cmd.Process.Pid, "VmHWM:"); kb > manifestMemory {
				t.Errorf("the replica took %d kB, the manifest allows %d", kb, manifestMemory)
			} else {
				t.Logf("%d kB", kb)
			}
			r.stop()
		})
	}
}
