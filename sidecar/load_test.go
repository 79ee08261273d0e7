package sidecar

import (
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/machine"
)

const often = "busy: {cpu: 80%, memory: 90%}\njobs:\n  - {name: often, schedule: '@every 5s', exec: {command: [x]}}"

// fired counts the ticks that each replica fired in a time, and demands that none is late.
func (w *world) fired(from, to time.Duration) map[string]int {
	w.t.Helper()
	by := map[string]int{}
	w.mu.Lock()
	defer w.mu.Unlock()
	ticks := map[time.Time]bool{}
	for _, s := range w.starts {
		if at := s.tick.Sub(w.origin()); at < from || at >= to {
			continue
		}
		if late := s.at.Sub(s.tick); late > 100*time.Millisecond {
			w.t.Errorf("tick %s was %s late", stamp(s.tick), late)
		}
		by[s.replica]++
		ticks[s.tick] = true
	}
	if want := int((to - from) / (5 * time.Second)); len(ticks) != want {
		w.t.Errorf("%d ticks were fired from +%s to +%s, want %d", len(ticks), from, to, want)
	}
	return by
}

// TestABusyReplicaLeavesTicksToOthersWhileOneIsLessBusy: first one of three is busy, then all are, then none.
func TestABusyReplicaLeavesTicksToOthersWhileOneIsLessBusy(t *testing.T) {
	long(t)
	simulate(t, often, func(w *world) {
		for range 3 {
			w.replica(100 * time.Millisecond)
		}
		first := w.replicas[0]
		w.at(0)
		first.load.Store(&machine.Load{CPU: 0.93})
		w.at(200 * time.Second)
		by := w.fired(10*time.Second, 200*time.Second)
		if by["r1"] != 0 || by["r2"] == 0 || by["r3"] == 0 {
			t.Errorf("while r1 is busy, they fired %v", by)
		}
		if first.value("busy") != 1 || first.value("skips_total", "often", "not_ready") == 0 && first.value("skips_total", "often", "fired_elsewhere") == 0 {
			t.Errorf("busy %v\n%s", first.value("busy"), first.logs)
		}
		all, err := first.store.Replicas(w.t.Context())
		if err != nil || !all[0].Busy || all[0].Ready != "" || all[1].Busy || all[1].Ready != "" {
			t.Errorf("the heartbeats are %+v, %v", all, err)
		}
		for _, r := range w.replicas {
			r.load.Store(&machine.Load{Memory: 0.9})
		}
		w.at(400 * time.Second)
		if by := w.fired(210*time.Second, 400*time.Second); by["r1"] == 0 || by["r2"] == 0 || by["r3"] == 0 {
			t.Errorf("while all are busy, they fired %v", by)
		}
		if first.value("busy") != 0 {
			t.Error("it leaves ticks to others although all are busy")
		}
		first.load.Store(nil)
		w.at(600 * time.Second)
		if by := w.fired(410*time.Second, 600*time.Second); by["r1"] < 36 {
			t.Errorf("when r1 alone is not busy any more, they fired %v", by)
		}
	})
}

// TestABusyReplicaIsAloneWhenTheOthersDie: it takes the ticks as soon as it knows.
func TestABusyReplicaIsAloneWhenTheOthersDie(t *testing.T) {
	simulate(t, often, func(w *world) {
		busy, other := w.replica(0), w.replica(0)
		busy.load.Store(&machine.Load{CPU: 1})
		w.at(30 * time.Second)
		other.crash()
		w.at(100 * time.Second)
		if by := w.fired(50*time.Second, 100*time.Second); by["r1"] != 10 {
			t.Errorf("they fired %v", by)
		}
	})
}

// TestABusyReplicaRunsWhatEveryReplicaRuns: it can be left to none.
func TestABusyReplicaRunsWhatEveryReplicaRuns(t *testing.T) {
	simulate(t, strings.Replace(often, "[x]}}", "[x]}, guarantee: every-replica}", 1), func(w *world) {
		busy := w.replica(0)
		w.replica(0)
		busy.load.Store(&machine.Load{CPU: 1})
		w.at(100 * time.Second)
		if by := w.fired(20*time.Second, 100*time.Second); by["r1"] != 16 || by["r2"] != 16 {
			t.Errorf("they fired %v", by)
		}
	})
}

func TestALoadIsAboveItsLimitFromThatPercentOn(t *testing.T) {
	for _, c := range []struct {
		now   machine.Load
		limit config.Busy
		want  string
	}{
		{machine.Load{CPU: 0.79, Memory: 1}, config.Busy{CPU: 80}, ""},
		{machine.Load{CPU: 0.8}, config.Busy{CPU: 80, Memory: 90}, "cpu at 80%, with a limit of 80%"},
		{machine.Load{CPU: 1, Memory: 0.951}, config.Busy{Memory: 95}, "memory at 95%, with a limit of 95%"},
	} {
		if got := above(c.now, c.limit); got != c.want {
			t.Errorf("%+v of %+v: %q, want %q", c.now, c.limit, got, c.want)
		}
	}
}
