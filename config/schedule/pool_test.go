package schedule

import (
	"testing"
	"time"
)

func TestAPoolSharesASchedule(t *testing.T) {
	var p Pool
	parse := func(expr string, o Options) *Schedule {
		t.Helper()
		s, err := p.ParseAll([]string{expr}, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const expr = "0 9 * * *"
	first := parse(expr, Options{TimeZone: "Europe/Berlin", Job: "a"})
	if parse(" "+expr+" ", Options{TimeZone: "Europe/Berlin", Job: "b"}) != first {
		t.Error("two jobs with the same ticks have a schedule each")
	}
	for what, other := range map[string]*Schedule{
		"expression": parse("0 8 * * *", Options{TimeZone: "Europe/Berlin"}),
		"zone":       parse(expr, Options{TimeZone: "Europe/Paris"}),
		"start":      parse(expr, Options{TimeZone: "Europe/Berlin", Start: utc(t, "2026-01-01 00:00")}),
		"end":        parse(expr, Options{TimeZone: "Europe/Berlin", End: utc(t, "2026-01-01 00:00")}),
	} {
		if other == first {
			t.Errorf("jobs that differ in their %s share a schedule", what)
		}
	}
	if parse("H H * * *", Options{Job: "a"}).Next(time.Time{}).Equal(parse("H H * * *", Options{Job: "b"}).Next(time.Time{})) {
		t.Error("two jobs share a schedule that depends on their names")
	}
	if _, err := p.ParseAll([]string{"0 9 * *"}, Options{}); err == nil {
		t.Error("a bad expression is no error")
	}
}

func TestDaysAreCountedAsTheCalendarHasThem(t *testing.T) {
	for at := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() <= lastYear+1; at = at.AddDate(0, 0, 1) {
		y, m, d := at.Date()
		if got := daysTo(y, m, d); got*day != at.Unix() {
			t.Fatalf("%v is day %d", at, got)
		}
		if d == 1 && daysTo(y, m+1, 1) != at.AddDate(0, 1, 0).Unix()/day {
			t.Fatalf("the month after %v begins at day %d", at, daysTo(y, m+1, 1))
		}
	}
}

// The search asks for a zone's stretches at every call, so they are found once.
func TestAZoneIsFoundOnce(t *testing.T) {
	zoneOf := func(name string) *zone { return mustParse(t, "@daily", Options{TimeZone: name}).series.(*clocked).zone }
	if first, again := zoneOf("America/Lima"), zoneOf("America/Lima"); first != again {
		t.Error("two schedules have the same zone twice")
	}
	for _, name := range zoneNames() {
		location, z := mustZone(t, name), zoneOf(name)
		for i, s := range z.stretches {
			for _, u := range []int64{s.start, (max(s.start, oldestTick) + min(s.end, newestTick)) / 2, s.end - 1} {
				if u < oldestTick || u > newestTick {
					continue
				}
				if got := *z.at(u); got != s || got != stretchAt(location, u) {
					t.Fatalf("%s, stretch %d: at %d it is %+v, not %+v", name, i, u, got, stretchAt(location, u))
				}
			}
		}
	}
}
