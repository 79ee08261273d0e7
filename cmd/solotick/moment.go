package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
	"github.com/solotick/solotick/config/strict"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// longest bounds durations on the command line: longer ones are typing errors.
const longest = 100 * 365 * 24 * time.Hour

// badValue is why the value of a flag cannot be used.
type badValue struct {
	why   string // begins with the value
	forms string // examples
}

func (b *badValue) Error() string { return b.why }

// length is a duration on the command line. Its units are those of Go, and d, which is 24 hours.
type length struct {
	time.Duration        // 0 = not given
	example       string // of the flag, for a hint
}

func (l *length) Set(text string) error {
	d, ok := parseLength(text)
	switch {
	case !ok:
		return &badValue{fmt.Sprintf("%q is not a duration", text), l.example}
	case d <= 0:
		return &badValue{fmt.Sprintf("%s is not a positive duration", d), l.example}
	}
	l.Duration = d
	return nil
}

func (l *length) Type() string { return "duration" }

// String writes a duration without units that are zero: 48h, not 48h0m0s. The table and the API read it.
func (l *length) String() string {
	if l.Duration == 0 {
		return ""
	}
	return strict.ShortDuration(l.Duration)
}

// days matches the days that begin a duration.
var days = regexp.MustCompile(`^([-+]?)([0-9]{1,5}(?:\.[0-9]{1,3})?)d`)

func parseLength(text string) (time.Duration, bool) {
	var d time.Duration
	rest := text
	if m := days.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseFloat(m[2], 64) // the expression admits only numbers
		d = time.Duration(n * 24 * float64(time.Hour))
		rest = cmp.Or(text[len(m[0]):], "0s")
		if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
			return 0, false
		}
		if m[1] == "-" {
			d, rest = -d, "-"+rest
		}
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more.Abs() > longest || (d+more).Abs() > longest {
		return 0, false
	}
	return d + more, true
}

// moment is a time on the command line.
type moment struct {
	ahead bool // a time of day or a duration without a sign is the next one, not the last one
	tick  bool // of two instants it is the one that is a tick
	end   bool // of two instants it is the last one
	text  string
	read  reader
}

// reader reads a time by the clocks of a zone.
type reader func(now time.Time, zone *time.Location) reading

type reading struct {
	schedule.Reading
	bare bool // another zone gives another instant, and neither the text nor a day says which one is meant
}

func (m *moment) Set(text string) error {
	read, ok := parseMoment(text, m.ahead)
	if !ok {
		return &badValue{fmt.Sprintf("%q is not a time", text), momentForms}
	}
	m.text, m.read = text, read
	return nil
}

func (m *moment) Type() string   { return "time" }
func (m *moment) String() string { return m.text }
func (m *moment) given() bool    { return m.read != nil }

// or returns the time, or else the other one. Text without a zone is UTC.
func (m *moment) or(otherwise, now time.Time) time.Time {
	if !m.given() {
		return otherwise
	}
	return m.read(now, time.UTC).First
}

// field returns the time for a request about one job. Text without a zone is in the job's zone, and is refused if it is
// also a tick as UTC.
func (m *moment) field(flag string, j config.Job, now time.Time) (service.Moment, error) {
	f := service.Moment{Field: service.Field{Name: flag, Text: m.text}}
	if !m.given() {
		return f, nil
	}
	zone := view.Zone(j.TimeZone) // UTC if the table names a variable that is not set here
	isTick := func(t time.Time) bool { return j.Schedule != nil && j.Schedule.Last(t).Equal(t) }
	r, other := m.read(now, zone), m.read(now, time.UTC).First
	f.Time = r.First
	if m.end || m.tick && !isTick(r.First) && isTick(r.Last) {
		f.Time = r.Last
	}
	if r.bare && !other.Equal(f.Time) && isTick(other) && isTick(f.Time) {
		one, two := formatTime(f.Time), formatTime(other)
		return f, usage(fmt.Sprintf("%s %s, or %[1]s %[3]s", flag, one, two),
			"%q is two ticks of job %q: %s by the clocks of %s, and %s in UTC", m.text, j.Name, one, zone, two)
	}
	if !r.Skipped.IsZero() {
		f.Text += fmt.Sprintf(" (skipped by the clocks of %s, which show %s)", zone, f.In(zone).Format("15:04:05 MST"))
	}
	return f, nil
}

// The help of a flag says this about its time.
const (
	timeHelp      = ", as RFC 3339, 2027-03-28, 18:00 or -1h; UTC without a zone"
	timeAheadHelp = ", as RFC 3339, 2027-03-28, 18:00 or +1h; UTC without a zone"
	timeOfJobHelp = ", as RFC 3339, 2027-03-28, 18:00 or -1h; otherwise in the job's zone"
)

// momentForms are the forms of a moment, in a hint.
const momentForms = "2027-03-28T06:00:00Z, 2027-03-28, 18:00, yesterday or -1h"

// parseMoment reads a time: RFC 3339; a date, which is its midnight; a date and a time of day; a time of day; now,
// today, yesterday or tomorrow; or a duration from now. ahead decides for 18:00 and 2h: the next 18:00 and in two
// hours, or the last 18:00 and two hours ago. A time with Z or UTC behind it is in UTC.
func parseMoment(text string, ahead bool) (read reader, ok bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			return func(time.Time, *time.Location) reading { return exactly(t) }, true
		}
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return func(_ time.Time, zone *time.Location) reading { return midnight(day, zone) }, true
	}
	if after, known := map[string]int{"yesterday": -1, "today": 0, "tomorrow": 1}[text]; known {
		return func(now time.Time, zone *time.Location) reading {
			return midnight(dayOf(now, zone).AddDate(0, 0, after), zone)
		}, true
	}
	bare := strings.TrimSuffix(strings.TrimSuffix(text, "z"), " utc")
	for _, layout := range []string{"2006-01-02 15:04", time.DateTime, "15:04", time.TimeOnly} {
		if t, err := time.Parse(layout, strings.Replace(bare, "t", " ", 1)); err == nil {
			return func(now time.Time, zone *time.Location) reading {
				if bare != text {
					zone = time.UTC
				}
				if t.Year() > 0 {
					return reading{schedule.Clocks(zone, t), bare == text}
				}
				return reading{nearest(now, t.Sub(t.Truncate(24*time.Hour)), zone, ahead), bare == text}
			}, true
		}
	}
	if text == "now" {
		return func(now time.Time, _ *time.Location) reading { return exactly(now) }, true
	}
	d, ok := parseLength(text)
	if !ok || d == 0 {
		return nil, false
	}
	if signed := text[0] == '+' || text[0] == '-'; !signed && !ahead {
		d = -d
	}
	return func(now time.Time, _ *time.Location) reading { return exactly(now.Add(d)) }, true
}

// exactly returns a time that is the same in all zones.
func exactly(t time.Time) reading { return reading{Reading: schedule.Reading{First: t, Last: t}} }

// dayOf returns the day that the clocks of a zone show, as its midnight in UTC.
func dayOf(now time.Time, zone *time.Location) time.Time {
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// midnight returns the first instant of a day.
func midnight(day time.Time, zone *time.Location) reading {
	r := schedule.Clocks(zone, day)
	return exactly(cmp.Or(r.Skipped, r.First))
}

// nearest reads the next time of day of clock after now, or else the last one that has come.
func nearest(now time.Time, clock time.Duration, zone *time.Location, ahead bool) schedule.Reading {
	day := dayOf(now, zone).Add(clock)
	switch r := schedule.Clocks(zone, day); {
	case ahead && !r.First.After(now):
		return schedule.Clocks(zone, day.AddDate(0, 0, 1))
	case !ahead && r.First.After(now):
		return schedule.Clocks(zone, day.AddDate(0, 0, -1))
	default:
		return r
	}
}
