package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config/schedule"
)

const (
	christmas = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VTIMEZONE\r\nBEGIN:STANDARD\r\nRRULE:FREQ=YEARLY\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n" +
		"BEGIN:VEVENT\r\nSUMMARY:Christmas\r\nDTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261227\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	withFile = "service: s\ncalendars: {holidays: {file: nrw.ics}}\njobs:\n" +
		"  - {name: a, schedule: \"0 9 * * *\", exec: {command: [a]}, exclude: [holidays]}\n" +
		"  - {name: b, schedule: \"0 9 * * *\", exec: {command: [b]}}\n"
)

func TestACalendarFileIsReadWithTheTable(t *testing.T) {
	dir := folder(t, map[string]string{"table.yaml": withFile, "nrw.ics": christmas})
	for _, path := range []string{dir, filepath.Join(dir, "table.yaml")} {
		table, err := Load(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		eve := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
		if a, b := table.Jobs[0].Schedule.Next(eve), table.Jobs[1].Schedule.Next(eve); !a.Equal(eve.Add(69*time.Hour)) || !b.Equal(eve.Add(21*time.Hour)) {
			t.Errorf("the next ticks are %s and %s", a, b)
		}
		// A copy of what was read is as good as the files, wherever it lies.
		text, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(t.TempDir(), "last-good-table.yaml")
		if err := os.WriteFile(kept, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if again, err := Load(kept, nil); err != nil || !again.Equal(table) {
			t.Errorf("a copy of %s is another table: %v", path, err)
		}
		if read, err := Read(path, nil); err != nil || read.Hash != table.Hash {
			t.Errorf("Read finds another table: %v", err)
		}
	}
}

func TestWhatACalendarSaysIsPartOfTheHashes(t *testing.T) {
	with := func(ics, table string) *Table {
		t.Helper()
		got, err := Load(folder(t, map[string]string{"table.yaml": table, "nrw.ics": ics}), nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one := with(christmas, withFile)
	other := with(strings.Replace(christmas, "1227", "1228", 1), withFile)
	if one.Hash[:8] == other.Hash[:8] || one.Equal(other) || one.Jobs[0].Fingerprint == other.Jobs[0].Fingerprint {
		t.Error("other days give the same hashes")
	}
	if one.Jobs[1].Fingerprint != other.Jobs[1].Fingerprint {
		t.Error("the days of a calendar change a job that does not use it")
	}
	if same := with(strings.Replace(christmas, "Christmas", "Xmas", 1), withFile); !same.Equal(one) {
		t.Error("the name of an event changes the table")
	}
	// The hash with variables is computed of the text, and needs the files too.
	if a, b := with(christmas, withFile+"x-a: 1\nmaxRunning: ${N:-3}\n"), with(strings.Replace(christmas, "1227", "1228", 1), withFile+"maxRunning: ${N:-3}\n"); a.Hash == b.Hash || a.Hash == "" {
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

func TestAFileOfACalendarThatCannotBeReadIsAProblem(t *testing.T) {
	const event = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nX-NOTE;LABEL=\"a:b\":folded\n  text\nDTSTART;VALUE=DATE:20261225\nEND:VEVENT\nEND:VCALENDAR\n"
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=YEARLY", "nrw.ics:5:1: calendar \"holidays\": RRULE: repetitions are not supported\n  hint: export"},
		{"DTSTART;VALUE=DATE:20261225", "RDATE:20261225", "nrw.ics:5:1: calendar \"holidays\": RDATE: repetitions"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:20261225T090000Z", "nrw.ics:5:1: calendar \"holidays\": DTSTART is not a whole day"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:20261325", "DTSTART is not a whole day"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:22991225", "out of range"},
		{"DTSTART;VALUE=DATE:20261225", "X:Y", "nrw.ics:2:1: calendar \"holidays\": this event has no DTSTART"},
		{"END:VEVENT", "DTEND:20261224\nEND:VEVENT", "nrw.ics:2:1: calendar \"holidays\": this event ends before it begins"},
		{"END:VEVENT", "DURATION:PT1H\nEND:VEVENT", "nrw.ics:6:1: calendar \"holidays\": DURATION is not a number of days"},
		{"END:VEVENT\n", "", "END:VCALENDAR has no BEGIN"},
		{"END:VCALENDAR\n", "", "nrw.ics: calendar \"holidays\": it ends within VCALENDAR"},
		{"BEGIN:VCALENDAR", "<html>", "nrw.ics: calendar \"holidays\": it is not an iCalendar file"},
	} {
		dir := folder(t, map[string]string{"table.yaml": withFile, "nrw.ics": strings.Replace(event, c.old, c.new, 1)})
		_, err := Load(filepath.Join(dir, "table.yaml"), nil)
		if c.want == "" {
			if err != nil {
				t.Errorf("a good file: %v", err)
			}
			continue
		}
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant it to say %s", c.new, err, c.want)
		}
	}
	dir := folder(t, map[string]string{"table.yaml": withFile})
	if _, err := Load(dir, nil); err == nil || !strings.Contains(err.Error(), "file \"nrw.ics\": it cannot be read: no such file or directory") {
		t.Errorf("without the file: %v", err)
	}
	if _, err := ReadFrom("stdin", strings.NewReader(withFile), nil); err == nil || !strings.Contains(err.Error(), "name the table by its path") {
		t.Errorf("from standard input: %v", err)
	}
}

func TestTheDaysOfEventsAreRead(t *testing.T) {
	for events, want := range map[string]string{
		"DTSTART:20261225":                                          "2026-12-25",
		"DTSTART:20261225\nDTEND:20261225":                          "2026-12-25",
		"DTSTART:20261225\nDTEND:20261226":                          "2026-12-25",
		"DTSTART:20261225\nDTEND:20270102":                          "2026-12-25..2027-01-01",
		"DTSTART:20261225\nDURATION:P2D":                            "2026-12-25..2026-12-26",
		"DTSTART:20261225\nDURATION:P1W":                            "2026-12-25..2026-12-31",
		"dtstart;value=date:20261\n 225\nSTATUS:FIRM":               "2026-12-25",
		"DTSTART:20261225\nSTATUS:CANCELLED":                        "",
		"BEGIN:VALARM\nDURATION:PT5M\nEND:VALARM\nDTSTART:20261225": "2026-12-25",
	} {
		spans, err := parseICS([]byte("BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + events + "\nEND:VEVENT\nEND:VCALENDAR"))
		var got []string
		for _, s := range spans {
			got = append(got, s.String())
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q %v, not %q", events, got, err, want)
		}
	}
}

// FuzzParseICS: no file panics, and each day that is read is in the range of days.
func FuzzParseICS(f *testing.F) {
	f.Add([]byte(christmas))
	f.Fuzz(func(t *testing.T, data []byte) {
		spans, err := parseICS(data)
		for _, s := range spans {
			if _, dayErr := schedule.ParseDay(s.From.String()); err != nil || s.From > s.To || dayErr != nil {
				t.Errorf("%v, %v, %v", s, err, dayErr)
			}
		}
	})
}

// TestAChangedCalendarFileIsReported runs the real watcher over real files.
func TestAChangedCalendarFileIsReported(t *testing.T) {
	dir := folder(t, map[string]string{"table.yaml": withFile, "nrw.ics": christmas})
	for _, path := range []string{dir, filepath.Join(dir, "table.yaml")} {
		put(t, dir, "nrw.ics", christmas)
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var mu sync.Mutex // a bubble's time does not order what its goroutines do
			reports := 0
			var next time.Time
			eve := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
			go Watch(ctx, path, time.Second, func() {
				mu.Lock()
				defer mu.Unlock()
				reports++
				if table, err := Load(path, nil); err == nil {
					next = table.Jobs[0].Schedule.Next(eve)
				}
			})
			expect := func(n int, hours time.Duration) {
				t.Helper()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if reports != n || !next.Equal(eve.Add(hours*time.Hour)) {
					t.Errorf("%d reports, not %d, and the next tick is %s", reports, n, next)
				}
			}
			expect(1, 69)
			// Of another size: real files may keep their time of writing for a few milliseconds, which are hours here.
			put(t, dir, "nrw.ics", strings.Replace(strings.Replace(christmas, "1227", "1228", 1), "Christmas", "Xmas", 1))
			expect(2, 93)
			put(t, dir, "nrw.ics", "broken")
			expect(3, 93) // the caller learns of it, and goes on with the table before
			if err := os.Remove(filepath.Join(dir, "nrw.ics")); err != nil {
				t.Fatal(err)
			}
			expect(4, 93)
			put(t, dir, "nrw.ics", christmas)
			expect(5, 69)
		})
	}
}

func TestEachFileOfCalendarsIsWatched(t *testing.T) {
	two := strings.Replace(withFile, "calendars: {", "calendars: {another: {file: another.ics}, ", 1)
	if two == withFile {
		t.Fatal("the table has no calendars")
	}
	dir := folder(t, map[string]string{"table.yaml": two, "nrw.ics": christmas, "another.ics": christmas})
	want := []string{filepath.Join(dir, "another.ics"), filepath.Join(dir, "nrw.ics")}
	for _, path := range []string{dir, filepath.Join(dir, "table.yaml")} {
		text, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := calendarPaths(path, text); !slices.Equal(got, want) {
			t.Errorf("of %s these are watched: %q", path, got)
		}
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

func TestADynamicJobCanHaveAListAndEveryButNoCalendars(t *testing.T) {
	const body = `{"schedule": ["0 9 * * MON", "@daily"], "every": {"weeks": 2, "from": "2026-01-05"}, "http": {"url": "http://127.0.0.1/x"}`
	j, err := ParseJob("a", []byte(body+"}"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseJob("a", j.Source)
	if err != nil || again.Content != j.Content || len(again.Schedule.Expressions()) != 2 || again.Days.Every.Weeks != 2 {
		t.Errorf("%s is read again as %+v, %v", j.Source, again, err)
	}
	if _, err := ParseJob("a", []byte(body+`, "exclude": ["holidays"]}`)); err == nil || !strings.Contains(err.Error(), `"exclude" is for jobs of the table alone`) {
		t.Errorf("%v", err)
	}
}

// TestAFoldedLineCostsNoMoreThanItsFile: each continuation would copy all before it.
func TestAFoldedLineCostsNoMoreThanItsFile(t *testing.T) {
	text := "BEGIN:VCALENDAR\nX-A:b\n" + strings.Repeat(" c\n", 300_000) + "END:VCALENDAR\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := parseICS([]byte(text)); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<30 {
		t.Errorf("%d MiB were taken for a file of %d KiB", got>>20, len(text)>>10)
	}
}
