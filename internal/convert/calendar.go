package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/solotick/solotick/config/schedule"
)

const (
	maxCalendar = 1 << 20 // bytes of an iCalendar file
	maxICSLine  = 1 << 10 // bytes of a property that says something of days, at most; a description may be longer

	icsForm  = "a calendar file is text that begins with BEGIN:VCALENDAR, as calendar programs export it"
	expandIt = "export the calendar with each repetition as an event of its own, or write the days under dates or cron"
	wholeDay = "make it an all-day event, or write its days under dates"
)

// Calendar makes a calendar for a table of an iCalendar file (RFC 5545): the days of its all-day events. An event from
// midnight to midnight is whole days too. It refuses what it would have to understand: repetitions, and other times of
// day. Cancelled events count as absent.
func Calendar(f Input) ([]byte, error) {
	data := bytes.TrimPrefix(f.Data, []byte("\ufeff"))
	switch {
	case len(data) > maxCalendar:
		return nil, &Error{f.Name, "it is larger than 1 MiB", ""}
	case !utf8.Valid(data) || !bytes.HasPrefix(bytes.ToUpper(data[:min(len(data), 15)]), []byte("BEGIN:VCALENDAR")):
		return nil, &Error{f.Name, "it is not an iCalendar file", icsForm}
	}
	r := icsReader{file: f.Name}
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines); {
		r.line = i + 1
		text := strings.TrimRight(lines[i], "\r")
		for i++; i < len(lines) && strings.TrimLeft(lines[i], " \t") != lines[i]; i++ { // it goes on
			if len(text) < maxICSLine {
				text += strings.TrimRight(lines[i][1:], "\r")
			}
		}
		if err := r.read(text); err != nil {
			return nil, err
		}
	}
	if len(r.open) > 0 {
		return nil, &Error{f.Name, "it ends within " + r.open[len(r.open)-1],
			"is the file complete? it must end with END:VCALENDAR"}
	}
	if r.dates.Len() == 0 {
		return nil, &Error{f.Name, "it has no days: it has no event, or all its events are cancelled", ""}
	}
	var b bytes.Buffer
	comment(&b, "", "", "Made by `solotick-import calendar` from "+oneLine(f.Name))
	name := strings.TrimLeft(slug(strings.TrimSuffix(filepath.Base(f.Name), filepath.Ext(f.Name))), "0123456789.-")
	fmt.Fprintf(&b, "calendars:\n  %s:\n", cmp.Or(name, "days"))
	if r.zone != "" {
		fmt.Fprintf(&b, "    timeZone: %s\n", r.zone)
	}
	b.WriteString("    dates:\n")
	return append(b.Bytes(), r.dates.Bytes()...), nil
}

type icsReader struct {
	file  string
	line  int      // the number of the line that is read
	open  []string // the components around it
	event icsEvent
	zone  string // of all days; "" = that of the job
	dates bytes.Buffer
}

// icsEvent is what matters of an event.
type icsEvent struct {
	line       int
	start, end schedule.Day // end is not part of it
	has, ends  bool
	timed      bool   // it begins or ends with a midnight, and not with a day
	zone       string // of its midnights
	cancelled  bool
	summary    string
	lasts      schedule.Day // by its DURATION
}

var (
	icsLine = regexp.MustCompile(`^([^;:]*)((?:;(?:"[^"]*"|[^":])*)?):(.*)$`)
	icsDays = regexp.MustCompile(`^\+?P([0-9]{1,5})([DW])$`)
	icsDay  = regexp.MustCompile(`^([0-9]{4})([0-9]{2})([0-9]{2})(T000000(Z?))?$`)
	icsZone = regexp.MustCompile(`(?i);TZID="?([^";]*)`)
)

func (r *icsReader) wrong(line int, why, hint string) error {
	return &Error{fmt.Sprintf("%s:%d", r.file, line), why, hint}
}

// read reads a line, its continuations joined.
func (r *icsReader) read(text string) (err error) {
	m := icsLine.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	name, parameters, value := strings.ToUpper(m[1]), m[2], strings.TrimSpace(m[3])
	e := &r.event
	inside := len(r.open) > 0 && r.open[len(r.open)-1] == "VEVENT"
	switch {
	case name == "BEGIN":
		if r.open = append(r.open, strings.ToUpper(value)); strings.EqualFold(value, "VEVENT") {
			r.event = icsEvent{line: r.line}
		}
	case name == "END":
		if len(r.open) == 0 || r.open[len(r.open)-1] != strings.ToUpper(value) {
			return r.wrong(r.line, "END has no BEGIN before it", icsForm)
		}
		if r.open = r.open[:len(r.open)-1]; inside {
			return r.ended()
		}
	case !inside:
	case name == "RRULE", name == "RDATE", name == "EXDATE", name == "EXRULE", name == "RECURRENCE-ID":
		return r.wrong(r.line, name+": repetitions are not supported", expandIt)
	case name == "DTSTART":
		e.start, err = r.day(name, parameters, value)
		e.has = true
	case name == "DTEND":
		e.end, err = r.day(name, parameters, value)
		e.ends = true
	case name == "DURATION":
		m := icsDays.FindStringSubmatch(strings.ToUpper(value))
		if m == nil {
			return r.wrong(r.line, "DURATION is not a number of days or weeks",
				"give the event a last day, or write its days under dates")
		}
		n, _ := strconv.Atoi(m[1])
		e.lasts = schedule.Day(n * map[string]int{"D": 1, "W": 7}[m[2]])
	case name == "STATUS":
		e.cancelled = strings.EqualFold(value, "CANCELLED")
	case name == "SUMMARY":
		e.summary = oneLine(value)
	}
	return err
}

// day reads a day, or the midnight at which it begins.
func (r *icsReader) day(name, parameters, value string) (schedule.Day, error) {
	m := icsDay.FindStringSubmatch(value)
	if m == nil {
		return 0, r.wrong(r.line, name+" is neither a day, such as 20261225, nor a midnight: "+
			"only events of whole days are supported", wholeDay)
	}
	if m[4] != "" {
		r.event.timed = true
		zone := map[bool]string{true: "UTC"}[m[5] != ""]
		if z := icsZone.FindStringSubmatch(parameters); z != nil {
			zone = z[1]
		}
		switch {
		case zone != "" && !zoneKnown(zone):
			return 0, r.wrong(r.line, fmt.Sprintf("%q is not a time zone known on this machine", zone),
				"write an IANA name, as Europe/Berlin")
		case zone != "" && r.event.zone != "" && r.event.zone != zone:
			return 0, r.wrong(r.line, "this midnight is in another time zone than the one before it", wholeDay)
		}
		r.event.zone = cmp.Or(zone, r.event.zone)
	}
	d, err := schedule.ParseDay(strings.Join(m[1:4], "-"))
	if err != nil {
		return 0, r.wrong(r.line, fmt.Sprintf("%s: %v", name, err), "")
	}
	return d, nil
}

// ended writes the days of the event as an item of dates, unless it is cancelled.
func (r *icsReader) ended() error {
	e := &r.event
	if !e.ends {
		e.end = e.start + e.lasts
	}
	switch {
	case !e.has:
		return r.wrong(e.line, "this event has no DTSTART", "")
	case e.cancelled:
		return nil
	case e.end < e.start:
		return r.wrong(e.line, "this event ends before it begins", "")
	case e.timed && e.end == e.start:
		return r.wrong(e.line, "this event begins at a midnight and lasts no day", wholeDay)
	case e.zone != "" && r.zone != "" && e.zone != r.zone:
		return r.wrong(e.line, "this event has another time zone than one before it", "import a file for each zone")
	}
	r.zone = cmp.Or(e.zone, r.zone)                                 // a day without a zone is that day in each of them
	span := schedule.Span{From: e.start, To: max(e.end-1, e.start)} // some programs write a day's own date as its end
	fmt.Fprintf(&r.dates, "      - %s", span)
	if e.summary != "" {
		fmt.Fprintf(&r.dates, " # %s", e.summary)
	}
	r.dates.WriteByte('\n')
	return nil
}
