package schedule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestMinGapIsTheSmallestDistanceOfTwoTicks(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct {
		expr, zone string
		want       time.Duration
	}{
		{"* * * * * *", "", time.Second},
		{"*/5 * * * * *", "", 5 * time.Second},
		{"*/7 * * * * *", "", 4 * time.Second}, // :56 to :00
		{"0,20,50 * * * * *", "", 10 * time.Second},
		{"30 * * * * *", "", time.Minute},
		{"* * * * *", "", time.Minute},
		{"0 26,29,33 * * * ?", "", 3 * time.Minute},
		{"0,59 * * * *", "", time.Minute},
		{"0,59 2,4 * * *", "", 59 * time.Minute},
		{"0 * * * *", "", time.Hour},
		{"0 0,5,9 * * *", "", 4 * time.Hour},
		{"0 1,23 * * *", "", 2 * time.Hour},
		{"0 1,23 * * MON,WED", "", 22 * time.Hour},
		{"0 9 * * *", "", day},
		{"0 9 * * MON-FRI", "", day},
		{"0 9 * * MON,THU", "", 3 * day},
		{"0 9 * * MON", "", 7 * day},
		{"0 0 */5 * *", "", day},     // 31 to 1
		{"0 0 1 * *", "", 28 * day},  // February
		{"0 0 31 * *", "", 31 * day}, // July to August
		{"0 0 L * *", "", 28 * day},
		{"0 0 1 1 *", "", 365 * day},
		{"0 0 29 2 *", "", 4*365*day + day},
		{"0 0 0 1 1 ? 2030", "", 0},
		{"0 0 0 1 1 ? 2030,2033", "", 3*365*day + day},
		{"0 0 0 1 1 ? 2010-2012", "", 365 * day}, // none since 2020
		{"@every 90s", "", 90 * time.Second},
		{"@every 36h", "", 36 * time.Hour},
		{"@at 2030-01-01T00:00:00Z", "", 0},

		{"0 9 * * *", "Europe/Berlin", 23 * time.Hour},
		{"@every 24h", "Europe/Berlin", day},
		{"0 */2 * * *", "Europe/Berlin", time.Hour},                 // the repeated 02:00
		{"0 1-23/2 * * *", "Europe/Berlin", time.Hour},              // 01:00 to 03:00 in spring
		{"0 2,12 * * *", "Europe/Berlin", 9 * time.Hour},            // 02:00 is 03:00 in spring
		{"0,59 2,4 * * *", "Europe/Berlin", time.Minute},            // 02:59 is 03:59 in spring
		{"0 * * * *", "Europe/Berlin", time.Hour},                   // neither half of the change shows
		{"20,40 2 * * *", "Australia/Lord_Howe", 10 * time.Minute},  // 02:20 is 02:50 in spring
		{"20,40 2 3 10 *", "Australia/Lord_Howe", 10 * time.Minute}, // only in years whose change is on the third
		// 25 March 2029 is the day of a change. In 2026 the change is on the 29th, and otherwise alike.
		{"0 30 2 25,29 3 ? 2026,2029", "Europe/Berlin", 95 * time.Hour},
		{"10 0-23 * * *", "Asia/Kathmandu", time.Hour}, // its change of 1986 does not count
		{"0 0 1 * *", "Europe/Berlin", 28 * day},
	} {
		s := mustParse(t, row.expr, Options{TimeZone: row.zone})
		if got := s.MinGap(); got != row.want {
			t.Errorf("%s in %q: %v, not %v", row.expr, row.zone, got, row.want)
		}
		if _, ok := s.series.(*clocked); !ok || s.Next(time.Unix(gapEra, 0)).IsZero() || row.want == 0 {
			continue
		}
		if got := gapBySets(s); got != row.want {
			t.Errorf("%s in %q: without walking %v, not %v", row.expr, row.zone, got, row.want)
		}
	}
}

// gapBySets is what MinGap gets from the sets and the changes of the clocks, should none of the ticks be walked
// through.
func gapBySets(s *Schedule) time.Duration {
	c, first := s.series.(*clocked), max(s.first, gapEra)
	return time.Duration(c.gapBySets(first, s.last)) * time.Second
}

func TestMinGapOfAWindowCountsItsTicksOnly(t *testing.T) {
	for _, row := range []struct {
		from, to string
		want     time.Duration
	}{
		{"2026-02-01 00:00", "2026-02-20 00:00", 5 * 24 * time.Hour},
		{"2026-01-31 00:00", "2026-02-20 00:00", 24 * time.Hour},
		{"2026-02-01 00:00", "2026-02-06 00:00", 0},                  // the second is excluded by the end
		{"2026-02-01 00:00", "2026-02-06 00:01", 5 * 24 * time.Hour}, // and here it is in
		{"2011-02-01 00:00", "2011-02-20 00:00", 5 * 24 * time.Hour},
	} {
		o := Options{Start: utc(t, row.from), End: utc(t, row.to)}
		if got := mustParse(t, "0 0 */5 * *", o).MinGap(); got != row.want {
			t.Errorf("%s to %s: %v, not %v", row.from, row.to, got, row.want)
		}
	}
}

// All ticks of some years are compared with MinGap, for schedules that do not have too many of them.
func TestMinGapAgreesWithAllTicks(t *testing.T) {
	zones := append(zoneNames(), "Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll")
	for seed := range uint64(60) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		hours, _, _ := d.set(0, 23, nil)
		dom, _, _ := d.dayOfMonth()
		dow, _, _ := d.dayOfWeek()
		minutes := []string{"0", "30", "59", "0,59", "0,29", "15,40", "20-21"}[d.IntN(7)]
		seconds := []string{"0", "0", "30", "0,59", "5,45"}[d.IntN(5)]
		text := strings.Join([]string{seconds, minutes, hours, dom, "*", dow}, " ")
		name := zones[d.IntN(len(zones))]
		if seed%2 == 0 {
			name = zones[len(zones)-1-d.IntN(3)]
		}
		s := mustParse(t, text, Options{TimeZone: name, Start: utc(t, "2020-01-01 00:00"), End: utc(t, "2028-01-01 00:00")})
		want := time.Duration(1<<63 - 1)
		var last time.Time
		for at := s.Next(time.Time{}); !at.IsZero(); at = s.Next(at) {
			if !last.IsZero() {
				want = min(want, at.Sub(last))
			}
			last = at
		}
		if got := s.MinGap(); got != want {
			t.Errorf("seed %d: %q in %s: %v, not %v", seed, text, name, got, want)
		}
		if got := gapBySets(s); got != want {
			t.Errorf("seed %d: %q in %s: without walking %v, not %v", seed, text, name, got, want)
		}
	}
}

// asked counts how often a series is asked for a tick.
type asked struct {
	series
	times int
}

func (a *asked) after(u int64) (int64, bool) {
	a.times++
	return a.series.after(u)
}

func TestMinGapIsMeasuredOnce(t *testing.T) {
	s := mustParse(t, "@every 90s", Options{})
	a := &asked{series: s.series}
	s.series = a
	first := s.MinGap()
	measured := a.times
	if again := s.MinGap(); again != first || measured == 0 || a.times != measured {
		t.Errorf("%v and %v, after %d questions and %d", first, again, measured, a.times)
	}
}
