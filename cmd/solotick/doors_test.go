package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// An app that sends its job's caller on to the admin address, and a timer in Redis that calls that address, drained the whole service, and did so again after each restart.
func TestNoJobDrainsTheReplicaThatRunsIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var to atomic.Value
	to.Store("")
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/asks" {
			http.Redirect(w, r, to.Load().(string), http.StatusTemporaryRedirect)
		}
	}))
	defer app.Close()
	r := launch(t, fmt.Sprintf(`
service: shop
redis: {url: %q, timeout: 5s}
listen: "127.0.0.1:0"
admin: "localhost:0"
jobs:
  - {name: well, schedule: "@every 1s", http: {url: "%s/well"}}
  - {name: asks, schedule: "@every 1s", http: {url: "%s/asks"}}
`, s.URL(), app.URL, app.URL), nil)
	drain := "http://" + r.await("serving "+servesAdmin).text("addr") + "/v1/drain"
	to.Store(drain)
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{s.Addr()}}, patience)
	defer client.Close()
	store, err := service.New(client, "shop", lock.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	made := fmt.Sprintf(`{"schedule":"@every 1s","http":{"url":%q}}`, drain)
	if _, _, err := store.SetSeries(t.Context(), "made", time.Now(), []byte(made)); err != nil {
		t.Fatal(err)
	}

	for _, job := range []string{"asks", "timer:made"} {
		r.awaitLine("that "+job+" failed", func(l line) bool {
			return l.text("job") == job && strings.Contains(fmt.Sprint(l), "admin address, which jobs may not call")
		})
	}
	r.mu.Lock()
	after := len(r.lines)
	r.mu.Unlock()
	r.awaitLine("that the replica goes on", func(l line) bool {
		after--
		return after < 0 && l.is("finished", "job", "well", "outcome", "succeeded")
	})
	if code, body := r.get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	// If the job did not recognize the address, the API itself would refuse.
	asked, err := http.NewRequest("POST", drain, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked.Header.Set("Solotick-Run", "4b06b84c-71d9-4071-8ab2-a07f5edf4dfc")
	answer, err := http.DefaultClient.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a request of a job is answered %s", answer.Status)
	}
	r.stop()
	for _, l := range r.lines {
		if l.is("asked to drain") {
			t.Error("the replica was asked to drain")
		}
	}
}
