package sidecar

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
)

const seconds3 = `
jobs:
  - {name: second, schedule: "@every 1s", exec: {command: [x]}}
  - {name: two, schedule: "@every 2s", exec: {command: [x]}}
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}}
`

// once checks that every tick of a job with this period was started once, from the origin up to end, near its time.
func (w *world) once(job string, period, end time.Duration, late time.Duration) {
	w.t.Helper()
	by := w.started(job)
	for at := time.Duration(0); at < end; at += period {
		tick := w.origin().Add(at)
		switch s := by[tick]; {
		case len(s) != 1:
			w.t.Errorf("%s: tick +%s was started %d times: %v\n%s", job, at, len(s), s, w.log())
			return
		case s[0].at.Before(tick.Add(-time.Second)) || s[0].at.After(tick.Add(late)):
			w.t.Errorf("%s: tick +%s was started at %s", job, at, s[0].at.Sub(tick))
		}
	}
}

// accounted checks that on every replica each wake ended in one outcome: as many fires and skips as there were ticks.
func (w *world) accounted(job string, wakes float64) {
	w.t.Helper()
	for _, r := range w.replicas {
		if got := r.value("fires_total", job) + r.value("skips_total", job); got != wakes {
			w.t.Errorf("%s, %s: %v fires and skips for %v wakes\n%s", r.name, job, got, wakes, r.logs)
		}
	}
}

func TestThreeReplicasFireEachTickOnce(t *testing.T) {
	long(t)
	simulate(t, seconds3, func(w *world) {
		for range 3 {
			w.replica(5 * time.Millisecond)
		}
		w.at(10*time.Minute + 500*time.Millisecond)
		w.once("second", time.Second, 10*time.Minute, 10*time.Millisecond)
		w.once("two", 2*time.Second, 10*time.Minute, 10*time.Millisecond)
		w.once("minute", time.Minute, 10*time.Minute, 10*time.Millisecond)
		w.accounted("second", 660)
		w.accounted("minute", 11)
		w.expect(0, "missed_total")
		w.expect(11, "runs_total", "minute", "succeeded")
		w.expect(22, "skips_total", "minute", "fired_elsewhere")
	})
}

func TestSkewedClocksFireEachTickOnceAndOnTime(t *testing.T) {
	long(t)
	for _, clock := range []string{"redis", "local"} {
		t.Run(clock, func(t *testing.T) {
			simulate(t, "clock: "+clock+seconds3, func(w *world) {
				for _, skew := range []time.Duration{0, 2500 * time.Millisecond, -2500 * time.Millisecond} {
					w.replica(5*time.Millisecond, func(r *replica) { r.skew = skew })
				}
				w.at(5*time.Minute + 4*time.Second)
				late := 10 * time.Millisecond
				if clock == "local" { // the slow replica may win where the fast one is busy
					late = 3 * time.Second
				}
				w.once("second", time.Second, 5*time.Minute, late)
				w.once("two", 2*time.Second, 5*time.Minute, late)
				w.once("minute", time.Minute, 5*time.Minute, late)
				w.expect(0, "missed_total")
			})
		})
	}
}

// Redis calls each tick early until its own clock has reached it, and only then is it worth firing or not.
func TestReplicasAllAheadOfRedisLoseNothing(t *testing.T) {
	long(t)
	for name, c := range map[string]struct {
		clock string
		skew  time.Duration
	}{"by their own clock": {"local", 2500 * time.Millisecond}, "beyond belief": {"redis", 90 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			simulate(t, "clock: "+c.clock+seconds3, func(w *world) {
				for range 3 {
					w.replica(5*time.Millisecond, func(r *replica) { r.skew = c.skew })
				}
				w.at(90 * time.Second) // the ticks between Redis' time and theirs at the start were never theirs to take
				before := w.sum("missed_total")
				w.at(3*time.Minute + time.Second)
				for at := 91 * time.Second; at < 3*time.Minute; at += time.Second {
					if s := w.started("second")[w.origin().Add(at)]; len(s) != 1 || s[0].at.Sub(s[0].tick).Abs() > time.Second {
						t.Errorf("tick +%s was started as %v", at, s)
					}
				}
				w.expect(before, "missed_total")
				w.expect(0, "skips_total", "redis_error")
			})
		})
	}
}

func TestAnOffsetBeyondAMinuteIsNotBelieved(t *testing.T) {
	simulate(t, seconds3, func(w *world) {
		r := w.replica(5*time.Millisecond, func(r *replica) { r.skew = -time.Hour })
		w.at(time.Second)
		if got := time.Until(r.clock.Now()); got != -time.Hour {
			t.Errorf("the cluster clock is %s off, want the machine's own time", got)
		}
		if got := math.Round(r.value("clock_offset_seconds")); got != 3600 {
			t.Errorf("clock_offset_seconds = %v, want 3600", got)
		}
	})
}

func TestAnOverlappedTickIsSkippedForGood(t *testing.T) {
	long(t)
	simulate(t, `
jobs:
  - {name: slow, schedule: "@every 2s", exec: {command: [x]}}
`, func(w *world) {
		for range 3 {
			w.replica(3 * time.Second)
		}
		w.at(time.Minute + time.Second)
		by := w.started("slow")
		for at := time.Duration(0); at < time.Minute; at += 4 * time.Second {
			even, odd := by[w.origin().Add(at)], by[w.origin().Add(at+2*time.Second)]
			if len(even)+len(odd) != 1 {
				t.Errorf("of two ticks at +%s %d and %d runs began, want one in all", at, len(even), len(odd))
			}
		}
		w.expect(0, "missed_total")
	})
}

func TestAReplicaTakesNoTickFromBeforeItsStart(t *testing.T) {
	simulate(t, `
jobs:
  - {name: minute, schedule: "* * * * *", exec: {command: [x]}}
`, func(w *world) {
		w.at(-30 * time.Second)
		w.replica(0)
		w.at(30 * time.Second)
		if by := w.started("minute"); len(by) != 1 || len(by[w.origin()]) != 1 {
			t.Errorf("started were %v, want only the tick at the origin", by)
		}
		w.accounted("minute", 1)
	})
}

func TestAllowRunsTicksSideBySide(t *testing.T) {
	simulate(t, `
jobs:
  - {name: slow, schedule: "@every 2s", concurrencyPolicy: Allow, exec: {command: [x]}}
`, func(w *world) {
		for range 3 {
			w.replica(5 * time.Second)
		}
		w.at(time.Minute)
		w.once("slow", 2*time.Second, time.Minute, 10*time.Millisecond)
		if keys := w.redis.Keys(); len(keys) > 10 {
			t.Errorf("locks of finished runs are left over: %q", keys)
		}
	})
}

func TestEveryReplicaRunsAnUnlockedJob(t *testing.T) {
	simulate(t, `
jobs:
  - {name: local, schedule: "@every 10s", guarantee: every-replica, exec: {command: [x]}}
`, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(31 * time.Second)
		for tick, s := range w.started("local") {
			if len(s) != 3 {
				t.Errorf("tick %s: %d runs, want one on each replica", tick, len(s))
			}
			for _, s := range s {
				if s.run.Token != 0 {
					t.Errorf("an unlocked run was given the token %d", s.run.Token)
				}
			}
		}
		w.expect(3*9, "fires_total", "local")
	})
}

func TestJitterIsTheSameOnAllReplicas(t *testing.T) {
	long(t)
	simulate(t, `
jobs:
  - {name: spread, schedule: "* * * * *", jitter: 50s, exec: {command: [x]}}
`, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(20 * time.Minute)
		delays := map[time.Duration]bool{}
		for tick, s := range w.started("spread") {
			if len(s) != 1 {
				t.Errorf("tick %s was started %d times", tick, len(s))
			}
			d := s[0].at.Sub(tick).Truncate(10 * time.Millisecond)
			if d < 0 || d > 51*time.Second {
				t.Errorf("tick %s was started after %s", tick, d)
			}
			delays[d] = true
		}
		if len(delays) < 10 {
			t.Errorf("20 ticks have only %d delays", len(delays))
		}
		w.expect(0, "missed_total")
	})
}

// gocron passes over the later of two instants within one second, which ticks with jitter can be.
func TestASecondsJobWithJitterFiresEveryTick(t *testing.T) {
	long(t)
	simulate(t, `
jobs:
  - {name: spread, schedule: "@every 1s", jitter: 900ms, exec: {command: [x]}}
`, func(w *world) {
		w.replica(0)
		w.at(10 * time.Minute)
		w.once("spread", time.Second, 9*time.Minute, time.Second)
	})
}

// The token is what a store downstream can tell a late run by.
func TestFencingTokensOnlyGrow(t *testing.T) {
	long(t)
	simulate(t, seconds3, func(w *world) {
		var last int64
		work := func(_ context.Context, r execute.Run) execute.Result {
			if r.Job == "second" {
				w.mu.Lock()
				defer w.mu.Unlock()
				if r.Token <= last {
					t.Errorf("token %d after %d", r.Token, last)
				}
				last = r.Token
			}
			return execute.Result{Status: execute.Succeeded}
		}
		for range 3 {
			w.replica(0, func(r *replica) { r.work = work })
		}
		w.at(time.Minute)
		w.redis.FlushAll()
		w.at(2 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if last == 0 {
			t.Error("nothing ran")
		}
	})
}
