package sidecar

import (
	"testing"
	"time"
)

// The replica of a run is cut off when the run ends, and the others are not: they take the run to be in the way of the
// ticks that come due. When its end is told at last, those after it turn out to be no overlaps.
func TestTicksThatWereRefusedAfterTheEndOfARunAreSetFree(t *testing.T) {
	for missed, want := range map[string][]string{
		"all":    {"0s", "3s", "6s", "9s", "12s", "15s"},
		"latest": {"0s", "9s", "12s", "15s"},
	} {
		t.Run(missed, func(t *testing.T) {
			simulate(t, three("missed: "+missed), func(w *world) {
				w.at(-2 * time.Second)
				for range 2 {
					w.replica(100 * time.Millisecond)
				}
				w.at(50 * time.Millisecond)
				first := w.holder("three", 0)
				first.disconnect(true)
				w.at(10 * time.Second)
				first.disconnect(false)
				w.at(17 * time.Second)
				w.expectTicks("three", want...)
				w.oneFateEach("three", 3*time.Second, 0, 15*time.Second, 100*time.Millisecond)
				w.expect(0, "runs_total", "interrupted")
			})
		})
	}
}
