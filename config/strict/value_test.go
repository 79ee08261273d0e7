package strict

import (
	"testing"
	"time"
)

func TestADurationIsWrittenWithoutUnitsThatAreZero(t *testing.T) {
	for v, want := range map[time.Duration]string{
		0: "0s", 500 * time.Millisecond: "500ms", 10 * time.Second: "10s", time.Minute: "1m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s",
		time.Hour: "1h", 10 * time.Hour: "10h", 100 * time.Hour: "100h", 90 * time.Minute: "1h30m", time.Hour + 10*time.Second: "1h0m10s",
		10*time.Hour + 10*time.Minute + 10*time.Second: "10h10m10s", -time.Hour: "-1h",
	} {
		if got := ShortDuration(v); got != want {
			t.Errorf("%s is written %s, want %s", v, got, want)
		} else if back, err := time.ParseDuration(got); back != v || err != nil {
			t.Errorf("%s is written %s, and read as %s, %v", v, got, back, err)
		}
	}
}

func TestTheLimitsOfADurationAreWithinThem(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		v      time.Duration
		want   string
	}{
		{AtLeast(time.Second), time.Second, ""}, {AtLeast(time.Second), time.Second - 1, "must be at least 1s"},
		{AtLeast(0), 0, ""}, {AtLeast(0), -1, "must not be negative"}, {AtLeast(time.Second), -time.Hour, "must not be negative"},
		{AtLeast(0), 366 * 24 * time.Hour, ""}, {AtLeast(0), 366*24*time.Hour + 1, "must be at most 8784h"},
		{Between(0, time.Hour), time.Hour, ""}, {Between(0, time.Hour), time.Hour + 1, "must be at most 1h"},
	} {
		if got := c.limits(c.v); got != c.want {
			t.Errorf("%s: %q, want %q", c.v, got, c.want)
		}
	}
}
