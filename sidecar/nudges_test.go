package sidecar

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNudgesHaveTheLookerLookOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNudges()
		looked := func() bool {
			synctest.Wait()
			select {
			case <-n.nudged:
				return true
			default:
				return false
			}
		}
		n.nudge()
		n.nudge()
		if !looked() || looked() {
			t.Error("two nudges ahead of a look are not one look")
		}
		n.nudgeIn(time.Second)
		if time.Sleep(time.Second - 1); looked() {
			t.Error("it looks too early")
		}
		if time.Sleep(time.Nanosecond); !looked() || len(n.armed) != 0 {
			t.Errorf("it does not look then, or keeps %d timers", len(n.armed))
		}
	})
}

func TestNudgesThatHaveStoppedKeepNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNudges()
		n.nudgeIn(time.Second)
		n.nudgeIn(2 * time.Second)
		n.stop()
		n.nudgeIn(3 * time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case <-n.nudged:
			t.Error("a timer went off after the end")
		default:
		}
	})
}
