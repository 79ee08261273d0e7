package sidecar

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// Each tick of a schedule has one fate: it is fired, or it came due while a run was in its way, or it is counted as
// missed.

func three(keys string) string {
	return `
jobs:
  - {name: three, schedule: "@every 3s", exec: {command: [x]}, ` + keys + `}
`
}

// oneFateOf is oneFateEach for a job of three seconds, by the replicas' own word on what overlapped: a tick that was
// refused, and was not set free when the run in its way turned out to be dead. Under missed: all a tick that nobody
// asked for by itself was refused with the one that it was asked for with.
func (w *world) oneFateOf(to time.Duration, all bool) {
	w.t.Helper()
	by := w.started("three")
	var missed, overlapped []string
	for at := time.Duration(0); at <= to; at += 3 * time.Second {
		settled := func(at time.Duration) []string {
			return slices.DeleteFunc(w.skips("three", at), func(r string) bool { return r == string(redisError) })
		}
		skips := settled(at)
		for with := at; all && len(skips) == 0 && with < to; skips = settled(with) {
			with += 3 * time.Second
		}
		switch n := len(by[w.origin().Add(at)]); {
		case n > 1:
			w.t.Errorf("tick +%s was fired %d times", at, n)
		case n == 1:
		case slices.Contains(skips, "overlap") && !slices.Contains(skips, "superseded") && !slices.Contains(skips, "too_late"):
			overlapped = append(overlapped, at.String())
		default:
			missed = append(missed, at.String())
		}
	}
	if got := w.sum("missed_total", "three"); got != float64(len(missed)) {
		w.t.Errorf("%v ticks are counted as missed. Not fired were %q, and %q, which overlapped\n%s", got, missed, overlapped, w.log())
	}
	if m := w.dueMembers(); len(m) > 0 {
		w.t.Errorf("the due set still has %q", m)
	}
}

func policies(t *testing.T, f func(t *testing.T, policy, missed, table string)) {
	for _, policy := range []string{"Forbid", "Queue", "Replace"} {
		for _, missed := range []string{"skip", "latest", "all"} {
			t.Run(policy+", missed: "+missed, func(t *testing.T) {
				f(t, policy, missed, three("concurrencyPolicy: "+policy+", missed: "+missed))
			})
		}
	}
}

// The catch-up of the one that starts again asks while the run of the dead one is in its way.
func TestAReplicaThatDiesInARunLeavesEachTickOneFate(t *testing.T) {
	policies(t, func(t *testing.T, policy, missed, table string) {
		simulate(t, table, func(w *world) {
			work := func(ctx context.Context, run execute.Run) execute.Result {
				if run.Tick.Equal(w.origin().Add(12 * time.Second)) {
					beat.Sleep(ctx, time.Minute)
				}
				return execute.Result{Status: execute.Succeeded}
			}
			w.at(-2 * time.Second)
			first := w.replica(0, func(r *replica) { r.work = work })
			w.at(13 * time.Second)
			first.crash()
			w.at(22 * time.Second)
			w.replica(0, func(r *replica) { r.work = work })
			w.at(61 * time.Second)
			w.oneFateOf(time.Minute, missed == "all")
			w.expect(1, "runs_total", "interrupted")
			if missed == "all" && policy == "Forbid" {
				w.expect(0, "missed_total")
			}
		})
	})
}

// A replica asks, Redis does what it is asked, and the answer is lost; the tick before found Redis away.
func TestAnAnswerThatIsLostLeavesEachTickOneFate(t *testing.T) {
	long(t)
	policies(t, func(t *testing.T, policy, missed, table string) {
		for _, d := range []time.Duration{0, 4 * time.Second} {
			for lost := 12 * time.Second; lost <= 21*time.Second; lost += 3 * time.Second {
				t.Run(fmt.Sprintf("a job of %s, at %s", d, lost), func(t *testing.T) {
					simulate(t, table, func(w *world) {
						w.at(-2 * time.Second)
						r := w.replica(d)
						w.at(lost - 8*time.Second)
						r.disconnect(true)
						w.at(lost - 2*time.Second)
						r.disconnect(false)
						w.at(lost - 50*time.Millisecond)
						r.deaf.Store(true)
						w.at(lost + 10*time.Millisecond)
						r.deaf.Store(false)
						w.at(62 * time.Second)
						r.mu.Lock()
						r.work = func(context.Context, execute.Run) execute.Result { return execute.Result{Status: execute.Succeeded} }
						r.mu.Unlock()
						w.at(82 * time.Second) // whatever waits has its turn
						w.oneFateOf(81*time.Second, missed == "all")
					})
				})
			}
		}
	})
}

// The winner dies before it can count what was missed: the next replica that asks does.
func TestMissedTicksAreCountedThoughTheOneThatWonDies(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		first := w.replica(time.Second, func(r *replica) { r.far = 50 * time.Millisecond })
		w.at(30 * time.Second)
		first.disconnect(true)
		w.at(3*time.Minute + 30*time.Second)
		first.mu.Lock()
		first.work = func(ctx context.Context, _ execute.Run) execute.Result {
			first.crash() // what it has sent since it won is not there yet
			<-ctx.Done()
			return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
		}
		first.mu.Unlock()
		first.disconnect(false)
		w.at(3*time.Minute + 40*time.Second)
		if n := len(w.started("minute")[w.origin().Add(3*time.Minute)]); n != 1 {
			t.Errorf("the catch-up was started %d times\n%s", n, w.log())
		}
		w.expect(0, "missed_total")
		for range 3 {
			w.replica(time.Second)
		}
		w.at(5*time.Minute + 30*time.Second)
		w.expect(2, "missed_total")
		w.each("minute", time.Minute, 4*time.Minute, 5*time.Minute, 10*time.Millisecond)
	})
}

// Redis settles an overlap, its answer is lost, and the job has other ticks when a replica is there again.
func TestAnOverlapIsCountedThoughTheScheduleHasChanged(t *testing.T) {
	simulate(t, three("concurrencyPolicy: Queue"), func(w *world) {
		r := w.replica(10 * time.Second)
		overlapped := func() (n int) {
			_, _ = fmt.Sscan(w.redis.HGet("solotick:{test}:job:three", "fate:overlapped"), &n) // no number: none
			return n
		}
		w.at(-10 * time.Millisecond)
		before, refused := overlapped(), 0
		r.deaf.Store(true)
		for at := time.Duration(0); refused == 0; at += 3 * time.Second { // until a tick is an overlap for good
			w.at(at + time.Second)
			refused = strings.Count(w.redis.HGet("solotick:{test}:job:three", "gaps"), ":overlapped")
		}
		r.crash()
		w.reload("jobs: [{name: three, schedule: \"30 * * * * *\", exec: {command: [x]}}]")
		w.replica(0)
		w.at(2 * time.Minute)
		if got := overlapped(); got != before+refused {
			t.Errorf("%d ticks are counted as overlapped, want %d and the %d that nobody was told of\n%s", got, before, refused, w.log())
		}
	})
}

func TestWhatWasMissedBeforeAPauseIsCounted(t *testing.T) {
	long(t)
	for _, missed := range []string{"skip", "latest", "all"} {
		for name, c := range map[string]struct {
			until  time.Duration // of the pause; 0 = until it is resumed
			resume time.Duration
		}{
			"resumed":             {0, 40 * time.Second},
			"ended by itself":     {40 * time.Second, 0},
			"resumed before that": {50 * time.Second, 40 * time.Second},
		} {
			t.Run("missed: "+missed+", "+name, func(t *testing.T) {
				simulate(t, three("missed: "+missed), func(w *world) {
					for range 2 {
						w.replica(0)
					}
					w.at(10 * time.Second)
					for _, r := range w.replicas {
						r.disconnect(true)
					}
					w.at(22 * time.Second) // 12, 15, 18 and 21 were missed
					until := time.Time{}
					if c.until != 0 {
						until = w.origin().Add(c.until)
					}
					w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "three", "", until)) })
					w.at(25 * time.Second)
					for _, r := range w.replicas {
						r.disconnect(false)
					}
					if c.resume != 0 {
						w.at(c.resume)
						w.operator(func(s *service.Store) {
							_, err := s.Resume(w.t.Context(), "three")
							w.must(err)
						})
					}
					w.at(62 * time.Second)
					for at := time.Duration(0); at <= time.Minute; at += 3 * time.Second {
						want := 1
						if at > 10*time.Second && at < 40*time.Second {
							want = 0
						}
						if s := w.started("three")[w.origin().Add(at)]; len(s) != want {
							t.Errorf("tick +%s was started %d times, want %d", at, len(s), want)
						}
					}
					w.expect(4, "missed_total")
				})
			})
		}
	}
}

// A pause between two outages: what was missed on either side of it counts, and nothing in it.
func TestMissedTicksOnBothSidesOfAPauseAreCounted(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(0)
		w.at(30 * time.Second)
		r.disconnect(true)
		w.at(3*time.Minute + 30*time.Second) // three were missed
		w.operator(func(s *service.Store) {
			w.must(s.Pause(w.t.Context(), "minute", "", w.origin().Add(6*time.Minute+30*time.Second)))
		})
		w.at(9*time.Minute + 30*time.Second) // and two more; the ninth is fired late
		r.disconnect(false)
		w.at(10*time.Minute + 30*time.Second)
		w.expectOrder("minute", "0s schedule", "9m0s schedule", "10m0s schedule")
		w.expect(5, "missed_total")
	})
}

// TestTicksBehindADeadRunAreFiredOrCounted: they are more than are fired late.
func TestTicksBehindADeadRunAreFiredOrCounted(t *testing.T) {
	long(t)
	const table = "jobs:\n  - {name: s, schedule: '@every 1s', timeout: 1h, missed: all, lock: {ttl: 5m}, exec: {command: [x]}}"
	simulate(t, table, func(w *world) {
		a := w.replica(time.Hour)
		w.at(2 * time.Second)
		w.replica(time.Millisecond)
		w.at(10 * time.Second)
		a.crash()
		w.at(11 * time.Minute)
		fired, missed := len(w.started("s")), int(w.sum("missed_total"))
		if fired+missed < 645 { // but for those in which the run certainly lived
			t.Errorf("%d were fired and %d counted", fired, missed)
		}
	})
}
