package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/solotick/solotick/config/schedule"
)

// icsError is a line of a calendar file that cannot be read.
type icsError struct {
	line      int // 0 = the file as a whole
	why, hint string
}

const expandIt = "export the calendar with each repetition as an event of its own, or write the days under dates or cron"

// parseICS returns the days of the all-day events of an iCalendar file (RFC 5545). It reads events alone, and refuses
// what it would have to understand: repetitions, and events with a time of day. Cancelled events count as absent.
func parseICS(data []byte) ([]schedule.Span, *icsError) {
	const form = "a calendar file is text that begins with BEGIN:VCALENDAR, as calendar programs export it"
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) || !bytes.HasPrefix(bytes.ToUpper(data[:min(len(data), 15)]), []byte("BEGIN:VCALENDAR")) {
		return nil, &icsError{0, "it is not an iCalendar file", form}
	}
	var spans []schedule.Span
	var open []string // the components around the line
	var event icsEvent
	for _, l := range unfolded(data) {
		name, value := l.property()
		inside := len(open) > 0 && open[len(open)-1] == "VEVENT"
		switch {
		case name == "BEGIN":
			if open = append(open, strings.ToUpper(value)); open[len(open)-1] == "VEVENT" {
				event = icsEvent{line: l.number}
			}
		case name == "END":
			if len(open) == 0 || open[len(open)-1] != strings.ToUpper(value) {
				return nil, &icsError{l.number, "END:" + short(value) + " has no BEGIN before it", form}
			}
			open = open[:len(open)-1]
			if inside {
				span, ok, err := event.days()
				if err != nil {
					return nil, err
				}
				if ok {
					spans = append(spans, span)
				}
			}
		case inside:
			if err := event.read(l.number, name, value); err != nil {
				return nil, err
			}
		}
	}
	if len(open) > 0 {
		return nil, &icsError{0, "it ends within " + short(open[len(open)-1]), "is the file complete? it must end with END:VCALENDAR"}
	}
	return spans, nil
}

// icsLine is a line of an iCalendar file, its continuations joined.
type icsLine struct {
	number int // of its first line in the file
	text   string
}

// maxICSLine is longer, in bytes, than a property that says something of days. A description may be longer.
const maxICSLine = 1 << 10

// unfolded joins lines that begin with a blank to those before them, as far as they may matter.
func unfolded(data []byte) (lines []icsLine) {
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
			lines = append(lines, icsLine{number, text})
		}
	}
	return lines
}

// property returns the name of a line's property, and its value. Between them are parameters, whose texts may have
// colons in quotes.
func (l icsLine) property() (name, value string) {
	quoted := false
	for i, r := range l.text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ':' && !quoted:
			name, _, _ = strings.Cut(l.text[:i], ";")
			return strings.ToUpper(name), strings.TrimSpace(l.text[i+1:])
		}
	}
	return strings.ToUpper(l.text), ""
}

// icsEvent is what matters of an event.
type icsEvent struct {
	line       int
	start, end schedule.Day // end is not part of it
	has, ends  bool
	cancelled  bool
	length     schedule.Day
}

var icsDays = regexp.MustCompile(`^\+?P([0-9]{1,5})([DW])$`)

func (e *icsEvent) read(line int, name, value string) (err *icsError) {
	switch name {
	case "RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID":
		return &icsError{line, name + ": repetitions are not supported", expandIt}
	case "DTSTART":
		e.start, err = icsDay(line, name, value)
		e.has = true
	case "DTEND":
		e.end, err = icsDay(line, name, value)
		e.ends = true
	case "DURATION":
		m := icsDays.FindStringSubmatch(strings.ToUpper(value))
		if m == nil {
			return &icsError{line, "DURATION is not a number of days or weeks", "give the event a last day, or write its days under dates"}
		}
		n, _ := strconv.Atoi(m[1])
		e.length = schedule.Day(n * map[string]int{"D": 1, "W": 7}[m[2]])
	case "STATUS":
		e.cancelled = strings.EqualFold(value, "CANCELLED")
	}
	return err
}

func icsDay(line int, name, value string) (schedule.Day, *icsError) {
	t, err := time.Parse("20060102", value)
	if err != nil {
		return 0, &icsError{line, fmt.Sprintf("%s is not a whole day such as 20261225: only all-day events are supported", name),
			"make it an all-day event, or write its days under dates"}
	}
	d, err := schedule.ParseDay(t.Format(time.DateOnly))
	if err != nil {
		return 0, &icsError{line, fmt.Sprintf("%s: %v", name, err), ""}
	}
	return d, nil
}

// days returns the days of an event; none if it is cancelled.
func (e *icsEvent) days() (schedule.Span, bool, *icsError) {
	switch {
	case !e.has:
		return schedule.Span{}, false, &icsError{e.line, "this event has no DTSTART", ""}
	case e.cancelled:
		return schedule.Span{}, false, nil
	case !e.ends:
		e.end = e.start + max(e.length, 1)
	case e.end < e.start:
		return schedule.Span{}, false, &icsError{e.line, "this event ends before it begins", ""}
	}
	return schedule.Span{From: e.start, To: max(e.end-1, e.start)}, true, nil // some programs write a day's own date as its end
}

// short cuts a text from the file for a message.
func short(text string) string {
	if len(text) > 20 {
		return strings.ToValidUTF8(text[:20], "") + "…"
	}
	return text
}
