package sidecar

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/lock"
)

// A job that left the table while its wake waited is not fired when the wait is over; one that changed is, as it is
// now.
func TestAWakeThatWaitsIsTheJobsAsItIsNow(t *testing.T) {
	const another = gated + "jobs:\n  - {name: minute, schedule: '* * * * *', timeout: 40s, %s}\n"
	for name, c := range map[string]struct {
		table  string
		starts int
	}{
		"removed":   {gated + "jobs: []", 0},
		"suspended": {strings.Replace(another, "%s", "suspend: true, exec: {command: [x]}", 1), 0},
		"changed":   {strings.Replace(another, "%s", "exec: {command: [y]}", 1), 1},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, gated+minutely, func(w *world) {
				app := &fakeApp{}
				r := w.replica(0, func(r *replica) { r.app = app })
				w.at(10 * time.Second)
				w.swap(r, c.table)
				w.at(20 * time.Second)
				app.ready.Store(true)
				w.at(50 * time.Second)
				if n := len(w.started("minute")); n != c.starts {
					t.Errorf("started %d times, want %d\n%s", n, c.starts, w.log())
				}
				if skips := r.heartbeat.skipped(); len(skips) > 0 != (name == "suspended") {
					t.Errorf("skips that are told: %v", skips)
				}
				if taken, waiting := r.slots.counts(); taken != 0 || waiting != 0 {
					t.Errorf("taken %d, waiting %d", taken, waiting)
				}
			})
		})
	}
}

func TestARemovedJobIsNotFiredWhenRedisIsBack(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(0)
		w.at(-10 * time.Second)
		r.disconnect(true)
		w.at(10 * time.Second)
		w.swap(r, "\njobs: []")
		w.at(20 * time.Second)
		r.disconnect(false)
		w.at(50 * time.Second)
		if n := w.startedSince("minute", 0); n > 0 {
			t.Errorf("started %d times", n)
		}
	})
}

func TestATickThatBothSchedulesHaveIsFiredOnceOnEveryReplica(t *testing.T) {
	const table = "\njobs:\n  - {name: second, guarantee: every-replica, schedule: '%s * * * * *', http: {url: 'http://127.0.0.1/'}}"
	simulate(t, strings.Replace(table, "%s", "*", 1), func(w *world) {
		r := w.replica(0)
		w.at(10*time.Second - 10*time.Millisecond) // when the tick is taken
		w.swap(r, strings.Replace(table, "%s", "*/5", 1))
		w.at(15*time.Second + 500*time.Millisecond)
		w.each("second", 5*time.Second, 0, 15*time.Second, 3*time.Second)
	})
}

func TestTheNextTickOfANewJobIsShownAtOnce(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		r := w.replica(0)
		w.at(10 * time.Second)
		w.swap(r, minutely+"  - {name: nightly, schedule: '30 3 * * *', http: {url: http://127.0.0.1/}}")
		if next := r.value("next_tick_timestamp_seconds", "nightly"); next == 0 {
			t.Error("it has none")
		}
	})
}

func TestAPlaceIsGivenBackByWhatIsRefusedAtTheGate(t *testing.T) {
	simulate(t, "\nmaxRunning: 1\njobs:\n  - {name: minute, schedule: '* * * * *', startingDeadline: 10s, exec: {command: [x]}}", func(w *world) {
		r := w.replica(0)
		w.at(30 * time.Second)
		j := r.job("minute")
		late := j.dueWake(j.inForce(), lock.Due{Tick: w.origin(), Job: "minute", Kind: "handover", Attempt: 1, Nonce: "x"}, w.origin())
		late.slot = r.slots.tryAcquire(late.spec)
		why := r.firer.fire(late)
		if taken, _ := r.slots.counts(); why.reason != tooLate || taken != 0 {
			t.Errorf("refused as %q, %d places taken", why.reason, taken)
		}
	})
}

// TestWhatIsRefusedDoesNotKeepOthersFromASlot: two of a tick that runs, and another job's, wait for the one slot left.
func TestWhatIsRefusedDoesNotKeepOthersFromASlot(t *testing.T) {
	const yearly = "schedule: '@yearly', concurrencyPolicy: Allow, exec: {command: [x]}}"
	simulate(t, "\nmaxRunning: 2\njobs:\n  - {name: a, "+yearly+"\n  - {name: b, "+yearly, func(w *world) {
		r := w.replica(5 * time.Minute)
		w.at(0)
		add := func(job, nonce string) {
			d := lock.Due{Tick: w.origin().Add(-time.Hour), Job: job, Kind: "backfill", Attempt: 1, Nonce: nonce}
			_, err := w.redis.ZAdd(dueSet, float64(time.Now().UnixMilli()), d.Member())
			w.must(err)
			w.redis.Publish("solotick:{test}:events", "due")
		}
		add("a", "1")
		w.at(2 * time.Second)
		add("a", "2")
		add("a", "3")
		add("b", "4")
		w.at(12 * time.Second)
		if skips := r.value("skips_total", "a"); skips > 40 {
			t.Errorf("%v skips in ten seconds", skips)
		}
		if len(w.started("b")) != 1 {
			t.Error("the other job has not begun")
		}
	})
}

func TestAReloadOfAReplicaThatDrainsIsNoFailureOfTheTable(t *testing.T) {
	simulate(t, graceful, func(w *world) {
		r := w.replica(0)
		w.at(time.Second)
		w.must(r.Drain(w.t.Context()))
		if err := r.Reload(parse(t, minutely), nil); !errors.Is(err, errDraining) {
			t.Errorf("error %v", err)
		}
		w.expect(1, "table_last_reload_successful")
	})
}
