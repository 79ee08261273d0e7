package sidecar

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
)

// A machine is suspended between the claim and the tick, for longer than the lease: when it goes on, nobody has told
// the process yet that the lease is over.
func TestAJobDoesNotBeginUnderALeaseThatIsOver(t *testing.T) {
	for _, guarantee := range []string{"at-most-once", "at-least-once"} {
		t.Run(guarantee, func(t *testing.T) {
			simulate(t, policy("guarantee: "+guarantee), func(w *world) {
				r := w.replica(time.Second)
				w.at(-ahead + 10*time.Millisecond)
				if !w.redis.Exists("solotick:{test}:lock:minute") {
					t.Errorf("the tick is not claimed yet\n%s", w.log())
				}
				r.slept.Store(int64(20 * time.Second))
				w.at(30 * time.Second)
				for _, s := range w.started("minute")[w.origin()] {
					if s.run.Kind == kindSchedule {
						t.Errorf("the job began under a lease that was over: %+v\n%s", s, w.log())
					}
				}
			})
		})
	}
}

// No claim keeps a replica from firing a tick again that every replica fires.
func TestAClockThatIsSetBackFiresNoTickOfEveryReplicaAgain(t *testing.T) {
	simulate(t, "clock: local\njobs:\n  - {name: second, schedule: '* * * * * *', guarantee: every-replica, exec: {command: [x]}}",
		func(w *world) {
			r := w.replica(time.Millisecond, func(r *replica) { r.skew = 30 * time.Second })
			w.at(20500 * time.Millisecond)
			r.set(0)
			w.at(2 * time.Minute)
			by := w.started("second")
			for tick, s := range by {
				if len(s) != 1 {
					t.Errorf("tick +%s was started %d times", tick.Sub(w.origin()), len(s))
				}
			}
			for at := time.Duration(0); at < 2*time.Minute; at += time.Second {
				if len(by[w.origin().Add(at)]) != 1 {
					t.Errorf("tick +%s was started %d times", at, len(by[w.origin().Add(at)]))
				}
			}
		})
}

// Nor when the job's schedule is changed before the clock has caught up, and changed back.
func TestAReloadAfterAClockWasSetBackFiresNoTickOfEveryReplicaAgain(t *testing.T) {
	table := func(schedule string) string {
		return "clock: local\njobs:\n  - {name: second, schedule: '" + schedule + "', guarantee: every-replica, exec: {command: [x]}}"
	}
	simulate(t, table("* * * * * *"), func(w *world) {
		r := w.replica(time.Millisecond, func(r *replica) { r.skew = 30 * time.Second })
		w.at(22500 * time.Millisecond)
		r.set(0)
		w.at(25500 * time.Millisecond)
		w.swap(r, table("*/5 * * * * *"))
		w.at(36500 * time.Millisecond)
		w.swap(r, table("* * * * * *"))
		w.at(2 * time.Minute)
		by := w.started("second")
		for tick, s := range by {
			if len(s) != 1 {
				t.Errorf("tick +%s was started %d times", tick.Sub(w.origin()), len(s))
			}
		}
		for at := 53 * time.Second; at < 2*time.Minute; at += time.Second {
			if len(by[w.origin().Add(at)]) != 1 {
				t.Errorf("tick +%s was started %d times", at, len(by[w.origin().Add(at)]))
			}
		}
	})
}

// A run whose replica is gone is told of as a failure, and is among the failures that are kept.
func TestAnInterruptedRunIsToldOfAsAFailure(t *testing.T) { tellsOfAnInterruptedRun(t, nil) }

// Its job leaves the table of the replica that takes it over before Redis has answered.
func TestAnInterruptedRunIsToldOfThoughItsJobHasJustLeft(t *testing.T) {
	tellsOfAnInterruptedRun(t, func(w *world, watching *replica) {
		swap := sync.OnceFunc(func() { w.swap(watching, herdTable(1, "@every 1h")) })
		w.redis.Server().SetPreHook(func(_ *server.Peer, _ string, args ...string) bool {
			if slices.Contains(args, "reap") {
				swap()
			}
			return false
		})
	})
}

// tellsOfAnInterruptedRun plays a replica that is gone, and another one that takes its run over.
func tellsOfAnInterruptedRun(t *testing.T, watch func(w *world, watching *replica)) {
	heard := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text := make([]byte, 100)
		n, _ := r.Body.Read(text)
		heard <- r.URL.Path + "?" + r.URL.RawQuery + " " + string(text[:n])
	}))
	defer server.Close()
	pings, run := notify.New(nil, "test"), ""
	simulate(t, policy("timeout: 10m, notify: {url: '"+server.URL+"/job'}"), func(w *world) {
		dead := w.replica(10 * time.Minute)
		w.at(2 * time.Second)
		watching := w.replica(time.Second, func(r *replica) { r.pings = pings })
		run = w.started("minute")[w.origin()][0].run.ID
		if watch != nil {
			watch(w, watching)
		}
		dead.crash()
		w.at(30 * time.Second)
		failures, err := watching.store.Search(w.t.Context(), service.Search{Jobs: []string{"minute"}, Failed: true, Limit: 10})
		if len(failures) != 1 || err != nil ||
			failures[0].Outcome != "interrupted" || failures[0].Run != run || failures[0].Replica != dead.name {
			t.Fatalf("the failures are %+v, %v", failures, err)
		}
		want := "replica r1 stopped renewing its lease at 2000-01-01 00:10:59 UTC: it died, was stopped or lost Redis; replica r2 noticed that"
		if got := failures[0]; got.Detail != want || got.Took != 0 {
			t.Errorf("the history says %q, and that it took %s", got.Detail, got.Took)
		}
	})
	ctx, stop := context.WithTimeout(context.Background(), time.Minute) // outside the bubble, where there is a network
	defer stop()
	ended := make(chan error)
	go func() { ended <- pings.Run(ctx) }()
	select {
	case got := <-heard:
		if want := "/job/fail?rid=" + run + " interrupted"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	case <-ctx.Done():
		t.Error("nobody was told of it")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestASlotThatComesFreeInTheMomentOfGivingUpIsNotLost(t *testing.T) {
	long(t)
	g := gate(1)
	for range 2000 {
		first := g.tryAcquire(plain("a"))
		if first == nil {
			t.Fatal("the slot is lost")
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if p, _ := g.acquire(ctx, plain("b"), time.Time{}); p != nil {
				g.release(p)
			}
		}()
		for _, waiting := g.counts(); waiting == 0; _, waiting = g.counts() {
			continue
		}
		cancel()
		g.release(first)
		<-done
	}
	if taken, waiting := g.counts(); taken != 0 || waiting != 0 {
		t.Errorf("taken %d, waiting %d", taken, waiting)
	}
}

// A wake that waits for a slot goes on by the new spec after a reload, and still counts once.
func TestAWakeThatAReloadPassesOnIsCountedOnce(t *testing.T) {
	table := func(command string) string {
		return oneSlot + `
jobs:
  - {name: four, schedule: "@every 4s", exec: {command: [` + command + `]}}
  - {name: long, schedule: "0 11 0 * * *", exec: {command: [x]}}
`
	}
	simulate(t, table("x"), func(w *world) {
		r := w.replica(0, func(r *replica) {
			r.work = func(ctx context.Context, run execute.Run) execute.Result {
				if run.Job == "long" {
					beat.Sleep(ctx, 6*time.Second)
				}
				return execute.Result{Status: execute.Succeeded}
			}
		})
		w.at(5 * time.Second)
		for n := range 5 {
			w.swap(r, table("x"+strings.Repeat("x", n)))
		}
		w.swap(r, table("y"))
		w.at(7 * time.Second)
		j := r.job("four")
		j.mu.Lock()
		asking := j.ticks.asking
		j.mu.Unlock()
		if asking != 0 {
			t.Errorf("%d wakes ask for a tick, want none\n%s", asking, w.log())
		}
		w.at(21 * time.Second)
		w.each("four", 4*time.Second, 8*time.Second, 20*time.Second, 10*time.Millisecond)
	})
}

func TestAHeartbeatTellsNothingOfAJobThatHasLeft(t *testing.T) {
	simulate(t, "jobs:\n  - {name: off, schedule: '* * * * *', suspend: true, exec: {command: [x]}}", func(w *world) {
		r := w.replica(0)
		skips := func() map[string]service.Skip {
			all, err := r.store.Replicas(w.t.Context())
			w.must(err)
			return all[0].Skips
		}
		w.at(10 * time.Second)
		if len(skips()) != 1 {
			t.Errorf("skips %v, want that of the suspended job", skips())
		}
		w.swap(r, noJobs)
		w.at(20 * time.Second)
		if len(skips()) != 0 {
			t.Errorf("skips %v, want none", skips())
		}
	})
}
