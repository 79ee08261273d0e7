package sidecar

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
)

// The run in a tick's way may hold what the tick itself has to wait for: a slot, or the app.

const oneSlot = "maxRunning: 1\n"

func four(keys string) string {
	return `
jobs:
  - {name: four, schedule: "@every 4s", exec: {command: [x]}, ` + keys + `}
`
}

var skipLine = regexp.MustCompile(`msg=skipped job=(\S+) tick=(\S+) .*reason=(\w+)`)

// skips are the reasons for which the replicas did not start a tick, one for each wake.
func (w *world) skips(job string, tick time.Duration) []string {
	w.t.Helper()
	var all []string
	for _, r := range w.replicas {
		for _, l := range skipLine.FindAllStringSubmatch(r.logs.String(), -1) {
			if l[1] == job && l[2] == stamp(w.origin().Add(tick)) {
				all = append(all, l[3])
			}
		}
	}
	return all
}

// busyWithTheJob is an app that is not ready while it runs a job.
type busyWithTheJob struct{ running atomic.Int64 }

func (a *busyWithTheJob) Probe(context.Context) error {
	if a.running.Load() > 0 {
		return errors.New("busy")
	}
	return nil
}

// app makes a replica's app one that is not ready while it runs a job.
func (a *busyWithTheJob) app(r *replica) {
	able := r.work
	r.app = a
	r.work = func(ctx context.Context, run execute.Run) execute.Result {
		a.running.Add(1)
		defer a.running.Add(-1)
		return able(ctx, run)
	}
}

func TestARunThatHoldsTheOnlySlotMakesOverlapsOfTheTicksThatComeDue(t *testing.T) {
	long(t)
	for name, c := range map[string]struct {
		table    string
		replicas int
	}{
		"the slot":                        {oneSlot, 1},
		"the app":                         {gated, 1},
		"both":                            {oneSlot + gated, 1},
		"the slots of two replicas":       {oneSlot, 2},
		"the app that two replicas share": {gated, 2},
	} {
		for _, keys := range []string{"missed: latest", "missed: all", "missed: skip", "concurrencyPolicy: Allow, concurrency: 1"} {
			t.Run(name+", "+keys, func(t *testing.T) {
				simulate(t, c.table+four(keys), func(w *world) {
					app := &busyWithTheJob{}
					w.at(-2 * time.Second)
					for range c.replicas {
						w.replica(5*time.Second, app.app)
					}
					w.at(79 * time.Second)
					for at := time.Duration(0); at < 76*time.Second; at += 8 * time.Second {
						w.each("four", time.Second, at, at, 10*time.Millisecond)
						if s := w.started("four")[w.origin().Add(at+4*time.Second)]; len(s) > 0 {
							t.Errorf("the tick +%s came due during a run, and was fired at +%s", at+4*time.Second, s[0].at.Sub(w.origin()))
							return
						}
						if got := w.skips("four", at+4*time.Second); !slices.Contains(got, "overlap") || slices.Contains(got, "no_slot") ||
							slices.Contains(got, "not_ready") {
							t.Errorf("the tick +%s was skipped as %q", at+4*time.Second, got)
						}
					}
					w.expect(0, "missed_total")
				})
			})
		}
	}
}

func TestUnderReplaceARunThatHoldsTheOnlySlotIsToldToEnd(t *testing.T) {
	for name, c := range map[string]struct {
		table string
		late  time.Duration
	}{
		"the slot": {oneSlot, 100 * time.Millisecond},
		"the app":  {gated, 1100 * time.Millisecond}, // which is asked once a second
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, c.table+four("concurrencyPolicy: Replace"), func(w *world) {
				app := &busyWithTheJob{}
				w.at(-2 * time.Second)
				w.replica(9*time.Second, app.app)
				w.at(61*time.Second + 500*time.Millisecond)
				w.each("four", 4*time.Second, 0, time.Minute, c.late)
				w.expect(15, "runs_total", "replaced")
				w.expect(0, "missed_total")
				w.expect(0, "skips_total", "no_slot")
			})
		})
	}
}

func TestUnderQueueARunThatHoldsTheOnlySlotLetsOneTickWait(t *testing.T) {
	for name, table := range map[string]string{"the slot": oneSlot, "the app": gated} {
		t.Run(name, func(t *testing.T) {
			simulate(t, table+four("concurrencyPolicy: Queue"), func(w *world) {
				app := &busyWithTheJob{}
				w.at(-2 * time.Second)
				w.replica(8500*time.Millisecond, app.app)
				w.at(33 * time.Second)
				// 0 runs to 8.5; 4 waits, and 8 has no place to wait. The same with 12, 16 and so on.
				w.expectOrder("four", "0s schedule", "4s catchup", "12s catchup", "20s catchup")
				for tick, want := range map[time.Duration]string{4: "queued", 8: "overlap", 12: "queued", 16: "overlap"} {
					if got := w.skips("four", tick*time.Second); !slices.Equal(got, []string{want}) {
						t.Errorf("the tick +%ds was skipped as %q, want %s", tick, got, want)
					}
				}
				w.expect(0, "missed_total")
			})
		})
	}
}

// A tick that waits for a slot which another job holds is no overlap: it is fired when the slot is free.
func TestATickThatWaitsForTheSlotOfAnotherJobIsFiredLate(t *testing.T) {
	for _, policy := range []string{"Forbid", "Queue", "Replace"} {
		t.Run(policy, func(t *testing.T) {
			simulate(t, oneSlot+four("concurrencyPolicy: "+policy)+`
  - {name: long, schedule: "0 11 0 * * *", exec: {command: [x]}}
`, func(w *world) {
				w.replica(0, func(r *replica) {
					r.work = func(ctx context.Context, run execute.Run) execute.Result {
						if run.Job == "long" {
							beat.Sleep(ctx, 6*time.Second)
						}
						return execute.Result{Status: execute.Succeeded}
					}
				})
				w.at(21 * time.Second)
				s := w.started("four")[w.origin().Add(4*time.Second)]
				if len(s) != 1 || s[0].at.Sub(w.origin()).Round(time.Second) != 6*time.Second {
					t.Errorf("the tick that had to wait was started as %+v\n%s", s, w.log())
				}
				w.each("four", 4*time.Second, 8*time.Second, 20*time.Second, 10*time.Millisecond)
				w.expect(0, "skips_total", "overlap")
			})
		})
	}
}

func TestWhileNoReplicaHasASlotFreeEachTickWaitsOrIsCounted(t *testing.T) {
	for _, missed := range []string{"latest", "all", "skip"} {
		t.Run(missed, func(t *testing.T) {
			simulate(t, oneSlot+four("missed: "+missed)+`
  - {name: long, schedule: "0 11 0 * * *", guarantee: every-replica, exec: {command: [x]}}
`, func(w *world) {
				work := func(ctx context.Context, run execute.Run) execute.Result {
					if run.Job == "long" {
						beat.Sleep(ctx, 30*time.Second)
					}
					return execute.Result{Status: execute.Succeeded}
				}
				w.at(-2 * time.Second)
				for range 2 {
					w.replica(0, func(r *replica) { r.work = work })
				}
				w.at(time.Minute + time.Second)
				w.oneFateEach("four", 4*time.Second, 0, time.Minute, 0)
				w.expect(0, "skips_total", "overlap")
			})
		})
	}
}

// oneFateEach checks that each tick of a job in [from, to] was fired once, or came due while a run of the job lasted,
// which takes d, and that the others are as many as were counted as missed.
func (w *world) oneFateEach(job string, period, from, to, d time.Duration) {
	w.t.Helper()
	by := w.started(job)
	var overlapped, missed []string
	for at := from; at <= to; at += period {
		tick := w.origin().Add(at)
		switch n := len(by[tick]); {
		case n > 1:
			w.t.Errorf("%s: tick +%s was fired %d times", job, at, n)
		case n == 0 && w.ran(job, tick, d):
			overlapped = append(overlapped, at.String())
		case n == 0:
			missed = append(missed, at.String())
		}
	}
	if got := w.sum("missed_total", job); got != float64(len(missed)) {
		w.t.Errorf("%s: %v ticks are counted as missed. Not fired were %q, and %q, which overlapped\n%s", job, got, missed, overlapped, w.log())
	}
}

// ran reports whether a run of a job, which takes d, was on its way at an instant.
func (w *world) ran(job string, at time.Time, d time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.starts, func(s start) bool {
		return s.job == job && !s.at.After(at.Add(10*time.Millisecond)) && s.at.Add(d).After(at.Add(-10*time.Millisecond))
	})
}

// The others need its slot meanwhile. Each tick finds a run of its job that does not end when it is told to.
func TestATickThatComesAheadOfARunInItsWayLeavesItsSlotToOthers(t *testing.T) {
	for _, policy := range []string{"Forbid", "Queue", "Replace"} {
		table := "maxRunning: 9\n" + herdTable(8, "* * * * *") +
			"  - {name: long, schedule: '* * * * *', exec: {command: [x]}, concurrencyPolicy: " + policy + "}\n"
		simulate(t, table, func(w *world) {
			w.replica(0, func(r *replica) {
				r.far = 4 * time.Millisecond
				r.work = func(_ context.Context, run execute.Run) execute.Result {
					if run.Job == "long" {
						time.Sleep(65 * time.Second)
					}
					return execute.Result{Status: execute.Succeeded}
				}
			})
			w.at(10*time.Minute + 30*time.Second)
			for at := time.Minute; at <= 10*time.Minute; at += time.Minute {
				tick := w.origin().Add(at)
				for i := range 8 {
					if s := w.started(fmt.Sprint("j", i))[tick]; len(s) != 1 || s[0].at.Sub(tick) > time.Millisecond {
						t.Errorf("%s: %s after the start: %+v", policy, at, s)
					}
				}
			}
		})
	}
}
