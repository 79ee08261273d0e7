package sidecar

import (
	"errors"
	"testing"
	"time"
)

// gocron waits for the instant that it was armed for, which may come a second time, or an hour later.
func TestAClockThatIsSetBackCostsNoTick(t *testing.T) {
	long(t)
	for _, at := range []time.Duration{59100 * time.Millisecond, 59700 * time.Millisecond, 59990 * time.Millisecond, 60500 * time.Millisecond} {
		t.Run(at.String(), func(t *testing.T) {
			simulate(t, "clock: local"+seconds3, func(w *world) {
				r := w.replica(5*time.Millisecond, func(r *replica) { r.skew = time.Hour })
				w.at(at)
				r.set(0)
				w.at(3*time.Minute + 500*time.Millisecond)
				by := w.started("second")
				for tick := at.Truncate(time.Second) + time.Second; tick < 3*time.Minute; tick += time.Second {
					late := 10 * time.Millisecond
					if tick < at+3*time.Second {
						late = 2 * time.Second // the step has to be noticed
					}
					if s := by[w.origin().Add(tick)]; len(s) != 1 || s[0].at.Sub(s[0].tick) > late {
						t.Errorf("tick +%s was started as %+v", tick, s)
					}
				}
				if s := w.started("minute")[w.origin().Add(time.Minute)]; at < time.Minute && len(s) != 1 {
					t.Errorf("the tick between the step and the look at it was started as %+v\n%s", s, w.log())
				}
			})
		})
	}
}

// A timer goes off a moment ahead of its tick, and cannot be armed for one within that moment.
func TestATickWithinTheMomentAfterAStepBackIsTaken(t *testing.T) {
	long(t)
	for _, to := range []time.Duration{-40 * time.Millisecond, -24 * time.Millisecond, -10 * time.Millisecond, -time.Millisecond, 3 * time.Millisecond} {
		t.Run(to.String(), func(t *testing.T) {
			simulate(t, "clock: local"+seconds3, func(w *world) {
				r := w.replica(5*time.Millisecond, func(r *replica) { r.skew = time.Hour })
				w.at(59100 * time.Millisecond)
				r.set(to) // noticed a second later, that far from the tick
				w.at(70500 * time.Millisecond)
				by := w.started("two")
				for tick := time.Minute; tick < 70*time.Second; tick += 2 * time.Second {
					if s := by[w.origin().Add(tick)]; len(s) != 1 || s[0].at.Sub(s[0].tick) > 100*time.Millisecond {
						t.Errorf("tick +%s was started as %+v", tick, s)
					}
				}
			})
		})
	}
}

// Its first look fails, so that it is armed by its own clock; the next one tells the time, and is made at once.
func TestAClockThatIsSetBackByTheFirstAnswerCostsNoTick(t *testing.T) {
	simulate(t, seconds3, func(w *world) {
		first := w.replica(5 * time.Millisecond) // Redis knows the jobs
		w.at(0)
		first.stop()
		<-first.done
		r := w.replica(5*time.Millisecond, func(r *replica) {
			r.cut, r.skew = true, 50*time.Second
			r.says = func(message string) {
				if message == "Redis does not answer" {
					r.disconnect(false)
				}
			}
		})
		w.at(time.Minute + 500*time.Millisecond)
		for tick := 5 * time.Second; tick < time.Minute; tick += time.Second {
			if s := w.started("second")[w.origin().Add(tick)]; len(s) != 1 || s[0].at.Sub(s[0].tick) > 10*time.Millisecond {
				t.Fatalf("tick +%s was started as %+v\n%s", tick, s, r.logs)
			}
		}
	})
}

func TestBeforeRedisAnsweredThereIsNoOffset(t *testing.T) {
	simulate(t, seconds3, func(w *world) {
		r := w.replica(5*time.Millisecond, func(r *replica) { r.cut = true })
		w.at(0)
		if got := r.value("clock_offset_seconds"); got != 0 {
			t.Errorf("clock_offset_seconds = %v", got)
		}
		r.disconnect(false)
		if err := r.heartbeat.beat(w.t.Context()); !errors.Is(err, errNoAnswer) {
			t.Errorf("the heartbeat that is to say an offset before one is known: %v", err)
		}
		w.at(5 * time.Second)
		w.must(r.heartbeat.beat(w.t.Context()))
	})
}
