package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config/schedule"
)

func TestAScheduleIsExplainedWithItsNextTicks(t *testing.T) {
	after := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
	shut, err := schedule.NewDays("shut", []schedule.Span{{From: 20812, To: 20812}}, "", "") // 2026-12-25
	if err != nil {
		t.Fatal(err)
	}
	rules := schedule.Rules{Exclude: []*schedule.Days{shut}}
	for _, c := range []struct {
		expr                string
		o                   schedule.Options
		end                 time.Time
		zone, saving, words string
		ticks               []string
	}{
		{"0 9 * * *", schedule.Options{}, time.Time{}, "UTC", "fixed", "at 09:00, every day", []string{"2026-12-25T09:00:00Z", "2026-12-26T09:00:00Z"}},
		{"0 9 * * *", schedule.Options{TimeZone: "Europe/Berlin"}, time.Date(2026, 12, 26, 8, 0, 0, 0, time.UTC), "Europe/Berlin", "fixed", "at 09:00, every day",
			[]string{"2026-12-25T08:00:00Z"}}, // the end is outside
		{"0 * * * *", schedule.Options{}, time.Time{}, "UTC", "elapsed", "every hour", []string{"2026-12-24T13:00:00Z", "2026-12-24T14:00:00Z"}},
		{"0 9 * * *", schedule.Options{Rules: rules}, time.Time{}, "UTC", "fixed", "at 09:00, every day; not on days of shut",
			[]string{"2026-12-26T09:00:00Z", "2026-12-27T09:00:00Z"}},
		{"H 9 * * *", schedule.Options{}, time.Time{}, "UTC", "fixed", "at minute H of hour 9, every day", []string{}}, // its ticks are not known
		{"@at 2026-12-24T12:00:00Z", schedule.Options{}, time.Time{}, "UTC", "elapsed", "once, at 2026-12-24T12:00:00Z", []string{}},
	} {
		e, err := newExplained([]string{c.expr}, c.o, after, c.end, 2)
		if err != nil || e.Schedule != c.expr || e.TimeZone != c.zone || e.DaylightSaving != c.saving || e.Words != c.words || !slices.Equal(e.Ticks, c.ticks) {
			t.Errorf("%s: %+v, %v", c.expr, e, err)
		}
	}
}

func TestExplainTakesOneScheduleOrNames(t *testing.T) {
	for _, c := range []struct {
		flags explainFlags
		args  []string
		want  string
	}{
		{explainFlags{explain: true}, []string{"0 9 * * *"}, ""}, {explainFlags{explain: true}, []string{"a", "b"}, ""}, {explainFlags{}, []string{"a"}, ""},
		{explainFlags{explain: true, timeZone: "UTC", name: "a"}, []string{"@daily"}, ""},
		{explainFlags{explain: true}, []string{"0", "9 * * *"}, "one schedule as one argument"}, {explainFlags{explain: true}, []string{"0", "9", "*", "*", "*"}, "one schedule as one argument"},
		{explainFlags{}, []string{"0\t9 * * *"}, "is a schedule"}, {explainFlags{}, []string{"@daily"}, "is a schedule"}, {explainFlags{}, []string{""}, "is a schedule"},
		{explainFlags{}, []string{"0\t9"}, "is a schedule"},
		{explainFlags{explain: true, timeZone: "UTC"}, []string{"a"}, "are for a schedule"}, {explainFlags{name: "a"}, nil, "are for a schedule"},
		{explainFlags{explain: true, name: "a"}, []string{"a"}, "are for a schedule"},
	} {
		err := c.flags.check(c.args)
		var f *failure
		if (err == nil) != (c.want == "") || err != nil && (!errors.As(err, &f) || f.code != exitUsage || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v %q: %v, want %q", c.flags, c.args, err, c.want)
		}
	}
}
