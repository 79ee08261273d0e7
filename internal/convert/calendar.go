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
	maxICSLine  = 1 << 10 // bytes of a property that says something of days, at most. A description may be longer.
)

const (
	icsForm  = "a calendar file is text that begins with BEGIN:VCALENDAR, as calendar programs export it"
	expandIt = "export the calendar with each repetition as an event of its own, or write the days under dates or cron"
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
	var dates bytes.Buffer
	var open []string // the components around the line
	var event icsEvent
	zone := "" // of the events with a time
	for _, l := range unfolded(f.Name, data) {
		name, parameters, value := l.property()
		inside := len(open) > 0 && open[len(open)-1] == "VEVENT"
		switch {
		case name == "BEGIN":
			if open = append(open, strings.ToUpper(value)); open[len(open)-1] == "VEVENT" {
				event = icsEvent{line: l, zone: zone}
			}
		case name == "END":
			if len(open) == 0 || open[len(open)-1] != strings.ToUpper(value) {
				return nil, l.wrong("END has no BEGIN before it", icsForm)
			}
			open = open[:len(open)-1]
			if inside {
				if err := event.write(&dates); err != nil {
					return nil, err
				}
				zone = event.zone
			}
		case inside:
			if err := event.read(l, name, parameters, value); err != nil {
				return nil, err
			}
		}
	}
	if len(open) > 0 {
		return nil, &Error{f.Name, "it ends within an event or the calendar", "is the file complete? it must end with END:VCALENDAR"}
	}
	var b bytes.Buffer
	comment(&b, "", "", "Made by `solotick import calendar` from "+oneLine(f.Name))
	name := strings.TrimLeft(slug(strings.TrimSuffix(filepath.Base(f.Name), filepath.Ext(f.Name))), "0123456789.-")
	if name == "" {
		name = "days"
	}
	fmt.Fprintf(&b, "calendars:\n  %s:\n", name)
	if zone != "" {
		fmt.Fprintf(&b, "    timeZone: %s\n", zone)
	}
	b.WriteString("    dates:\n")
	return append(b.Bytes(), dates.Bytes()...), nil
}

// icsLine is a line of an iCalendar file, its continuations joined.
type icsLine struct {
	file   string
	number int // of its first line in the file
	text   string
}

func (l icsLine) wrong(why, hint string) error {
	return &Error{fmt.Sprintf("%s:%d", l.file, l.number), why, hint}
}

// unfolded joins lines that begin with a blank to those before them, as far as they may matter.
func unfolded(file string, data []byte) (lines []icsLine) {
	number := 0
	for text := range strings.Lines(string(data)) {
		number++
		text = strings.TrimRight(text, "\r\n")
		switch n := len(lines) - 1; {
		case n >= 0 && text != "" && (text[0] == ' ' || text[0] == '\t'):
			if len(lines[n].text) < maxICSLine {
				lines[n].text += text[1:]
			}
		case text != "":
			lines = append(lines, icsLine{file, number, text})
		}
	}
	return lines
}

// property returns the parts of a line. The texts of parameters may have colons in quotes.
func (l icsLine) property() (name, parameters, value string) {
	quoted := false
	for i, r := range l.text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ':' && !quoted:
			name, parameters, _ = strings.Cut(l.text[:i], ";")
			return strings.ToUpper(name), parameters, strings.TrimSpace(l.text[i+1:])
		}
	}
	return strings.ToUpper(l.text), "", ""
}

// icsEvent is what matters of an event.
type icsEvent struct {
	line       icsLine
	start, end schedule.Day // end is not part of it
	has, ends  bool
	cancelled  bool
	timed      bool   // it begins at a midnight, and not with a day
	zone       string // of the midnights; "" = that of the job
	length     schedule.Day
	summary    string
}

var (
	icsDays = regexp.MustCompile(`^\+?P([0-9]{1,5})([DW])$`)
	icsDay  = regexp.MustCompile(`^([0-9]{8})(T000000(Z?))?$`)
	icsZone = regexp.MustCompile(`(?i)(?:^|;)TZID="?([A-Za-z0-9_+/-]*)`)
)

func (e *icsEvent) read(l icsLine, name, parameters, value string) (err error) {
	switch name {
	case "RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID":
		return l.wrong(name+": repetitions are not supported", expandIt)
	case "DTSTART":
		e.start, err = e.day(l, name, parameters, value)
		e.has = true
	case "DTEND":
		e.end, err = e.day(l, name, parameters, value)
		e.ends = true
	case "DURATION":
		m := icsDays.FindStringSubmatch(strings.ToUpper(value))
		if m == nil {
			return l.wrong("DURATION is not a number of days or weeks", "give the event a last day, or write its days under dates")
		}
		n, _ := strconv.Atoi(m[1])
		e.length = schedule.Day(n * map[string]int{"D": 1, "W": 7}[m[2]])
	case "STATUS":
		e.cancelled = strings.EqualFold(value, "CANCELLED")
	case "SUMMARY":
		e.summary = oneLine(value)
	}
	return err
}

// day reads a day, or the midnight at which it begins.
func (e *icsEvent) day(l icsLine, name, parameters, value string) (schedule.Day, error) {
	m := icsDay.FindStringSubmatch(value)
	if m == nil {
		return 0, l.wrong(name+" is neither a day, such as 20261225, nor a midnight: only events of whole days are supported",
			"make it an all-day event, or write its days under dates")
	}
	if m[2] != "" {
		e.timed = true
		zone := map[bool]string{true: "UTC"}[m[3] != ""]
		if z := icsZone.FindStringSubmatch(parameters); z != nil {
			zone = z[1]
		}
		switch {
		case zone != "" && !zoneKnown(zone):
			return 0, l.wrong(fmt.Sprintf("%q is not a time zone known on this machine", zone), "write an IANA name, as Europe/Berlin")
		case zone != "" && e.zone != "" && e.zone != zone:
			return 0, l.wrong("this midnight is in another time zone than one before it", "import a file for each zone")
		}
		e.zone = cmp.Or(zone, e.zone)
	}
	d, err := schedule.ParseDay(m[1][:4] + "-" + m[1][4:6] + "-" + m[1][6:])
	if err != nil {
		return 0, l.wrong(fmt.Sprintf("%s: %v", name, err), "")
	}
	return d, nil
}

// write writes the days of an event as an item of dates; nothing if it is cancelled.
func (e *icsEvent) write(b *bytes.Buffer) error {
	if !e.ends {
		e.end = e.start + e.length
	}
	switch {
	case !e.has:
		return e.line.wrong("this event has no DTSTART", "")
	case e.cancelled:
		return nil
	case e.end < e.start && e.ends:
		return e.line.wrong("this event ends before it begins", "")
	case e.timed && e.end == e.start:
		return e.line.wrong("this event begins at a midnight and lasts no day", "make it an all-day event")
	}
	span := schedule.Span{From: e.start, To: max(e.end-1, e.start)} // some programs write a day's own date as its end
	fmt.Fprintf(b, "      - %s", span)
	if e.summary != "" {
		fmt.Fprintf(b, " # %s", e.summary)
	}
	b.WriteByte('\n')
	return nil
}
