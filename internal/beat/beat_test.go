package beat

import (
	"testing"
	"time"
)

func TestAWaitEndsHalfWayBetweenTwoOfItsMultiples(t *testing.T) {
	for _, c := range []struct{ at, d, want time.Duration }{
		{0, time.Second, 500 * time.Millisecond},
		{500 * time.Millisecond, time.Second, time.Second},
		{499 * time.Millisecond, time.Second, 1001 * time.Millisecond}, // ended early, and is not repeated at once
		{300 * time.Millisecond, time.Second, 200 * time.Millisecond},
		{700 * time.Millisecond, 5 * time.Second, 1800 * time.Millisecond},
		{2500 * time.Millisecond, 5 * time.Second, 5 * time.Second},
		{2400 * time.Millisecond, 5 * time.Second, 5100 * time.Millisecond},
		{700 * time.Millisecond, 50 * time.Millisecond, 50 * time.Millisecond},
	} {
		if got := Near(time.Unix(1_800_000_000, int64(c.at)), c.d); got != c.want {
			t.Errorf("%s after a second, a wait of about %s is %s, want %s", c.at, c.d, got, c.want)
		}
	}
}
