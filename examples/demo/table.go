package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/solotick/solotick/internal/toy"
)

// job is one job of the demo: its keys in the table, and the app's answer.
type job struct {
	name     string
	schedule string
	policy   string // further keys of the table
	about    string // what it shows
	answer   func(c toy.Call) (code int, after time.Duration)
}

// everywhere is the every-replica job.
const everywhere = "warm-cache"

// queueing is the job with one tick that may wait for the end of a run.
const queueing = "resize-images"

// reported is the job that another replica takes over when its replica is killed.
const reported = "send-report"

// reporting is how long a run of that job takes.
const reporting = 3 * time.Second

func jobs() []job {
	ok := func(d time.Duration) func(toy.Call) (int, time.Duration) {
		return func(toy.Call) (int, time.Duration) { return http.StatusOK, d }
	}
	return []job{
		{"heartbeat", "* * * * * *", "", "every second, on one replica", ok(5 * time.Millisecond)},
		{"sync-stock", "@every 4s", "", "runs for longer than that: some are skipped", ok(5 * time.Second)},
		{queueing, "@every 6s", "concurrencyPolicy: Queue", "the same, but one tick waits for the run's end",
			func(c toy.Call) (int, time.Duration) {
				return http.StatusOK, 4*time.Second + rand.N(5*time.Second)
			}},
		{reported, "@every 5s", "guarantee: at-least-once", "run again by another when its replica is killed",
			ok(reporting)},
		{"charge-cards", "@every 8s", "retry: {limit: 3, backoff: 300ms}", "fails now and then, and is tried again",
			func(c toy.Call) (int, time.Duration) {
				if c.Attempt <= rand.IntN(3) {
					return http.StatusServiceUnavailable, 20 * time.Millisecond
				}
				return http.StatusOK, 20 * time.Millisecond
			}},
		{"import-feed", "@every 9s", "", "the app says now and then that it does it already",
			func(c toy.Call) (int, time.Duration) {
				if rand.IntN(2) == 0 {
					return http.StatusConflict, time.Millisecond
				}
				return http.StatusOK, 50 * time.Millisecond
			}},
		{everywhere, "@every 15s", "guarantee: every-replica", "on every replica, without a lock",
			ok(10 * time.Millisecond)},
	}
}

// table returns the table of all three replicas. With its short ttl they find a dead replica soon.
func table(app, redis string) string {
	t := fmt.Sprintf(`# The table of the demo. It lasts as long as the demo does.
service: demo
redis: {url: "redis://%s/0", timeout: 1s}
listen: "127.0.0.1:0"
admin: "127.0.0.1:0"
shutdownGrace: 1s
defaults:
  lock: {ttl: 3s, safetyDelay: 500ms}
  timeout: 20s
jobs:
`, redis)
	for _, j := range jobs() {
		t += fmt.Sprintf("  - name: %s # %s\n    schedule: %q\n    http: {url: \"http://%s/jobs/%s\"}\n",
			j.name, j.about, j.schedule, app, j.name)
		if j.policy != "" {
			t += "    " + j.policy + "\n"
		}
	}
	return t
}
