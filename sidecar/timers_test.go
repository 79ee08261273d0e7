package sidecar

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/google/uuid"

	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

const noJobs = "\njobs: []"

// setTimer sets a timer as the API does.
func (w *world) setTimer(id string, at time.Duration, more string) {
	w.t.Helper()
	source := `{"at": "` + w.origin().Add(at).Format(time.RFC3339Nano) + `", "http": {"url": "http://127.0.0.1/"}` + more + `}`
	_, err := w.replicas[0].store.SetTimer(w.t.Context(), id, w.origin().Add(at), []byte(source))
	w.must(err)
}

func TestATimerIsFiredOnceAtItsTime(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		for range 3 {
			w.replica(time.Second)
		}
		w.at(0)
		w.setTimer("a", 12345*time.Millisecond, "")
		w.setTimer("past", -time.Hour, "")
		w.setTimer("deleted", 10*time.Second, "")
		w.at(5 * time.Second)
		if ok, err := w.replicas[1].store.DeleteTimer(w.t.Context(), "deleted"); !ok || err != nil {
			t.Errorf("deleted %v, %v", ok, err)
		}
		w.at(time.Minute)
		w.each("timer:a", time.Minute, 12345*time.Millisecond, 12345*time.Millisecond, 20*time.Millisecond)
		w.each("timer:past", time.Minute, -time.Hour, -time.Hour, time.Hour+time.Second)
		w.expect(2, "fires_total")
		w.expect(2, "runs_total", "@timers", "succeeded")
		if s := w.started("timer:a")[w.origin().Add(12345*time.Millisecond)]; len(s) == 1 && s[0].run.Kind != "timer" {
			t.Errorf("its kind is %q", s[0].run.Kind)
		}
		if left, err := w.replicas[0].store.Timers(w.t.Context(), 10); len(left) > 0 || err != nil {
			t.Errorf("left %v, %v", left, err)
		}
	})
}

func TestTimersOfOneInstantAreSharedAndEachFiredOnce(t *testing.T) {
	long(t)
	simulate(t, noJobs, func(w *world) {
		for range 3 {
			w.replica(10 * time.Millisecond)
		}
		w.at(0)
		for i := range 300 {
			w.setTimer(fmt.Sprintf("t%d", i), 10*time.Second, "")
		}
		w.at(11 * time.Second)
		for i := range 300 {
			w.each(fmt.Sprintf("timer:t%d", i), time.Minute, 10*time.Second, 10*time.Second, time.Second)
		}
		w.at(time.Minute)
		w.expect(300, "fires_total")
		for _, r := range w.replicas {
			taken, _ := r.slots.counts()
			if n := r.looker.timers.firing.Load(); n != 0 || taken != 0 {
				t.Errorf("%s is busy with %d timers, and %d places are taken", r.name, n, taken)
			}
		}
	})
}

// Each replica begins with other timers of a flood, so that few claims are lost.
func TestReplicasShareAFloodOfTimers(t *testing.T) {
	long(t)
	simulate(t, noJobs, func(w *world) {
		for range 3 {
			w.replica(time.Millisecond, func(r *replica) { r.far = time.Millisecond })
		}
		w.at(10 * time.Second) // they have seen each other
		const many = 6 * timersAtOnce
		for i := range many {
			w.setTimer(fmt.Sprintf("t%d", i), 20*time.Second, "")
		}
		looks := w.looksForTimers()
		w.at(time.Minute)
		if n := looks.Load(); n > many/20 {
			t.Errorf("%d looks for %d timers", n, many)
		}
		for i := range many {
			w.each(fmt.Sprintf("timer:t%d", i), time.Minute, 20*time.Second, 20*time.Second, time.Second)
		}
		if n := w.sum("skips_total", "@timers"); n > many/2 {
			t.Errorf("%v claims of %d timers were lost", n, many)
		}
	})
}

// A replica that is gone delays the timers that it was to ask for first by its turn.
func TestTimersDoNotWaitForAReplicaThatIsGone(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		for range 3 {
			w.replica(time.Millisecond)
		}
		w.at(10 * time.Second) // they have seen each other
		for i := range 100 {
			w.setTimer(fmt.Sprintf("t%d", i), 20*time.Second, "")
		}
		w.at(19 * time.Second)
		w.replicas[0].crash()
		w.at(time.Minute)
		for i := range 100 {
			w.each(fmt.Sprintf("timer:t%d", i), time.Minute, 20*time.Second, 20*time.Second, turn+10*time.Millisecond)
		}
	})
}

func TestATimerOfADeadReplicaIsRunAgainWhenItAsksForThat(t *testing.T) {
	for more, want := range map[string]int{"": 1, `, "guarantee": "at-least-once"`: 2} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			simulate(t, noJobs, func(w *world) {
				for range 3 {
					w.replica(10 * time.Second)
				}
				w.at(0)
				w.setTimer("a", 10*time.Second, more)
				w.at(12 * time.Second)
				tick := w.origin().Add(10 * time.Second)
				w.holder("timer:a", 10*time.Second).disconnect(true)
				w.at(2 * time.Minute)
				if n := len(w.started("timer:a")[tick]); n != want {
					t.Errorf("started %d times, want %d\n%s", n, want, w.log())
				}
				w.expect(1, "takeovers_total", "@timers")
			})
		})
	}
}

func TestATimerThatCannotBeStartedIsHandedOver(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		w.replica(0, func(r *replica) { r.work = nil })
		w.replica(0, func(r *replica) { r.work = nil })
		w.replica(0)
		w.at(0)
		w.setTimer("a", 10*time.Second, "")
		w.at(20 * time.Second)
		w.each("timer:a", time.Minute, 10*time.Second, 10*time.Second, 5*time.Second)
		w.expect(1, "runs_total", "@timers", "succeeded")
	})
}

func TestTimersWaitForTheAppAndForSlots(t *testing.T) {
	simulate(t, gated+"maxRunning: 2"+noJobs, func(w *world) {
		app := &fakeApp{}
		most, now := 0, 0
		w.replica(0, func(r *replica) {
			r.app = app
			r.work = func(ctx context.Context, _ execute.Run) execute.Result {
				w.mu.Lock()
				now++
				most = max(most, now)
				w.mu.Unlock()
				beat.Sleep(ctx, time.Second)
				w.mu.Lock()
				now--
				w.mu.Unlock()
				return execute.Result{Status: execute.Succeeded}
			}
		})
		w.at(0)
		for i := range 6 {
			w.setTimer(fmt.Sprintf("t%d", i), time.Second, "")
		}
		w.at(10 * time.Second)
		w.expect(0, "fires_total")
		app.ready.Store(true)
		w.at(15 * time.Second)
		w.expect(6, "fires_total")
		if most != 2 {
			t.Errorf("%d ran at once, want 2", most)
		}
	})
}

func TestTheOldestTimersAreFiredFirst(t *testing.T) {
	long(t)
	simulate(t, gated+"maxRunning: 5"+noJobs, func(w *world) {
		app := &fakeApp{}
		w.replica(time.Second, func(r *replica) { r.app = app })
		w.at(-30 * time.Second)
		const many = 600
		for i := range many {
			n := i * 7 % many
			w.setTimer(fmt.Sprintf("t%d", n), time.Duration(n-2*many)*time.Second, "")
		}
		app.ready.Store(true)
		w.at(30 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.starts) < 100 {
			t.Errorf("%d were fired within 30 seconds, five at a time", len(w.starts))
		}
		for i, s := range w.starts {
			n := int(s.tick.Sub(w.origin())/time.Second) + 2*many
			if max(n-i, i-n) >= 10 { // five are begun at a time, in any order, some perhaps beside the last of the five before
				t.Errorf("number %d to be fired was t%d", i, n)
				return
			}
		}
	})
}

func TestTimersThatCannotBeReadHideNoneBehindThem(t *testing.T) {
	long(t)
	simulate(t, noJobs, func(w *world) {
		w.replica(time.Millisecond)
		w.at(0)
		for i := range 3 * timersAtOnce {
			_, err := w.replicas[0].store.SetTimer(w.t.Context(), fmt.Sprintf("t%d", i), w.origin().Add(-time.Hour), []byte(`{"of": "another version"}`))
			w.must(err)
		}
		w.setTimer("a", -time.Minute, "")
		w.at(5 * time.Second)
		w.each("timer:a", time.Minute, -time.Minute, -time.Minute, time.Minute+5*time.Second)
	})
}

func TestTimersDoNotHoldUpWhatIsDueOfJobs(t *testing.T) {
	long(t)
	simulate(t, "maxRunning: 4"+minutely+"  - {name: other, schedule: \"@yearly\", reserved: true, exec: {command: [x]}}\n", func(w *world) {
		r := w.replica(time.Second)
		w.at(10 * time.Second)
		for i := range 500 {
			w.setTimer(fmt.Sprintf("t%d", i), time.Duration(i-1000)*time.Hour, "")
		}
		var ticks []time.Time
		for i := range 100 {
			ticks = append(ticks, w.origin().Add(time.Duration(i-200)*time.Minute))
		}
		_, err := r.store.Backfill(w.t.Context(), "minute", ticks, uuid.NewString(), false)
		w.must(err)
		asked, err := r.store.Trigger(w.t.Context(), "other", uuid.NewString())
		w.must(err)
		w.at(12 * time.Second)
		if n := len(w.started("other")[asked.Tick]); n != 1 {
			t.Errorf("what was asked for was started %d times within two seconds", n)
		}
		w.at(8 * time.Minute)
		for i := range 500 {
			if n := len(w.started(fmt.Sprintf("timer:t%d", i))); n != 1 {
				t.Errorf("t%d was fired %d times", i, n)
				break
			}
		}
		for _, tick := range ticks {
			if n := len(w.started("minute")[tick]); n != 1 {
				t.Errorf("%s was fired %d times", tick, n)
				break
			}
		}
	})
}

func TestPausedTimersAreLeftAloneAndTakenUpWhenTheyAreResumed(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(10 * time.Millisecond)
		w.at(0)
		w.must(r.store.Pause(w.t.Context(), service.TimerJobs, "", time.Time{}))
		for i := range 10 {
			w.setTimer(fmt.Sprintf("t%d", i), time.Second, "")
		}
		w.at(30*time.Second + 250*time.Millisecond)
		w.expect(0, "fires_total")
		if n := w.sum("skips_total", "@timers", "paused"); n < 1 || n > 10 {
			t.Errorf("they were asked for %v times", n)
		}
		_, err := r.store.Resume(w.t.Context(), service.TimerJobs)
		w.must(err)
		w.at(30*time.Second + 300*time.Millisecond)
		w.expect(10, "fires_total")
		// A pause that ends by itself.
		w.must(r.store.Pause(w.t.Context(), service.TimerJobs, "", w.origin().Add(45*time.Second)))
		w.setTimer("late", 31*time.Second, "")
		w.at(44 * time.Second)
		w.expect(10, "fires_total")
		w.at(47 * time.Second)
		w.expect(11, "fires_total")
	})
}

const hourly = "\njobs:\n  - {name: hourly, schedule: \"@hourly\", exec: {command: [x]}}\n"

// pauseWhatIsDue pauses the hourly job or all timers, of each of which one comes due a second after the origin.
func (w *world) pauseWhatIsDue(r *replica, job string) {
	w.t.Helper()
	w.must(r.store.Pause(w.t.Context(), job, "", time.Time{}))
	w.setTimer("a", time.Second, "")
	d := lock.Due{Tick: w.origin().Truncate(time.Hour), Job: "hourly", Kind: "handover", Attempt: 1, Nonce: "x"}
	_, err := w.redis.ZAdd(dueSet, float64(w.origin().Add(time.Second).UnixMilli()), d.Member())
	w.must(err)
}

// TestAResumptionThatOvertakesARefusalIsHeard has the nudge come before what is due was put off.
func TestAResumptionThatOvertakesARefusalIsHeard(t *testing.T) {
	for paused, due := range map[string]string{service.TimerJobs: "timer:a", "hourly": "hourly"} {
		t.Run(paused, func(t *testing.T) {
			simulate(t, hourly, func(w *world) {
				var resumed atomic.Bool
				r := w.replica(time.Millisecond, func(r *replica) {
					r.says = func(message string) {
						if message != "skipped" || resumed.Swap(true) {
							return
						}
						if _, err := r.store.Resume(w.t.Context(), paused); err != nil {
							t.Error(err)
						}
						time.Sleep(5 * time.Millisecond)
					}
				})
				w.at(0)
				w.pauseWhatIsDue(r, paused)
				w.at(3 * time.Second)
				if !resumed.Load() || len(w.started(due)) != 1 {
					t.Errorf("refused %t; not started two seconds after it was resumed\n%s", resumed.Load(), w.log())
				}
			})
		})
	}
}

// TestAResumptionThatIsNotHeardCostsSeconds has it come while the replica cannot hear it.
func TestAResumptionThatIsNotHeardCostsSeconds(t *testing.T) {
	for paused, due := range map[string]string{service.TimerJobs: "timer:a", "hourly": "hourly"} {
		t.Run(paused, func(t *testing.T) {
			simulate(t, gated+hourly, func(w *world) {
				r := w.replica(time.Millisecond)
				operator := w.replica(0, func(r *replica) { r.app = &fakeApp{} }) // it takes nothing itself
				w.at(0)
				w.pauseWhatIsDue(r, paused)
				w.at(3 * time.Second)
				r.disconnect(true)
				_, err := operator.store.Resume(w.t.Context(), paused)
				w.must(err)
				w.at(4 * time.Second)
				if len(w.started(due)) != 0 {
					t.Error("it was started in the pause, or by whose app is not ready")
				}
				r.disconnect(false)
				w.at(9 * time.Second)
				if len(w.started(due)) != 1 {
					t.Errorf("not started five seconds after Redis was back\n%s", w.log())
				}
			})
		})
	}
}

// dueTimer makes a member that is due among timers, and tells the replicas.
func (w *world) dueTimer(at time.Duration, member string) {
	w.t.Helper()
	_, err := w.redis.ZAdd("solotick:{test}:timers:due", float64(w.origin().Add(at).UnixMilli()), member)
	w.must(err)
	w.redis.Publish("solotick:{test}:events", "due")
}

func TestWhatIsNotTakenAmongTimersHidesNoneBehindIt(t *testing.T) {
	for what, member := range map[string]string{
		"left to others":     "1000 timer:x%d timer 1 1 nonce r1",
		"entries of another": "1000 timer:x%d timer 1 0 nonce",
		"members of another": "another %d",
	} {
		t.Run(what, func(t *testing.T) {
			simulate(t, "maxRunning: 1"+noJobs, func(w *world) {
				w.replica(time.Millisecond)
				w.at(0)
				for i := range 3 {
					w.must(w.redis.Set(fmt.Sprint("solotick:{test}:timer:x", i), "another version's"))
					w.dueTimer(4900*time.Millisecond, fmt.Sprintf(member, i))
				}
				w.setTimer("a", 5*time.Second, "")
				w.at(6500 * time.Millisecond)
				w.each("timer:a", time.Minute, 5*time.Second, 5*time.Second, 1400*time.Millisecond)
			})
		})
	}
}

// TestTimersThatCannotBeTakenCostNoLooks has one come due every ten milliseconds.
func TestTimersThatCannotBeTakenCostNoLooks(t *testing.T) {
	long(t)
	for _, why := range []string{"the app is not ready", "they are paused", "no place is free"} {
		t.Run(why, func(t *testing.T) {
			simulate(t, gated+"maxRunning: 1"+noJobs, func(w *world) {
				app := &fakeApp{}
				app.ready.Store(why != "the app is not ready")
				r := w.replica(0, func(r *replica) { r.app = app })
				w.at(0)
				release := func() { app.ready.Store(true) }
				switch why {
				case "they are paused":
					w.must(r.store.Pause(w.t.Context(), service.TimerJobs, "", time.Time{}))
					release = func() {
						_, err := r.store.Resume(w.t.Context(), service.TimerJobs)
						w.must(err)
					}
				case "no place is free":
					slot := r.slots.tryAcquire(r.looker.timers.job.inForce())
					release = func() { r.slots.release(slot) }
				}
				w.setTimer("first", time.Second, "")
				for i := range 500 {
					w.setTimer(fmt.Sprint("t", i), 5*time.Second+time.Duration(i)*10*time.Millisecond, "")
				}
				w.at(4 * time.Second)
				before := w.redis.CommandCount()
				w.at(10 * time.Second)
				if n := w.redis.CommandCount() - before; n > 200 {
					t.Errorf("%d commands within six seconds", n)
				}
				w.expect(0, "fires_total")
				release()
				w.at(40 * time.Second)
				w.expect(501, "fires_total")
			})
		})
	}
}

func TestATimerIsFiredAtItsTimeWhenAPlaceBecomesFreeShortlyBefore(t *testing.T) {
	simulate(t, "maxRunning: 1"+noJobs, func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(0)
		slot := r.slots.tryAcquire(r.looker.timers.job.inForce())
		w.setTimer("a", 3500*time.Millisecond, "")
		w.at(3400 * time.Millisecond)
		r.slots.release(slot)
		w.at(10 * time.Second)
		w.each("timer:a", time.Minute, 3500*time.Millisecond, 3500*time.Millisecond, 10*time.Millisecond)
	})
}

// busyWith has the runs of jobs with such a name last for a while, and all others a moment.
func busyWith(name string, d time.Duration) func(*replica) {
	return func(r *replica) {
		r.work = func(ctx context.Context, run execute.Run) execute.Result {
			wait := time.Millisecond
			if strings.HasPrefix(run.Job, name) {
				wait = d
			}
			beat.Sleep(ctx, wait)
			return execute.Result{Status: execute.Succeeded}
		}
	}
}

// A replica has room for six timers more. Those in front cannot be fired: their last times run, or another version wrote
// them.
func TestTimersThatCannotBeFiredHoldUpNoneBehindThem(t *testing.T) {
	long(t)
	for why, set := range map[string]func(*world){
		"they run": func(*world) {},
		"they cannot be read": func(w *world) {
			w.operator(func(s *service.Store) {
				w.must(s.Sync(w.t.Context()))
				for i := range 400 {
					_, _, err := s.SetSeries(w.t.Context(), fmt.Sprint("new", i), w.origin().Add(20*time.Second), []byte(`{"new": 1}`))
					w.must(err)
				}
			})
		},
	} {
		t.Run(why, func(t *testing.T) {
			simulate(t, noJobs, func(w *world) {
				w.replica(0, busyWith("timer:s", 4*time.Minute))
				w.at(0)
				for i := range timersAtOnce - 6 {
					w.repeat(fmt.Sprint("s", i), tenSeconds, "")
				}
				w.at(15 * time.Second)
				set(w)
				const due = 20*time.Second + 500*time.Millisecond
				w.setTimer("behind", due, "")
				w.at(2 * time.Minute)
				w.each("timer:behind", time.Minute, due, due, 2*time.Second)
			})
		})
	}
}

// The place that a run leaves is taken at once: three replicas with a place each need 0.7 s for 200 runs of 10 ms.
func TestAPlaceThatATimerLeavesIsTakenAtOnce(t *testing.T) {
	simulate(t, "maxRunning: 1"+noJobs, func(w *world) {
		for range 3 {
			w.replica(10 * time.Millisecond)
		}
		w.at(10 * time.Second)
		for i := range 200 {
			w.setTimer(fmt.Sprint("t", i), 20*time.Second, "")
		}
		w.at(30 * time.Second)
		for i := range 200 {
			w.each(fmt.Sprint("timer:t", i), time.Minute, 20*time.Second, 20*time.Second, time.Second)
		}
	})
}

// Two replicas are busy with as many timers as they may be, and a hundred come due each second.
func TestAReplicaThatIsFullLooksOnceASecond(t *testing.T) {
	long(t)
	simulate(t, noJobs, func(w *world) {
		for range 2 {
			w.replica(0, busyWith("timer:long", 10*time.Minute))
		}
		w.at(0)
		for i := range 2*timersAtOnce + 20 {
			w.setTimer(fmt.Sprint("long", i), time.Second, "")
		}
		w.at(20 * time.Second)
		for i := range 2000 {
			w.setTimer(fmt.Sprint("t", i), 30*time.Second+time.Duration(i)*10*time.Millisecond, "")
		}
		w.at(30 * time.Second)
		looks := w.looksForTimers()
		w.at(50 * time.Second)
		if n := looks.Load(); n > 90 { // of two commands
			t.Errorf("%d reads of the timers in 20 s", n)
		}
	})
}

// looksForTimers counts the reads of the timers that are due.
func (w *world) looksForTimers() *atomic.Int64 {
	looks := &atomic.Int64{}
	w.redis.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
		if command == "ZRANGE" && strings.HasSuffix(args[0], ":timers:due") {
			looks.Add(1)
		}
		return false
	})
	return looks
}
