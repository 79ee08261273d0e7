package sidecar

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// A job leaves the table and comes back: it has missed nothing in between, and what waited then is not fired.

// everywhere puts a table in force on all replicas, and on those to come.
func (w *world) everywhere(table string) {
	w.t.Helper()
	w.reload(table)
	for _, r := range w.replicas {
		if r.Ready() == nil {
			w.swap(r, table)
		}
	}
}

// noneOf checks that none of the ticks in [from, to] of a job of every four seconds was started, and how often missed
// ones were told of.
func (w *world) noneOf(from, to time.Duration, missed int) {
	w.t.Helper()
	by := w.started("four")
	for at := from; at <= to; at += 4 * time.Second {
		if s := by[w.origin().Add(at)]; len(s) > 0 {
			w.t.Errorf("tick +%s was started at +%s\n%s", at, s[0].at.Sub(w.origin()), w.log())
			return
		}
	}
	if n := strings.Count(w.log(), "missed ticks"); n != missed {
		w.t.Errorf("missed ticks were told of %d times, want %d\n%s", n, missed, w.log())
	}
	if m := w.dueMembers(); len(m) > 0 {
		w.t.Errorf("the due set still has %q", m)
	}
}

func TestATickThatWaitedForARunIsNotFiredWhenItsJobComesBack(t *testing.T) {
	for _, c := range []struct{ policy, missed string }{
		{"Queue", "latest"}, {"Queue", "all"}, {"Replace", "latest"}, {"Forbid", "latest"}, {"Forbid", "all"},
	} {
		for _, ends := range []string{"away", "back"} { // the run ends while the job is away, or when it is back
			t.Run(c.policy+", missed: "+c.missed+", "+ends, func(t *testing.T) {
				table := four("timeout: 1h, concurrencyPolicy: " + c.policy + ", missed: " + c.missed)
				simulate(t, table, func(w *world) {
					takes := 20 * time.Second
					if ends == "back" {
						takes = 33 * time.Second
					}
					work := func(_ context.Context, run execute.Run) execute.Result {
						if run.Tick.Equal(w.origin()) {
							time.Sleep(takes) // whatever it is told
						}
						return execute.Result{Status: execute.Succeeded}
					}
					w.at(-2 * time.Second)
					for range 2 {
						w.replica(0, func(r *replica) { r.work = work })
					}
					w.at(10 * time.Second) // 4 and 8 wait, or are refused
					w.everywhere(noJobs)
					w.at(30 * time.Second)
					w.everywhere(table)
					w.at(61 * time.Second)
					missed := 0
					if c.policy == "Replace" { // the first that waited made room for the second
						missed = 1
					}
					w.noneOf(4*time.Second, 28*time.Second, missed)
					w.each("four", 4*time.Second, 36*time.Second, time.Minute, 10*time.Millisecond)
				})
			})
		}
	}
}

func TestATickThatWasHandedOnIsNotFiredWhenItsJobComesBack(t *testing.T) {
	for _, missed := range []string{"latest", "all"} {
		t.Run(missed, func(t *testing.T) {
			table := four("missed: " + missed)
			simulate(t, table, func(w *world) {
				w.at(-2 * time.Second)
				for range 2 {
					w.replica(0, refuses)
				}
				w.at(4500 * time.Millisecond)
				if len(w.dueMembers()) == 0 {
					t.Errorf("nothing was handed on\n%s", w.log())
				}
				w.everywhere(noJobs)
				for _, r := range w.replicas {
					r.comesBack()
				}
				w.at(30 * time.Second)
				w.everywhere(table)
				w.at(61 * time.Second)
				by := w.started("four")
				if len(by[w.origin()])+len(by[w.origin().Add(4*time.Second)]) > 0 {
					t.Errorf("what was handed on was fired\n%s", w.log())
				}
				w.noneOf(8*time.Second, 28*time.Second, 0)
				w.each("four", 4*time.Second, 32*time.Second, time.Minute, 10*time.Millisecond)
			})
		})
	}
}

func TestTicksThatWereToBeFiredLateAreNotWhenTheirJobComesBack(t *testing.T) {
	table := four("missed: all")
	simulate(t, table, func(w *world) {
		w.at(-2 * time.Second)
		r := w.replica(3500 * time.Millisecond)
		w.at(6 * time.Second)
		r.disconnect(true)
		w.at(29 * time.Second)
		r.disconnect(false)
		w.at(39 * time.Second)
		if n := len(w.dueMembers()); n < 3 {
			t.Errorf("%d ticks wait to be fired late\n%s", n, w.log())
		}
		waiting := w.dueMembers()
		w.everywhere(noJobs)
		w.at(50 * time.Second)
		before := len(w.started("four"))
		w.everywhere(table)
		w.at(101 * time.Second)
		w.each("four", 4*time.Second, 52*time.Second, 100*time.Second, 10*time.Millisecond)
		if n := len(w.started("four")) - before; n != 13 {
			t.Errorf("%d ticks were started since the job is back, want 13. What waited was %q\n%s", n, waiting, w.log())
		}
		w.expect(0, "missed_total")
	})
}

// A run that began is brought to its end, also when its job was away in between. A run by hand that had not begun is
// dropped.
func TestARunThatWasCutShortIsRunAgainWhenItsJobComesBack(t *testing.T) {
	table := "shutdownGrace: 1s\n" + four("guarantee: at-least-once, timeout: 1h")
	simulate(t, table, func(w *world) {
		w.at(-2 * time.Second)
		for range 2 {
			w.replica(20 * time.Second)
		}
		w.at(time.Second)
		first := w.holder("four", 0)
		other := w.replicas[0]
		if other == first {
			other = w.replicas[1]
		}
		asked, err := other.store.Trigger(w.t.Context(), "four", uuid.NewString())
		w.must(err)
		w.swap(other, noJobs)
		first.stop()
		w.at(3 * time.Second)
		if m := w.dueMembers(); len(m) != 2 {
			t.Errorf("due: %q\n%s", m, w.log())
		}
		w.at(10 * time.Second)
		w.swap(other, table)
		w.at(61 * time.Second)
		s := w.started("four")[w.origin()]
		if len(s) != 2 || s[1].run.Kind != kindTakeover || s[1].replica != other.name {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
		if s := w.started("four")[asked.Tick]; len(s) != 0 {
			t.Errorf("what was asked for before the job left was started as %+v\n%s", s, w.log())
		}
		if s := w.started("four")[w.origin().Add(4*time.Second)]; len(s) > 0 {
			t.Errorf("a tick from before was started as %+v\n%s", s, w.log())
		}
	})
}

func TestAJobThatLeftWhileRedisWasAwayIsToldToHaveLeft(t *testing.T) {
	const other = "\njobs:\n  - {name: other, schedule: '@yearly', exec: {command: [x]}}\n"
	claimed := other + "  - {name: minute, schedule: '* * * * *', exec: {command: [x]}}\n"
	everywhere := other + "  - {name: minute, schedule: '* * * * *', guarantee: every-replica, exec: {command: [x]}}\n"
	for name, tables := range map[string][]string{
		"at once":                   {other},
		"twice":                     {other, everywhere, other},
		"after every replica's run": {everywhere, other},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, claimed, func(w *world) {
				r := w.replica(0)
				w.at(10 * time.Second)
				r.disconnect(true)
				for _, table := range tables {
					w.swap(r, table)
				}
				w.at(15 * time.Second)
				r.disconnect(false)
				w.at(25 * time.Second)
				if got := w.redis.HGet("solotick:{test}:job:minute", "schedule"); got != lock.NoTicks {
					t.Errorf("for Redis its schedule is %q", got)
				}
			})
		})
	}
}
