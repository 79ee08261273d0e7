package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWhatACalendarSaysIsPartOfTheHashes(t *testing.T) {
	const christmas = "2026-12-25..2026-12-26"
	with := func(dates, more string) *Table {
		return parsed(t, "service: s\ncalendars: {holidays: {dates: ["+dates+"]}}\n"+more+"jobs:\n"+
			"  - {name: a, schedule: \"0 9 * * *\", exec: {command: [a]}, exclude: [holidays]}\n"+
			"  - {name: b, schedule: \"0 9 * * *\", exec: {command: [b]}}\n")
	}
	one, other := with(christmas, ""), with("2026-12-25..2026-12-27", "")
	if one.Hash[:8] == other.Hash[:8] || one.Equal(other) || one.Jobs[0].Fingerprint == other.Jobs[0].Fingerprint {
		t.Error("other days give the same hashes")
	}
	if one.Jobs[1].Fingerprint != other.Jobs[1].Fingerprint {
		t.Error("the days of a calendar change a job that does not use it")
	}
	if same := with(christmas+" # Xmas\n", ""); !same.Equal(one) {
		t.Error("a comment changes the table")
	}
	// The hash with variables is computed of the text, and needs the calendars too.
	if a, b := with(christmas, "maxRunning: ${N:-3}\n"), with("2026-12-25", "maxRunning: ${N:-3}\n"); a.Hash == b.Hash || a.Hash == "" {
		t.Error("beside a variable, other days give the same hash")
	}
	// A job without rules has the fingerprint of the release before.
	if got, want := one.Jobs[1].Fingerprint, digest([]any{1, "0 9 * * *", "UTC", time.Time{}, time.Time{}, time.Duration(0), false}, 16); got != want {
		t.Errorf("the fingerprint of a plain job is %s, not %s", got, want)
	}
	fingerprints := map[string]string{}
	for _, keys := range []string{"exclude: [a]", "include: [a]", "exclude: [b]", "exclude: [a, b]", "exclude: [a], onExcluded: next", "exclude: [a], onExcluded: previous",
		"every: {weeks: 2, from: 2026-01-05}", "every: {days: 2, from: 2026-01-05}", "every: {weeks: 2, from: 2026-01-06}", "timeout: 5m"} {
		table := parsed(t, "service: s\ncalendars: {a: {dates: [2026-12-25]}, b: {cron: \"* * * * SUN\"}}\njobs: [{name: a, schedule: \"@daily\", exec: {command: [a]}, "+keys+"}]\n")
		f := table.Jobs[0].Fingerprint
		if before, ok := fingerprints[f]; ok {
			t.Errorf("%s and %s have the same fingerprint", before, keys)
		}
		fingerprints[f] = keys
	}
	anchored := parsed(t, "service: s\njobs: [{name: a, schedule: \"@every 7m\", start: 2026-12-01T00:01:00Z, exec: {command: [a]}}]\n").Jobs[0]
	if anchored.Fingerprint == digest([]any{1, "@every 7m", "UTC", anchored.Start, time.Time{}, time.Duration(0), false}, 16) {
		t.Error("@every counts from start, and has the fingerprint of the release before, where it did not")
	}
}

func TestAJobCanHaveOtherCalendarsThanTheDefaults(t *testing.T) {
	table := parsed(t, `
service: s
calendars: {weekend: {cron: "* * * * SAT,SUN"}, new-year: {dates: [2027-01-01]}}
defaults: {exclude: [weekend], onExcluded: next}
jobs:
  - {name: a, schedule: "0 9 * * *", exec: {command: [a]}}
  - {name: b, schedule: "0 9 * * *", exec: {command: [a]}, exclude: [], include: []}
  - {name: c, schedule: ["0 9 * * FRI", "0 9 * * SUN"], exec: {command: [a]}, exclude: [new-year, weekend]}
  - {name: d, schedule: "0 9 * * FRI", exec: {command: [a]}, onExcluded: skip, every: {weeks: 2, from: 2027-01-01}}
`)
	friday := time.Date(2027, 1, 1, 8, 0, 0, 0, time.UTC)
	for name, want := range map[string]time.Duration{"a": 1, "b": 1, "c": 73, "d": 1} {
		for _, j := range table.Jobs {
			if got := j.Schedule.Next(friday); j.Name == name && !got.Equal(friday.Add(want*time.Hour)) {
				t.Errorf("%s ticks at %s", name, got)
			}
		}
	}
	if len(table.Warnings) > 0 {
		t.Errorf("%v", table.Warnings)
	}
}

// A verb that runs no jobs may lack a variable of the defaults. A job with keys of its own does not depend on it.
func TestAJobThatHasItsOwnCalendarsDependsOnNoVariableOfTheDefaults(t *testing.T) {
	table, err := readText(`
service: s
defaults: {exclude: ["${NOT_SET_HERE}"]}
jobs:
  - {name: a, schedule: "0 9 * * *", exec: {command: [a]}, exclude: [], onExcluded: next}
`, nothingSet)
	says := func(w Problem) bool { return strings.Contains(w.Message, "onExcluded has no effect") }
	if err != nil || !slices.ContainsFunc(table.Warnings, says) {
		t.Errorf("the warnings are %v, %v", table.Warnings, err)
	}
}

func TestATimerCanHaveAListOfSchedulesButNoCalendars(t *testing.T) {
	const body = `{"schedule": ["0 9 * * MON", "@daily"], "http": {"url": "http://127.0.0.1/x"}`
	timer, err := ParseTimer("a", []byte(body+"}"), testNow)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseTimer("a", timer.Source, testNow)
	if err != nil || again.Job.content() != timer.Job.content() || len(again.Repeats.Expressions()) != 2 {
		t.Errorf("%s is read again as %+v, %v", timer.Source, again, err)
	}
	if _, err := ParseTimer("a", []byte(body+`, "exclude": ["holidays"]}`), testNow); err == nil || !strings.Contains(err.Error(), `"exclude" is for jobs of the table alone`) {
		t.Errorf("%v", err)
	}
}
