package schedule

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestMinGapIsTheSmallestDistanceThatIsNotRare(t *testing.T) {
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
		{"0 0 0 1 1 ? 2010-2012", "", 0}, // none since 2020
		{"@every 90s", "", 90 * time.Second},
		{"@every 36h", "", 36 * time.Hour},
		{"@at 2030-01-01T00:00:00Z", "", 0},

		{"0 9 * * *", "Europe/Berlin", 23 * time.Hour},
		{"@every 24h", "Europe/Berlin", day},
		{"0 */2 * * *", "Europe/Berlin", 2 * time.Hour},             // except for the repeated 02:00
		{"0 1-23/2 * * *", "Europe/Berlin", 2 * time.Hour},          // except for 01:00 to 03:00 in spring
		{"0 2,12 * * *", "Europe/Berlin", 9 * time.Hour},            // 02:00 is 03:00 in spring
		{"0,59 2,4 * * *", "Europe/Berlin", time.Minute},            // 02:59 is 03:59 in spring
		{"0 * * * *", "Europe/Berlin", time.Hour},                   // neither half of the change shows
		{"20,40 2 * * *", "Australia/Lord_Howe", 20 * time.Minute},  // except that 02:20 is 02:50 in spring
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
	}
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
		{"2011-02-01 00:00", "2011-02-20 00:00", 0},                  // none since 2020
	} {
		o := Options{Start: utc(t, row.from), End: utc(t, row.to)}
		if got := mustParse(t, "0 0 */5 * *", o).MinGap(); got != row.want {
			t.Errorf("%s to %s: %v, not %v", row.from, row.to, got, row.want)
		}
	}
}

// Ticks come due in their order, however large the jitter is, also where the clocks change.
func TestTicksComeDueBeforeTheNextTick(t *testing.T) {
	clamped := 0
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		name := []string{"Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll"}[d.IntN(3)]
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		s, change := d.ruled(t), d.changeOf(zone)
		if s == nil || seed%2 == 0 {
			hours, _, _ := d.set(0, 23, nil)
			s = mustParse(t, []string{"0", "30", "0,59", "20,40"}[d.IntN(4)]+" "+hours+" * * *", Options{TimeZone: name})
		}
		jitter := time.Duration(1+d.IntN(48*60)) * time.Minute
		tick := s.Next(change.Add(-3 * 24 * time.Hour))
		for range 100 {
			next := s.Next(tick)
			if next.IsZero() {
				break
			}
			due, free := s.Due("job", tick, jitter), tick.Add(Jitter("job", tick, jitter))
			if due.Before(tick) || !due.Before(next) || next.Sub(tick) >= jitter && !due.Equal(free) {
				t.Fatalf("seed %d, %q, jitter %s: %s comes due at %s, and the next tick is %s", seed, s, jitter, tick, due, next)
			}
			if !free.Before(next) {
				clamped++
			}
			tick = next
		}
	}
	if clamped < 100 {
		t.Errorf("only %d ticks would have come due after the next one", clamped)
	}
}
