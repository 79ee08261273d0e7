package sidecar

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// timersOf tells by job which timer of gocron wakes it.
func (r *replica) timersOf() map[string]uuid.UUID {
	r.swapping.Lock()
	defer r.swapping.Unlock()
	of := map[string]uuid.UUID{}
	for name, g := range r.cron.in {
		of[name] = g.timer
	}
	return of
}

const grouped = `
jobs:
  - {name: a, schedule: "*/2 * * * *", exec: {command: [x]}}
  - {name: b, schedule: "*/2 * * * *", exec: {command: [y]}}
  - {name: c, schedule: "*/2 * * * *", exec: {command: [x]}, guarantee: every-replica}
  - {name: shaken1, schedule: "*/2 * * * *", exec: {command: [x]}, jitter: 30s}
  - {name: shaken2, schedule: "*/2 * * * *", exec: {command: [x]}, jitter: 30s}
  - {name: hashed1, schedule: "H 3 * * *", exec: {command: [x]}}
  - {name: hashed2, schedule: "H 3 * * *", exec: {command: [x]}}
`

func TestJobsThatComeDueAtTheSameInstantsShareATimer(t *testing.T) {
	simulate(t, grouped, func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(time.Second)
		of := r.timersOf()
		if of["a"] != of["b"] || of["a"] != of["c"] {
			t.Errorf("jobs with the same ticks have timers of their own: %v", of)
		}
		alone := []uuid.UUID{of["shaken1"], of["shaken2"], of["hashed1"], of["hashed2"]}
		for i, timer := range alone {
			if timer == of["a"] || slices.Contains(alone[:i], timer) || timer == uuid.Nil {
				t.Errorf("a job whose name moves its ticks shares a timer: %v", of)
			}
		}
		if n := len(r.cron.scheduler.Jobs()); n != 5 {
			t.Errorf("gocron has %d jobs, want one for each group, 5", n)
		}
		w.at(20*time.Minute + time.Second)
		for _, name := range []string{"a", "b"} {
			w.each(name, 2*time.Minute, time.Minute, 20*time.Minute, 10*time.Millisecond)
		}
		if n := w.startedSince("c", time.Minute); n != 10 {
			t.Errorf("c was started %d times, want 10", n)
		}
	})
}

func TestAReloadLeavesTheTimersOfOtherJobsAlone(t *testing.T) {
	const odd, even = `schedule: "1/2 * * * *"`, `schedule: "*/2 * * * *"`
	table := func(b string, more ...string) string {
		text := "\njobs:\n  - {name: a, " + even + ", exec: {command: [x]}}\n"
		for _, name := range append(more, "b") {
			text += "  - {name: " + name + ", " + b + ", exec: {command: [x]}}\n"
		}
		return text
	}
	simulate(t, table(even), func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(time.Second)
		before := r.timersOf()
		w.swap(r, table(odd)) // b leaves the group of a
		moved := r.timersOf()
		if moved["a"] != before["a"] || moved["b"] == before["b"] {
			t.Errorf("before %v, afterwards %v", before, moved)
		}
		w.swap(r, table(odd, "c")) // c joins that of b
		joined := r.timersOf()
		if joined["b"] != moved["b"] || joined["c"] != moved["b"] || joined["a"] != before["a"] {
			t.Errorf("before %v, afterwards %v", moved, joined)
		}
		w.at(2*time.Minute + time.Second)
		w.swap(r, table(even, "c")) // and nobody is left there
		if of := r.timersOf(); of["b"] != before["a"] || of["c"] != before["a"] {
			t.Errorf("the timers are %v, want all %v", of, before["a"])
		}
		if n := len(r.cron.scheduler.Jobs()); n != 1 || len(r.cron.groups) != 1 {
			t.Errorf("gocron has %d jobs for %d groups, want 1: %v", n, len(r.cron.groups), slices.Collect(maps.Keys(r.cron.groups)))
		}
		w.at(8*time.Minute + time.Second)
		w.each("a", 2*time.Minute, time.Minute, 8*time.Minute, 10*time.Millisecond)
		w.each("b", 2*time.Minute, 3*time.Minute, 8*time.Minute, 10*time.Millisecond)
		if n := w.startedSince("b", 0); n != 4 { // at 1, 4, 6 and 8
			t.Errorf("b was started %d times, want 4", n)
		}
	})
}
