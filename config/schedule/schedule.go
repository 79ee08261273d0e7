package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a scratch image has no zone files
)

// Options belong to one job's schedule. The zero value is UTC, no window.
type Options struct {
	TimeZone string    // IANA name; "" is UTC
	Job      string    // what H hashes
	Start    time.Time // the first instant that may have a tick; zero is open
	End      time.Time // the first instant that may no longer have one; zero is open
	Rules    Rules     // which of the ticks it has, and which it moves
}

// Schedule is a series of ticks within a window. It is immutable: any number of goroutines may use it.
type Schedule struct {
	exprs  []string
	rules  Rules
	series series
	// The window, in Unix seconds, both ends included.
	first, last int64
}

// series is an endless row of ticks, in Unix seconds.
type series interface {
	after(u int64) (tick int64, ok bool)    // the earliest tick > u
	notAfter(u int64) (tick int64, ok bool) // the newest tick <= u
}

// These bound all ticks. The zero Time stands for "none", so it is no tick. The upper bound ends every search, and no
// job of today runs after it.
const (
	oldestTick = -62135596800 + 1 // 0001-01-01T00:00:01Z
	newestTick = 7258118400 - 1   // 2199-12-31T23:59:59Z
)

// maxLength bounds an expression, in bytes. No sensible one is longer, and the library has a limit too.
const maxLength = 500

// Parse reads an expression. A schedule without any tick, because of its dates, its rules or its window, is an error.
// One whose last tick has passed is not: there Next(now) is zero. Errors are written for the author of the expression,
// and do not repeat it.
func Parse(expr string, o Options) (*Schedule, error) { return ParseAll([]string{expr}, o) }

// ParseAll reads the expressions of a schedule that has the ticks of all of them. A tick on which two agree is one
// tick.
func ParseAll(exprs []string, o Options) (*Schedule, error) {
	zone, err := loadZone(o.TimeZone)
	if err != nil {
		return nil, err
	}
	if len(exprs) == 0 {
		return nil, checkText("")
	}
	if len(exprs) == 1 && strings.EqualFold(strings.TrimSpace(exprs[0]), leaseWord) {
		return &Schedule{exprs: []string{leaseWord}, series: lease{}}, nil
	}
	s := &Schedule{rules: o.Rules, first: oldestTick, last: newestTick}
	var all union
	for _, expr := range exprs {
		text := strings.TrimSpace(expr)
		if err := checkText(text); err != nil {
			return nil, err
		}
		one, err := parseSeries(text, zone, o)
		if err != nil {
			return nil, err
		}
		if _, elapsed := one.(every); elapsed && len(exprs) > 1 {
			return nil, errors.New("@every must be the only schedule of a job")
		}
		if !hasTick(one) {
			return nil, errors.New("it can never fire: no date and time ever match")
		}
		if one, err = newRuled(one, o.Rules, zone); err != nil {
			return nil, err
		}
		s.exprs, all = append(s.exprs, text), append(all, one)
	}
	if s.series = all; len(all) == 1 {
		s.series = all[0]
	}
	if !o.Rules.none() && !hasTick(s.series) {
		return nil, errors.New("it can never fire: its calendars and every leave no tick")
	}
	if err := s.limit(o.Start, o.End); err != nil {
		return nil, err
	}
	return s, nil
}

// between returns the earliest or the newest tick of a series from one instant to another, both included.
func between(s series, from, to int64, newest bool) (tick int64, ok bool) {
	switch {
	case from > to: // outside of the window, where a search under rules can take milliseconds
		return 0, false
	case newest:
		tick, ok = s.notAfter(to)
	default:
		tick, ok = s.after(from - 1)
	}
	return tick, ok && from <= tick && tick <= to
}

func hasTick(s series) bool {
	_, ok := between(s, oldestTick, newestTick, false)
	return ok
}

// Next returns the earliest tick strictly after the given time, in UTC; the zero Time when there is none.
func (s *Schedule) Next(after time.Time) time.Time {
	return instant(between(s.series, max(min(after.Unix(), s.last)+1, s.first), s.last, false))
}

// Last returns the newest tick not after the given time, in UTC; the zero Time when there is none.
func (s *Schedule) Last(at time.Time) time.Time {
	return instant(between(s.series, s.first, min(at.Unix(), s.last), true))
}

// instant returns a tick as a time; the zero Time if there is none.
func instant(tick int64, ok bool) time.Time {
	if !ok {
		return time.Time{}
	}
	return time.Unix(tick, 0).UTC()
}

// Due returns when a tick of a job comes due: after a jitter of less than max, and before the next tick, so that ticks
// come due in their order.
func (s *Schedule) Due(job string, tick time.Time, max time.Duration) time.Time {
	if max == 0 || tick.IsZero() {
		return tick
	}
	if next := s.Next(tick); !next.IsZero() {
		max = min(max, next.Sub(tick))
	}
	return tick.Add(Jitter(job, tick, max))
}

// MinGap looks at gapTicks ticks within gapYears: at a year of daily ticks, and at all times of day of those that are
// more frequent. It begins in 2020, since earlier changes of the clocks must not restrict the jobs of today: Kathmandu
// moved by 15 minutes in 1986, which made one hour 45 minutes long.
const (
	gapEra   = 1577836800 // 2020-01-01
	gapTicks = 400
	gapYears = 5 * 366 * 24 * time.Hour
)

// MinGap returns the smallest distance of two successive ticks that its author can expect; 0 when it saw no two ticks.
// On rare days, as when the clocks change, two may be nearer.
func (s *Schedule) MinGap() (gap time.Duration) {
	first := s.Next(time.Unix(gapEra-1, 0))
	last := first
	for n := 1; n < gapTicks && !last.IsZero() && last.Sub(first) < gapYears; n++ {
		tick := s.Next(last)
		if d := tick.Sub(last); d > 0 && (gap == 0 || d < gap) {
			gap = d
		}
		last = tick
	}
	return gap
}

// String returns the expressions as they were written, without the space around them.
func (s *Schedule) String() string { return strings.Join(s.exprs, "; ") }

// Expressions returns the expressions one by one. The caller must not change them.
func (s *Schedule) Expressions() []string { return s.exprs }

// Rules returns the rules that Parse got.
func (s *Schedule) Rules() Rules { return s.rules }

// Anchored reports whether @every counts from the start of the window, and so has other ticks than if it counted from
// the Unix epoch.
func (s *Schedule) Anchored() bool {
	e, ok := base(s.series).(every)
	return ok && e.anchor != 0
}

// IsLease reports whether the schedule is @lease, which has no ticks. A nil schedule is not.
func (s *Schedule) IsLease() bool { return s != nil && s.exprs[0] == leaseWord }

// ByName reports whether the ticks depend on the job's name: some field has an H.
func (s *Schedule) ByName() bool { return slices.ContainsFunc(s.exprs, byName) }

// byName does so for one expression. No name of a month or day begins with H.
func byName(text string) bool {
	parts := strings.FieldsFunc(strings.ToUpper(text), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
	return slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(part, "H") })
}

// limit sets the window.
func (s *Schedule) limit(start, end time.Time) error {
	if !start.IsZero() && !end.IsZero() && !start.Before(end) {
		return fmt.Errorf("the window is empty: start %s is not before end %s", stamp(start), stamp(end))
	}
	if !start.IsZero() {
		s.first = max(s.first, secondsUp(start))
	}
	if !end.IsZero() {
		s.last = min(s.last, secondsUp(end)-1)
	}
	if !s.Next(time.Time{}).IsZero() {
		return nil
	}
	switch {
	case end.IsZero():
		return fmt.Errorf("no tick at or after start %s", stamp(start))
	case start.IsZero():
		return fmt.Errorf("no tick before end %s", stamp(end))
	}
	return fmt.Errorf("no tick from start %s to before end %s", stamp(start), stamp(end))
}

// secondsUp returns the Unix second at t, or the next one if t lies between two.
func secondsUp(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

func stamp(t time.Time) string { return t.Format(time.RFC3339Nano) }

// checkText refuses texts that cannot be an expression, and says where they belong.
func checkText(text string) error {
	if text == "" {
		return errors.New(`it is empty: write five fields such as "0 9 * * MON-FRI", or a word such as @daily`)
	}
	if len(text) > maxLength {
		return fmt.Errorf("it has %d characters, at most %d are allowed", len(text), maxLength)
	}
	for _, r := range text {
		if (r < ' ' || r > '~') && r != '\t' {
			return fmt.Errorf("character %q is not allowed", r)
		}
	}
	if upper := strings.ToUpper(text); strings.HasPrefix(upper, "TZ=") || strings.HasPrefix(upper, "CRON_TZ=") {
		return fmt.Errorf("%q does not belong here: use the timeZone field", strings.Fields(text)[0])
	}
	return nil
}

// parseSeries reads an expression of either kind: a word that begins with @, or fields.
func parseSeries(text string, zone *zone, o Options) (series, error) {
	words := strings.Fields(text)
	if strings.HasPrefix(text, "@") {
		s, fields, err := parseDescriptor(words, o.Start)
		if s != nil || err != nil {
			return s, err
		}
		words = fields
	}
	return parseFields(words, zone, o.Job)
}

// Pool parses expressions. It returns one schedule for all jobs that have the same expression, zone and window:
// thousands of jobs often have a few dozen of them. The zero value is empty. A Pool is for one goroutine at a time.
type Pool struct{ parsed map[source]*Schedule }

// source is what a schedule is made of, if the job's name makes no difference.
type source struct {
	text, timeZone string
	start, end     time.Time
}

// ParseAll is the function ParseAll, for one of many jobs. It shares no schedules with rules.
func (p *Pool) ParseAll(exprs []string, o Options) (*Schedule, error) {
	if !o.Rules.none() {
		return ParseAll(exprs, o)
	}
	from := source{strings.TrimSpace(strings.Join(exprs, "; ")), o.TimeZone, o.Start, o.End}
	if s := p.parsed[from]; s != nil {
		return s, nil
	}
	s, err := ParseAll(exprs, o)
	if err != nil || s.ByName() {
		return s, err
	}
	if p.parsed == nil {
		p.parsed = map[source]*Schedule{}
	}
	p.parsed[from] = s
	return s, nil
}
