package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/redistest"
)

// receipts is an app that writes down which ticks it was asked to run.
type receipts struct {
	mu  sync.Mutex
	got map[string]map[time.Time]int // by job
}

func (a *receipts) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	tick, err := time.Parse(time.RFC3339, r.Header.Get("Solotick-Tick"))
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	job := r.Header.Get("Solotick-Job")
	if a.got[job] == nil {
		a.got[job] = map[time.Time]int{}
	}
	a.got[job][tick]++
}

// once checks a job that ticks every second and fires all missed ticks: every tick from the first received one to the
// newest one of now was run once, or will be. A busy machine runs them late.
func (a *receipts) once(t *testing.T, job string) (ticks int) {
	t.Helper()
	first, last := a.span(job)
	var lacks []string
	eventually(t, "all ticks of "+job, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		lacks, ticks = nil, 0
		for tick := first; !tick.After(last); tick = tick.Add(time.Second) {
			if a.got[job][tick] == 0 {
				lacks = append(lacks, tick.Format(time.TimeOnly))
			}
			ticks++
		}
		return len(lacks) == 0
	})
	a.noneTwice(t, job)
	return ticks
}

// span returns the oldest and the newest tick received.
func (a *receipts) span(job string) (first, last time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for tick := range a.got[job] {
		if first.IsZero() || tick.Before(first) {
			first = tick
		}
		if tick.After(last) {
			last = tick
		}
	}
	return first, last
}

// noneTwice checks that no tick of a job was run twice.
func (a *receipts) noneTwice(t *testing.T, job string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for tick, n := range a.got[job] {
		if n != 1 {
			t.Errorf("%s: the tick %s was run %d times", job, tick.Format(time.TimeOnly), n)
		}
	}
}

// patient is the defaults of jobs whose ticks a busy machine must not lose: no run is in the way of a tick, and what
// could not be fired in time is fired late.
const patient = "defaults: {missed: all, concurrencyPolicy: Allow}\n"

// loaded returns a table with 20 jobs that run every second. Each version changes one job and renames another.
func loaded(redis, app string, n int) string {
	table := fmt.Sprintf("service: shop\nredis: {url: %q, timeout: 5s}\nlisten: \"127.0.0.1:0\"\nadmin: \"\"\n%sjobs:\n", redis, patient)
	for i := range 20 {
		query := 0
		if i == n%20 {
			query = n
		}
		table += fmt.Sprintf("  - {name: job%d, schedule: \"@every 1s\", http: {url: \"%s/?%d\"}}\n", i, app, query)
	}
	return table + fmt.Sprintf("  - {name: new%d, schedule: \"@every 1s\", http: {url: %q}}\n", n, app)
}

func TestAThousandReloadsLoseNothingAndLeaveNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	app := &receipts{got: map[string]map[time.Time]int{}}
	server := httptest.NewServer(app)
	defer server.Close()
	replicas := []*replica{
		launch(t, loaded(s.URL(), server.URL, 0), nil, "--replica", "one"),
		launch(t, loaded(s.URL(), server.URL, 0), nil, "--replica", "two"),
	}
	for _, r := range replicas {
		r.await("taking ticks")
	}
	awaitAny(t, replicas, "a first tick", func(l line) bool { return l.is("fired", "job", "job19") })
	before := make([]figures, len(replicas))
	for n := 1; n <= 1000; n++ {
		for _, r := range replicas {
			if err := os.WriteFile(r.cmd.Args[3], []byte(loaded(s.URL(), server.URL, n)), 0o600); err != nil {
				t.Fatal(err)
			}
			r.signal(syscall.SIGHUP)
		}
		for i, r := range replicas {
			r.await("table reloaded", "jobs", "21", "table", tableHash(t, r.cmd.Args[3]))
			if n == 100 {
				before[i] = r.figures()
			}
		}
	}
	for i, r := range replicas {
		// A run, and the lock that outlives it, have some goroutines each. The series of a job that has just gone stay
		// until its last run has ended. Where the machine is busy, more runs are late, and end later.
		eventually(t, "the replica to be as small as after 100 reloads", func() bool {
			after := r.figures()
			small := after.goroutines <= before[i].goroutines+100 && after.heap <= before[i].heap+4<<20 && after.series <= before[i].series+150
			if small {
				t.Logf("%s: after 100 reloads %+v, after 1000 %+v", r.await("taking ticks").text("replica"), before[i], after)
			}
			return small
		})
	}
	for i := range 20 {
		if n := app.once(t, fmt.Sprintf("job%d", i)); i == 0 {
			t.Logf("each of 20 jobs ran in %d seconds", n)
		}
	}
	for _, r := range replicas {
		r.stop()
	}
}

// tableHash is the hash of the table in a file.
func tableHash(t *testing.T, path string) string {
	t.Helper()
	table, err := config.Load(path, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return table.Hash
}

// figures are the numbers in which a leak would show.
type figures struct {
	goroutines, series int
	heap               int // bytes at which garbage is collected next: about twice what was live after the last time
}

func (r *replica) figures() figures {
	r.t.Helper()
	_, body := r.get("/metrics")
	return figures{
		goroutines: figure(r.t, body, "go_goroutines"), heap: figure(r.t, body, "go_memstats_next_gc_bytes"),
		series: len(regexp.MustCompile(`(?m)^solotick_`).FindAllString(body, -1)),
	}
}

func figure(t *testing.T, metrics, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		t.Fatalf("no %s", name)
	}
	v, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(v)
}
