package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/solotick/solotick/config/schedule"
)

// cronField is one of the five fields of cron(5).
type cronField struct {
	low, high int
	names     []string // of the values from low on
}

var cronFields = [5]cronField{
	{low: 0, high: 59},
	{low: 0, high: 23},
	{low: 1, high: 31},
	{low: 1, high: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
	{low: 0, high: 7, names: strings.Fields("SUN MON TUE WED THU FRI SAT")},
}

// The indexes of the two day fields.
const (
	dayOfMonth = 2
	dayOfWeek  = 4
)

type field struct {
	was  string // as it was written
	text string // as a Solotick schedule has it
	set  uint64 // the values
	star bool   // begins with *; cron then takes a day field as unrestricted
}

// full reports whether every value is in the set.
func (f field) full(place int) bool {
	c := cronFields[place]
	return f.set == uint64(1)<<(c.high+1)-uint64(1)<<c.low
}

// translated is a crontab's schedule in Solotick's dialect.
type translated struct {
	schedule string
	notes    []note
}

// translate turns a crontab's schedule, a word or five fields with a space between them, into one with the same ticks.
func translate(text string) (t translated, err error) {
	if strings.HasPrefix(text, "@") {
		return translateWord(text)
	}
	texts := strings.Split(text, " ")
	fields := make([]field, len(cronFields))
	for i, f := range cronFields {
		ok := false
		if fields[i], ok = f.read(&t, texts[i]); ok {
			continue
		}
		// It is not cron's, but perhaps one of the other dialects that Solotick also knows.
		if _, err := schedule.Parse(text, schedule.Options{}); err != nil {
			return t, fmt.Errorf("schedule %q: %w", text, err)
		}
		t.schedule = text
		t.note("schedule",
			"the schedule is more than cron(5) knows; it is taken as Solotick reads it, see docs/table.md")
		return t, nil
	}
	if err := bothDays(&t, fields); err != nil {
		return t, err
	}
	texts = texts[:0]
	for _, f := range fields {
		texts = append(texts, f.text)
	}
	t.schedule = strings.Join(texts, " ")
	return t, nil
}

func (t *translated) note(about, format string, args ...any) {
	t.notes = append(t.notes, note{about, oneLine(fmt.Sprintf(format, args...))})
}

// translateKubernetes turns a CronJob's schedule into one with the same ticks. Its dialect differs little: ? stands for
// * everywhere, and a step may lead out of its field at once.
func translateKubernetes(text string) string {
	texts := strings.Fields(text)
	if len(texts) != len(cronFields) {
		return text
	}
	for i, f := range cronFields {
		if texts[i] == "?" {
			texts[i] = "*"
		}
		if read, ok := f.read(&translated{}, texts[i]); ok {
			texts[i] = read.text
		}
	}
	return strings.Join(texts, " ")
}

// translateWord translates the words that stand for a schedule.
func translateWord(text string) (t translated, err error) {
	switch word := strings.ToLower(text); word {
	case "@reboot":
		return t, fmt.Errorf("@reboot: there is no tick at the start of a machine; " +
			"let the app, or whatever starts it, do this")
	case "@every_minute":
		text = "* * * * *"
	case "@every_second":
		text = "* * * * * *"
	default:
		if n, err := strconv.Atoi(word[1:]); err == nil {
			return t, fmt.Errorf("%s: cron counts this from the end of the last run; "+
				"\"@every %ds\" counts from tick to tick", text, n)
		}
	}
	if _, err := schedule.Parse(text, schedule.Options{}); err != nil {
		return t, fmt.Errorf("schedule %q: %w", text, err)
	}
	t.schedule = text
	return t, nil
}

// bothDays keeps cron's meaning of two restricted day fields. A day must match either, but both if one of them begins
// with *. A Solotick schedule can express the latter only for whole weeks: the days 1-7 that are Mondays are the first
// Monday.
func bothDays(t *translated, fields []field) error {
	month, week := &fields[dayOfMonth], &fields[dayOfWeek]
	if !month.star && !week.star {
		if month.full(dayOfMonth) || week.full(dayOfWeek) { // which every day matches
			month.text, week.text = "*", "*"
		}
		return nil
	}
	switch {
	case month.full(dayOfMonth):
		month.text = "*"
		if week.full(dayOfWeek) {
			week.text = "*"
		}
		return nil
	case week.full(dayOfWeek):
		week.text = "*"
		return nil
	}
	nths, ok := wholeWeeks(month.set)
	if !ok {
		return fmt.Errorf("a day field that begins with * is a condition beside the other one in cron: "+
			"a day must match %q and %q. Here a day that matches either has a tick: "+
			"keep one of them, and let the command ask for the other", month.was, week.was)
	}
	var days []string
	for _, n := range nths {
		for d := range 7 {
			if week.set>>d&1 == 1 {
				days = append(days, fmt.Sprintf("%s#%d", cronFields[dayOfWeek].names[d], n))
			}
		}
	}
	t.note("schedule", "%q with %q means in cron that a day matches both; it is written in one field here",
		month.was, week.was)
	month.text, week.text = "*", strings.Join(days, ",")
	return nil
}

// wholeWeeks returns the weeks of the month that make up a set of days: 1 for the days 1-7, 5 for 29-31.
func wholeWeeks(days uint64) (nths []int, ok bool) {
	for n := 1; n <= 5; n++ {
		week := uint64(0x7f) << (7*n - 6) & (1<<32 - 1)
		if days&week == week {
			nths = append(nths, n)
			days &^= week
		}
	}
	return nths, days == 0
}

// random matches a random value that cron picks when it reads the crontab: a~b, where both may be left out.
var random = regexp.MustCompile(`^([0-9]*)~([0-9]*)$`)

func (c cronField) read(t *translated, text string) (f field, ok bool) {
	f.was, f.star = text, strings.HasPrefix(text, "*")
	var parts []string
	for part := range strings.SplitSeq(strings.ToUpper(text), ",") {
		if m := random.FindStringSubmatch(part); m != nil {
			low, okLow := c.bound(m[1], c.low)
			high, okHigh := c.bound(m[2], c.low+c.size()-1)
			if !okLow || !okHigh || low >= high {
				return f, false
			}
			t.note("random time", "%q is a value that cron draws anew at every start; "+
				"here H is one that the job's name decides, for ever", part)
			parts = append(parts, fmt.Sprintf("H(%d-%d)", low, high))
			f.set |= 1 << low // any one will do: cron's choice is random
			continue
		}
		set, written, ok := c.part(t, part)
		if !ok {
			return f, false
		}
		f.set |= set
		parts = append(parts, written)
	}
	if c.high == 7 && f.set&(1|1<<7) != 0 {
		f.set |= 1 | 1<<7 // both are Sunday
	}
	f.text = strings.Join(parts, ",")
	return f, true
}

// size returns the number of different values: 7 is Sunday again.
func (c cronField) size() int {
	if c.high == 7 {
		return 7
	}
	return c.high - c.low + 1
}

// part reads *, a value or a range, each perhaps with a step.
func (c cronField) part(t *translated, part string) (set uint64, written string, ok bool) {
	base, stepText, hasStep := strings.Cut(part, "/")
	low, high, single := c.low, c.high, false
	if base != "*" {
		from, to, isRange := strings.Cut(base, "-")
		if low, ok = c.value(from); !ok {
			return 0, "", false
		}
		high, single = low, !isRange
		if isRange {
			if high, ok = c.value(to); !ok || high < low {
				return 0, "", false
			}
		}
	}
	step := 1
	if hasStep {
		var err error
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return 0, "", false
		}
	}
	if single && hasStep {
		t.note("schedule", "crons disagree about %q: some take it for %q alone; here it goes on to the end", part, base)
		high = c.high
	}
	for v := low; v <= high; v += step {
		set |= 1 << v
	}
	if hasStep && step >= c.size() { // cron lets a step lead out of the field at once
		return set, strconv.Itoa(low), true
	}
	return set, part, true
}

func (c cronField) value(text string) (int, bool) {
	if i := slices.Index(c.names, text); i >= 0 {
		return c.low + i, true
	}
	n, err := strconv.ParseUint(text, 10, 8)
	return int(n), err == nil && int(n) >= c.low && int(n) <= c.high
}

// bound reads an end of a random range.
func (c cronField) bound(text string, otherwise int) (int, bool) {
	if text == "" {
		return otherwise, true
	}
	return c.value(text)
}
