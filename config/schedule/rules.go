package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rules say which ticks of the expressions a schedule has, and which it moves. The zero value has them all. With rules
// there is no tick before 1970, so that the search for one that is not there ends soon.
type Rules struct {
	Every   Every
	Exclude []*Days // no tick is on these days
	Include []*Days // a tick is on one of these days; none = on any
	// OnExcluded says what becomes of a tick on a day that Exclude or Include rules out.
	OnExcluded Shift
}

// Shift says where an excluded tick goes.
type Shift string

// The ways to treat an excluded tick. A tick moves to the same time on the wall clock of the nearest day that is not
// excluded. If it meets another tick there, both are one.
const (
	SkipExcluded     Shift = "skip" // so does ""
	NextIncluded     Shift = "next"
	PreviousIncluded Shift = "previous"
)

func (s Shift) days() int64 { return map[Shift]int64{NextIncluded: 1, PreviousIncluded: -1}[s] }

// Every keeps the ticks of every n-th day or week on the wall clock, in both directions from a day. Weeks begin on the
// weekday of that day. The zero value keeps all.
type Every struct {
	Weeks, Days int // one of them is above zero
	From        Day
}

// length returns the length of a block of days that stay together, and of how many blocks one is kept.
func (e Every) length() (block, n int64) {
	if e.Weeks > 0 {
		return 7, int64(e.Weeks)
	}
	return 1, int64(max(e.Days, 1))
}

// run reports whether a day is kept, and gives days around it of which the same is true.
func (e Every) run(d int64) (in bool, first, last int64) {
	block, n := e.length()
	if n == 1 {
		return true, -farDays, farDays
	}
	k := floor(d-int64(e.From), block)
	past := k - floor(k, n)*n
	if past == 0 {
		first = int64(e.From) + k*block
		return true, first, first + block - 1
	}
	first = int64(e.From) + (k-past)*block
	return false, first + block, first + n*block - 1
}

func (r *Rules) none() bool { return r.Every == Every{} && len(r.Exclude)+len(r.Include) == 0 }

// ruled is a series under rules.
type ruled struct {
	base    series
	rules   Rules
	zone    *zone
	written *fieldSets // the times on the wall clock of a series whose excluded ticks move
	step    int64      // days by which they move, again and again; 0 = they do not
}

// mostSteps bounds how far a tick moves, in days. A calendar that excludes a year has no next day.
const mostSteps = 366

// searchedAtOnce is how far ahead a search goes before it looks for moved ticks too, in seconds.
const searchedAtOnce = 40 * day

// reach is further than a tick moves, in seconds.
const reach = (mostSteps + 2) * day

func newRuled(base series, rules Rules, zone *zone) (series, error) {
	if rules.none() {
		return base, nil
	}
	r := &ruled{base: base, rules: rules, zone: zone}
	if r.step = rules.OnExcluded.days(); r.step == 0 || len(rules.Exclude)+len(rules.Include) == 0 {
		r.step = 0
		return r, nil
	}
	c, ok := base.(*clocked)
	if !ok {
		return nil, errors.New("its ticks cannot move to another day: " +
			"only those of five to seven fields have a time of day")
	}
	r.written = &c.sets
	return r, nil
}

// open reports whether the calendars let a tick be at an instant, and gives the time around it, up to but not including
// to, in which the same is true.
func (r *ruled) open(u int64) (ok bool, from, to int64) {
	s := r.zone.at(u)
	from, to = s.start, s.end
	narrow := func(d *Days) bool {
		in, low, high := d.at(u, r.zone)
		from, to = max(from, low), min(to, high)
		return in
	}
	ok = len(r.rules.Include) == 0 || slices.ContainsFunc(r.rules.Include, narrow)
	ok = ok && !slices.ContainsFunc(r.rules.Exclude, narrow)
	return ok, from, to
}

// keeps does the same for all rules.
func (r *ruled) keeps(u int64) (ok bool, from, to int64) {
	in, first, last := r.rules.Every.run(r.zone.dayOf(u))
	from, to = r.zone.daysAround(u, first, last)
	if !in {
		return false, from, to
	}
	ok, low, high := r.open(u)
	return ok, max(from, low), min(to, high)
}

// oldestRuled is the oldest instant that may be a tick of a series under rules.
const oldestRuled = 0

func (r *ruled) after(u int64) (int64, bool) {
	return r.search(max(u+1, oldestRuled), newestTick, false)
}

func (r *ruled) notAfter(u int64) (int64, bool) { return r.search(oldestRuled, u, true) }

// search returns the earliest or the newest tick from one instant to another, both included.
func (r *ruled) search(from, to int64, newest bool) (int64, bool) {
	if r.step == 0 {
		return r.unmoved(from, to, newest)
	}
	for from <= to {
		low, high := from, min(to, from+searchedAtOnce)
		if newest {
			low, high = max(from, to-searchedAtOnce), to
		}
		tick, ok := r.unmoved(low, high, newest)
		switch {
		case ok && newest:
			low = tick
		case ok:
			high = tick
		}
		if moved, found := r.moved(low, high, newest); found {
			return moved, true
		}
		if ok {
			return tick, true
		}
		// The next tick is near a time that is written: no tick moves further than reach.
		var w int64
		if newest {
			w, ok = r.written.notAfter(low - 1 + reach)
			to = min(low-1, w+reach)
		} else {
			w, ok = r.written.after(high - reach)
			from = max(high+1, w-reach)
		}
		if !ok {
			return 0, false
		}
	}
	return 0, false
}

// unmoved returns the earliest or the newest tick from one instant to another that stays where it is.
func (r *ruled) unmoved(from, to int64, newest bool) (int64, bool) {
	for from <= to {
		tick, ok := between(r.base, from, to, newest)
		if !ok {
			return 0, false
		}
		kept, start, end := r.keeps(tick)
		if kept {
			return tick, true
		}
		if newest {
			to = start - 1
		} else {
			from = end
		}
	}
	return 0, false
}

// moved returns the earliest tick that moves to an instant from one to another, both included, or the newest.
func (r *ruled) moved(from, to int64, newest bool) (tick int64, found bool) {
	// The wall clock shows less than a day more than UTC, or less.
	low, high, next := floor(from, day)-1, floor(to, day)+1, int64(1)
	if newest {
		low, high, next = high, low, -1
	}
	for d := low; d*next <= high*next; d += next {
		got, ok := r.movedTo(d, from, to, newest)
		if !ok {
			continue
		}
		// The day after may have an earlier instant, if the clocks skip its begin.
		tick, found = got, true
		if newest {
			from, high = got+1, max(high, floor(got, day)-2)
		} else {
			to, high = got-1, min(high, floor(got, day)+2)
		}
	}
	return tick, found
}

// movedTo returns the earliest or newest of the ticks that move to a day of the wall clock, at an instant from one to
// another.
func (r *ruled) movedTo(d, from, to int64, newest bool) (tick int64, found bool) {
	begin := d * day
	for t := int64(0); t < day; {
		u, until := r.zone.first(begin + t)
		offset := begin + t - u
		end := min(day, until-begin)
		// These are the times of day whose instants are wanted.
		low, high := max(t, from+offset-begin), min(end, to+1+offset-begin)
		for low < high {
			open, _, closes := r.open(begin + low - offset)
			stop := min(high, closes+offset-begin)
			if open {
				if clock, ok := r.left(d, low, stop, 1, newest); ok {
					if got := begin + clock - offset; !found || got < tick != newest {
						tick, found = got, true
					}
				}
			}
			low = stop
		}
		t = end
	}
	return tick, found
}

// left returns the earliest or newest time of day, of those from low to before high, at which a tick leaves its day for
// day d. It looks at the day that is n steps away, and at further ones while the days between are excluded.
func (r *ruled) left(d, low, high, n int64, newest bool) (clock int64, found bool) {
	of := d - n*r.step
	begin := of * day
	kept, _, _ := r.rules.Every.run(of)
	for low < high && (newest || !found) {
		u, until := r.zone.first(begin + low)
		open, _, closes := r.open(u)
		stop := min(high, until-begin, closes-u+low)
		if !open {
			from, to := low, stop
			if kept {
				if w, ok := between(r.written, begin+from, begin+to-1, newest); ok {
					clock, found = w-begin, true
					if newest {
						from = clock + 1
					} else {
						to = clock
					}
				}
			}
			if n < mostSteps && from < to {
				if got, ok := r.left(d, from, to, n+1, newest); ok {
					clock, found = got, true
				}
			}
		}
		low = stop
	}
	return clock, found
}

// Exclusion says why an instant that the expressions of a schedule name is no tick.
type Exclusion struct {
	Calendar string    // its name; "" = Every, or none of Include has the day
	Every    bool      // the day is between those that Every keeps
	Day      Day       // on the wall clock of the calendar
	Moved    time.Time // the tick that it became; zero = none
}

// Excluded reports whether the expressions name an instant at which the rules let no tick be, and why.
func (s *Schedule) Excluded(at time.Time) (Exclusion, bool) {
	u := at.Unix()
	if at.Nanosecond() != 0 || u < s.first || u > s.last || s.Last(at).Equal(at) {
		return Exclusion{}, false
	}
	for _, one := range parts(s.series) {
		r, ok := one.(*ruled)
		if !ok {
			continue
		}
		if _, ok := between(r.base, u, u, true); !ok {
			continue
		}
		e := r.exclusion(u)
		if target, ok := r.target(u); ok && !e.Every {
			if t := time.Unix(target, 0).UTC(); s.Last(t).Equal(t) { // within the window
				e.Moved = t
			}
		}
		return e, true
	}
	return Exclusion{}, false
}

func (r *ruled) exclusion(u int64) Exclusion {
	e := Exclusion{Day: Day(r.zone.dayOf(u))}
	if in, _, _ := r.rules.Every.run(int64(e.Day)); !in {
		e.Every = true
		return e
	}
	for _, d := range r.rules.Exclude {
		if in, _, _ := d.at(u, r.zone); in {
			e.Calendar = d.name
			if d.zone != nil {
				e.Day = Day(d.zone.dayOf(u))
			}
			break
		}
	}
	return e
}

// target returns where an excluded tick moves to.
func (r *ruled) target(u int64) (int64, bool) {
	if r.step == 0 {
		return 0, false
	}
	s := r.zone.at(u)
	w := u + s.offset
	if _, ok := between(r.written, w, w, true); !ok {
		w = u + s.before // the clocks skip the time that is written
	}
	for n := int64(1); n <= mostSteps; n++ {
		to, _ := r.zone.first(w + n*r.step*day)
		if open, _, _ := r.open(to); open {
			return to, true
		}
	}
	return 0, false
}

// words says what the rules do, a line each.
func (r *Rules) words() []string {
	var lines []string
	if block, n := r.Every.length(); n > 1 {
		unit := map[int64]string{1: "day", 7: "week"}[block]
		lines = append(lines, fmt.Sprintf("one %s of %d, counted from %s", unit, n, r.Every.From))
	}
	names := func(all []*Days, join string) string {
		var names []string
		for _, d := range all {
			names = append(names, d.name)
		}
		return strings.Join(names, join)
	}
	if len(r.Include) > 0 {
		lines = append(lines, "only on days of "+names(r.Include, " or "))
	}
	if len(r.Exclude) > 0 {
		lines = append(lines, "not on days of "+names(r.Exclude, " or "))
	}
	if r.OnExcluded.days() != 0 && len(r.Include)+len(r.Exclude) > 0 {
		lines = append(lines, fmt.Sprintf(
			"a tick of an excluded day moves to the same time of the %s day that is not excluded", r.OnExcluded))
	}
	return lines
}
