package sidecar

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// groupsOf tells by job with which group it wakes.
func (r *replica) groupsOf() map[string]*group {
	r.swapping.Lock()
	defer r.swapping.Unlock()
	return maps.Clone(r.cron.in)
}

// crontabOf is what gocron is given for some series, at an instant that does not pass.
func crontabOf(at time.Time, all ...*series) crontab {
	a := &agenda{now: func() time.Time { return at }, ahead: leastAhead}
	for _, s := range all {
		a.add(&group{series: *s})
	}
	return crontab{a}
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

func TestJobsThatComeDueAtTheSameInstantsShareAGroup(t *testing.T) {
	long(t)
	simulate(t, grouped, func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(time.Second)
		of := r.groupsOf()
		if of["a"] != of["b"] || of["a"] != of["c"] {
			t.Errorf("jobs with the same ticks have groups of their own: %v", of)
		}
		alone := []*group{of["shaken1"], of["shaken2"], of["hashed1"], of["hashed2"]}
		for i, g := range alone {
			if g == of["a"] || slices.Contains(alone[:i], g) || g == nil {
				t.Errorf("a job whose name moves its ticks shares a group: %v", of)
			}
		}
		if n := len(r.cron.scheduler.Jobs()); n != 1 || len(r.cron.agenda.groups) != 5 {
			t.Errorf("gocron has %d jobs for %d groups, want 1 for 5", n, len(r.cron.agenda.groups))
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

func TestAReloadLeavesTheGroupsOfOtherJobsAlone(t *testing.T) {
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
		before := r.groupsOf()
		w.swap(r, table(odd)) // b leaves the group of a
		moved := r.groupsOf()
		if moved["a"] != before["a"] || moved["b"] == before["b"] {
			t.Errorf("before %v, afterwards %v", before, moved)
		}
		w.swap(r, table(odd, "c")) // c joins that of b
		joined := r.groupsOf()
		if joined["b"] != moved["b"] || joined["c"] != moved["b"] || joined["a"] != before["a"] {
			t.Errorf("before %v, afterwards %v", moved, joined)
		}
		w.at(2*time.Minute + time.Second)
		w.swap(r, table(even, "c")) // and nobody is left there
		if of := r.groupsOf(); of["b"] != before["a"] || of["c"] != before["a"] {
			t.Errorf("the groups are %v, want all %v", of, before["a"])
		}
		if n := len(r.cron.scheduler.Jobs()); n != 1 || len(r.cron.agenda.groups) != 1 || len(r.cron.groups) != 1 {
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

// gocron drops an instant that reads like the one before, to the second, in whatever zone each of them is.
func TestNoInstantReadsLikeTheOneBefore(t *testing.T) {
	hourly := every(t, "@hourly", 0).spec.series
	began := midnight.Add(-ahead)
	east := time.FixedZone("", 3600)
	for what, last := range map[string]time.Time{
		"an hour before, told an hour ahead": began.In(east),
		"an hour before":                     began,
		"in the same second":                 began.Add(time.Hour - time.Millisecond),
		"in the same second, an hour ahead":  began.Add(time.Hour - time.Millisecond).In(east),
	} {
		next := crontabOf(last, &hourly).Next(last)
		if !next.Equal(began.Add(time.Hour)) || next.Format(time.DateTime) == last.Format(time.DateTime) {
			t.Errorf("after %s, %s, comes %s", what, last, next)
		}
	}
}

// An instant that gocron passes over is not lost: a timer woke late, or another one was armed meanwhile.
func TestAllGroupsWhoseInstantsHaveComeAreDue(t *testing.T) {
	minutely, hourly := every(t, "* * * * *", 0).spec.series, every(t, "30 * * * *", 0).spec.series
	timer := crontabOf(midnight, &minutely, &hourly)
	timer.groups[0].jobs, timer.groups[1].jobs = []string{"minutely"}, []string{"hourly"}
	at := midnight
	timer.now = func() time.Time { return at }
	takes := func(upTo time.Duration, want ...string) {
		t.Helper()
		to, due := timer.take()
		slices.Sort(due)
		if !slices.Equal(due, want) || !to.Equal(midnight.Add(upTo)) {
			t.Errorf("up to %s, %v are due, want %v up to %s", to.Sub(midnight), due, want, upTo)
		}
	}
	if next := timer.Next(at); !next.Equal(midnight.Add(time.Minute - ahead)) {
		t.Fatalf("the first instant is %s", next)
	}
	takes(ahead)
	at = midnight.Add(time.Hour)
	if next := timer.Next(midnight.Add(time.Minute - ahead)); !next.Equal(at.Add(time.Minute - ahead)) {
		t.Errorf("after an hour the next instant is %s", next)
	}
	takes(time.Hour+ahead, "hourly", "minutely")
	takes(time.Hour + ahead)
	at = midnight // set back, by less than a step: the timer goes off all the same
	timer.Next(midnight.Add(time.Hour + time.Minute - ahead))
	takes(time.Hour+time.Minute, "minutely")
	takes(ahead)
}

// Two parts see a step forward, or the end of a suspend: the timer, and the looker that wakes for what is overdue.
func TestAClockThatIsSetForwardHasNoTickTakenAhead(t *testing.T) {
	for _, first := range []string{"timer", "looker"} {
		t.Run(first, func(t *testing.T) {
			simulate(t, "clock: local"+grouped, func(w *world) {
				r := w.replica(0)
				w.at(10300 * time.Millisecond)
				r.set(52 * time.Second)
				if first == "looker" {
					r.looker.nudges.nudge()
				}
				w.at(90 * time.Second) // Redis, whose clock is behind, has called the tick early until then
				for _, job := range []string{"a", "b", "c"} {
					if n := len(w.started(job)); n != 1 {
						t.Errorf("%d ticks of %s were started", n, job)
					}
					if next := r.value("next_tick_timestamp_seconds", job); next != seconds(w.origin().Add(3*time.Minute)) {
						t.Errorf("the next tick of %s is in %g s", job, next-seconds(w.origin()))
					}
				}
			})
		})
	}
}

// A timer is armed for instants a moment ahead of the ticks, so it comes too late for a tick within that moment.
func TestATickWithinTheMomentAfterAStartIsInTime(t *testing.T) {
	long(t)
	for _, before := range []time.Duration{40 * time.Millisecond, 24 * time.Millisecond, time.Millisecond, 0} {
		simulate(t, minutely, func(w *world) {
			first := w.replica(0) // Redis knows the job
			w.at(30 * time.Second)
			first.stop()
			<-first.done
			w.at(time.Minute - before)
			w.replica(0)
			w.at(2*time.Minute + time.Second)
			w.each("minute", time.Minute, time.Minute, 2*time.Minute, 10*time.Millisecond)
		})
	}
}

func TestATickWithinTheMomentAfterAReloadIsInTime(t *testing.T) {
	long(t)
	table := func(schedule string) string {
		return "\njobs:\n  - {name: changed, schedule: '" + schedule + "', exec: {command: [x]}}\n  - {name: other, schedule: '* * * * *', exec: {command: [x]}}"
	}
	for _, before := range []time.Duration{40 * time.Millisecond, 24 * time.Millisecond, time.Millisecond} {
		for _, schedule := range []string{"* * * * *", "0-30 * * * *"} { // in the group of the other job, and in its own
			simulate(t, table("@hourly"), func(w *world) {
				r := w.replica(0)
				w.at(time.Minute - before)
				w.swap(r, table(schedule))
				w.at(2*time.Minute + time.Second)
				w.each("changed", time.Minute, time.Minute, 2*time.Minute, 10*time.Millisecond)
				w.each("other", time.Minute, time.Minute, 2*time.Minute, 10*time.Millisecond)
			})
		}
	}
}

// gocron asks for the next instant also when it knows of one already, or when one has passed. Whatever the clock says
// each time that it is asked, no wake comes late for that.
func TestNoInstantIsPassedOverByAClockThatSteps(t *testing.T) {
	const step, period = 40 * time.Millisecond, 2 * time.Second // a timer is armed by two readings of the clock
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		dice := rand.New(rand.NewPCG(1, 13))
		clock := newClock(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(time.Duration(dice.Int64N(int64(step))))
		}, time.Sleep)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { clock.run(ctx) })
		defer running.Wait()
		defer cancel()

		jobs := map[string]*job{}
		for i := range 10 {
			j := every(t, "@every 2s", 1900*time.Millisecond)
			j.name = fmt.Sprint("j", i)
			j.spec.Name, j.spec.series.job = j.name, j.name
			j.start(time.Now())
			jobs[j.name] = j
		}
		last := map[string]time.Time{}
		var late []string
		c := &cron{log: slog.New(slog.DiscardHandler), ahead: leastAhead, wake: func(upTo time.Time, names ...string) {
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				j := jobs[name]
				w, ok := j.take(upTo)
				if d := time.Since(w.due.Add(-ahead)); !ok || d > 2*step || !last[name].IsZero() && w.tick.Sub(last[name]) != period {
					late = append(late, fmt.Sprintf("%s %t: %s after its time, %s after the one before", name, ok, d, w.tick.Sub(last[name])))
				}
				last[name] = w.tick
			}
		}}
		if err := c.start(clock, jobs); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		c.stop()
		mu.Lock()
		defer mu.Unlock()
		if len(last) != len(jobs) || len(late) > 0 {
			t.Errorf("%d jobs were woken, and wrongly so %d times:\n%s", len(last), len(late), strings.Join(late[:min(len(late), 10)], "\n"))
		}
	})
}

// The order is that of the instants, whatever groups left in between.
func TestGroupsAreDueInTheirOrder(t *testing.T) {
	now := midnight
	a := &agenda{now: func() time.Time { return now }, ahead: leastAhead}
	groups := make([]*group, 60)
	for i := range groups {
		minute := (i*37 + 1) % len(groups)
		groups[i] = &group{series: every(t, fmt.Sprintf("%d * * * *", minute), 0).spec.series}
		a.add(groups[i])
		a.join(groups[i], fmt.Sprint(minute))
	}
	now = midnight.Add(30*time.Minute + time.Second)
	a.reset()
	for _, g := range groups {
		if name := g.jobs[0]; strings.ContainsAny(name[len(name)-1:], "1258") {
			a.leave(g, name)
		}
	}
	for range a.groups.Len() {
		a.after(a.groups[0].at)
	}
	want := []string{}
	for minute := 31; minute <= 90; minute++ {
		if name := fmt.Sprint(minute % 60); !strings.ContainsAny(name[len(name)-1:], "1258") {
			want = append(want, name)
		}
	}
	if _, due := a.take(); !slices.Equal(due, want) {
		t.Errorf("due are %v, want %v", due, want)
	}
}

func leastAhead() time.Duration { return ahead }
