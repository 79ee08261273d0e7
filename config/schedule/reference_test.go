package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// The reference finds ticks as a person would with a wall clock: it looks at every step of real time, one after the
// other, and asks whether what the clock shows matches. It shares no code with the package.

// wall is what a clock and a calendar show.
type wall struct {
	year                      int
	month                     time.Month
	day, hour, minute, second int
}

func wallOf(t time.Time) wall {
	y, m, d := t.Date()
	return wall{y, m, d, t.Hour(), t.Minute(), t.Second()}
}

func (w wall) asUTC() time.Time {
	return time.Date(w.year, w.month, w.day, w.hour, w.minute, w.second, 0, time.UTC)
}

func (w wall) weekday() time.Weekday { return w.asUTC().Weekday() }

// length is the number of days of the month.
func (w wall) length() int {
	d := 28
	for time.Date(w.year, w.month, d+1, 0, 0, 0, 0, time.UTC).Month() == w.month {
		d++
	}
	return d
}

// reference returns the ticks in [from, to). It begins early enough to know which walls were shown
// before: two days, or where steps are seconds and no large change is near, three hours.
func reference(match func(wall) bool, fixed bool, zone *time.Location, from, to time.Time,
	step time.Duration) []time.Time {
	margin := 2 * 24 * time.Hour
	_, before := from.In(zone).Zone()
	_, after := to.In(zone).Zone()
	if step == time.Second && max(before-after, after-before) <= 2*3600 {
		margin = 3 * time.Hour
	}
	ticks := map[time.Time]bool{}
	shown := map[time.Time]bool{} // walls, as if in UTC
	var expected time.Time        // what the clock shows if it runs on
	for t := from.Add(-margin).UTC(); t.Before(to.Add(margin)); t = t.Add(step) {
		w := wallOf(t.In(zone))
		matches := match(w)
		if fixed {
			clock := w.asUTC()
			at := t
			for skipped := expected; !expected.IsZero() && skipped.Before(clock); skipped = skipped.Add(step) {
				if match(wallOf(skipped)) && !shown[skipped] {
					ticks[at] = true
				}
				at = at.Add(step)
			}
			matches = matches && !shown[clock]
			shown[clock] = true
			expected = clock.Add(step)
		}
		if matches {
			ticks[t] = true
		}
	}
	var out []time.Time
	for t := range ticks {
		if !t.Before(from) && t.Before(to) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// forward lists the ticks in [from, to) by Next.
func forward(s *Schedule, from, to time.Time) []time.Time {
	var out []time.Time
	for t := s.Next(from.Add(-1)); !t.IsZero() && t.Before(to); t = s.Next(t) {
		out = append(out, t)
	}
	return out
}

// backward lists the ticks in [from, to) by Last.
func backward(s *Schedule, from, to time.Time) []time.Time {
	var out []time.Time
	for t := s.Last(to.Add(-1)); !t.IsZero() && !t.Before(from); t = s.Last(t.Add(-1)) {
		out = append(out, t)
	}
	slices.Reverse(out)
	return out
}

// sameTicks reports the first difference of two lists.
func sameTicks(t *testing.T, what string, got, want []time.Time) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: tick %s is lost (%d of %d)", what, show(want[i]), len(got), len(want))
		case i >= len(want):
			t.Errorf("%s: tick %s is one too many (%d, not %d)", what, show(got[i]), len(got), len(want))
		case !got[i].Equal(want[i]):
			t.Errorf("%s: tick %d is %s, not %s", what, i, show(got[i]), show(want[i]))
		default:
			continue
		}
		return
	}
}

func show(t time.Time) string { return t.UTC().Format("Mon 2006-01-02 15:04:05Z") }

func mustParse(t testing.TB, expr string, o Options) *Schedule {
	t.Helper()
	s, err := Parse(expr, o)
	if err != nil {
		t.Fatalf("%q: %v", expr, err)
	}
	return s
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// utc reads "2026-03-29 02:30" with or without seconds.
func utc(t testing.TB, text string) time.Time {
	t.Helper()
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	t.Fatal(fmt.Errorf("%q is no time", text))
	return time.Time{}
}
