package schedule

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// Explanation says in words what an expression means. Its texts are for people.
type Explanation struct {
	Words  string   // when it ticks: "at 09:00, from Monday to Friday"
	Fixed  bool     // what the schedule does when the clocks change; false = it follows elapsed time
	Clocks string   // the same in words
	Name   string   // what H stands for; "" = the expression has none
	Window string   // between which times it ticks; "" = always
	Rules  []string // what its rules do, a line each
}

// Explain explains the expressions of a schedule. Its errors are those of ParseAll. If an expression has an H and the
// options name no job, the words say H in place of its value.
//
// The words are made from the sets of values that Next walks through, and not from the text: "0-59" and "*" read alike,
// and "*/45" is the minutes 0 and 45.
func Explain(exprs []string, o Options) (Explanation, error) {
	s, err := ParseAll(exprs, o)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Window: window(o.Start, o.End), Rules: o.Rules.words(), Fixed: true}
	switch {
	case s.ByName() && o.Job == "":
		e.Name = "each H is a value that the job's name decides, for ever"
	case s.ByName():
		e.Name = fmt.Sprintf("each H is a value that the name %q decides, for ever", o.Job)
	}
	var words, clocks []string
	for i, one := range parts(s.series) {
		said, fixed, changes := inWords(base(one), s.exprs[i], o)
		words, e.Fixed = append(words, said), e.Fixed && fixed
		if !slices.Contains(clocks, changes) {
			clocks = append(clocks, changes)
		}
	}
	e.Words, e.Clocks = strings.Join(words, "; and "), strings.Join(clocks, "; ")
	return e, nil
}

// inWords explains one series: when it ticks, whether it is fixed, and what it does when the clocks change.
func inWords(s series, text string, o Options) (words string, fixed bool, clocks string) {
	const instants = "a change of the clocks does not move its ticks"
	switch s := s.(type) {
	case every:
		from := time.Unix(0, 0)
		if !o.Start.IsZero() {
			from = time.Unix(secondsUp(o.Start), 0)
		}
		return everyWords(int(s.period)) + ", counted from " + from.UTC().Format(time.RFC3339), false, instants
	case once:
		return "once, at " + time.Unix(int64(s), 0).UTC().Format(time.RFC3339), false, instants
	case lease:
		return "whenever an app asks for it while no other has it", false, instants
	}
	c := s.(*clocked)
	return described{&c.sets, openFields(text, o.Job)}.words(), c.fixed, c.clocksInWords()
}

func (c *clocked) clocksInWords() string {
	switch {
	case len(c.zone.stretches) == 1:
		return "the clocks of this zone never change"
	case c.fixed:
		return "fixed: if the clocks skip its time, it ticks later by the length of the gap; " +
			"if its time occurs twice, it ticks at the first"
	}
	return "runs through the hours: it ticks in both of two repeated hours, and not in an hour that the clocks skip"
}

func window(start, end time.Time) string {
	switch {
	case !start.IsZero() && !end.IsZero():
		return "from " + stamp(start) + " until before " + stamp(end)
	case !start.IsZero():
		return "from " + stamp(start) + " on"
	case !end.IsZero():
		return "until before " + stamp(end)
	}
	return ""
}

// openFields returns the texts of the fields whose values are not known: they have an H, and there is no name. The
// others are "".
func openFields(text, job string) (open [len(fields)]string) {
	if job != "" || strings.HasPrefix(text, "@") {
		return open
	}
	words := strings.Fields(strings.ToUpper(text))
	skipped := 0
	if len(words) == 5 {
		skipped = 1 // the second
	}
	for i, word := range words {
		if strings.HasPrefix(word, "H") || strings.Contains(word, ",H") {
			open[i+skipped] = word
		}
	}
	return open
}

// described are field sets that are put into words.
type described struct {
	*fieldSets
	open [len(fields)]string
}

// The indexes of fields that only the words refer to.
const (
	secondField = iota
	minuteField
	_
	dayField
	monthField
	weekdayField
)

// words joins the phrases about the time of day, the days, the months and the years with commas.
func (d described) words() string {
	clock, ofDay := d.clockWords()
	days, month := d.dayWords(), d.monthWords()
	if date := d.date(); date != "" {
		days, month = date, ""
	} else if days == "" && ofDay {
		days = "every day"
	}
	phrases := []string{clock, days, month, d.yearWords()}
	return strings.Join(slices.DeleteFunc(phrases, func(p string) bool { return p == "" }), ", ")
}

// mostTimes is how many times of day are listed one by one.
const mostTimes = 6

// clockWords is the phrase about the time of day. ofDay says that the phrase alone leaves open on which days.
func (d described) clockWords() (phrase string, ofDay bool) {
	someHours := d.open[hourField] != "" || len(valuesOf(d.hour, 24)) < 24
	if d.open[secondField] != "" || d.open[minuteField] != "" || d.open[hourField] != "" {
		return d.fieldWords(), someHours
	}
	var times []int // of day, in seconds
	for t := d.clockFrom(0); t >= 0; t = d.clockFrom(t + 1) {
		times = append(times, t)
	}
	if len(times) <= mostTimes {
		return "at " + list(clockTexts(times)), true
	}
	first, last, step := times[0], times[len(times)-1], stepOf(times)
	switch {
	case step == 0:
		return d.fieldWords(), someHours
	case first+day-last != step:
		ends := clockTexts([]int{first, last})
		return fmt.Sprintf("%s from %s to %s", everyWords(step), ends[0], ends[1]), true
	case first == 0:
		return everyWords(step), false
	case step == 3600 && first%60 == 0:
		return d.fieldWords(), false
	}
	return everyWords(step) + " from " + clockTexts([]int{first})[0] + " on", false
}

// clockTexts writes times of day, with their seconds if one of them needs them.
func clockTexts(times []int) []string {
	layout := "15:04"
	if slices.ContainsFunc(times, func(t int) bool { return t%60 != 0 }) {
		layout = time.TimeOnly
	}
	var texts []string
	for _, t := range times {
		texts = append(texts, time.Unix(int64(t), 0).UTC().Format(layout))
	}
	return texts
}

// everyWords writes a period in the largest unit that it is a multiple of.
func everyWords(seconds int) string {
	n, unit := seconds, "second"
	switch {
	case seconds%3600 == 0:
		n, unit = seconds/3600, "hour"
	case seconds%60 == 0:
		n, unit = seconds/60, "minute"
	}
	return "every " + strings.TrimPrefix(plural(n, unit), "1 ")
}

// fieldWords names the values of second, minute and hour one after the other.
func (d described) fieldWords() string {
	of := func(place int, set uint64) string {
		if d.open[place] != "" {
			return fields[place].name + " " + d.open[place]
		}
		values := valuesOf(set, fields[place].max+1)
		if len(values) > fields[place].max {
			return "every " + fields[place].name
		}
		return counted(fields[place].name, values)
	}
	phrase := of(minuteField, d.minute) + " of " + of(hourField, d.hour)
	if d.second != 1 || d.open[secondField] != "" {
		phrase = of(secondField, d.second) + " of " + phrase
	}
	return "at " + phrase
}

// dayWords is the phrase about the days; "" if every day is meant.
func (d described) dayWords() string {
	allDays := d.open[dayField] == "" && bits.OnesCount32(uint32(d.dayOfMonth)) == 31
	allWeekdays := d.open[weekdayField] == "" && bits.OnesCount64(d.dayOfWeek) == 7
	var items []string
	if !allDays && !(d.either && allWeekdays) {
		items = append(items, d.monthDays()...)
	}
	if !allWeekdays && !(d.either && allDays) {
		items = append(items, d.weekDays()...)
	}
	return strings.Join(items, ", and ")
}

// monthDays are the items of the field for the day of month.
func (d described) monthDays() (items []string) {
	if text := d.open[dayField]; text != "" {
		return []string{"on day " + text + " of the month"}
	}
	if values := valuesOf(d.dayOfMonth, 32); len(values) > 0 {
		items = append(items, "on "+counted("day", values)+" of the month")
	}
	for _, r := range d.dayOfMonthRules {
		switch r.Type {
		case cron.DomLast:
			items = append(items, "on the last day of the month")
		case cron.DomLastOffset:
			items = append(items, fmt.Sprintf("%s before the last day of the month", plural(r.N, "day")))
		case cron.DomLastWeekday:
			items = append(items, "on the last weekday (Monday to Friday) of the month")
		case cron.DomNearestWeekday:
			items = append(items, fmt.Sprintf("on the weekday (Monday to Friday) nearest to day %d of the month", r.N))
		}
	}
	return items
}

var ordinals = [...]string{"", "first", "second", "third", "fourth", "fifth"}

// weekDays are the items of the field for the day of week.
func (d described) weekDays() (items []string) {
	if text := d.open[weekdayField]; text != "" {
		return []string{"on weekday " + text}
	}
	if d.dayOfWeek != 0 {
		items = append(items, weekdayWords(d.dayOfWeek))
	}
	for _, r := range d.dayOfWeekRules {
		which := "last"
		if r.N > 0 {
			which = ordinals[r.N]
		}
		items = append(items, fmt.Sprintf("on the %s %s of the month", which, time.Weekday(r.Weekday)))
	}
	return items
}

// weekdayWords names weekdays: three or more in a row by the first and the last.
func weekdayWords(set uint64) string {
	values := valuesOf(set, 7)
	const monday = 1
	for first := range 7 {
		first = (first + monday) % 7
		n := 0
		for n < 7 && set>>((first+n)%7)&1 == 1 {
			n++
		}
		if n == len(values) && n >= 3 {
			return fmt.Sprintf("from %s to %s", time.Weekday(first), time.Weekday((first+n-1)%7))
		}
	}
	if values[0] == int(time.Sunday) {
		values = append(values[1:], values[0]) // a week begins on Monday
	}
	var names []string
	for _, v := range values {
		names = append(names, time.Weekday(v).String())
	}
	return "every " + list(names)
}

// date is the phrase for one day of one month; "" if there are more, or fewer.
func (d described) date() string {
	months, days := valuesOf(d.month, 13), valuesOf(d.dayOfMonth, 32)
	only := len(months) == 1 && len(days) == 1 && len(d.dayOfMonthRules) == 0
	if !only || d.either || d.open[dayField] != "" || d.open[monthField] != "" {
		return ""
	}
	return fmt.Sprintf("on %d %s", days[0], time.Month(months[0]))
}

// monthWords is the phrase about the months; "" if all are meant.
func (d described) monthWords() string {
	if text := d.open[monthField]; text != "" {
		return "in month " + text
	}
	values := valuesOf(d.month, 13)
	first, last := values[0], values[len(values)-1]
	switch {
	case len(values) == 12:
		return ""
	case len(values) >= 3 && last-first == len(values)-1:
		return fmt.Sprintf("from %s to %s", time.Month(first), time.Month(last))
	}
	var names []string
	for _, v := range values {
		names = append(names, time.Month(v).String())
	}
	return "in " + list(names)
}

// yearWords is the phrase about the years; "" if all are meant.
func (d described) yearWords() string {
	values := slices.Sorted(maps.Keys(d.years))
	switch len(values) {
	case 0, lastYear - firstYear + 1:
		return ""
	case 1:
		return fmt.Sprintf("in %d", values[0])
	}
	return "in the " + counted("year", values)
}

// valuesOf returns the values of a set below size.
func valuesOf(set uint64, size int) (values []int) {
	for v := range size {
		if set>>v&1 == 1 {
			values = append(values, v)
		}
	}
	return values
}

// counted names a unit with its values: "minute 5", "hours 9 to 17 and 20", "days 1 to 31 in steps of 2".
func counted(unit string, values []int) string {
	if len(values) == 1 {
		return fmt.Sprintf("%s %d", unit, values[0])
	}
	if step := stepOf(values); len(values) > 3 && step > 1 {
		return fmt.Sprintf("%ss %d to %d in steps of %d", unit, values[0], values[len(values)-1], step)
	}
	var parts []string
	for i := 0; i < len(values); {
		n := 1
		for i+n < len(values) && values[i+n] == values[i]+n {
			n++
		}
		if n >= 3 {
			parts = append(parts, fmt.Sprintf("%d to %d", values[i], values[i+n-1]))
			i += n
			continue
		}
		parts = append(parts, strconv.Itoa(values[i]))
		i++
	}
	return unit + "s " + list(parts)
}

// stepOf returns the distance of each of two or more values from the one before it; 0 if the distances differ.
func stepOf(values []int) int {
	step := values[1] - values[0]
	for i := range values[1:] {
		if values[i+1]-values[i] != step {
			return 0
		}
	}
	return step
}

// list writes "a", "a and b" or "a, b and c".
func list(items []string) string {
	if n := len(items); n > 1 {
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	}
	return items[0]
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
