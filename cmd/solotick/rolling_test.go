package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// rolling is a table of jobs that run every second, one of them for a fifth of it. Where that takes longer than a
// second, its ticks overlap.
const rolling = patient + `
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: "127.0.0.1:0"
jobs:
  - {name: quick, schedule: "@every 1s", http: {url: "%[2]s/quick"}}
  - {name: slow, schedule: "@every 1s", concurrencyPolicy: Forbid, lock: {safetyDelay: 100ms}, http: {url: "%[2]s/slow"}}
`

func TestARollingRestartWithDrainLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	app := &receipts{got: map[string]map[time.Time]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		app.ServeHTTP(w, r)
		if r.URL.Path == "/slow" {
			<-time.After(200 * time.Millisecond)
		}
	}))
	defer server.Close()
	begin := func(n int) *replica {
		r := launch(t, fmt.Sprintf(rolling, s.URL(), server.URL), nil, "--replica", fmt.Sprint("r", n))
		r.await("taking ticks")
		return r
	}
	var all []*replica
	for n := range 3 {
		all = append(all, begin(n))
	}
	awaitAny(t, all, "a first tick", func(l line) bool { return l.is("fired", "job", "slow") })
	for n := range 6 {
		old := all[n]
		answer, err := http.Post("http://"+old.await("serving the status page and the API").text("addr")+"/v1/drain", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("the drain was answered with %s", answer.Status)
		}
		old.mu.Lock()
		fired := 0
		for _, l := range old.lines {
			if l.is("fired") {
				fired++
			}
		}
		told := len(old.lines)
		old.mu.Unlock()
		all = append(all, begin(n+3))
		awaitAny(t, all[n+3:], "a tick that the new one fired or left", func(l line) bool {
			return l.is("fired", "job", "slow") || l.is("skipped", "job", "slow")
		})
		old.stop()
		for _, l := range old.lines[told:] {
			if l.is("fired") {
				t.Errorf("the drained replica fired %v", l)
			}
		}
		t.Logf("%s fired %d", fmt.Sprint("r", n), fired)
	}
	if n := app.once(t, "quick"); n < 6 {
		t.Errorf("quick: only %d ticks", n)
	}
	for _, r := range all[6:] {
		r.stop()
	}
	app.noneTwice(t, "slow")
	late := map[string]bool{} // ticks that a run was in the way of, or that came too late on a busy machine
	for _, r := range all {
		for _, l := range r.lines {
			if l.is("skipped", "job", "slow") && slices.Contains([]string{"overlap", "superseded", "redis_error"}, l.text("reason")) {
				late[l.text("tick")] = true
			}
		}
	}
	for tick, last := app.span("slow"); tick.Before(last); tick = tick.Add(time.Second) {
		if stamp := tick.Format("2006-01-02T15:04:05.000Z"); app.got["slow"][tick] == 0 && !late[stamp] {
			t.Errorf("slow: the tick %s was not run, for no reason", stamp)
		}
	}
}
