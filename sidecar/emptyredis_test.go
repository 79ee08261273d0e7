package sidecar

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Redis comes back without its data. At-most-once then fires nothing of what was due meanwhile, at-least-once what the
// policy for missed ticks says: once over all replicas.

// emptied has three replicas lose Redis after the first tick; it comes back empty after the fourth.
func emptied(t *testing.T, keys string, f func(w *world)) {
	t.Helper()
	simulate(t, policy(keys), func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(30 * time.Second)
		for _, r := range w.replicas {
			r.disconnect(true)
		}
		w.at(3*time.Minute + 20*time.Second)
		w.redis.FlushAll()
		w.at(3*time.Minute + 30*time.Second)
		for _, r := range w.replicas {
			r.disconnect(false)
		}
		w.at(5*time.Minute + 30*time.Second)
		f(w)
	})
}

func TestAfterALossOfDataAtLeastOnceFiresWhatItOwesOnce(t *testing.T) {
	for missed, c := range map[string]struct {
		order []string
		count float64
	}{
		"latest": {[]string{"0s", "3m0s", "4m0s", "5m0s"}, 2},
		"all":    {[]string{"0s", "1m0s", "2m0s", "3m0s", "4m0s", "5m0s"}, 0},
		"skip":   {[]string{"0s", "4m0s", "5m0s"}, 3},
	} {
		t.Run(missed, func(t *testing.T) {
			emptied(t, "guarantee: at-least-once, missed: "+missed, func(w *world) {
				w.expectTicks("minute", c.order...)
				w.expect(c.count, "missed_total")
				if m := w.dueMembers(); len(m) > 0 {
					t.Errorf("the due set still has %q", m)
				}
			})
		})
	}
}

func TestAfterALossOfDataAtMostOnceCountsWhatItDoesNotFireOnce(t *testing.T) {
	for _, missed := range []string{"latest", "all", "skip"} {
		t.Run(missed, func(t *testing.T) {
			emptied(t, "guarantee: at-most-once, missed: "+missed, func(w *world) {
				w.expectTicks("minute", "0s", "4m0s", "5m0s")
				w.expect(3, "missed_total")
			})
		})
	}
}

// expectTicks is expectOrder, whatever the kinds.
func (w *world) expectTicks(job string, want ...string) {
	w.t.Helper()
	var got []string
	for _, o := range w.order(job) {
		tick, _, _ := strings.Cut(o, " ")
		got = append(got, tick)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s was started for %q, want %q\n%s", job, w.order(job), want, w.log())
	}
}

func TestAfterALossOfDataWithoutAnOutageNothingIsFiredTwice(t *testing.T) {
	long(t)
	for _, guarantee := range []string{"at-most-once", "at-least-once"} {
		for _, missed := range []string{"latest", "all", "skip"} {
			t.Run(guarantee+", missed: "+missed, func(t *testing.T) {
				table := "jobs:\n  - {name: ten, schedule: '@every 10s', guarantee: " + guarantee + ", missed: " + missed + ", exec: {command: [x]}}"
				simulate(t, table, func(w *world) {
					for range 3 {
						w.replica(time.Millisecond)
					}
					for at := 13 * time.Second; at < time.Minute; at += 10 * time.Second {
						w.at(at)
						w.redis.FlushAll()
					}
					w.at(91 * time.Second)
					w.each("ten", 10*time.Second, 0, 90*time.Second, 10*time.Millisecond)
					w.expect(0, "missed_total")
				})
			})
		}
	}
}

// TestALossOfDataBetweenTwoQuestionsFiresNothingTwice: one replica has fired the tick when the question of the other,
// whose way to Redis is longer, arrives there.
func TestALossOfDataBetweenTwoQuestionsFiresNothingTwice(t *testing.T) {
	table := "jobs:\n  - {name: ten, schedule: '@every 10s', guarantee: at-most-once, exec: {command: [x]}}"
	simulate(t, table, func(w *world) {
		w.replica(time.Millisecond)
		w.replica(time.Millisecond, func(r *replica) { r.far = 40 * time.Millisecond })
		for at := 10*time.Second + 5*time.Millisecond; at < time.Minute; at += 10 * time.Second {
			w.at(at)
			w.redis.FlushAll()
		}
		w.at(61 * time.Second)
		w.each("ten", 10*time.Second, 0, time.Minute, 60*time.Millisecond)
	})
}

func TestARunThatLostItsLockWithRedisDataIsRunAgainUnderAtLeastOnce(t *testing.T) {
	for guarantee, starts := range map[string]int{"at-most-once": 1, "at-least-once": 2} {
		t.Run(guarantee, func(t *testing.T) {
			simulate(t, policy("timeout: 1h, guarantee: "+guarantee), func(w *world) {
				for range 3 {
					w.replica(15 * time.Second)
				}
				w.at(2 * time.Second)
				w.redis.FlushAll()
				w.at(55 * time.Second)
				s := w.started("minute")[w.origin()]
				if len(s) != starts {
					t.Errorf("started as %+v\n%s", s, w.log())
				}
				if len(s) > 1 && (s[1].run.Kind != kindTakeover || s[1].run.Token <= s[0].run.Token || s[1].run.Attempt <= s[0].run.Attempt) {
					t.Errorf("it was run again as %+v", s[1])
				}
				w.expect(1, "runs_total", "minute", "lost_lock")
				w.at(2*time.Minute + time.Second)
				w.each("minute", time.Minute, time.Minute, 2*time.Minute, 10*time.Millisecond)
			})
		})
	}
}

// TestAfterALossOfDataTheTicksOfAPauseAreNeitherFiredNorMissed: nor are those of a time in which the job was suspended.
func TestAfterALossOfDataTheTicksOfAPauseAreNeitherFiredNorMissed(t *testing.T) {
	long(t)
	for _, keys := range []string{"guarantee: at-least-once, missed: all", "guarantee: at-least-once", "missed: all"} {
		for _, suspended := range []bool{false, true} {
			simulate(t, policy(keys), func(w *world) {
				a, b := w.replica(time.Second), w.replica(time.Second)
				w.at(30 * time.Second)
				if suspended {
					w.swap(a, policy(keys+", suspend: true"))
					w.swap(b, policy(keys+", suspend: true"))
				} else {
					w.must(a.store.Pause(w.t.Context(), "minute", "no runs please", time.Time{}))
				}
				w.at(10*time.Minute + 30*time.Second)
				w.redis.FlushAll()
				w.at(12*time.Minute + 30*time.Second)
				for tick := range w.started("minute") {
					if at := tick.Sub(w.origin()); at > 30*time.Second && at < 10*time.Minute+30*time.Second {
						t.Errorf("%s: tick %s of the pause was fired", keys, at)
					}
				}
				w.expect(0, "missed_total")
			})
		}
	}
}

// TestAfterALossOfDataARunEndsBeforeTheNextTick: its next renewal may be minutes away.
func TestAfterALossOfDataARunEndsBeforeTheNextTick(t *testing.T) {
	simulate(t, "jobs:\n  - {name: ten, schedule: '@every 10s', timeout: 1h, lock: {ttl: 5m}, exec: {command: [x]}}", func(w *world) {
		w.replica(75 * time.Second)
		w.replica(75 * time.Second)
		w.at(3 * time.Second)
		w.redis.FlushAll()
		w.at(9 * time.Second)
		w.expect(1, "runs_total", "lost_lock")
	})
}
