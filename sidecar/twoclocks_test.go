package sidecar

import (
	"testing"
	"time"
)

// TestOverlapsAreJudgedOnOneClock: a run of 5 s is in the way of each second tick of a job each 4 s, on whatever clock
// the replicas have their ticks come.
func TestOverlapsAreJudgedOnOneClock(t *testing.T) {
	for name, c := range map[string]struct {
		table       string
		redis, skew time.Duration
	}{
		"one clock":                {},
		"Redis five minutes ahead": {redis: 5 * time.Minute},
		"clock: local, replicas half a minute slow": {table: "clock: local\n", skew: -30 * time.Second},
		"clock: local, replicas five seconds slow":  {table: "clock: local\n", skew: -5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, c.table+four("missed: latest"), func(w *world) {
				w.at(-40 * time.Second)
				for range 2 {
					w.replica(5*time.Second, func(r *replica) { r.skew = c.skew })
				}
				w.at(-20 * time.Second)
				if c.redis != 0 {
					w.redisIsAhead(c.redis)
				}
				w.at(50 * time.Second)
				for _, s := range w.starts {
					if s.run.Kind != kindSchedule && s.at.After(w.origin()) {
						t.Errorf("tick %s was started at %s as %s", s.tick.Sub(w.origin()), s.at.Sub(w.origin()), s.run.Kind)
					}
				}
			})
		})
	}
}

// TestAReplicaThatIsAheadCatchesUpWithNoTickEarly: Redis lets a tick be claimed up to a second early. A replica whose
// clock is further ahead finds it missed when it starts.
func TestAReplicaThatIsAheadCatchesUpWithNoTickEarly(t *testing.T) {
	for _, before := range []time.Duration{900 * time.Millisecond, 400 * time.Millisecond, 60 * time.Millisecond} {
		t.Run(before.String(), func(t *testing.T) {
			simulate(t, "clock: local\n"+everyTen(1, ", timeout: 2s"), func(w *world) {
				w.at(-40 * time.Second)
				w.replica(1500*time.Millisecond, func(r *replica) { r.skew = -5 * time.Second })
				w.at(-before)
				w.replica(1500*time.Millisecond, func(r *replica) { r.skew = 5 * time.Second })
				w.at(8 * time.Second)
				starts := w.started("j0")[w.origin()]
				if len(starts) != 1 || starts[0].at.Before(w.origin()) || starts[0].run.Kind != kindCatchup {
					t.Errorf("the tick of %s was started %v", w.origin(), starts)
				}
				w.expect(0, "runs_total", "j0", string(timedOut)) // the wait does not count to the timeout
			})
		})
	}
}
