package convert

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/solotick/solotick/config"
)

func calendarOf(events string) ([]byte, error) {
	return Calendar(Input{"nrw.ics", []byte("BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + events + "\nEND:VEVENT\nEND:VCALENDAR")})
}

func TestTheDaysOfEventsAreRead(t *testing.T) {
	for events, want := range map[string]string{
		"DTSTART:20261225":                                                               "2026-12-25",
		"DTSTART:20261225\nDTEND:20261225":                                               "2026-12-25",
		"DTSTART:20261225\nDTEND:20261226":                                               "2026-12-25",
		"DTSTART:20261225\nDTEND:20270102\nSUMMARY:Closed\\, a":                          `2026-12-25..2027-01-01 # Closed\, a`,
		"DTSTART:20261225\nDURATION:P2D":                                                 "2026-12-25..2026-12-26",
		"DTSTART:20261225\nDURATION:P1W":                                                 "2026-12-25..2026-12-31",
		"dtstart;value=date:20261\n 225\nSTATUS:FIRM":                                    "2026-12-25",
		"DTSTART:20261225\nSTATUS:CANCELLED\nEND:VEVENT\nBEGIN:VEVENT\nDTSTART:20261226": "2026-12-26",
		// A cancelled event has no say in the zone either.
		"DTSTART:20261225T000000Z\nSTATUS:CANCELLED\nDURATION:P1D\nEND:VEVENT\nBEGIN:VEVENT\nDTSTART:20261226": "2026-12-26",
		"BEGIN:VALARM\nDURATION:PT5M\nEND:VALARM\nDTSTART:20261225":                                            "2026-12-25",
		// From midnight to midnight: the end is no part of the event.
		"DTSTART:20261225T000000\nDTEND:20261226T000000":                                               "2026-12-25",
		"DTSTART:20261225T000000\nDURATION:P2D":                                                        "2026-12-25..2026-12-26",
		"DTSTART:20261225T000000Z\nDTEND:20261227T000000Z":                                             "zone UTC 2026-12-25..2026-12-26",
		"DTSTART;TZID=Asia/Tokyo:20261225T000000\nDTEND;X=\"a:b\";TZID=\"Asia/Tokyo\":20261228T000000": "zone Asia/Tokyo 2026-12-25..2026-12-27",
	} {
		made, err := calendarOf(events)
		got := strings.Join(strings.Fields(strings.NewReplacer("# Made by `solotick-import calendar` from nrw.ics\ncalendars:\n  nrw:\n", "",
			"timeZone:", "zone", "dates:\n", "", "- ", "").Replace(string(made))), " ")
		if err != nil || got != want {
			t.Errorf("%q: %q %v, not %q", events, made, err, want)
		}
	}
}

func TestACalendarThatCannotBeReadSaysWhere(t *testing.T) {
	const event = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nX-NOTE;LABEL=\"a:b\":folded\n  text\nDTSTART;VALUE=DATE:20261225\nEND:VEVENT\nEND:VCALENDAR\n"
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"DTSTART;VALUE=DATE:20261225", "RRULE:FREQ=YEARLY", "nrw.ics:5: RRULE: repetitions are not supported"},
		{"DTSTART;VALUE=DATE:20261225", "RDATE:20261225", "nrw.ics:5: RDATE: repetitions"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:20261225T090000Z", "nrw.ics:5: DTSTART is neither a day"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:20261225T000000", "nrw.ics:2: this event begins at a midnight and lasts no day"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:20261225T000000\nDTEND:20261225T000000", "lasts no day"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:20261225T000000\nDTEND:20261225T180000", "nrw.ics:6: DTEND is neither a day"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART;TZID=Mars:20261225T000000", "nrw.ics:5: \"Mars\" is not a time zone"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART;TZID=GMT Standard Time:20261225T000000", "nrw.ics:5: \"GMT Standard Time\" is not a time zone"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART;TZID=Asia/Tokyo:20261225T000000\nDTEND:20261226T000000Z", "nrw.ics:6: this midnight is in another time zone"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:20261325", "not a day such as"},
		{"DTSTART;VALUE=DATE:20261225", "DTSTART:22991225", "out of range"},
		{"DTSTART;VALUE=DATE:20261225", "X:Y", "nrw.ics:2: this event has no DTSTART"},
		{"END:VEVENT", "DTEND:20261224\nEND:VEVENT", "nrw.ics:2: this event ends before it begins"},
		{"END:VEVENT", "DURATION:PT1H\nEND:VEVENT", "nrw.ics:6: DURATION is not a number of days"},
		{"END:VEVENT\n", "END:VEVENT\nBEGIN:VEVENT\nDTSTART:20261226T000000Z\nDURATION:P1D\nEND:VEVENT\n" +
			"BEGIN:VEVENT\nDTSTART;TZID=Asia/Tokyo:20261227T000000\nDURATION:P1D\nEND:VEVENT\n", "nrw.ics:11: this event has another time zone"},
		{"END:VEVENT", "STATUS:CANCELLED\nEND:VEVENT", "nrw.ics: it has no days: it has no event, or all its events are cancelled"},
		{"END:VEVENT\n", "", "nrw.ics:6: END has no BEGIN"},
		{"END:VCALENDAR\n", "", "nrw.ics: it ends within"},
		{"BEGIN:VCALENDAR", "<html>", "nrw.ics: it is not an iCalendar file"},
		{"folded", strings.Repeat("x", 1<<20), "nrw.ics: it is larger than 1 MiB"},
	} {
		_, err := Calendar(Input{"nrw.ics", []byte(strings.Replace(event, c.old, c.new, 1))})
		if c.want == "" {
			if err != nil {
				t.Errorf("a good file: %v", err)
			}
			continue
		}
		var unreadable *Error
		if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant it to say %s", c.new, err, c.want)
		}
	}
}

func TestACalendarIsNamedAfterItsFile(t *testing.T) {
	for file, want := range map[string]string{"/x/2026 Feiertage NRW.ics": "feiertage-nrw", "stdin": "stdin", "2026.ics": "days", "": "days"} {
		made, err := Calendar(Input{file, []byte("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261225\nEND:VEVENT\nEND:VCALENDAR\n")})
		if err != nil || !strings.Contains(string(made), "\ncalendars:\n  "+want+":\n") {
			t.Errorf("%s: %s, %v", file, made, err)
		}
	}
}

// FuzzCalendar: no file panics, and a calendar that is made can stand in a table, except one with days
// that no table takes.
func FuzzCalendar(f *testing.F) {
	f.Add("BEGIN:VEVENT\nSUMMARY:Christmas\nDTSTART;TZID=Europe/Berlin:20261225T000000\nDTEND:20261227T000000\nEND:VEVENT\n")
	f.Add("BEGIN:VEVENT\nSUMMARY:#\u2028 '\nDTSTART:20261225\nDURATION:P7D\nEND:VEVENT\n")
	f.Fuzz(func(t *testing.T, events string) {
		made, err := Calendar(Input{"a.ics", []byte("BEGIN:VCALENDAR\n" + events + "END:VCALENDAR\n")})
		if err != nil {
			return
		}
		_, err = config.Parse("table.yaml", []byte("service: s\njobs: []\n"+string(made)), nil)
		if err != nil && !strings.Contains(err.Error(), "out of range") && !strings.Contains(err.Error(), "at most 10000 dates") {
			t.Errorf("%s\n%v", made, err)
		}
	})
}

// TestAFoldedLineCostsNoMoreThanItsFile: each continuation would copy all before it.
func TestAFoldedLineCostsNoMoreThanItsFile(t *testing.T) {
	text := "BEGIN:VCALENDAR\nX-A:b\n" + strings.Repeat(" c\n", 300_000) + "BEGIN:VEVENT\nDTSTART:20261225\nEND:VEVENT\nEND:VCALENDAR\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Calendar(Input{"a.ics", []byte(text)}); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<30 {
		t.Errorf("%d MiB were taken for a file of %d KiB", got>>20, len(text)>>10)
	}
}
