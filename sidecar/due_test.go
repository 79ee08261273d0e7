package sidecar

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/lock"
)

const dueSet = "solotick:{test}:due"

func (w *world) dueMembers() []string {
	members, _ := w.redis.ZMembers(dueSet) // an error is an empty set
	return members
}

// Any client of Redis can add a due member that cannot be claimed. The job runs all the same.
func TestADueMemberThatCannotBeClaimedIsInNobodysWay(t *testing.T) {
	simulate(t, rare(""), func(w *world) {
		w.replica(time.Second)
		w.at(10 * time.Second)
		now := time.Now().UnixMilli()
		for _, member := range []string{" rare by\thand 1 0 0 n", " rare manual 01 0 0 n", " rare manual 1 0 0 n\tm"} {
			_, err := w.redis.ZAdd(dueSet, 0, fmt.Sprint(now, member))
			w.must(err)
		}
		due, err := w.replicas[0].store.Trigger(w.t.Context(), "rare", uuid.NewString())
		w.must(err)
		w.at(20 * time.Second)
		if s := w.started("rare")[due.Tick]; len(s) != 1 {
			t.Errorf("started as %+v\n%s", s, w.log())
		}
		w.expect(0, "skips_total", "redis_error")
	})
}

func TestADueTickThatANewerOneOvertookIsDropped(t *testing.T) {
	simulate(t, `
jobs:
  - {name: second, schedule: "@every 1s", exec: {command: [x]}}
`, func(w *world) {
		dead := w.replica(5 * time.Second)
		w.at(500 * time.Millisecond)
		w.replica(time.Millisecond)
		dead.disconnect(true) // the ticks that it holds up come due when it is taken for dead
		w.at(time.Minute)
		if m := w.dueMembers(); len(m) > 0 {
			t.Errorf("the due set still has %q", m)
		}
		if n := w.replicas[1].value("skips_total", "redis_error"); n > 0 {
			t.Errorf("%v skips blame a Redis that was never away", n)
		}
	})
}

func TestUnderAllowAHandedOverTickDoesNotWaitForOtherRuns(t *testing.T) {
	long(t)
	simulate(t, `
jobs:
  - {name: slow, schedule: "@every 10s", concurrencyPolicy: Allow, exec: {command: [x]}}
`, func(w *world) {
		w.replica(25 * time.Second)
		w.at(time.Second)
		w.replica(0, func(r *replica) { r.work = nil })
		w.at(5*time.Minute + time.Second)
		w.once("slow", 10*time.Second, 290*time.Second, 3*time.Second)
		if w.sum("handovers_total") == 0 {
			t.Error("nothing was handed over")
		}
	})
}

func TestADueTickOfAJobThatNeedsNoLockAnyMoreIsDropped(t *testing.T) {
	simulate(t, `
jobs:
  - {name: hourly, schedule: "@hourly", guarantee: every-replica, exec: {command: [x]}}
`, func(w *world) {
		d := lock.Due{Tick: w.origin().Truncate(time.Hour), Job: "hourly", Kind: "catchup", Attempt: 1, Nonce: "x"}
		if _, err := w.redis.ZAdd(dueSet, 1, d.Member()); err != nil {
			t.Fatal(err)
		}
		w.replica(time.Millisecond)
		w.at(time.Minute)
		w.expect(0, "fires_total")
		if m := w.dueMembers(); len(m) > 0 {
			t.Errorf("the due set still has %q", m)
		}
	})
}

// A replica with another table may have the job, as in a rollout that stands for hours.
func TestADueTickOfAnUnknownJobIsLeftToOthersForADay(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		due := func(ago time.Duration) string {
			at := w.origin().Add(-ago)
			m := lock.Due{Tick: at, Job: "gone", Kind: "catchup", Attempt: 1, Nonce: ago.String()}.Member()
			if _, err := w.redis.ZAdd(dueSet, float64(at.UnixMilli()), m); err != nil {
				t.Fatal(err)
			}
			return m
		}
		kept := due(20 * time.Hour)
		due(25 * time.Hour)
		w.replica(time.Second)
		w.at(2 * time.Minute)
		if m := w.dueMembers(); len(m) != 1 || m[0] != kept {
			t.Errorf("the due set has %q, want %q alone\n%s", m, kept, w.log())
		}
	})
}

func TestDueTicksOfUnknownJobsDoNotHideOthers(t *testing.T) {
	long(t)
	simulate(t, minutely, func(w *world) {
		for i := range 100 {
			d := lock.Due{Tick: time.Unix(1000, 0), Job: "gone", Kind: "catchup", Attempt: 1, Nonce: fmt.Sprint(i)}
			if _, err := w.redis.ZAdd(dueSet, float64(i+1), d.Member()); err != nil {
				t.Fatal(err)
			}
		}
		w.replica(0, func(r *replica) { r.work = nil })
		w.at(-30 * time.Second)
		w.replica(time.Second)
		w.at(10*time.Minute + 30*time.Second)
		w.once("minute", time.Minute, 10*time.Minute, 5*time.Second)
		if m := w.dueMembers(); len(m) > 0 {
			t.Errorf("the due set still has %d members", len(m))
		}
	})
}

func TestWhatIsTooLateDoesNotHoldUpWhatIsDueBehindIt(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(time.Millisecond, func(r *replica) { r.far = 100 * time.Millisecond })
		w.at(30 * time.Second)
		for i := range 20 {
			late := lock.Due{Tick: w.origin().Add(-time.Hour), Job: "minute", Kind: "catchup", Attempt: 1, Nonce: fmt.Sprint(i)}
			if _, err := w.redis.ZAdd(dueSet, float64(i+1), late.Member()); err != nil {
				t.Fatal(err)
			}
		}
		asked := lock.Due{Tick: w.origin().Add(29 * time.Second), Job: "minute", Kind: "manual", Attempt: 1, Nonce: "x"}
		if _, err := w.redis.ZAdd(dueSet, 1000, asked.Member()); err != nil {
			t.Fatal(err)
		}
		w.redis.Publish("solotick:{test}:events", "due")
		w.at(32 * time.Second)
		if len(w.started("minute")[asked.Tick]) != 1 {
			t.Error("the run that was asked for has not begun two seconds later")
		}
		if m := w.dueMembers(); len(m) > 0 {
			t.Errorf("the due set still has %d members", len(m))
		}
		w.expect(20, "skips_total", "superseded")
	})
}

func TestAClockThatWasAheadDoesNotSilenceAReplica(t *testing.T) {
	simulate(t, `
jobs:
  - {name: ten, schedule: "@every 10s", exec: {command: [x]}}
`, func(w *world) {
		w.at(-time.Minute)
		r := w.replica(time.Millisecond, func(r *replica) {
			r.skew = 45 * time.Second
			r.cut = true // so that it begins on its own clock
		})
		w.at(-57 * time.Second)
		r.disconnect(false)
		w.at(2 * time.Minute)
		w.once("ten", 10*time.Second, 2*time.Minute, 10*time.Millisecond)
	})
}

func TestShutdownDoesNotWaitALeaseForRedis(t *testing.T) {
	simulate(t, `shutdownGrace: 5s
jobs:
  - {name: minute, schedule: "* * * * *", timeout: 40s, lock: {ttl: 10m}, exec: {command: [x]}}
`, func(w *world) {
		r := w.replica(5 * time.Second)
		w.at(3 * time.Second)
		r.disconnect(true) // the run ends, and cannot be settled
		w.at(10 * time.Second)
		r.stop()
		if err := awaited(r, 10*time.Second); err != "" {
			t.Error(err)
		}
	})
}

// Looks come once a second, and the claim of the next tick may always come before them.
func TestADueTickThatWaitsForARunBeginsWhenTheRunEnds(t *testing.T) {
	simulate(t, `
jobs:
  - {name: slow, schedule: "@every 10s", concurrencyPolicy: Queue, exec: {command: [x]}}
`, func(w *world) {
		w.replica(5250 * time.Millisecond)
		w.at(12 * time.Second) // during the run of the second tick
		first := w.origin()
		_, err := w.redis.ZAdd(dueSet, 0, fmt.Sprintf("%d slow catchup 1 0 0 x", first.Add(-time.Hour).UnixMilli()))
		w.must(err)
		w.redis.Publish("solotick:{test}:events", "due")
		w.at(18 * time.Second)
		starts := w.started("slow")[first.Add(-time.Hour)]
		if len(starts) != 1 {
			t.Fatalf("started as %+v\n%s", starts, w.log())
		}
		if late := starts[0].at.Sub(w.origin().Add(15250 * time.Millisecond)); late < 0 || late > 50*time.Millisecond {
			t.Errorf("it began %s after the end of the run before it", late)
		}
	})
}
