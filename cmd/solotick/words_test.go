package main

import (
	"testing"
	"time"
)

func TestTheTimeUntilATimerIsWhatWasAskedFor(t *testing.T) {
	now := time.Date(2027, 3, 28, 7, 20, 0, 0, time.UTC)
	for _, c := range []struct {
		left time.Duration
		want string
	}{
		{5*time.Second - 3*time.Millisecond, "5s"}, {5 * time.Second, "5s"}, {3*time.Hour - time.Microsecond, "3h00m"},
		{48*time.Hour - 400*time.Millisecond, "2d"}, {90*time.Minute - time.Second, "1h29m"}, {-time.Hour, "0s"}, {0, "0s"},
	} {
		if got := untilDue(now, now.Add(c.left)); got != c.want {
			t.Errorf("%s are written %q, want %q", c.left, got, c.want)
		}
	}
}
