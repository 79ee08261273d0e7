package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// The long form: go test ./cmd/solotick -run NoTickIsMissedWhileThePassword -count=1 -v -rotate 30s -rotating 10m -timeout 1h
var (
	rotate   = flag.Duration("rotate", time.Second, "how often Redis gets another password in the test of passwords that change")
	rotating = flag.Duration("rotating", 6*time.Second, "how long that test lasts")
)

// calls are the ticks that an app was called for, each with how late.
type calls struct {
	mu    sync.Mutex
	late  map[time.Time]time.Duration
	twice []time.Time
}

func (c *calls) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	now := time.Now()
	tick, _ := time.Parse(time.RFC3339Nano, r.Header.Get("Solotick-Tick"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.late[tick]; there {
		c.twice = append(c.twice, tick)
	}
	c.late[tick] = now.Sub(tick)
}

// TestNoTickIsMissedWhileThePasswordOfRedisChanges takes the old password away at once, and kills all connections. One
// replica is the only one of its service, so no other makes up for what it misses.
func TestNoTickIsMissedWhileThePasswordOfRedisChanges(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "app", "on", ">canary-0", "~*", "&*", "+@all")
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file+".new", []byte(password+"\n"), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
	}
	write("canary-0")
	change := func(n int) {
		next := fmt.Sprintf("canary-%d", n)
		for _, command := range []string{"ACL SETUSER app >" + next, "", fmt.Sprintf("ACL SETUSER app <canary-%d", n-1), "CLIENT KILL USER app"} {
			if command == "" {
				write(next)
			} else if answer, err := s.Ask(command); err != nil || strings.HasPrefix(answer, "-") {
				t.Errorf("%s: %s, %v", command, answer, err)
			}
		}
	}

	sources := map[string]string{
		"file":    fmt.Sprintf(", username: app, passwordFile: %q", file),
		"command": fmt.Sprintf(", username: app, passwordCommand: [cat, %q]", file), // runs again when Redis refuses what it printed before
		"none":    "",                                                               // what this one misses, the machine has cost
	}
	apps, replicas := map[string]*calls{}, map[string]*replica{}
	for source, key := range sources {
		apps[source] = &calls{late: map[time.Time]time.Duration{}}
		app := httptest.NewServer(apps[source])
		defer app.Close()
		replicas[source] = launch(t, fmt.Sprintf(`
service: %s
redis: {url: %q%s}
listen: "127.0.0.1:0"
admin: ""
jobs:
  - name: job
    schedule: "@every 1s"
    http: {url: %q}
`, source, s.URL(), key, app.URL), nil, "--log-level", "debug")
	}
	for _, r := range replicas {
		r.await("finished", "outcome", "succeeded")
	}

	down := map[string]int{} // how often redis_up was 0
	end, next, look := time.After(*rotating), time.NewTicker(*rotate-*rotate/20), time.NewTicker(100*time.Millisecond)
	changes := 0
	for ended := false; !ended; {
		select {
		case <-end:
			ended = true
		case <-next.C: // at another moment between two ticks each time
			changes++
			change(changes)
		case <-look.C:
			for source, r := range replicas {
				if !strings.Contains(metrics(t, r), "\nsolotick_redis_up 1\n") {
					down[source]++
				}
			}
		}
	}
	for source, r := range replicas {
		text := metrics(t, r)
		r.stop()
		c := apps[source]
		ticks := slices.SortedFunc(maps.Keys(c.late), time.Time.Compare)
		first, last := ticks[0], ticks[len(ticks)-1]
		if want := int(last.Sub(first)/time.Second) + 1; len(ticks) != want || len(c.twice) > 0 || want < int(*rotating/time.Second) {
			t.Errorf("%s: %d ticks from %s to %s, want %d; fired twice: %v", source, len(ticks), first, last, want, c.twice)
		}
		if !strings.Contains(text, `solotick_missed_total{job="job"} 0`) {
			t.Errorf("%s: the replica has missed ticks", source)
		}
		if strings.Contains(strings.Join(r.raw, "\n"), "canary") || strings.Contains(text, "canary") {
			t.Errorf("%s: a password is in the log or in the metrics", source)
		}
		t.Logf("%s: %d ticks, %d passwords, the latest tick came %s late, redis_up was 0 in %d looks each 100ms",
			source, len(ticks), changes, slices.Max(slices.Collect(maps.Values(c.late))), down[source])
	}
}

// metrics returns the metrics of a replica.
func metrics(t *testing.T, r *replica) string {
	t.Helper()
	addr, _ := r.await("serving " + servesHealth)["addr"].(string)
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
