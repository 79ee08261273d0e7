package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// fires counts how often each tick of each job was fired.
type fires struct {
	mu    sync.Mutex
	times map[string]int // by job and tick
	more  chan struct{}
}

func (f *fires) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times["app "+r.Header.Get("Solotick-Tick")]++
	close(f.more)
	f.more = make(chan struct{})
}

// await waits until n more ticks were fired.
func (f *fires) await(t *testing.T, n int) {
	t.Helper()
	f.mu.Lock()
	want := len(f.times) + n
	f.mu.Unlock()
	limit := time.After(patience)
	for {
		f.mu.Lock()
		got, more := len(f.times), f.more
		f.mu.Unlock()
		if got >= want {
			return
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("%d of %d ticks were fired within %s", got, want, patience)
		}
	}
}

func TestThreeProcessesOfOneEmbeddedStoreFireEachTickOnce(t *testing.T) {
	t.Parallel()
	app := &fires{times: map[string]int{}, more: make(chan struct{})}
	server := httptest.NewServer(app)
	defer server.Close()
	written := filepath.Join(t.TempDir(), "ticks")
	table := fmt.Sprintf(`
service: quickstart
redis: {url: embedded}
listen: "127.0.0.1:0"
admin: ""
jobs:
  - name: app
    schedule: "@every 1s"
    http: {url: %q}
  - name: command
    schedule: "@every 1s"
    exec: {command: ["sh", "-c", "echo command $SOLOTICK_TICK >>%s"]}
`, server.URL, written)
	env := []string{embeddedVariable + "=" + rig.FreeAddr(t)}

	first := launch(t, table, env, "--log-level", "debug")
	first.await("serving the embedded store, for trying out on one machine")
	others := []*replica{launch(t, table, env, "--log-level", "debug"), launch(t, table, env, "--log-level", "debug")}
	for _, r := range others {
		r.await("joined the embedded store of another process")
		r.await("taking ticks")
	}
	app.await(t, 4)
	awaitAny(t, append(others, first), "that another one had fired", func(l line) bool { return l.is("skipped", "reason", "fired_elsewhere") })
	eventually(t, "four ticks of the exec job", func() bool {
		text, err := os.ReadFile(written)
		return err == nil && strings.Count(string(text), "\n") >= 4
	})

	// The one that serves is killed: another takes its place, and ticks go on.
	first.kill()
	awaitAny(t, others, "that the embedded store was taken over", func(l line) bool {
		return l.is("serving the embedded store from now on: the process that did has ended")
	})
	app.await(t, 4)
	for _, r := range others {
		r.kill()
	}

	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	for _, tick := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		app.times[tick]++
	}
	for tick, n := range app.times {
		if n != 1 {
			t.Errorf("%s was fired %d times", tick, n)
		}
	}
	for _, r := range append(others, first) {
		for _, l := range r.lines {
			if l.is("skipped", "reason", "fired_elsewhere") && (l.text("by") == "" || l.text("tick") == "" || l.text("job") == "") {
				t.Errorf("the skip does not say who fired which tick of which job: %v", l)
			}
		}
	}
}

func TestProgramsOnAllPortsOfTheEmbeddedStoreAreAClearError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	r := launch(t, `
service: quickstart
redis: {url: embedded}
listen: ""
admin: ""
jobs: []
`, []string{embeddedVariable + "=" + addr + "," + addr})
	uses := addr + ": another program uses that port"
	r.await("opening the embedded store at "+uses+", at "+uses, "level", "ERROR",
		"hint", "end the other program, or name a Redis with --redis redis://HOST:6379/0")
	if code := r.wait(); code != exitCannot {
		t.Errorf("exit code %d, want %d", code, exitCannot)
	}
}
