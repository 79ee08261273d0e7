package sidecar

import (
	"testing"
	"time"
)

// Replicas that know of each other take turns: most ticks are asked for once, and each replica has its share.
func TestReplicasTakeTurns(t *testing.T) {
	long(t)
	simulate(t, seconds3, func(w *world) {
		for range 3 {
			w.replica(5 * time.Millisecond)
		}
		w.at(10 * time.Second) // they have seen each other
		before := map[*replica]float64{}
		for _, r := range w.replicas {
			before[r] = r.value("fires_total", "second")
		}
		w.at(10*time.Minute + 10*time.Second)
		w.once("second", time.Second, 10*time.Minute, 10*time.Millisecond)
		for _, r := range w.replicas {
			if n := r.value("fires_total", "second") - before[r]; n < 150 || n > 250 {
				t.Errorf("%s fired %v of 600 ticks", r.name, n)
			}
		}
		first := w.replicas[0]
		wk := &wake{spec: first.spec("second"), kind: kindSchedule}
		turns := 0
		for i := range 600 {
			wk.tick = w.origin().Add(time.Duration(i) * time.Second)
			for _, r := range w.replicas {
				if first, _ := r.firer.rendezvous.first(wk); first == r.name {
					turns++
				}
			}
		}
		if turns != 600 {
			t.Errorf("%d replicas were first for 600 ticks", turns)
		}
	})
}

// A replica that is gone, and was to be first, costs no time: the others ask before the tick.
func TestAReplicaThatIsGoneCostsNoTime(t *testing.T) {
	long(t)
	simulate(t, seconds3, func(w *world) {
		for range 3 {
			w.replica(5 * time.Millisecond)
		}
		w.at(20*time.Second + 500*time.Millisecond)
		w.replicas[0].crash()
		w.at(2 * time.Minute)
		for at := 21 * time.Second; at < 2*time.Minute; at += time.Second {
			if s := w.started("second")[w.origin().Add(at)]; len(s) != 1 || s[0].at.Sub(s[0].tick) > 2*time.Millisecond {
				t.Fatalf("tick +%s was started as %+v", at, s)
			}
		}
		if peers := *w.replicas[1].firer.rendezvous.peers.Load(); len(peers) != 1 || peers[0] != "r3" {
			t.Errorf("r2 leaves %v to go first", peers)
		}
	})
}

// Late wakes and due ticks wait for nobody.
func TestOnlyPunctualTicksAreLeftToOthers(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(10 * time.Second)
		for _, kind := range []string{kindCatchup, kindTakeover, kindManual} {
			for i := range 100 {
				r := w.replicas[0]
				wk := &wake{spec: r.spec("minute"), kind: kind, tick: w.origin().Add(time.Duration(i) * time.Minute)}
				if first, _ := r.firer.rendezvous.first(wk); first != r.name {
					t.Fatalf("a %s is left to others", kind)
				}
			}
		}
	})
}
