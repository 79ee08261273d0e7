package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/netresearch/go-cron"
)

// The year field accepts these years, as in Quartz.
const (
	firstYear = 1970
	lastYear  = 2199
)

// field is one place of an expression: its rules, and its translation into what the library reads alike.
type field struct {
	name     string
	min, max int      // what * stands for
	top      int      // the largest value that may be written: 7 in day of week
	hashTop  int      // the largest value that a plain H takes; 0 = no H here
	names    []string // of the values from min on
	example  string   // what may be written besides numbers
	letters  func(f *field, part string) (translated string, ok bool, err error)
}

var fields = [...]field{
	{name: "second", min: 0, max: 59, top: 59, hashTop: 59},
	{name: "minute", min: 0, max: 59, top: 59, hashTop: 59},
	{name: "hour", min: 0, max: 23, top: 23, hashTop: 23},
	// A plain H avoids the days that some months lack, as in Jenkins: otherwise jobs with some names would skip
	// February.
	{name: "day of month", min: 1, max: 31, top: 31, hashTop: 28, letters: dayOfMonthLetters},
	{name: "month", min: 1, max: 12, top: 12, hashTop: 12, example: "a month JAN-DEC",
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{name: "day of week", min: 0, max: 6, top: 7, hashTop: 6, example: "a weekday SUN-SAT", letters: dayOfWeekLetters,
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}},
	{name: "year", min: firstYear, max: lastYear, top: lastYear},
}

// The indexes of fields that other code refers to.
const (
	hourField = 2
	yearField = 6
)

// isDay tells the two fields that know ? and special letters.
func (f *field) isDay() bool { return f.letters != nil }

// translate checks one field and writes it in numbers.
func (f *field) translate(place int, text, job string) (string, error) {
	if text == "?" && f.isDay() {
		return "*", nil
	}
	var out []string
	for part := range strings.SplitSeq(strings.ToUpper(text), ",") {
		translated, err := f.part(place, part, job)
		if err != nil {
			return "", fmt.Errorf("%s %q: %w", f.name, text, err)
		}
		out = append(out, translated)
	}
	if f == &fields[yearField] && slices.Contains(out, "*") { // the library refuses a * in a list of years
		return "*", nil
	}
	return strings.Join(out, ","), nil
}

// part translates one part of a list.
func (f *field) part(place int, part, job string) (string, error) {
	switch {
	case part == "":
		return "", errors.New("a part of the list is empty")
	case strings.Contains(part, "?") && f.isDay():
		return "", errors.New("? must stand alone")
	case strings.Contains(part, "?"):
		return "", errors.New("? is only for day of month and day of week, write * instead")
	}
	if f.letters != nil {
		if translated, ok, err := f.letters(f, part); ok || err != nil {
			return translated, err
		}
	}
	base, stepText, hasStep := strings.Cut(part, "/")
	step := 1
	if hasStep {
		var err error
		if step, err = f.step(stepText); err != nil {
			return "", err
		}
	}
	if strings.HasPrefix(base, "H") {
		return f.hashed(place, base, step, hasStep, job)
	}
	if base == "*" && step == 1 {
		return "*", nil
	}
	low, high, err := f.span(base, hasStep)
	if err != nil {
		return "", err
	}
	return numbers(low, high, step), nil
}

// span reads *, a value or a range. A value with a step extends to the end of the field.
func (f *field) span(base string, hasStep bool) (low, high int, err error) {
	if base == "*" {
		return f.min, f.max, nil
	}
	from, to, isRange := strings.Cut(base, "-")
	if low, err = f.value(from); err != nil {
		return 0, 0, err
	}
	if !isRange {
		if hasStep {
			return low, max(low, f.max), nil
		}
		return low, low, nil
	}
	if high, err = f.value(to); err != nil {
		return 0, 0, err
	}
	// The week of FRI-SUN ends with a Sunday, which is 7 there.
	if high == 0 && low > 0 && f.top == 7 && to == f.names[0] {
		high = 7
	}
	if low > high {
		return 0, 0, fmt.Errorf("range %q is reversed: %s comes after %s", base, from, to)
	}
	return low, high, nil
}

// hashed replaces H by the value that the job's name decides, or with a step by the first value.
func (f *field) hashed(place int, base string, step int, hasStep bool, job string) (string, error) {
	if f.hashTop == 0 {
		return "", fmt.Errorf("%s has no meaning for a %s", "H", f.name)
	}
	low, high := f.min, f.hashTop
	if base != "H" {
		inner, opened := strings.CutPrefix(base, "H(")
		inner, closed := strings.CutSuffix(inner, ")")
		if !opened || !closed || !strings.Contains(inner, "-") {
			return "", fmt.Errorf("%q: H takes a range in brackets, such as H(%d-%d)", base, f.min, f.hashTop/2)
		}
		var err error
		if low, high, err = f.span(inner, false); err != nil {
			return "", err
		}
	}
	size := high - low + 1
	if !hasStep {
		return strconv.Itoa(low + int(pick('H', uint64(place), job, uint64(size)))), nil
	}
	if step > size {
		return "", fmt.Errorf("step %d is too large, %s has %d values", step, base, size)
	}
	return numbers(low+int(pick('H', uint64(place), job, uint64(step))), high, step), nil
}

func (f *field) step(text string) (int, error) {
	size := f.max - f.min + 1
	n, ok := digits(text)
	switch {
	case !ok:
		return 0, fmt.Errorf("step %q is not a number", text)
	case n == 0:
		return 0, errors.New("a step must be at least 1")
	case n > size:
		return 0, fmt.Errorf("step %d is too large, there are %d values (for a longer period use @every)", n, size)
	}
	return n, nil
}

// value reads a number or a name.
func (f *field) value(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.min + i, nil
	}
	n, ok := digits(text)
	if !ok {
		allowed := fmt.Sprintf("a number %d-%d", f.min, f.top)
		if f.example != "" {
			return 0, fmt.Errorf("%q is neither %s nor %s", text, allowed, f.example)
		}
		return 0, fmt.Errorf("%q is not %s", text, allowed)
	}
	if n < f.min || n > f.top {
		return 0, fmt.Errorf("%s is out of range: allowed are %d-%d", text, f.min, f.top)
	}
	return n, nil
}

// digits reads a number without a sign. One that no int holds is the largest int.
func digits(text string) (int, bool) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// numbers writes a span as the library reads it; it knows no step that leads out of the span at once.
func numbers(low, high, step int) string {
	switch {
	case low+step > high:
		return strconv.Itoa(low)
	case step == 1:
		return fmt.Sprintf("%d-%d", low, high)
	}
	return fmt.Sprintf("%d-%d/%d", low, high, step)
}

// dayOfMonthLetters reads L, LW, L-n and nW, which the library reads alike.
func dayOfMonthLetters(f *field, part string) (string, bool, error) {
	if !strings.ContainsAny(part, "LW") {
		return "", false, nil
	}
	if part == "L" || part == "LW" {
		return part, true, nil
	}
	if before, ok := strings.CutPrefix(part, "L-"); ok {
		if n, ok := digits(before); ok {
			if n < 1 || n > 30 {
				return "", false, fmt.Errorf("%q: days before the last are 1-30", part)
			}
			return fmt.Sprintf("L-%d", n), true, nil
		}
	}
	if day, ok := strings.CutSuffix(part, "W"); ok {
		if _, ok := digits(day); ok {
			n, err := f.value(day)
			return fmt.Sprintf("%dW", n), err == nil, err
		}
	}
	return "", false, fmt.Errorf("%q is none of L, L-n, LW and nW (such as L-3 and 15W)", part)
}

// dayOfWeekLetters reads L, nL and n#m. The library has no L alone and writes nL as n#L.
func dayOfWeekLetters(f *field, part string) (string, bool, error) {
	if part == "L" {
		return "0", true, nil
	}
	if name, nth, ok := strings.Cut(part, "#"); ok {
		day, err := f.value(name)
		if err != nil {
			return "", false, err
		}
		if nth == "L" {
			return "", false, fmt.Errorf("%q: the last one is written %sL", part, name)
		}
		if n, ok := digits(nth); !ok || n < 1 || n > 5 {
			return "", false, fmt.Errorf("%q: after # comes 1-5", part)
		}
		return fmt.Sprintf("%d#%s", day, nth), true, nil
	}
	if name, ok := strings.CutSuffix(part, "L"); ok {
		day, err := f.value(name)
		return fmt.Sprintf("%d#L", day), err == nil, err
	}
	return "", false, nil
}

// libraryParser requires all seven fields: otherwise it reads "0 0 1 1 * 2030" as five fields and a year. It never sees
// H, see field.hashed.
var libraryParser = cron.MustNewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow |
	cron.Year | cron.Extended | cron.DowOrDom)

// parseFields reads five, six or seven fields.
func parseFields(words []string, zone *zone, job string) (series, error) {
	switch len(words) {
	case 5:
		words = append(append([]string{"0"}, words...), "*")
	case 6:
		if year, ok := digits(words[5]); ok && year >= firstYear {
			return nil, fmt.Errorf("6 fields begin with the second and have no year: for year %d put a second first",
				year)
		}
		words = append(append([]string{}, words...), "*")
	case 7:
	default:
		return nil, fmt.Errorf("%s: it takes 5 (minute, hour, day of month, month, day of week), "+
			"6 (a second first) or 7 (a year last)", plural(len(words), "field"))
	}
	translated := make([]string, len(words))
	for i := range fields {
		var err error
		if translated[i], err = fields[i].translate(i, words[i], job); err != nil {
			return nil, err
		}
	}
	parsed, err := libraryParser.Parse(strings.Join(translated, " "))
	if err != nil {
		return nil, fmt.Errorf("reading the fields: %w", err)
	}
	spec := parsed.(*cron.SpecSchedule) // fields always make this type
	sets := newFieldSets(spec)
	return &clocked{sets: sets, zone: zone, fixed: !sets.runsThroughHours()}, nil
}
