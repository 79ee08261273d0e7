package sidecar

import (
	"fmt"
	"testing"
	"time"
)

// A run ends in an outage. The ticks after its end found nobody, and did not overlap with it.
func TestTicksAfterTheEndOfARunAreNoOverlapsThoughRedisHearsOfItLate(t *testing.T) {
	for _, missed := range []string{"skip", "latest", "all"} {
		for _, away := range []time.Duration{6 * time.Second, 7 * time.Second, 9 * time.Second, 12 * time.Second} {
			t.Run(fmt.Sprintf("missed: %s, for %s", missed, away), func(t *testing.T) {
				simulate(t, three("missed: "+missed), func(w *world) {
					w.at(-2 * time.Second)
					r := w.replica(2 * time.Second)
					w.at(time.Second)
					r.disconnect(true) // in the run, which ends at 2
					w.at(time.Second + away)
					r.disconnect(false)
					w.at(61 * time.Second)
					w.oneFateEach("three", 3*time.Second, 0, time.Minute, 2*time.Second)
					w.expect(0, "runs_total", "interrupted") // the lease lasts for 15 s
					if n := len(w.started("three")[w.origin().Add(6*time.Second)]); n == 0 && missed == "all" {
						t.Errorf("a missed tick was not fired\n%s", w.log())
					}
				})
			})
		}
	}
}
