package sidecar

import (
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// large is a table of n jobs, each with a schedule of its own and a tick a year.
func large(n int) string {
	var b strings.Builder
	b.WriteString("defaults: {timeZone: Europe/Berlin}\njobs:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: j%d, schedule: \"%d %d %d 6 *\", http: {url: \"http://127.0.0.1/%d\"}}\n",
			i, i%60, i/60%24, i/1440+1, i)
	}
	return b.String()
}

// Ten thousand jobs start within a second of CPU, and rest in 56 MiB. This test bounds what each of them takes by
// figures that no machine's speed changes.
func TestAJobTakesLittleAtTheStart(t *testing.T) {
	const jobs = 1000
	table := parse(t, large(jobs))
	client := lock.NewClient(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}, 0)
	defer client.Close()
	store, err := service.New(client, "test", lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, before := (*Sidecar)(nil), inUse()
	allocations := testing.AllocsPerRun(1, func() {
		s, err = New(Options{Table: table, Store: store, Replica: "a", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Registerer: prometheus.NewRegistry(), Executor: func(config.Job) execute.Executor { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		defer s.stopTimers()
	})
	if each := allocations / jobs; each > 12 {
		t.Errorf("a job takes %v allocations", each)
	}
	if each := (inUse() - before) / jobs; each > 1800 {
		t.Errorf("a job takes %d bytes", each)
	}
	if n := len(s.cron.agenda.groups); n != jobs {
		t.Errorf("%d groups have an instant", n)
	}
}

// inUse is how many bytes are in use.
func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools keep things for one collection
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// With Redis ten milliseconds away, jobs that are registered one after the other would take twenty seconds.
func TestManyJobsAreRegisteredInFewRoundTrips(t *testing.T) {
	long(t)
	const jobs = 1000
	simulate(t, large(jobs), func(w *world) {
		began := time.Now()
		r := w.replica(time.Second, func(r *replica) { r.far = 10 * time.Millisecond })
		for time.Since(began) < time.Minute {
			unknown := 0
			for _, j := range r.jobs() {
				if !j.isKnown() {
					unknown++
				}
			}
			if unknown == 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 700*time.Millisecond {
			t.Errorf("it takes %s, which is %d round trips", took, took/(20*time.Millisecond))
		}
	})
}
