package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

func TestReadyMeansThatRedisHasAnswered(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill()
	r := launch(t, `
service: shop
listen: "127.0.0.1:0"
admin: ""
jobs:
  - {name: job, schedule: "@yearly", exec: {command: ["true"]}}
`, nil, "--redis", s.URL())
	r.await("Redis does not answer")

	if code, body := r.get("/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz without Redis: %d %q", code, body)
	}
	if code, body := r.get("/readyz"); code != http.StatusServiceUnavailable || body != "no answer from Redis yet\n" {
		t.Errorf("/readyz without Redis: %d %q", code, body)
	}
	_, metrics := r.get("/metrics")
	for _, want := range []string{"\nsolotick_redis_up 0\n", `solotick_fires_total{job="job"} 0`, `solotick_build_info{version="`,
		"\ngo_goroutines ", "\nprocess_resident_memory_bytes "} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %q", want)
		}
	}

	s.Restart()
	r.await("Redis answers")
	every := time.NewTicker(20 * time.Millisecond) // the jobs are registered first, and that is not logged
	defer every.Stop()
	limit := time.After(patience)
	for code := 0; code != http.StatusOK; code, _ = r.get("/readyz") {
		select {
		case <-every.C:
		case <-limit:
			t.Fatalf("/readyz with Redis is still %d after %s", code, patience)
		}
	}
	// Redis goes away again, which is not the pod's fault.
	s.Kill()
	away := 0
	r.awaitLine("that Redis is gone again", func(l line) bool {
		if l.is("Redis does not answer") {
			away++
		}
		return away == 2
	})
	if code, _ := r.get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz when Redis went away again: %d", code)
	}
	r.stop()
}
