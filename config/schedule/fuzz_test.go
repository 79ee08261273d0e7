package schedule

import (
	"testing"
	"time"
)

var fuzzSeeds = []string{
	"*/5 * * * * ?", "0 0 23 L * ?", "0 0 1 ? * L", "0 26,29,33 * * * ?", "0 0 12 ? * FRI#3", "0 0 18 ? * 5L", "0 0 9 15W * ?",
	"0 0 9 LW * ?", "0 0 0 1 1 ? 2030", "0 0 29 2 *", "H H(0-7) * * *", "H/15 * H(1-28)/9 * *", "@every 90s",
	"@at 2030-01-31T09:00:00+01:00", "0 0 13 * FRI", "@hourly", "30 2 * * *", "0 */2 * * *", "0 0 31 2 *", "TZ=UTC * * * * *",
	"0 0 L-3,15,LW * SUN#1,MONL", "5-59/7 1,2,3 * JAN-MAR FRI-SUN", "0 0 0 1 1 ? 2020-2199/3", "* * * * * * *",
}

var fuzzZones = []string{"", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Africa/Monrovia"}

// FuzzParse: nothing panics or hangs, errors are for people, and the ticks of what parses keep their order.
func FuzzParse(f *testing.F) {
	for i, expr := range fuzzSeeds {
		f.Add(expr, uint8(i), "job", int64(1774746000+i), int64(0), int64(0))
		f.Add(expr, uint8(1), "job", int64(1761350400), int64(1700000000), int64(1800000000))
	}
	f.Fuzz(func(t *testing.T, expr string, zone uint8, job string, after, start, end int64) {
		o := Options{TimeZone: fuzzZones[int(zone)%len(fuzzZones)], Job: job}
		if start != 0 {
			o.Start = time.Unix(start, 0)
		}
		if end != 0 {
			o.End = time.Unix(end, 0)
		}
		s, err := Parse(expr, o)
		if err != nil {
			return
		}
		if s.Next(time.Time{}).IsZero() {
			t.Fatalf("%q has no tick and no error", expr)
		}
		at := time.Unix(after, int64(zone))
		for range 20 {
			next := s.Next(at)
			if next.IsZero() {
				if last := s.Last(at); last.IsZero() {
					t.Fatalf("%q has a tick, and none before or after %s", expr, at)
				}
				return
			}
			checkTick(t, s, o, at, next)
			at = next
		}
	})
}

// checkTick holds what Next found against what Last says.
func checkTick(t *testing.T, s *Schedule, o Options, at, next time.Time) {
	t.Helper()
	if !next.After(at) || next.Location() != time.UTC || next.Nanosecond() != 0 {
		t.Fatalf("%q: Next(%s) is %s", s, at, next)
	}
	if next.Before(o.Start) || !o.End.IsZero() && !next.Before(o.End) {
		t.Fatalf("%q: Next(%s) is %s, outside its window %s to %s", s, at, next, o.Start, o.End)
	}
	if last := s.Last(next); !last.Equal(next) {
		t.Fatalf("%q: Last(%s) is %s", s, next, last)
	}
	before := s.Last(next.Add(-1))
	if before.IsZero() {
		return
	}
	if before.After(at) {
		t.Fatalf("%q: Next(%s) is %s, and left out %s", s, at, next, before)
	}
	if again := s.Next(before); !again.Equal(next) {
		t.Fatalf("%q: after %s comes %s, not %s", s, before, again, next)
	}
}

// FuzzDue: each tick comes due before the next one, and MinGap is the distance of some two ticks.
func FuzzDue(f *testing.F) {
	for i, expr := range fuzzSeeds {
		f.Add(expr, uint8(i), int64(1774746000))
	}
	f.Fuzz(func(t *testing.T, expr string, zone uint8, after int64) {
		s, err := Parse(expr, Options{TimeZone: fuzzZones[int(zone)%len(fuzzZones)], Start: time.Unix(gapEra, 0)})
		if err != nil {
			return
		}
		if gap := s.MinGap(); gap > 0 && !hasGap(s, gap) {
			t.Fatalf("%q: no two ticks are %v apart", expr, gap)
		}
		at := s.Next(time.Unix(after, 0))
		for range 200 {
			next := s.Next(at)
			if at.IsZero() || next.IsZero() {
				return
			}
			if due := s.Due("job", at, time.Duration(after)*time.Second); after > 0 && (due.Before(at) || !due.Before(next)) {
				t.Fatalf("%q: %s comes due at %s, and the next tick is %s", expr, at, due, next)
			}
			at = next
		}
	})
}

// hasGap reports whether two successive ticks since 2020 are so far apart.
func hasGap(s *Schedule, gap time.Duration) bool {
	for at := s.Next(time.Unix(gapEra-1, 0)); ; {
		next := s.Next(at)
		if next.IsZero() || next.Sub(at) == gap {
			return !next.IsZero()
		}
		at = next
	}
}
