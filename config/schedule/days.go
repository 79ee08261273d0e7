package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"time"
)

// Day is a day of the calendar, counted from 1970-01-01.
type Day int64

// ParseDay reads a day as 2026-12-25, in the years that a year field accepts.
func ParseDay(text string) (Day, error) {
	t, err := time.Parse(time.DateOnly, text)
	switch {
	case err != nil:
		return 0, errors.New("it is not a day such as 2026-12-25")
	case t.Year() < firstYear || t.Year() > lastYear:
		return 0, fmt.Errorf("it is out of range: allowed are the years %d to %d", firstYear, lastYear)
	}
	return Day(t.Unix() / day), nil
}

func (d Day) String() string { return time.Unix(int64(d)*day, 0).UTC().Format(time.DateOnly) }

// MarshalText writes the day as ParseDay reads it.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Span is a number of days in a row, both ends included.
type Span struct{ From, To Day }

func (s Span) String() string {
	if s.From == s.To {
		return s.From.String()
	}
	return s.From.String() + ".." + s.To.String()
}

// Days is a set of whole days on the wall clocks of a zone, such as a company's holidays. It is immutable.
type Days struct {
	name     string
	spans    []Span     // in order; between two of them is at least one day
	cron     *fieldSets // further days; nil = none
	zone     *zone      // nil = that of the schedule
	cronText string
	zoneName string
}

// NewDays returns the union of spans and of the days that a cron expression names, if it is not "". An empty zone is
// that of the schedule which uses the days. Errors are written for the author of the expression or zone, and do not
// repeat it.
func NewDays(name string, spans []Span, cron, timeZone string) (*Days, error) {
	s := &Days{name: name, spans: joined(spans), cronText: strings.Join(strings.Fields(cron), " "), zoneName: timeZone}
	var err error
	if timeZone != "" {
		if s.zone, err = loadZone(timeZone); err != nil {
			return nil, err
		}
	}
	if s.cronText != "" {
		if s.cron, err = parseDays(s.cronText); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// String writes the set in one form: equal texts are equal sets. The name is not part of it.
func (s *Days) String() string {
	var b strings.Builder
	for _, span := range s.spans {
		b.WriteString(span.String() + " ")
	}
	if s.cron != nil {
		b.WriteString("cron " + s.cronText + " ")
	}
	return b.String() + "in " + cmp.Or(s.zoneName, "the zone of the schedule")
}

// Empty reports whether the set has no day.
func (s *Days) Empty() bool { return len(s.spans) == 0 && s.cron == nil }

// joined sorts spans, and joins those that overlap or follow each other.
func joined(spans []Span) []Span {
	spans = slices.Clone(spans)
	sort.Slice(spans, func(i, j int) bool { return spans[i].From < spans[j].From })
	var out []Span
	for _, s := range spans {
		if n := len(out) - 1; n >= 0 && s.From <= out[n].To+1 {
			out[n].To = max(out[n].To, s.To)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// parseDays reads the days of an expression with five fields.
func parseDays(text string) (*fieldSets, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	words := strings.Fields(text)
	switch {
	case len(words) != 5:
		return nil, errors.New(`the days of a calendar take five fields, such as "* * * * SAT,SUN"`)
	case words[0] != "*" || words[1] != "*":
		return nil, errors.New("a calendar has whole days: its minute and its hour must be *")
	case byName(text):
		return nil, errors.New("an H depends on the name of a job, and a calendar has none")
	}
	s, err := parseFields(words, nil, "")
	if err != nil {
		return nil, err
	}
	of := s.(*clocked).sets
	if _, ok := of.from(0); !ok {
		return nil, errors.New("no day ever matches")
	}
	return &of, nil
}

// farDays is further than any day of a tick, and small enough to count it in seconds.
const farDays = 1 << 40

// run reports whether a day is in the set, and gives days around it of which the same is true.
func (s *Days) run(d int64) (in bool, first, last int64) {
	first, last = -farDays, farDays
	i, _ := slices.BinarySearchFunc(s.spans, Day(d), func(span Span, d Day) int { return cmp.Compare(span.To, d) })
	if i < len(s.spans) && s.spans[i].From <= Day(d) {
		return true, int64(s.spans[i].From), int64(s.spans[i].To)
	}
	if i > 0 {
		first = int64(s.spans[i-1].To) + 1
	}
	if i < len(s.spans) {
		last = int64(s.spans[i].From) - 1
	}
	if s.cron == nil {
		return false, first, last
	}
	in, from, to := s.cron.run(d)
	if in {
		return true, from, to
	}
	return false, max(first, from), min(last, to)
}

// run does the same for the days of a cron schedule. It looks at one month.
func (c *fieldSets) run(d int64) (in bool, first, last int64) {
	y, m, n := time.Unix(d*day, 0).UTC().Date()
	days := c.days(y, m)
	in = days>>n&1 == 1
	if !in {
		days = ^days
	}
	up := int64(bits.TrailingZeros32(^(days >> n)))
	down := int64(bits.LeadingZeros32(^(days << (31 - n))))
	return in, max(d-down+1, daysTo(y, m, 1)), min(d+up-1, daysTo(y, m+1, 1)-1)
}

// at reports whether an instant is in the set, and gives the time around it, up to but not including to, in which the
// same is true.
func (s *Days) at(u int64, zone *zone) (in bool, from, to int64) {
	zone = cmp.Or(s.zone, zone)
	in, first, last := s.run(zone.dayOf(u))
	from, to = zone.daysAround(u, first, last)
	return in, from, to
}

// dayOf returns the day that the wall clock shows.
func (z *zone) dayOf(u int64) int64 { return floor(u+z.at(u).offset, day) }

// daysAround returns the time around u in which the wall clock shows the days from first to last and runs evenly: a
// change of the clocks may show a day again.
func (z *zone) daysAround(u, first, last int64) (from, to int64) {
	s := z.at(u)
	return max(s.start, first*day-s.offset), min(s.end, (last+1)*day-s.offset)
}

// first returns the instant at which the wall clock first shows w. If the clocks skip w, it is later by the length of
// the gap. Up to but not including the wall second until, the difference of both is the same.
func (z *zone) first(w int64) (u, until int64) {
	for i := z.index(w - day); ; i++ {
		s := &z.stretches[i]
		switch {
		case w < s.start+s.offset:
			return w - s.before, s.start + s.offset
		case w-s.offset < s.end:
			return w - s.offset, s.end + s.offset
		}
	}
}

// floor divides and rounds down.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// MarshalText writes the set as String does.
func (s *Days) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
