package sidecar

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A job that is claimed becomes one that every replica runs, and is claimed again: while it was not, the ledger stood
// still.

func guaranteed(guarantee, missed string) string {
	if guarantee == "every-replica" {
		return "\njobs:\n  - {name: two, schedule: '@every 2s', guarantee: every-replica, exec: {command: [x]}}"
	}
	return fmt.Sprintf("\njobs:\n  - {name: two, schedule: '@every 2s', guarantee: %s, missed: %s, exec: {command: [x]}}", guarantee, missed)
}

// firedBy checks that in [from, to] each tick of the job was started so often, and on each replica once at most.
func (w *world) firedBy(times int, from, to time.Duration) {
	w.t.Helper()
	by := w.started("two")
	for at := from; at <= to; at += 2 * time.Second {
		s := by[w.origin().Add(at)]
		on := map[string]bool{}
		for _, s := range s {
			if on[s.replica] {
				w.t.Errorf("tick +%s: twice on %s", at, s.replica)
			}
			on[s.replica] = true
		}
		if len(s) != times {
			w.t.Errorf("tick +%s was started %d times, want %d: %+v\n%s", at, len(s), times, s, w.log())
			return
		}
	}
}

func TestTheTicksThatEveryReplicaRanAreNotFiredAgain(t *testing.T) {
	long(t)
	for _, missed := range []string{"all", "latest", "skip"} {
		for _, guarantee := range []string{"at-most-once", "at-least-once"} {
			if guarantee == "at-least-once" && missed != "all" {
				continue
			}
			claimed, everywhere := guaranteed(guarantee, missed), guaranteed("every-replica", "")
			reload := func(w *world, table string) {
				w.reload(table)
				for _, r := range w.replicas {
					w.swap(r, table)
				}
			}
			restart := func(w *world, table string) {
				w.reload(table)
				for _, r := range w.replicas {
					r.stop()
					<-r.done
				}
				for range 2 {
					w.replica(0)
				}
			}
			for name, c := range map[string]struct{ there, between, back func(*world, string) }{
				"by reload":                            {reload, nil, reload},
				"by reload, with a restart in between": {reload, restart, reloadLast2},
				"by restarts":                          {restart, nil, restart},
				"by a restart, and back by reload":     {restart, nil, reloadLast2},
				"by reload, and back by a restart":     {reload, nil, restart},
			} {
				t.Run(guarantee+", missed: "+missed+", "+name, func(t *testing.T) {
					simulate(t, claimed, func(w *world) {
						for range 2 {
							w.replica(0)
						}
						w.at(9 * time.Second)
						c.there(w, everywhere)
						w.at(15 * time.Second)
						if c.between != nil {
							c.between(w, everywhere)
						}
						w.at(21 * time.Second)
						c.back(w, claimed)
						w.at(40500 * time.Millisecond)
						w.firedBy(1, 0, 8*time.Second)
						w.firedBy(2, 10*time.Second, 20*time.Second)
						w.firedBy(1, 22*time.Second, 40*time.Second)
						if got := strings.Join(w.order("two"), ", "); strings.Contains(got, "catchup") {
							t.Errorf("something was fired late: %s", got)
						}
						if log := w.log(); strings.Contains(log, "missed ticks") {
							t.Errorf("something was missed:\n%s", log)
						}
					})
				})
			}
		}
	}
}

// reloadLast2 reloads the two replicas that are still there.
func reloadLast2(w *world, table string) {
	w.reload(table)
	for _, r := range w.replicas[len(w.replicas)-2:] {
		w.swap(r, table)
	}
}

// Redis hears nothing of the time in between: both reloads come within one look, all around a tick.
func TestAMomentOnEveryReplicaFiresNothingTwice(t *testing.T) {
	long(t)
	claimed, everywhere := guaranteed("at-most-once", "all"), guaranteed("every-replica", "")
	for _, far := range []time.Duration{0, 60 * time.Millisecond} {
		for there := -40 * time.Millisecond; there <= 40*time.Millisecond; there += 20 * time.Millisecond {
			for _, lasts := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
				t.Run(fmt.Sprintf("far %s, at %s, for %s", far, there, lasts), func(t *testing.T) {
					simulate(t, claimed, func(w *world) {
						for range 2 {
							w.replica(0, func(r *replica) { r.far = far })
						}
						time.Sleep(time.Until(w.origin().Add(10*time.Second + there)))
						for _, r := range w.replicas {
							w.swap(r, everywhere)
						}
						time.Sleep(lasts)
						for _, r := range w.replicas {
							w.swap(r, claimed)
						}
						w.at(20500 * time.Millisecond)
						w.firedBy(1, 0, 8*time.Second)
						w.firedBy(1, 12*time.Second, 20*time.Second)
						on := map[string]int{}
						for _, s := range w.started("two")[w.origin().Add(10*time.Second)] {
							if on[s.replica]++; on[s.replica] > 1 || s.at.Sub(w.origin()) > 11*time.Second {
								t.Errorf("the tick amid the reloads was started again: %+v\n%s", w.started("two")[w.origin().Add(10*time.Second)], w.log())
								return
							}
						}
					})
				})
			}
		}
	}
}

// A replica with the old table was cut off meanwhile. The other one ran ticks without a claim: they cannot be claimed.
func TestAReplicaThatWasCutOffDoesNotFireWhatAnotherRanWithoutAClaim(t *testing.T) {
	for _, missed := range []string{"all", "latest"} {
		t.Run(missed, func(t *testing.T) {
			claimed := guaranteed("at-most-once", missed)
			simulate(t, claimed, func(w *world) {
				cutOff, other := w.replica(0), w.replica(0)
				w.at(9 * time.Second)
				cutOff.disconnect(true)
				w.swap(other, guaranteed("every-replica", ""))
				w.at(20100 * time.Millisecond)
				w.swap(other, claimed)
				w.at(20200 * time.Millisecond) // it still asks for the tick of now
				cutOff.disconnect(false)
				w.at(40500 * time.Millisecond)
				w.firedBy(1, 0, 40*time.Second)
				w.expect(0, "missed_total")
			})
		})
	}
}

// TestATriggerOutlivesAReplicaThatRunsTheJobByItself: the other one still claims the job's ticks, and runs what
// somebody asked for.
func TestATriggerOutlivesAReplicaThatRunsTheJobByItself(t *testing.T) {
	tables := []string{rare(""), rare(", guarantee: every-replica")}
	for i := range tables {
		simulate(t, tables[i], func(w *world) {
			a, b := w.replica(time.Second), w.replica(time.Second)
			w.at(5 * time.Second)
			w.swap(a, tables[1-i])
			w.at(10 * time.Second)
			for range 10 {
				due, err := b.store.Trigger(w.t.Context(), "rare", uuid.NewString())
				w.must(err)
				w.at(time.Since(w.origin()) + 2*time.Second)
				if n := len(w.started("rare")[due.Tick]); n != 1 {
					t.Errorf("was run %d times\n%s", n, w.log())
				}
			}
		})
	}
}
