package sidecar

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"
)

// These tests hear what a replica says of a tick that it did not get.

func TestATickThatWaitsToBeStartedIsNotSaidToBeFiredElsewhere(t *testing.T) {
	simulate(t, rare(", startRetries: 8"), func(w *world) {
		w.replica(0, refuses)
		late := w.replica(0, refuses)
		w.at(-time.Second)
		late.disconnect(true)
		w.at(time.Second)
		late.disconnect(false)
		w.at(10 * time.Second)
		if got := w.skips("rare", 0); !slices.Contains(got, "queued") || slices.Contains(got, "fired_elsewhere") {
			t.Errorf("the tick was skipped as %q, want by the late one as queued\n%s", got, w.log())
		}
	})
}

var elsewhereLine = regexp.MustCompile(`msg=skipped job=(\S+) tick=(\S+) .*reason=fired_elsewhere by=(r\d+|"[^"]+")`)

// blames checks that whoever is said to have fired a tick has, and that no replica takes itself for another.
func (w *world) blames(job string) {
	w.t.Helper()
	by, said := w.started(job), 0
	for _, r := range w.replicas {
		for _, l := range elsewhereLine.FindAllStringSubmatch(r.logs.String(), -1) {
			who := l[3]
			said++
			if who == r.name {
				w.t.Errorf("%s says that %s was fired by another replica, itself", r.name, l[2])
			}
			if who == `"this replica, in an earlier wake"` {
				who = r.name
			}
			for tick, s := range by {
				if stamp(tick) == l[2] && !slices.ContainsFunc(s, func(s start) bool { return s.replica == who }) {
					w.t.Errorf("%s says that %s was fired by %s: it was fired by %s", r.name, l[2], l[3], s[0].replica)
				}
			}
		}
	}
	if said == 0 {
		w.t.Error("nobody is named")
	}
}

func TestWhoIsSaidToHaveFiredATickHas(t *testing.T) {
	long(t)
	for down := range 3 {
		t.Run(fmt.Sprintf("%d of three apps down", down), func(t *testing.T) {
			simulate(t, everySecond(0, "latest"), func(w *world) {
				for i := range 3 {
					if i < down {
						w.replica(0, refuses)
					} else {
						w.replica(time.Millisecond)
					}
				}
				w.at(2 * time.Minute)
				w.blames("second")
			})
		})
	}
}

func TestNobodySaysOfATickThatWaitsThatItWasFired(t *testing.T) {
	simulate(t, four("timeout: 1h, concurrencyPolicy: Queue"), func(w *world) {
		w.at(-20 * time.Second)
		for range 3 {
			w.replica(7*time.Second, func(r *replica) { r.far = time.Millisecond })
		}
		w.at(-11500 * time.Millisecond)
		w.expect(3, "skips_total", "queued")
	})
}
