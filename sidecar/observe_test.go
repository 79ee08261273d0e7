package sidecar

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/sidecar/notify"
	"github.com/solotick/solotick/sidecar/service"
)

// TestAnObservedJobIsNotCalledAndItsTicksHaveAFate: beside the old cron, each tick is taken by one replica, once. When
// the job goes live, its next tick is called, and none counts as missed.
func TestAnObservedJobIsNotCalledAndItsTicksHaveAFate(t *testing.T) {
	const live = "jobs:\n  - {name: minute, schedule: '* * * * *', exec: {command: [x]}"
	simulate(t, live+", observe: true}", func(w *world) {
		a, b := w.replica(time.Second), w.replica(time.Second)
		w.at(2*time.Minute + 30*time.Second)
		if n := len(w.started("minute")); n != 0 {
			t.Errorf("%d ticks of an observed job were called", n)
		}
		w.expect(3, "runs_total", "minute", "observed")
		w.expect(3, "fires_total", "minute")
		w.expect(0, "failures_total", "minute")
		for _, r := range w.replicas {
			r.shows(3, "ticks_total", "minute", "observed")
			r.shows(0, "last_success_timestamp_seconds", "minute")
		}
		if e := w.last("minute"); e == nil || e.Outcome != "observed" || e.Failed || !e.Tick.Equal(w.origin().Add(2*time.Minute)) {
			t.Errorf("the history ends with %+v", e)
		}
		w.swap(a, live+"}")
		w.swap(b, live+"}")
		w.at(4*time.Minute + 30*time.Second)
		w.each("minute", time.Minute, 3*time.Minute, 4*time.Minute, 100*time.Millisecond)
		w.expect(2, "runs_total", "minute", "succeeded")
		w.expect(3, "runs_total", "minute", "observed")
		w.expect(0, "missed_total", "minute")
	})
}

// TestAReplicaThatObservesCallsNothing: neither jobs of the table, nor timers, nor by hand.
func TestAReplicaThatObservesCallsNothing(t *testing.T) {
	simulate(t, minutely+"\n  - {name: each, schedule: '* * * * *', exec: {command: [x]}, guarantee: every-replica}", func(w *world) {
		w.replica(time.Second, func(r *replica) { r.observes = true })
		w.setTimer("a", 70*time.Second, "")
		w.at(30 * time.Second)
		_, err := w.replicas[0].store.Trigger(w.t.Context(), "minute", uuid.NewString())
		w.must(err)
		w.at(90 * time.Second)
		for _, job := range []string{"minute", "each", "timer:a"} {
			if n := len(w.started(job)); n != 0 {
				t.Errorf("%d ticks of %s were called", n, job)
			}
		}
		w.expect(3, "runs_total", "minute", "observed")
		w.expect(2, "runs_total", "each", "observed")
		w.expect(1, "runs_total", service.TimerJobs, "observed")
		if all, err := w.replicas[0].store.Replicas(w.t.Context()); err != nil || len(all) != 1 || !all[0].Observe {
			t.Errorf("the heartbeats are %+v, %v", all, err)
		}
	})
}

// TestAnObservedJobSendsNoPings: a dead man's switch watches for the work, which the old cron still does.
func TestAnObservedJobSendsNoPings(t *testing.T) {
	for observe, want := range map[string]int32{"true": 0, "false": 2} {
		var got atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
		defer server.Close()
		pings := notify.New(nil, "test") // it sends outside the bubble, where there is a network
		simulate(t, "jobs:\n  - {name: minute, schedule: '* * * * *', exec: {command: [x]}, observe: "+observe+", notify: {url: '"+
			server.URL+"'}}", func(w *world) {
			w.replica(time.Second, func(r *replica) { r.pings = pings })
			w.at(30 * time.Second)
		})
		ctx, end := context.WithCancel(t.Context())
		end()
		if err := pings.Run(ctx); err != nil {
			t.Error(err)
		}
		if n := got.Load(); n != want {
			t.Errorf("observe: %s: %d pings, want %d", observe, n, want)
		}
	}
}
