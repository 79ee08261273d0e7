package sidecar

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/sidecar/execute"
)

// greedy are two jobs that want the only slot all the time, with a priority, and a third job.
func greedy(priority, third string) string {
	keys := `, schedule: "@every 1s", concurrencyPolicy: Allow, priority: ` + priority + `, exec: {command: [x]}}`
	return oneSlot + "\njobs:\n  - {name: a" + keys + "\n  - {name: b" + keys + "\n  - {name: due, exec: {command: [x]}, " + third + "}\n"
}

// takes makes runs of the third job take so long, and all others a second.
func takes(d time.Duration) func(*replica) {
	return func(r *replica) {
		r.work = func(ctx context.Context, run execute.Run) execute.Result {
			work := time.Second
			if run.Job == "due" {
				work = d
			}
			if !beat.Sleep(ctx, work) {
				return execute.Result{Status: execute.Canceled, Err: context.Cause(ctx), Code: -1}
			}
			return execute.Result{Status: execute.Succeeded}
		}
	}
}

func TestWhatIsAskedForWaitsForASlotByItsPriority(t *testing.T) {
	for _, c := range []struct {
		due, others string
		within      time.Duration
	}{
		{"9", "0", 1100 * time.Millisecond},
		{"0", "0", 3100 * time.Millisecond},  // behind those that waited before it
		{"0", "9", 62100 * time.Millisecond}, // after a minute all give way
	} {
		t.Run(c.due+" beside "+c.others, func(t *testing.T) {
			simulate(t, greedy(c.others, "schedule: '@yearly', priority: "+c.due), func(w *world) {
				w.replica(0, takes(time.Second))
				w.at(10*time.Second + 500*time.Millisecond)
				asked, err := w.replicas[0].store.Trigger(w.t.Context(), "due", uuid.NewString())
				w.must(err)
				w.at(10*time.Second + 500*time.Millisecond + c.within)
				if s := w.started("due")[asked.Tick]; len(s) != 1 {
					t.Errorf("it was started %d times within %s", len(s), c.within)
				}
				if n := len(w.started("a")) + len(w.started("b")); n < int(c.within/time.Second)+5 {
					t.Errorf("the others had %d runs: the slot was idle", n)
				}
			})
		})
	}
}

func TestATimerWaitsForASlotAsATickDoes(t *testing.T) {
	simulate(t, greedy("0", "schedule: '@yearly'"), func(w *world) {
		w.replica(0, takes(time.Second))
		w.at(0)
		for _, id := range []string{"x", "y", "z"} {
			w.setTimer(id, 10*time.Second+500*time.Millisecond, "")
		}
		w.at(30 * time.Second)
		w.expect(3, "fires_total", "@timers")
		if n := len(w.started("a")) + len(w.started("b")); n < 25 { // from before the first tick that is counted
			t.Errorf("the others had %d runs: timers go before them, or the slot was idle", n)
		}
	})
}

func TestATickThatWaitedForARunGetsTheNextSlot(t *testing.T) {
	for policy, runs := range map[string]int{"Replace": 6, "Queue": 4} {
		t.Run(policy, func(t *testing.T) {
			simulate(t, greedy("0", "schedule: '@every 10s', priority: 9, concurrencyPolicy: "+policy), func(w *world) {
				w.replica(0, takes(13*time.Second))
				w.at(59 * time.Second)
				if n := w.startedSince("due", 0); n < runs {
					t.Errorf("%d of its ticks were started, want %d\n%s", n, runs, w.log())
				}
			})
		})
	}
}

func TestARunThatWasCutShortGetsTheNextSlot(t *testing.T) {
	simulate(t, greedy("0", "schedule: '@hourly', priority: 9, guarantee: at-least-once, lock: {ttl: 3s}"), func(w *world) {
		for range 2 {
			w.replica(0, takes(time.Minute))
		}
		w.at(-5 * time.Second)
		asked, err := w.replicas[0].store.Trigger(w.t.Context(), "due", uuid.NewString())
		w.must(err)
		w.at(0)
		first := w.started("due")[asked.Tick]
		if len(first) != 1 {
			t.Fatalf("it was started %d times", len(first))
		}
		for _, r := range w.replicas {
			if r.name == first[0].replica {
				r.crash()
			}
		}
		w.at(8 * time.Second)
		if n := len(w.started("due")[asked.Tick]); n != 2 {
			t.Errorf("it was started %d times eight seconds after its replica died", n)
		}
	})
}
