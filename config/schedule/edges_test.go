package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheLargestAndSmallestValuesAreAccepted(t *testing.T) {
	for _, row := range []struct{ expr, after, want string }{
		{"H(3-10)/8 * * * *", "2026-12-01 00:00", ""}, // eight values: whichever is the first, it is the only one
		{"0 0 H/28 * *", "2026-12-01 00:00", ""},
		{"*/60 * * * *", "2026-12-01 00:30", "2026-12-01 01:00"},
		{"0 0 */31 * *", "2026-12-01 00:30", "2027-01-01 00:00"},
		{"0 0 L-30 * *", "2026-12-01 00:30", "2027-01-01 00:00"},
		{"0 0 L-1 * *", "2026-12-01 00:30", "2026-12-30 00:00"},
		{"0 0 * * TUE#5", "2026-12-01 00:30", "2026-12-29 00:00"},
		{"0 9 * * SUN-SUN", "2026-12-01 00:30", "2026-12-06 09:00"},
		{"0 9 5-5 * *", "2026-12-01 00:30", "2026-12-05 09:00"},
		{"@every 1s", "2026-12-01 00:00", "2026-12-01 00:00:01"},
		{"@at 1970-01-01T00:00:00Z", "1969-01-01 00:00", "1970-01-01 00:00"},
		{"@at 2030-01-31t09:00:00z", "2026-12-01 00:00", "2030-01-31 09:00"},
		{"@at 2199-12-31T23:59:59Z", "2026-12-01 00:00", "2199-12-31 23:59:59"},
		{"59 59 23 31 12 ? 2199", "2026-12-01 00:00", "2199-12-31 23:59:59"},
		{"0 0 0 1 1 ? 1970", "1969-01-01 00:00", "1970-01-01 00:00"},
		{"0 0 0 1 1 ? *,2030", "2026-12-01 00:00", "2027-01-01 00:00"},                          // as in any other field
		{strings.Repeat("1,", 245) + "1 * * * *" + " ", "2026-12-01 00:00", "2026-12-01 00:01"}, // 499 characters
		{strings.Repeat("1,", 245) + "11 * * * *", "2026-12-01 00:10", "2026-12-01 00:11"},
	} {
		s, err := Parse(row.expr, Options{Job: "a"})
		if err != nil {
			t.Errorf("%q: %v", row.expr, err)
		} else if got := s.Next(utc(t, row.after)); row.want != "" && !got.Equal(utc(t, row.want)) {
			t.Errorf("%q: after %s comes %s, want %s", row.expr, row.after, show(got), row.want)
		}
	}
	for _, row := range []struct{ expr, want string }{
		{"0 0 1 1 * 1970", "for year 1970 put a second first"},
		{"@mont", ": known are @yearly"}, // three letters from @monthly and from @at
		{"@hour", "did you mean @hourly?"},
	} {
		if _, err := Parse(row.expr, Options{}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want it to say %s", row.expr, err, row.want)
		}
	}
}

func TestAnHWithAStepStaysInItsRange(t *testing.T) {
	from := utc(t, "2026-12-01 00:00")
	for _, job := range []string{"a", "b", "c", "d"} {
		ticks := forward(mustParse(t, "H(10-29)/5 3 * * *", Options{Job: job}), from, from.AddDate(0, 0, 1))
		if first, last := ticks[0].Minute(), ticks[len(ticks)-1].Minute(); len(ticks) != 4 || first < 10 || last > 29 {
			t.Errorf("%s: %d ticks from minute %d to %d", job, len(ticks), first, last)
		}
	}
}

func TestADayIsReadInTheYearsOfTheYearField(t *testing.T) {
	for text, want := range map[string]bool{"1970-01-01": true, "1969-12-31": false, "2199-12-31": true, "2200-01-01": false, "2026-02-30": false} {
		if d, err := ParseDay(text); (err == nil) != want || want && d.String() != text {
			t.Errorf("%s is %s, %v", text, d, err)
		}
	}
}

func TestTheFirstAndTheLastTickOfAWindowAreFoundFromBothSides(t *testing.T) {
	first, last := utc(t, "2026-12-01 09:00"), utc(t, "2026-12-03 09:00")
	s := mustParse(t, "0 9 * * *", Options{Start: first, End: last.Add(1)})
	if got := s.Last(first); !got.Equal(first) {
		t.Errorf("the first tick is the last one of its own instant: %s", show(got))
	}
	if got := s.Next(last.Add(-1)); !got.Equal(last) {
		t.Errorf("the last tick is the next one before it: %s", show(got))
	}
	if got := s.Due("job", time.Time{}, time.Hour); !got.IsZero() {
		t.Errorf("no tick comes due at %s", show(got))
	}
}

// East of Greenwich the last day of 2199 is the first of 2200.
func TestTheLastTickMayBeInTheYearAfterIt(t *testing.T) {
	s := mustParse(t, "0 0 1 * *", Options{TimeZone: "Pacific/Kiritimati"})
	last := utc(t, "2199-12-31 10:00")
	if got := s.Next(utc(t, "2199-12-10 00:00")); !got.Equal(last) || !s.Next(last).IsZero() || !s.Last(utc(t, "2300-01-01 00:00")).Equal(last) {
		t.Errorf("the last tick is %s, after it comes %s, and the newest is %s", show(got), show(s.Next(last)), show(s.Last(utc(t, "2300-01-01 00:00"))))
	}
}

func TestSeveralSchedulesAreExplainedTogether(t *testing.T) {
	const hours, clocks = "runs through the hours: it ticks in both of two repeated hours, and not in an hour that the clocks skip",
		"fixed: if the clocks skip its time, it ticks later by the length of the gap; if its time occurs twice, it ticks at the first"
	for _, row := range []struct {
		exprs         []string
		words, clocks string
		fixed         bool
	}{
		{[]string{"0 9 * * *", "0 17 * * FRI"}, "at 09:00, every day; and at 17:00, every Friday", clocks, true},
		{[]string{"15 * * * *", "0 9 * * *"}, "at minute 15 of every hour; and at 09:00, every day", hours + "; " + clocks, false},
		{[]string{"0 9 * * *", "15 * * * *"}, "at 09:00, every day; and at minute 15 of every hour", clocks + "; " + hours, false},
	} {
		e, err := Explain(row.exprs, Options{TimeZone: "Europe/Berlin"})
		if err != nil || e.Words != row.words || e.Clocks != row.clocks || e.Fixed != row.fixed {
			t.Errorf("%q: %+v, %v", row.exprs, e, err)
		}
	}
	if s, err := ParseAll([]string{" 0 9 * * *", "0 17 * * FRI "}, Options{}); err != nil || s.String() != "0 9 * * *; 0 17 * * FRI" {
		t.Errorf("written as %q, %v", s, err)
	}
	e, err := Explain([]string{"@every 90s"}, Options{Start: utc(t, "2026-12-01 09:00").Add(time.Millisecond)})
	if want := "every 90 seconds, counted from 2026-12-01T09:00:01Z"; err != nil || e.Words != want {
		t.Errorf("%q, %v, want %q", e.Words, err, want)
	}
}

func TestRulesInWords(t *testing.T) {
	a, b := mustDays(t, "a", "2026-12-25", "", ""), mustDays(t, "b", "2026-12-26", "", "")
	const moves = "a tick of an excluded day moves to the same time of the "
	for _, row := range []struct {
		rules Rules
		want  []string
	}{
		{Rules{}, nil},
		{Rules{Every: Every{Days: 1}}, nil},
		{Rules{OnExcluded: NextIncluded}, nil}, // there is nothing to move
		{Rules{Every: Every{Days: 2, From: mustDay(t, "2026-01-05")}}, []string{"one day of 2, counted from 2026-01-05"}},
		{Rules{Every: Every{Weeks: 3, From: mustDay(t, "2026-01-05")}}, []string{"one week of 3, counted from 2026-01-05"}},
		{Rules{Include: []*Days{a, b}}, []string{"only on days of a or b"}},
		{Rules{Exclude: []*Days{a, b}, OnExcluded: SkipExcluded}, []string{"not on days of a or b"}},
		{Rules{Exclude: []*Days{b}, OnExcluded: NextIncluded}, []string{"not on days of b", moves + "next day that is not excluded"}},
		{Rules{Include: []*Days{b}, OnExcluded: PreviousIncluded}, []string{"only on days of b", moves + "previous day that is not excluded"}},
	} {
		if e, err := Explain([]string{"0 9 * * *"}, Options{Rules: row.rules}); err != nil || !slices.Equal(e.Rules, row.want) {
			t.Errorf("%+v: %q, %v, want %q", row.rules, e.Rules, err, row.want)
		}
	}
}

// A tick moves over 366 days at most, and no further.
func TestATickMovesOverAYearAndNoFurther(t *testing.T) {
	const once = "0 0 9 1 1 ? 2026"
	rules := func(last string) Options {
		return Options{Rules: Rules{Exclude: []*Days{mustDays(t, "shut", "2026-01-01.."+last, "", "")}, OnExcluded: NextIncluded}}
	}
	s := mustParse(t, once, rules("2027-01-01"))
	if got := s.Next(time.Time{}); !got.Equal(utc(t, "2027-01-02 09:00")) {
		t.Errorf("it has moved to %s", show(got))
	}
	if e, ok := s.Excluded(utc(t, "2026-01-01 09:00")); !ok || !e.Moved.Equal(utc(t, "2027-01-02 09:00")) {
		t.Errorf("it says %+v", e)
	}
	if s, err := Parse(once, rules("2027-01-02")); err == nil {
		t.Errorf("it has moved to %s", show(s.Next(time.Time{})))
	}
}

func TestUnderRulesNoTickIsBefore1970(t *testing.T) {
	s := mustParse(t, "0 9 * * *", Options{Rules: Rules{Exclude: []*Days{mustDays(t, "a", "2026-12-25", "", "")}}})
	if got := s.Next(time.Time{}); !got.Equal(utc(t, "1970-01-01 09:00")) || !s.Last(utc(t, "1970-01-01 08:00")).IsZero() {
		t.Errorf("the first is %s, and before it comes %s", show(got), show(s.Last(utc(t, "1970-01-01 08:00"))))
	}
}

func TestOnlyAnInstantOfTheWindowIsExcluded(t *testing.T) {
	shut := Rules{Exclude: []*Days{mustDays(t, "shut", "2026-12-02..2026-12-04", "", "")}, OnExcluded: NextIncluded}
	s := mustParse(t, "0 9 * * *", Options{Rules: shut, Start: utc(t, "2026-12-01 00:00"), End: utc(t, "2026-12-04 10:00")})
	for _, row := range []struct {
		at   time.Time
		want bool
	}{
		{utc(t, "2026-12-02 09:00"), true}, {utc(t, "2026-12-02 09:00").Add(1), false}, {utc(t, "2026-12-01 09:00"), false},
		{utc(t, "2026-12-04 09:00"), true}, {utc(t, "2026-11-30 09:00"), false}, {utc(t, "2026-12-05 09:00"), false},
	} {
		if e, ok := s.Excluded(row.at); ok != row.want || !e.Moved.IsZero() { // where they would go is outside
			t.Errorf("%s: %t, %+v", row.at, ok, e)
		}
	}
	often := Rules{Every: Every{Days: 2, From: mustDay(t, "2026-12-01")}, Exclude: shut.Exclude, OnExcluded: NextIncluded}
	if e, ok := mustParse(t, "0 9 * * *", Options{Rules: often}).Excluded(utc(t, "2026-12-02 09:00")); !ok || !e.Every || !e.Moved.IsZero() {
		t.Errorf("between two days: %t, %+v", ok, e)
	}
}

func TestDaysAreWrittenInOneForm(t *testing.T) {
	for _, row := range []struct{ spans, cron, zone, want string }{
		{"2026-12-25", "", "", "2026-12-25 in the zone of the schedule"},
		{"2026-12-27 2026-12-25..2026-12-26", "", "Asia/Tokyo", "2026-12-25..2026-12-27 in Asia/Tokyo"},
		{"2026-12-20..2026-12-30 2026-12-22", "", "", "2026-12-20..2026-12-30 in the zone of the schedule"},
		{"2026-12-25 2026-12-27", "*  * * *   SUN", "", "2026-12-25 2026-12-27 cron * * * * SUN in the zone of the schedule"},
		{"", "", "", "in the zone of the schedule"},
	} {
		d := mustDays(t, "a", row.spans, row.cron, row.zone)
		if got := d.String(); got != row.want || d.Empty() != (row.spans+row.cron == "") {
			t.Errorf("%q %q in %q is %q, want %q", row.spans, row.cron, row.zone, got, row.want)
		}
	}
	d := mustDays(t, "a", "2026-12-10 2026-12-20..2026-12-22", "", "")
	for _, row := range []struct {
		day, first, last string
		in               bool
	}{{"2026-12-15", "2026-12-11", "2026-12-19", false}, {"2026-12-10", "2026-12-10", "2026-12-10", true}, {"2026-12-21", "2026-12-20", "2026-12-22", true}} {
		in, first, last := d.run(int64(mustDay(t, row.day)))
		if in != row.in || Day(first).String() != row.first || Day(last).String() != row.last {
			t.Errorf("%s: %t from %s to %s", row.day, in, Day(first), Day(last))
		}
	}
}

// A zone takes 20 KiB, and a table can name one file in any number of ways.
func TestAZoneIsKeptUnderOneNameOfItsFile(t *testing.T) {
	const name = "Europe//Lisbon"
	if _, err := findZone(name); err != nil {
		t.Fatal(err)
	}
	if _, kept := zones.Load(name); kept {
		t.Errorf("%q is kept", name)
	}
}

func TestAPoolSharesNoScheduleWithRules(t *testing.T) {
	var p Pool
	at := func(rules Rules) time.Time {
		s, err := p.ParseAll([]string{"0 9 * * *"}, Options{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		return s.Next(utc(t, "2026-12-24 12:00"))
	}
	shut := []*Days{mustDays(t, "a", "2026-12-25", "", "")}
	for _, row := range []struct {
		rules Rules
		want  string
	}{{Rules{}, "2026-12-25 09:00"}, {Rules{Exclude: shut}, "2026-12-26 09:00"}, {Rules{}, "2026-12-25 09:00"}} {
		if got := at(row.rules); !got.Equal(utc(t, row.want)) {
			t.Errorf("%+v: %s, want %s", row.rules, show(got), row.want)
		}
	}
}
