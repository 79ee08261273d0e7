package nemesis

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

var spaced = job{name: "spaced", every: 3 * time.Second}

// hold lets a run of another job be under way on a replica.
func (s *scene) hold(replica, job string, from, to float64) {
	s.requests = append(s.requests, rig.Request{Job: job, Tick: at(from), Run: job + replica, Kind: "schedule", Attempt: 1, Replica: replica,
		Token: at(from).UnixMilli(), Arrived: at(from), Ended: at(to)})
	s.history = append(s.history, entry{at: at(to), job: job, tick: at(from), run: job + replica, replica: replica, kind: "schedule", attempt: 1,
		outcome: succeeded})
}

// full is a scene in which both replicas' slots are taken from the second tick for so long.
func full(until1, until2 float64) *scene {
	s := newScene(spaced)
	s.jobs = append(s.jobs, job{name: "x", every: time.Second, allow: true}, job{name: "y", every: time.Second, allow: true})
	s.slots = 1
	s.from, s.to = at(3), at(3)
	s.hold("r1", "x", 3, until1)
	s.hold("r2", "y", 3, until2)
	return s
}

func excuses(s *scene) (n int) {
	for _, e := range judge(s.trial).excuses {
		if e.cause == allSlotsTaken && e.job == spaced.name {
			n++
		}
	}
	return n
}

func TestOnlyATickThatFoundNoSlotForLongIsExcusedByThat(t *testing.T) {
	for _, c := range []struct {
		until1, until2 float64
		excused        int
	}{{5, 5, 1}, {5, 3.9, 0}, {3.9, 5, 0}, {6, 4.1, 1}} {
		if got := excuses(full(c.until1, c.until2)); got != c.excused {
			t.Errorf("slots taken until %v and %v: %d ticks are excused, want %d", c.until1, c.until2, got, c.excused)
		}
	}
	s := full(5, 3.9)
	s.slots = 2
	if excuses(s) != 0 {
		t.Error("excused although each replica had another slot")
	}
	s = full(5, 3.9)
	s.strike(refused, "r2", 3, 6)
	if excuses(s) != 1 {
		t.Error("not excused although the app of the one with a slot refused")
	}
	s = full(5, 3.9)
	s.history = append(s.history, entry{at: at(3.01), job: spaced.name, tick: at(3), run: "refused", replica: "r2", kind: "schedule", attempt: 1,
		outcome: handedOver})
	if excuses(s) != 1 {
		t.Error("not excused although the one with a slot had refused the tick, and leaves it to the other")
	}
	s = full(5, 5)
	s.reserved = map[string]bool{"y": true}
	if excuses(s) != 0 {
		t.Error("excused although one of the runs had a slot of its own")
	}
	s.hold("r2", "y", 3.05, 5)
	s.requests[2].Run, s.history[2].run = "again", "again"
	if excuses(s) != 1 {
		t.Error("not excused although a second run of that job took the other slot")
	}
}

func TestNoReplicaMayHaveMoreRunsThanSlots(t *testing.T) {
	found := func(s *scene) (n int) {
		for _, f := range judge(s.trial).findings {
			if f.what == "more runs than slots" {
				n++
			}
		}
		return n
	}
	s := full(5, 5)
	s.hold("r1", "y", 4, 6)
	if n := found(s); n != 1 {
		t.Errorf("found %d times", n)
	}
	s.strike(killed, "r1", 3.5, 3.8) // the first run was another process'
	if n := found(s); n != 0 {
		t.Errorf("of a replica that was killed meanwhile: found %d times", n)
	}
	s = full(3.99, 5)
	s.hold("r1", "y", 4, 6)
	if n := found(s); n != 0 {
		t.Errorf("one after the other: found %d times", n)
	}
}
