package sidecar

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/beat"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// repeat sets a timer with a schedule as the API does, and returns when it comes due.
func (w *world) repeat(id, text, more string) time.Duration {
	w.t.Helper()
	source := fmt.Appendf(nil, `{%s, "http": {"url": "http://127.0.0.1/"}%s}`, text, more)
	timer, err := config.ParseTimer(id, source, time.Now())
	w.must(err)
	var waits time.Time
	w.operator(func(s *service.Store) {
		w.must(s.Sync(w.t.Context()))
		waits, _, err = s.SetSeries(w.t.Context(), id, timer.At, timer.Source)
		w.must(err)
	})
	return waits.Sub(w.origin())
}

// remove deletes a timer as the API does.
func (w *world) remove(id string) {
	w.t.Helper()
	w.operator(func(s *service.Store) {
		w.must(s.Sync(w.t.Context()))
		if ok, err := s.DeleteTimer(w.t.Context(), id); !ok || err != nil {
			w.t.Errorf("deleted %s: %t, %v", id, ok, err)
		}
	})
}

// firedAt are the times of a job that were started, each as often as it was.
func (w *world) firedAt(job string) string {
	by := w.started(job)
	var all []string
	for _, tick := range slices.SortedFunc(maps.Keys(by), time.Time.Compare) {
		for range by[tick] {
			all = append(all, tick.Sub(w.origin()).String())
		}
	}
	return strings.Join(all, " ")
}

func (w *world) firesAt(job, want string) {
	w.t.Helper()
	if got := w.firedAt(job); got != want {
		w.t.Errorf("%s was fired at %q, want %q\n%s", job, got, want, w.log())
	}
}

// nothingLeft demands that Redis keeps no timer any more, except marks.
func (w *world) nothingLeft() {
	w.t.Helper()
	for _, key := range w.redis.Keys() {
		if text, err := w.redis.Get(key); err == nil && strings.Contains(key, ":timer:") && !strings.HasPrefix(text, "deleted ") &&
			!strings.HasPrefix(text, "fired ") {
			w.t.Errorf("%s is left: %s", key, text)
		}
	}
	if due, _ := w.redis.ZMembers("solotick:{test}:timers:due"); len(due) > 0 {
		w.t.Errorf("due is left: %q", due)
	}
	if bytes := w.redis.HGet("solotick:{test}:job:@timers", "bytes"); bytes != "0" {
		w.t.Errorf("%s bytes are left", bytes)
	}
}

const tenSeconds = `"schedule": "*/10 * * * * *"`

func TestATimerWithAScheduleIsFiredAtEachOfItsTimesUntilItsEnd(t *testing.T) {
	for more, again := range map[string]string{"": "", `, "guarantee": "at-least-once"`: "40s "} {
		t.Run("at-least-once: "+fmt.Sprint(again != ""), func(t *testing.T) {
			simulate(t, noJobs, func(w *world) {
				for range 3 {
					w.replica(4 * time.Second)
				}
				w.at(0)
				end := w.origin().Add(2 * time.Minute).Format(time.RFC3339)
				if at := w.repeat("a", tenSeconds+`, "end": "`+end+`"`, more); at != 10*time.Second {
					t.Errorf("it comes due at %s", at)
				}
				w.at(35 * time.Second)
				for at := 10 * time.Second; at < 40*time.Second; at += 10 * time.Second {
					if s := w.started("timer:a")[w.origin().Add(at)]; len(s) == 1 && s[0].at.Sub(s[0].tick) > 10*time.Millisecond {
						t.Errorf("the time at %s is fired at %s", at, s[0].at.Sub(w.origin()))
					}
				}
				w.at(42 * time.Second)
				w.holder("timer:a", 40*time.Second).disconnect(true) // its lease lasts for 15 s: the time at 50 s is passed over
				w.at(4 * time.Minute)
				fired := w.firedAt("timer:a")
				if want := "10s 20s 30s 40s " + again + "1m0s 1m10s 1m20s 1m30s 1m40s 1m50s"; fired != want {
					t.Errorf("fired at %q, want %q\n%s", fired, want, w.log())
				}
				w.nothingLeft()
				entries, err := w.alive().store.History(w.t.Context(), "timer:a", 20)
				if err != nil || !slices.ContainsFunc(entries, func(e service.Entry) bool { return e.Outcome == "interrupted" }) {
					t.Errorf("the history of timer:a has %+v, %v", entries, err)
				}
				if !strings.Contains(w.log(), "level=ERROR msg=finished job=timer:a tick") && again == "" {
					t.Errorf("the log does not name the timer of which a run was taken over:\n%s", w.log())
				}
			})
		})
	}
}

// alive is a replica that has its connection to Redis.
func (w *world) alive() *replica {
	i := slices.IndexFunc(w.replicas, func(r *replica) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !r.cut
	})
	return w.replicas[i]
}

func TestATimerWithAScheduleOfSecondsIsOnTime(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		for range 2 {
			w.replica(10 * time.Millisecond)
		}
		w.at(300 * time.Millisecond)
		w.repeat("a", `"schedule": "* * * * * *"`, "")
		w.at(20*time.Second + 500*time.Millisecond)
		w.each("timer:a", time.Second, time.Second, 20*time.Second, 30*time.Millisecond)
	})
}

// A pause holds its times back. Of these only the newest may be fired.
func TestAPauseHoldsTheTimesOfTimersBack(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		w.replica(time.Millisecond)
		w.at(0)
		w.repeat("a", tenSeconds, "")
		w.at(5 * time.Second)
		w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), service.TimerJobs, "a test", time.Time{})) })
		w.at(65 * time.Second)
		w.firesAt("timer:a", "")
		w.operator(func(s *service.Store) {
			_, err := s.Resume(w.t.Context(), service.TimerJobs)
			w.must(err)
		})
		w.at(72 * time.Second)
		w.firesAt("timer:a", "1m0s 1m10s")
		w.expect(5, "missed_total", "@timers")
		w.expect(0, "skips_total", "@timers", "overlap")
	})
}

// While no slot is free, a newer time replaces one that waits for a slot.
func TestOfTheTimesOfATimerThatWaitForASlotTheNewestIsFired(t *testing.T) {
	simulate(t, "maxRunning: 1"+noJobs, func(w *world) {
		w.replica(0, func(r *replica) {
			r.work = func(ctx context.Context, run execute.Run) execute.Result {
				if run.Job == "timer:long" {
					beat.Sleep(ctx, time.Minute)
				}
				return execute.Result{Status: execute.Succeeded}
			}
		})
		w.at(0)
		w.setTimer("long", 0, "")
		w.repeat("a", tenSeconds, "")
		w.at(75 * time.Second)
		w.firesAt("timer:a", "1m0s 1m10s")
		w.expect(5, "missed_total", "@timers")
		w.expect(0, "skips_total", "@timers", "overlap")
	})
}

// Twice as many timers come due as can run. A newer time takes the place in the queue of the ones that it replaces.
func TestATimerWithAScheduleWaitsNoLongerThanOthers(t *testing.T) {
	simulate(t, "maxRunning: 1"+noJobs, func(w *world) {
		w.replica(2 * time.Second)
		w.at(0)
		for i := range 60 {
			w.setTimer(fmt.Sprint("t", i), time.Duration(i)*time.Second, "")
		}
		w.repeat("a", tenSeconds, "")
		w.at(time.Minute + 500*time.Millisecond)
		w.firesAt("timer:a", "10s 30s")
	})
}

// One time waited when all replicas went away, and a newer one has come since: whichever is claimed first is fired, and
// that has to be the newer one. Three replicas have more than one takes at once.
func TestOfATimeThatWaitedAndANewerOneTheNewerIsFired(t *testing.T) {
	for replicas, many := range map[int]int{1: 20, 3: timersAtOnce + 50} {
		simulate(t, "maxRunning: 1"+noJobs, func(w *world) {
			for range replicas {
				w.replica(50 * time.Second)
			}
			w.at(0)
			for i := range replicas {
				w.setTimer(fmt.Sprint("long", i), 0, "")
			}
			for i := range many {
				w.repeat(fmt.Sprint("a", i), tenSeconds, "")
			}
			w.at(15 * time.Second)
			for _, r := range w.replicas {
				r.disconnect(true)
			}
			w.at(2*time.Minute + 5*time.Second)
			for _, r := range w.replicas {
				r.slots.setLimit(0)
				r.disconnect(false)
			}
			w.at(2*time.Minute + 9*time.Second)
			for i := range many {
				w.firesAt(fmt.Sprint("timer:a", i), "2m0s")
			}
		})
	}
}

// A time that has come is not lost when its timer is changed: it has the new request.
func TestATimeOfATimerThatHasComeIsNotLostWhenTheTimerIsSetAnew(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		w.replica(0).disconnect(true)
		w.at(0)
		w.repeat("a", tenSeconds, "")
		w.at(12 * time.Second)
		if at := w.repeat("a", `"schedule": "5,25,45 * * * * *"`, `, "timeout": "7s"`); at != 10*time.Second {
			t.Errorf("it waits for %s", at)
		}
		w.at(15 * time.Second)
		w.replica(0)
		w.at(50 * time.Second)
		w.firesAt("timer:a", "10s 25s 45s")
		w.expect(0, "missed_total", "@timers")
	})
}

// A time that has come is missed as others are, also if only an older schedule has it.
func TestATimeOfAnOlderScheduleIsMissed(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		w.replica(0).disconnect(true)
		w.at(0)
		w.repeat("a", tenSeconds, "")
		w.at(12 * time.Second)
		w.repeat("a", `"schedule": "5,25,45 * * * * *"`, "")
		w.at(50 * time.Second)
		w.replica(0)
		w.at(55 * time.Second)
		w.firesAt("timer:a", "45s")
		w.expect(2, "missed_total", "@timers")
	})
}

// A replica has seen that the time of a schedule has come, and before it reads the timer, that is set for one time.
func TestATimerLosesItsScheduleBeforeItIsRead(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(0)
		w.at(0)
		w.repeat("a", `"schedule": "0 0 * * *"`, "")
		members, _ := w.redis.ZMembers("solotick:{test}:timers:due")
		d, err := lock.ParseDue(members[0])
		w.must(err)
		w.setTimer("a", time.Minute, "")
		if made := r.looker.timers.read(w.t.Context(), []lock.Due{d}); len(made) > 0 {
			t.Errorf("made %+v", made)
		}
		w.at(90 * time.Second)
		w.firesAt("timer:a", "1m0s")
		if n := r.count("is dropped"); n > 0 {
			t.Errorf("it was dropped\n%s", w.log())
		}
	})
}

// Each look tries to read what is due, and warns once when it cannot.
func TestALookWarnsOnceOfTimersThatItCannotRead(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(0)
		w.at(time.Second)
		members := make([]lock.Due, 3*timersAtOnce)
		for i := range members {
			members[i] = lock.Due{Job: fmt.Sprint("timer:a", i), Tick: w.began, Kind: lock.Series, Attempt: 1, Nonce: "nonce"}
		}
		r.disconnect(true)
		r.looker.dueTicks.takeTimers(w.t.Context(), members)
		if n := r.count("level=WARN", "due timers are left to the next look"); n != 1 {
			t.Errorf("warned %d times\n%s", n, w.log())
		}
	})
}

// Times that were made due before are not told again, as by a clock that was set back.
func TestTimesOfATimerThatWereMadeDueAreNotMissed(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(0)
		w.at(0)
		source := []byte(`{` + tenSeconds + `, "http": {"url": "http://127.0.0.1/"}}`)
		timer, err := config.ParseTimer("a", source, time.Now())
		w.must(err)
		read := service.Series{Of: lock.Due{Job: "timer:a", Tick: w.origin().Add(10 * time.Second)}, Newest: w.origin().Add(30 * time.Second)}
		for second, want := range map[int]int{45: 0, 65: 2, 200_000: maxMissed} {
			p := springAt(read, timer, w.origin().Add(time.Duration(second)*time.Second))
			if p.Missed.Count != want {
				t.Errorf("at %d s %d are missed, want %d", second, p.Missed.Count, want)
			}
			p.Missed.Count = 3
			r.firer.record.sprung(&p, service.SprungPast)
		}
		w.expect(0, "missed_total", "@timers")
	})
}

// The log names a timer with a schedule as its users do.
func TestTheLogNamesTheTimerOfATimeThatIsNotThere(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(0)
		w.at(0)
		w.dueTimer(time.Second, fmt.Sprint(w.origin().UnixMilli(), " timer:a@1000 timer 1 0 0 nonce"))
		w.at(5 * time.Second)
		if n := r.count("is dropped", "job=timer:a\n"); n != 1 {
			t.Errorf("told %d times\n%s", n, w.log())
		}
	})
}

// By Redis' clock all times until then are due. Replicas do not believe it.
func TestAFarClockOfRedisMovesNoTimerOnBeforeItsTime(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		for range 2 {
			w.replica(time.Millisecond)
		}
		w.at(0)
		w.repeat("a", tenSeconds, "")
		w.at(5 * time.Second)
		w.redisIsAhead(2 * time.Minute)
		w.at(45 * time.Second)
		w.firesAt("timer:a", "10s 20s 30s 40s")
		w.expect(0, "missed_total", "@timers")
		w.expect(0, "skips_total", "@timers", "overlap")
	})
}

// After a loss of all data a run is run again whose timer was set anew, now with a schedule: that is another request.
func TestARunOfATimerDoesNotTakeTheRequestOfASchedule(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(0)
		w.repeat("a", `"schedule": "0 0 * * *"`, "")
		w.dueTimer(time.Second, fmt.Sprint(w.origin().UnixMilli(), " timer:a takeover 2 0 1 nonce"))
		w.at(5 * time.Second)
		w.firesAt("timer:a", "")
		if n := r.count("is dropped", "timer:a"); n != 1 {
			t.Errorf("told %d times\n%s", n, w.log())
		}
		if left, err := r.store.Timers(w.t.Context(), 9); err != nil || len(left) != 1 {
			t.Errorf("left: %+v, %v", left, err)
		}
	})
}

// A run longer than from one time to the next has no second one beside it. The history is told of the first such time
// of each run, so that a timer each second whose run lasts an hour does not push out those of others.
func TestTheTimesOfATimerThatComeDuringItsRunArePassedOver(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		for range 3 {
			w.replica(25 * time.Second)
		}
		w.at(0)
		w.repeat("a", tenSeconds, "")
		w.at(101 * time.Second)
		w.firesAt("timer:a", "10s 40s 1m10s 1m40s")
		w.expect(6, "skips_total", "@timers", "overlap")
		w.expect(0, "missed_total", "@timers")
		entries, err := w.replicas[0].store.Search(w.t.Context(),
			service.Search{Jobs: []string{"timer:a"}, Outcomes: []string{"overlapped"}, Limit: 9})
		if err != nil || len(entries) != 3 || entries[0].Count != 1 || !entries[0].Tick.Equal(w.origin().Add(80*time.Second)) ||
			entries[0].Ended.Before(entries[0].Tick) {
			t.Errorf("the history has %+v, %v", entries, err)
		}
	})
}

// One late run makes up for all times at which no replica was there.
func TestOfTheTimesOfATimerThatNoReplicaFiredTheNewestIs(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		r := w.replica(time.Second)
		w.at(0)
		w.repeat("a", tenSeconds, "")
		w.at(15 * time.Second)
		r.disconnect(true)
		w.at(44 * time.Second)
		w.replica(time.Second)
		w.at(75 * time.Second)
		w.firesAt("timer:a", "10s 40s 50s 1m0s 1m10s")
		w.expect(2, "missed_total", "@timers")
		entries, err := w.alive().store.History(w.t.Context(), "timer:a", 9)
		missed := slices.IndexFunc(entries, func(e service.Entry) bool { return e.Outcome == "missed" })
		if err != nil || missed < 0 || entries[missed].Count != 2 || !entries[missed].First.Equal(w.origin().Add(20*time.Second)) ||
			!entries[missed].Tick.Equal(w.origin().Add(30*time.Second)) {
			t.Errorf("the history has %+v, %v", entries, err)
		}
	})
}

// A run under way has the request with which it began, whatever becomes of its timer.
func TestATimerIsChangedAndDeletedWhileItsRunLives(t *testing.T) {
	simulate(t, noJobs, func(w *world) {
		for range 3 {
			w.replica(0, func(r *replica) {
				r.work = func(ctx context.Context, run execute.Run) execute.Result {
					beat.Sleep(ctx, 4*time.Second)
					return execute.Result{Status: execute.Succeeded}
				}
			})
		}
		w.at(0)
		w.repeat("a", tenSeconds, "")
		w.repeat("b", tenSeconds, "")
		w.at(12 * time.Second)
		if at := w.repeat("a", tenSeconds, ""); at != 20*time.Second {
			t.Errorf("the same waits for %s", at)
		}
		if at := w.repeat("a", `"schedule": "*/15 * * * * *"`, ""); at != 15*time.Second {
			t.Errorf("another waits for %s", at)
		}
		w.remove("b")
		w.at(13 * time.Second)
		if n := len(w.running()); n != 2 {
			t.Errorf("%d runs go on, want both", n)
		}
		w.at(31 * time.Second)
		w.firesAt("timer:a", "10s 15s 30s")
		w.firesAt("timer:b", "10s")
		w.remove("a")
		w.at(time.Minute)
		w.expect(4, "runs_total", "@timers", "succeeded")
		w.nothingLeft()
	})
}

func (w *world) running() []string {
	members, _ := w.redis.ZMembers("solotick:{test}:running")
	return members
}

// Deleting takes a time back that has come and that no replica has claimed: here the app is not ready.
func TestDeletingATimerTakesItsUnclaimedTimeBack(t *testing.T) {
	simulate(t, "maxRunning: 1"+noJobs, func(w *world) {
		w.replica(time.Minute)
		w.at(0)
		w.setTimer("long", 0, "")
		w.repeat("a", tenSeconds, "")
		w.at(15 * time.Second)
		due, _ := w.redis.ZMembers("solotick:{test}:timers:due")
		if len(due) != 2 {
			t.Errorf("due: %q", due)
		}
		w.remove("a")
		w.at(2 * time.Minute)
		w.firesAt("timer:a", "")
		w.nothingLeft()
	})
}

func TestManyTimersWithSchedulesAreFiredAtOneInstant(t *testing.T) {
	long(t)
	simulate(t, noJobs, func(w *world) {
		for range 3 {
			w.replica(10 * time.Millisecond)
		}
		w.at(0)
		const many = 1000
		w.operator(func(s *service.Store) {
			w.must(s.Sync(w.t.Context()))
			for i := range many {
				timer, err := config.ParseTimer("x", []byte(`{`+tenSeconds+`, "http": {"url": "http://127.0.0.1/"}}`), time.Now())
				w.must(err)
				_, _, err = s.SetSeries(w.t.Context(), fmt.Sprint("a", i), timer.At, timer.Source)
				w.must(err)
			}
		})
		w.at(35 * time.Second)
		late := time.Duration(0)
		for i := range many {
			by := w.started(fmt.Sprint("timer:a", i))
			for at := 10 * time.Second; at <= 30*time.Second; at += 10 * time.Second {
				s := by[w.origin().Add(at)]
				if len(s) != 1 {
					t.Fatalf("a%d at %s was started %d times", i, at, len(s))
				}
				late = max(late, s[0].at.Sub(s[0].tick))
			}
		}
		if late > 2*time.Second {
			t.Errorf("the last of them was started after %s", late)
		}
	})
}

// As solotick next would say, over a year with its changes of clocks.
func TestATimerHasTheTimesOfItsScheduleOverAYear(t *testing.T) {
	for _, text := range []string{
		`"schedule": "30 2 * * *", "timeZone": "Europe/Berlin"`,
		`"schedule": "15 */6 * * *", "timeZone": "America/New_York"`,
		`"schedule": "0 0 29 2 *"`,
		`"schedule": "0 9,21 * * *", "timeZone": "Asia/Tokyo"`,
		`"schedule": "@every 7h"`,
		`"schedule": "H H * * MON-FRI", "timeZone": "Australia/Lord_Howe", "start": "2000-03-01T00:00:00Z", "end": "2000-11-01T00:00:00Z"`,
	} {
		t.Run(text, func(t *testing.T) {
			simulate(t, noJobs, func(w *world) {
				w.at(0)
				w.repeat("a", text, "")
				timer, err := config.ParseTimer("a", []byte(`{`+text+`, "http": {"url": "http://127.0.0.1/"}}`), time.Now())
				w.must(err)
				year := time.Now().Add(366 * 24 * time.Hour)
				w.operator(func(s *service.Store) {
					w.must(s.Sync(w.t.Context()))
					for tick := timer.Repeats.Next(time.Now()); !tick.IsZero() && tick.Before(year); tick = timer.Repeats.Next(tick) {
						time.Sleep(time.Until(tick))
						w.must(s.Sync(w.t.Context()))
						seen, err := s.Look(w.t.Context(), 9)
						w.must(err)
						if len(seen.Due) != 1 || !seen.Due[0].Tick.Equal(tick) {
							t.Fatalf("at %s there is %+v", tick, seen)
						}
						read, err := s.Series(w.t.Context(), seen.Due)
						w.must(err)
						again, err := config.ParseTimer("a", read[0].Source, tick)
						w.must(err)
						p := springAt(read[0], again, tick)
						codes, err := s.Spring(w.t.Context(), []service.Spring{p})
						if err != nil || codes[0] != service.SprungDue || !p.Tick.Equal(tick) {
							t.Fatalf("at %s: %v, %v, %+v", tick, codes, err, p)
						}
						w.redis.Del("solotick:{test}:" + p.Due().Job) // it has run
						_, err = w.redis.ZRem("solotick:{test}:timers:due", p.Due().Member())
						w.must(err)
					}
				})
			})
		})
	}
}

// The same when no replica is there for hours or weeks: each time of the year is made due or missed, once.
func TestOverAYearWithAbsencesEachTimeOfATimerIsMadeDueOrMissed(t *testing.T) {
	begins := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ends := begins.AddDate(1, 0, 0)
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo"} {
		for _, text := range []string{"30 2 * * *", "15 1-3 * * SUN", "*/20 * * * *", "H H(0-5) * * *", "0 0 1 * *"} {
			timer, err := config.ParseTimer("a", fmt.Appendf(nil, `{"schedule": %q, "timeZone": %q, "http": {"url": "http://127.0.0.1/"}}`,
				text, zone), begins)
			if err != nil {
				t.Fatal(err)
			}
			var want []time.Time
			for tick := timer.Repeats.Next(begins); tick.Before(ends); tick = timer.Repeats.Next(tick) {
				want = append(want, tick)
			}
			var got []time.Time
			rng, missed := rand.New(rand.NewPCG(37, 0)), 0
			r := service.Series{Of: lock.Due{Tick: timer.At}}
			for now := begins; now.Before(ends); now = now.Add(absence(rng)) {
				if r.Of.Tick.After(now) {
					continue
				}
				p := springAt(r, timer, now)
				for n, tick := 0, p.Missed.First; n < p.Missed.Count; n, tick = n+1, timer.Repeats.Next(tick) {
					got, missed = append(got, tick), missed+1
				}
				if got = append(got, p.Tick); !p.Next.After(now) {
					t.Fatalf("%s in %s: at %s it is moved on to %s", text, zone, now, p.Next)
				}
				r.Of.Tick, r.Newest = p.Next, p.Tick
			}
			for len(want) > len(got) && !want[len(want)-1].Before(r.Of.Tick) { // at the end no replica was there
				want = want[:len(want)-1]
			}
			if missed == 0 || len(got) < 10 || !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("%s in %s: %d times, %d of them missed, want %d", text, zone, len(got), missed, len(want))
			}
		}
	}
}

// absence is how long no replica looks: mostly a minute, sometimes hours, seldom weeks.
func absence(rng *rand.Rand) time.Duration {
	switch n := rng.IntN(1000); {
	case n == 0:
		return time.Duration(rng.Int64N(int64(70 * 24 * time.Hour)))
	case n < 30:
		return time.Duration(rng.Int64N(int64(30 * time.Hour)))
	}
	return time.Minute
}
