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
		if time.Sleep(time.Nanosecond); !looked() {
			t.Error("it does not look then")
		}
		n.nudgeWithin(time.Second)
		time.Sleep(time.Second / 2)
		n.nudgeWithin(time.Second)
		if time.Sleep(time.Second / 2); !looked() {
			t.Error("it does not look within a second")
		}
		if time.Sleep(time.Minute); looked() {
			t.Error("two calls are two looks")
		}
		n.nudgeWithin(time.Second)
		if time.Sleep(time.Second); !looked() {
			t.Error("it does not look once more")
		}
	})
}
