package schedule

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestAWindowHoldsItsStartAndNotItsEnd(t *testing.T) {
	for _, expr := range []string{"0 9 * * *", "@every 24h", "@every 1h"} {
		start, end := utc(t, "2026-12-01 00:00"), utc(t, "2026-12-04 00:00")
		if expr == "0 9 * * *" {
			start, end = start.Add(9*time.Hour), end.Add(9*time.Hour)
		}
		s := mustParse(t, expr, Options{Start: start, End: end})
		if got := s.Next(time.Time{}); !got.Equal(start) {
			t.Errorf("%s: the first tick is %s", expr, show(got))
		}
		if got := s.Last(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)); !got.Before(end) || got.Before(end.Add(-24*time.Hour)) {
			t.Errorf("%s: the last tick is %s", expr, show(got))
		}
		for name, got := range map[string]time.Time{
			"before the start":  s.Last(start.Add(-1)),
			"after the end":     s.Next(end.Add(-1)),
			"long after it":     s.Next(end.Add(1e6 * time.Hour)),
			"long before start": s.Last(start.Add(-1e6 * time.Hour)),
		} {
			if !got.IsZero() {
				t.Errorf("%s: %s there is a tick, %s", expr, name, show(got))
			}
		}
	}
}

func TestAWindowBetweenSecondsIsExact(t *testing.T) {
	nine := utc(t, "2026-12-01 09:00")
	s := mustParse(t, "0 9 * * *", Options{Start: nine.Add(1), End: nine.Add(24*time.Hour + 1)})
	if got := s.Next(time.Time{}); !got.Equal(nine.Add(24 * time.Hour)) {
		t.Errorf("first tick %s", show(got))
	}
	if got := s.Next(nine.Add(24 * time.Hour)); !got.IsZero() {
		t.Errorf("second tick %s", show(got))
	}
}

func TestAWindowWithoutATickIsAnError(t *testing.T) {
	start := utc(t, "2026-12-01 09:00")
	for _, row := range []struct {
		expr       string
		start, end time.Time
		want       string
	}{
		{"0 9 * * *", start.Add(1), start.Add(time.Hour), "no tick from start 2026-12-01T09:00:00.000000001Z to before end"},
		{"0 9 * * *", start, start, "the window is empty: start 2026-12-01T09:00:00Z is not before end"},
		{"0 9 * * *", start, start.Add(-time.Hour), "the window is empty"},
		{"@at 2026-12-01T08:59:59Z", start, time.Time{}, "no tick at or after start"},
		{"@at 2026-12-01T09:00:00Z", time.Time{}, start, "no tick before end"},
		{"0 0 0 1 1 ? 2020", start, time.Time{}, "no tick at or after start"},
		{"0 9 * * *", time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{}, "no tick at or after start"},
	} {
		s, err := Parse(row.expr, Options{Start: row.start, End: row.end})
		if err == nil {
			t.Errorf("%s from %s to %s is accepted, next tick %s", row.expr, row.start, row.end, show(s.Next(time.Time{})))
		} else if !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v\nwant it to say %s", row.expr, err, row.want)
		}
	}
	if _, err := Parse("@at 2026-12-01T09:00:00Z", Options{Start: start, End: start.Add(1)}); err != nil {
		t.Errorf("@at its start: %v", err)
	}
}

func TestTicksEndWithTheYear2199(t *testing.T) {
	end := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, zone := range []string{"", "Pacific/Kiritimati", "Pacific/Pago_Pago"} {
		for _, expr := range []string{"* * * * * *", "0 12 * * *", "@every 1s"} {
			s := mustParse(t, expr, Options{TimeZone: zone})
			last := s.Last(end.Add(1000 * time.Hour))
			if !last.Before(end) || last.Before(end.Add(-24*time.Hour)) || last.IsZero() {
				t.Errorf("%s in %q: the last tick is %s", expr, zone, show(last))
			}
			if next := s.Next(last); !next.IsZero() {
				t.Errorf("%s in %q: after it comes %s", expr, zone, show(next))
			}
			first := s.Next(time.Time{})
			if !first.After(time.Time{}) || first.After(time.Time{}.Add(48*time.Hour)) {
				t.Errorf("%s in %q: the first tick is %s", expr, zone, show(first))
			}
			if before := s.Last(first.Add(-1)); !before.IsZero() {
				t.Errorf("%s in %q: before it comes %s", expr, zone, show(before))
			}
		}
	}
}

// The costliest searches that an argument and an expression can ask for; a hang would show as a time-out of the test.
func TestEverySearchEnds(t *testing.T) {
	arguments := []time.Time{
		{}, time.Unix(math.MinInt64/2, 0), time.Unix(math.MaxInt64/2, 0), time.Unix(0, 0),
		time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999, time.UTC),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1884, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2199, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, zone := range []string{"", "Europe/Berlin", "Pacific/Apia", "Asia/Manila", "Africa/Casablanca"} {
		for _, expr := range []string{"* * * * * *", "0 0 29 2 *", "0 0 ? 2 1#5", "0 0 0 29 2 ? 2196", "0 0 0 1 1 ? 1970",
			"0 0 0 1 1 ? */100", "59 59 23 31 12 ? 2199", "@every 1s", "@every 2000000h", "@at 2100-02-28T00:00:00Z"} {
			s := mustParse(t, expr, Options{TimeZone: zone})
			for _, at := range arguments {
				next, last := s.Next(at), s.Last(at)
				if !next.IsZero() && !next.After(at) {
					t.Errorf("%s in %q: Next(%s) is %s", expr, zone, at, next)
				}
				if !last.IsZero() && last.After(at) {
					t.Errorf("%s in %q: Last(%s) is %s", expr, zone, at, last)
				}
			}
		}
	}
}
