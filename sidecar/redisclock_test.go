package sidecar

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/sidecar/service"
)

// Redis' clock is set: by an operator, or by a failover to a server whose clock is another one.

// trigger asks for a run, and checks that it begins within a second and a little.
func (w *world) trigger(job string) {
	w.t.Helper()
	began := time.Now()
	due, err := w.replicas[0].store.Trigger(w.t.Context(), job, uuid.NewString())
	w.must(err)
	time.Sleep(1100 * time.Millisecond)
	if s := w.started(job)[due.Tick]; len(s) != 1 || s[0].run.Kind != kindManual {
		w.t.Errorf("what was asked for at +%s was started as %+v\n%s", began.Sub(w.origin()), s, w.log())
	}
}

func TestARunThatIsAskedForBeginsAtOnceWhateverRedisClockSays(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 5 * time.Minute, 50 * time.Second, -20 * time.Second, -5 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) {
			simulate(t, "maxRunning: 2\n"+rare(""), func(w *world) {
				for range 2 {
					w.replica(time.Millisecond)
				}
				w.at(10 * time.Second)
				w.trigger("rare")
				w.redisIsAhead(ahead)
				w.trigger("rare") // before anybody can know
				w.at(20 * time.Second)
				w.trigger("rare")
				w.at(40 * time.Second)
				w.trigger("rare")
				w.redisIsAhead(0)
				w.trigger("rare")
				w.at(50 * time.Second)
				w.trigger("rare")
				w.at(80 * time.Second)
				w.trigger("rare")
				for _, r := range w.replicas {
					if taken, waiting := r.slots.counts(); taken != 0 || waiting != 0 {
						t.Errorf("%s: %d slots are taken, %d wait", r.name, taken, waiting)
					}
				}
				if n := w.sum("fires_total", "rare"); n != 8 {
					t.Errorf("%v runs of the tick and the seven that were asked for\n%s", n, w.log())
				}
			})
		})
	}
}

func TestWhatRedisCallsDueTooSoonTakesNoSlot(t *testing.T) {
	simulate(t, "maxRunning: 2\n\njobs:\n  - {name: two, schedule: '@every 2s', exec: {command: [x]}}", func(w *world) {
		for range 2 {
			w.replica(100 * time.Millisecond)
		}
		w.at(0)
		for i := range 4 {
			w.setTimer(fmt.Sprintf("t%d", i), 3*time.Minute, "")
		}
		w.at(5 * time.Second)
		w.redisIsAhead(time.Hour)
		w.at(17 * time.Second)
		w.each("two", 2*time.Second, 0, 16*time.Second, 100*time.Millisecond)
		w.redisIsAhead(0)
		w.at(3*time.Minute + 5*time.Second)
		w.each("two", 2*time.Second, 0, 3*time.Minute, 100*time.Millisecond)
		for i := range 4 {
			w.each(fmt.Sprintf("timer:t%d", i), time.Minute, 3*time.Minute, 3*time.Minute, 2*time.Second)
		}
		w.expect(0, "skips_total", "no_slot")
		w.expect(0, "missed_total")
	})
}

func TestAPassingStepOfRedisClockCostsNoTick(t *testing.T) {
	long(t)
	for _, missed := range []string{"latest", "all", "skip"} {
		for _, c := range []struct{ ahead, lasts time.Duration }{
			{50 * time.Second, 6 * time.Second}, {50 * time.Second, 100 * time.Millisecond}, {20 * time.Second, 9 * time.Second},
			{time.Hour, 30 * time.Second}, {2 * time.Second, 6 * time.Second},
		} {
			t.Run(fmt.Sprintf("missed: %s, %s for %s", missed, c.ahead, c.lasts), func(t *testing.T) {
				simulate(t, `
jobs:
  - {name: five, schedule: "@every 5s", missed: `+missed+`, exec: {command: [x]}}
  - {name: minute, schedule: "* * * * *", missed: `+missed+`, exec: {command: [x]}}
`, func(w *world) {
					for range 2 {
						w.replica(time.Millisecond)
					}
					w.at(12500 * time.Millisecond)
					w.redisIsAhead(c.ahead)
					w.at(12500*time.Millisecond + c.lasts)
					w.redisIsAhead(0)
					w.at(3*time.Minute + time.Second)
					w.each("five", 5*time.Second, 0, 3*time.Minute, 10*time.Millisecond)
					w.each("minute", time.Minute, 0, 3*time.Minute, 10*time.Millisecond)
					w.expect(0, "missed_total")
				})
			})
		}
	}
}

// A tick for which Redis cannot be asked yet is late by as much as its clock was set back, and is not lost.
func TestAStepBackOfRedisClockLosesNoTick(t *testing.T) {
	for _, c := range []struct{ back, lasts time.Duration }{
		{20 * time.Second, 6 * time.Second}, {20 * time.Second, time.Hour}, {50 * time.Second, 9 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s for %s", c.back, c.lasts), func(t *testing.T) {
			simulate(t, `
jobs:
  - {name: five, schedule: "@every 5s", missed: all, exec: {command: [x]}}
`, func(w *world) {
				for range 2 {
					w.replica(time.Millisecond)
				}
				w.at(12500 * time.Millisecond)
				w.redisIsAhead(-c.back)
				if c.lasts < time.Hour {
					w.at(12500*time.Millisecond + c.lasts)
					w.redisIsAhead(0)
				}
				w.at(3*time.Minute + time.Second)
				for at := time.Duration(0); at <= 2*time.Minute; at += 5 * time.Second {
					s := w.started("five")[w.origin().Add(at)]
					if len(s) != 1 || s[0].at.Before(s[0].tick) || s[0].at.After(s[0].tick.Add(c.back+time.Second)) {
						t.Errorf("tick +%s was started as %+v\n%s", at, s, w.log())
						return
					}
				}
				w.expect(0, "missed_total")
			})
		})
	}
}

// A tick that waits for Redis' clock is worth firing for as long after that, by whatever is said of how late it may be.
func TestATickThatRedisCalledEarlyIsNotTooLate(t *testing.T) {
	long(t)
	for _, back := range []time.Duration{6 * time.Second, 5 * time.Minute} {
		for _, late := range []string{"startingDeadline: 1s", "missed: skip"} {
			t.Run(fmt.Sprintf("%s, %s", back, late), func(t *testing.T) {
				simulate(t, "\njobs:\n  - {name: five, schedule: '@every 5s', "+late+", exec: {command: [x]}}", func(w *world) {
					for range 2 {
						w.replica(time.Millisecond)
					}
					w.at(12500 * time.Millisecond)
					w.redisIsAhead(-back)
					w.at(back + 31*time.Second)
					w.each("five", 5*time.Second, 15*time.Second, 30*time.Second, back+time.Second)
					w.expect(0, "skips_total", "too_late")
				})
			})
		}
	}
}

// A job that asks Redis for no tick is late by its replica's clock alone.
func TestHowLateATickOfEveryReplicaIsNoClockOfRedisSays(t *testing.T) {
	simulate(t, "\njobs:\n  - {name: minute, schedule: '* * * * *', guarantee: every-replica, startingDeadline: 5s, exec: {command: [x]}}",
		func(w *world) {
			r := w.replica(time.Second)
			w.at(-50 * time.Second)
			w.redisIsAhead(-5 * time.Minute)
			w.at(-20 * time.Second)
			r.set(40 * time.Second)
			w.at(10 * time.Second)
			w.expect(1, "skips_total", "too_late")
			if s := w.started("minute")[w.origin()]; len(s) != 0 {
				t.Errorf("it was started 20 s late\n%s", w.log())
			}
		})
}

func TestAStepOfRedisClockThatLastsIsFollowed(t *testing.T) {
	for _, ahead := range []time.Duration{50 * time.Second, -20 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			simulate(t, everySecond(0, "latest"), func(w *world) {
				r := w.replica(time.Millisecond)
				w.at(10500 * time.Millisecond)
				w.redisIsAhead(ahead)
				w.at(19 * time.Second)
				if off := time.Until(r.clock.Now()); off.Abs() > time.Second {
					t.Errorf("after 8.5 s it is followed: the cluster clock is %s ahead", off)
				}
				w.at(23 * time.Second)
				if off := time.Until(r.clock.Now()); (off - ahead).Abs() > time.Second {
					t.Errorf("after 12.5 s it is not followed: the cluster clock is %s ahead", off)
				}
				w.at(2*time.Minute + 500*time.Millisecond)
				for at := 90 * time.Second; at < 2*time.Minute; at += time.Second {
					s := w.started("second")[w.origin().Add(at+ahead)]
					if len(s) != 1 || s[0].at.Sub(w.origin().Add(at)).Abs() > 10*time.Millisecond {
						t.Errorf("the tick for which it is time at +%s by Redis' clock was started as %+v", at, s)
						return
					}
				}
			})
		})
	}
}

// Replicas that do not believe Redis' clock say so in their heartbeats: a pause ends by their time.
func TestAResumeWhileRedisClockIsWrongSilencesNothing(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Minute, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			simulate(t, four(""), func(w *world) {
				for range 3 {
					w.replica(time.Millisecond)
				}
				w.at(10 * time.Second)
				w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "four", "", time.Time{})) })
				w.at(15 * time.Second)
				w.redisIsAhead(ahead)
				w.at(22 * time.Second)
				w.operator(func(s *service.Store) {
					_, err := s.Resume(w.t.Context(), "four")
					w.must(err)
				})
				w.at(23 * time.Second)
				w.redisIsAhead(0)
				w.at(61 * time.Second)
				w.each("four", 4*time.Second, 24*time.Second, time.Minute, 10*time.Millisecond)
				for at := 12 * time.Second; at < 22*time.Second; at += 4 * time.Second {
					if s := w.started("four")[w.origin().Add(at)]; len(s) > 0 {
						t.Errorf("tick +%s of the pause was started", at)
					}
				}
				if strings.Contains(w.log(), "missed ticks") {
					t.Errorf("something was missed:\n%s", w.log())
				}
			})
		})
	}
}

// A server whose clock is slewed, as after a failover to one that had drifted.
func TestAStepToAClockThatIsSlewedIsFollowed(t *testing.T) {
	simulate(t, "jobs:\n  - {name: two, schedule: '@every 2s', exec: {command: [x]}}", func(w *world) {
		r := w.replica(time.Millisecond)
		w.at(10 * time.Second)
		for i := range 30 {
			w.redisIsAhead(20*time.Second + time.Duration(i)*500*time.Microsecond)
			time.Sleep(time.Second)
		}
		if off := time.Until(r.clock.Now()); off < 19*time.Second {
			t.Errorf("the cluster clock is %s ahead", off)
		}
	})
}

// Under clock: local, ticks come by the replicas' clocks, and so do the beginning and the end of a pause.
func TestAPauseLastsAsLongAsItIsMeantToWhereReplicasFollowTheirOwnClocks(t *testing.T) {
	for _, c := range []struct {
		redis time.Duration
		table string
	}{{20 * time.Second, "clock: local\n"}, {-20 * time.Second, "clock: local\n"}, {2 * time.Minute, ""}, {-2 * time.Minute, ""}} {
		t.Run(fmt.Sprintf("Redis %s ahead, %s", c.redis, c.table), func(t *testing.T) {
			simulate(t, c.table+"jobs:\n  - {name: two, schedule: '@every 2s', exec: {command: [x]}}", func(w *world) {
				w.at(-30 * time.Second)
				for range 3 {
					w.replica(time.Millisecond)
				}
				w.at(-20 * time.Second)
				w.redisIsAhead(c.redis)
				behind := min(c.redis, 0) // where Redis is behind, ticks come by its clock
				w.at(-behind + 10500*time.Millisecond)
				w.operator(func(s *service.Store) { w.must(s.Pause(w.t.Context(), "two", "", time.Time{})) })
				w.at(-behind + 15*time.Second)
				w.operator(func(s *service.Store) {
					_, err := s.Resume(w.t.Context(), "two")
					w.must(err)
				})
				w.at(-behind + 21*time.Second)
				w.each("two", 2*time.Second, 16*time.Second, 20*time.Second, -behind+10*time.Millisecond)
				w.operator(func(s *service.Store) {
					o := service.Operator{Store: s, Limit: time.Second}
					w.must(s.Sync(w.t.Context()))
					until, err := o.PauseEnd(w.t.Context(), 6*time.Second)
					w.must(err)
					w.must(s.Pause(w.t.Context(), "two", "", until))
				})
				w.at(-behind + 41*time.Second)
				w.each("two", 2*time.Second, 28*time.Second, 40*time.Second, -behind+10*time.Millisecond)
				for _, at := range []time.Duration{12, 14, 22, 24, 26} {
					if s := w.started("two")[w.origin().Add(at*time.Second)]; len(s) > 0 {
						t.Errorf("tick +%s of a pause was started", at*time.Second)
					}
				}
			})
		})
	}
}
