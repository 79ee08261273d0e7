package schedule

import (
	"math/bits"
	"time"
)

// gapEra begins on 2020-01-01. Earlier changes of the clocks must not restrict the jobs of today: Kathmandu moved by 15
// minutes in 1986, which made one hour 45 minutes long.
const gapEra = 1577836800

// walked is how many ticks MinGap looks at one by one before it uses the sets. Most windows hold fewer.
const walked = 1000

// unbounded is longer than any distance of two ticks. A product with a day's seconds does not overflow.
const unbounded = 1 << 40

// MinGap returns the smallest distance of two successive ticks; 0 when there are fewer than two. It measures once.
//
// It counts ticks from 2020 on, unless the schedule has fewer than two of those. It walks through the ticks of a short
// window, so that the result is exact. For more ticks it takes the smallest distance on the wall clock from the sets of
// days, hours, minutes and seconds. It then compares the ticks around every change of the zone's offset up to 2199: a
// day may have 23 hours there, and a skipped tick may move between two others. For a long window that leaves out some
// times of the year, the result may be less than the true distance, never more. So it may with rules, which rarely leave
// the two nearest ticks alone, and with several expressions or ticks that move: there it counts as if every day had all
// the times of day.
func (s *Schedule) MinGap() time.Duration {
	s.measured.Do(func() { s.minGap = s.measure() })
	return s.minGap
}

func (s *Schedule) measure() time.Duration {
	first := max(s.first, gapEra)
	gap, ticks := int64(unbounded), walked
	c, plain := s.series.(*clocked)
	switch {
	case plain && c.hasMany(first, s.last):
	case !plain && s.last == newestTick && boundOfGap(s.series, first, s.last) < unbounded:
		// To walk through a thousand ticks under rules takes as long as a thousand other jobs do.
	default:
		gap, ticks = s.walk(first)
	}
	if ticks < 2 {
		first = s.first
		gap, ticks = s.walk(first)
	}
	if ticks == walked {
		gap = min(gap, boundOfGap(s.series, first, s.last))
	}
	if gap == unbounded {
		return 0
	}
	return time.Duration(gap) * time.Second
}

// boundOfGap returns the smallest distance of two ticks, or less, without walking through them; unbounded if there are
// no two.
func boundOfGap(s series, first, last int64) int64 {
	switch s := s.(type) {
	case *clocked:
		return s.gapBySets(first, last)
	case every:
		return s.period
	case *ruled:
		if s.step == 0 {
			return boundOfGap(s.base, first, last)
		}
		return gapOfDays(s, []series{s}, first, last)
	case union:
		return gapOfDays(s, s, first, last)
	}
	return unbounded
}

// gapOfDays returns a bound for series that together have the ticks of all. It is the smallest distance of two times of
// day, whatever the days.
func gapOfDays(all series, parts []series, first, last int64) int64 {
	gap := int64(unbounded)
	var daily union
	var zone *zone
	for _, one := range parts {
		switch s := base(one).(type) {
		case *clocked:
			c := *s
			c.calendar.month, c.calendar.dayOfMonth, c.calendar.dayOfWeek = ^uint64(0), ^uint64(0), ^uint64(0)
			c.calendar.years = nil
			daily, zone = append(daily, &c), c.zone
			if r, ok := one.(*ruled); ok && r.step != 0 && !c.fixed { // its moved ticks are fixed
				moved := c
				moved.fixed = true
				daily = append(daily, &moved)
			}
		case once:
			u := int64(s)
			if t, ok := all.after(u); ok {
				gap = min(gap, t-u)
			}
			if t, ok := all.notAfter(u - 1); ok {
				gap = min(gap, u-t)
			}
		}
	}
	if daily == nil {
		return gap
	}
	walk := func(from, to int64) {
		for a, ok := daily.after(from - 1); ok && a < to && gap > 1; {
			var b int64
			if b, ok = daily.after(a); ok {
				gap = min(gap, b-a)
			}
			a = b
		}
	}
	walk(first, first+2*day)
	type change struct{ before, offset, clock int64 }
	seen := map[change]bool{}
	for i := zone.index(first) + 1; i < len(zone.stretches); i++ {
		s := &zone.stretches[i]
		kind := change{s.before, s.offset, floor(s.start, day)*day - s.start}
		if s.start <= last && !seen[kind] {
			seen[kind] = true
			walk(s.start-2*day, s.start+2*day)
		}
	}
	return gap
}

// hasMany tells whether there are certainly at least walked ticks: then none has to be walked through. It counts the
// ticks of months in which the zone's offset does not change.
func (c *clocked) hasMany(first, last int64) bool {
	of := &c.calendar
	daily := bits.OnesCount64(of.second) * bits.OnesCount64(of.minute) * bits.OnesCount64(of.hour)
	y, m, _ := time.Unix(first+day, 0).UTC().Date()
	for n := 0; n < walked; {
		if y, m = of.monthAfter(y, m); y > lastYear {
			return false
		}
		// A wall clock is less than a day ahead of UTC or behind.
		start, end := midnight(y, m, 1)-day, midnight(y, m+1, 1)+day
		if end > last {
			return false
		}
		if c.zone.at(start).end > end {
			n += daily * bits.OnesCount32(of.days(y, m))
		}
	}
	return true
}

// gapBySets returns the smallest distance of two ticks, or less, without walking through them.
func (c *clocked) gapBySets(first, last int64) int64 {
	return c.gapAtChanges(c.calendar.gap(first, last), first, last)
}

// walk goes through the ticks from first on and returns how many it saw and their smallest distance.
func (s *Schedule) walk(first int64) (gap int64, ticks int) {
	gap = unbounded
	var last int64
	for u := first - 1; ticks < walked; ticks++ {
		tick, ok := s.series.after(u)
		if !ok || tick > s.last {
			break
		}
		if ticks > 0 {
			gap = min(gap, tick-last)
		}
		u, last = tick, tick
	}
	return gap, ticks
}

// gap returns the smallest distance of two members on the wall clock, in seconds. Where hours follow each other at
// their smallest distance, the last minute and second of one meet the first of the other; likewise for minutes and
// days.
func (c *calendar) gap(from, to int64) int64 {
	within := func(set uint64) int64 { return int64(below(set, 60) - atLeast(set, 0)) }
	hour := within(c.minute)*60 + within(c.second)
	return min(
		closest(c.second),
		closest(c.minute)*60-within(c.second),
		closest(c.hour)*3600-hour,
		c.closestDays(from, to)*day-within(c.hour)*3600-hour,
	)
}

// closest returns the smallest distance of two members of a set.
func closest(set uint64) int64 {
	gap := int64(unbounded)
	for set&(set-1) != 0 {
		low := bits.TrailingZeros64(set)
		set &= set - 1
		gap = min(gap, int64(bits.TrailingZeros64(set)-low))
	}
	return gap
}

// closestDays returns the smallest distance, in days, of two days of the set in the months of the wall seconds given.
func (c *calendar) closestDays(from, to int64) int64 {
	gap, last := int64(unbounded), int64(-unbounded)
	y, m, _ := time.Unix(from-day, 0).UTC().Date()
	for ; gap > 1; y, m = c.monthAfter(y, m) {
		start := midnight(y, m, 1)
		if start > to+day {
			break
		}
		for days := c.days(y, m); days != 0; days &= days - 1 {
			n := start/day + int64(bits.TrailingZeros32(days))
			gap, last = min(gap, n-last), n
		}
	}
	return gap
}

// gapAtChanges returns the smallest distance of successive ticks around the zone's changes of offset, or gap if that is
// smaller: the smallest distance on the wall clock.
func (c *clocked) gapAtChanges(gap, first, last int64) int64 {
	changes := c.zone.stretches[c.zone.index(first)+1 : c.zone.index(last-1)+1]
	least := c.leastGap(gap, changes)
	across := func(u int64) { // the last tick before u and the first that is not
		b, ok := c.after(u - 1)
		if !ok || b > last || b-u >= gap {
			return
		}
		if a, ok := c.notAfter(u - 1); ok && a >= first {
			gap = min(gap, b-a)
		}
	}
	type change struct {
		from, to, clock int64
		days            [3]bool
	}
	seen := map[change]bool{}
	for i := range changes {
		s := &changes[i]
		if gap <= least {
			break
		}
		across(s.start)
		skipped := s.offset - s.before
		if !c.fixed || skipped <= 0 {
			continue
		}
		across(s.start + skipped)
		// In between, skipped ticks lie among others. Few things decide this part, and they recur nearly every year.
		wall := s.start + s.before
		key := change{from: s.before, to: s.offset, clock: wall % day}
		for i := range key.days {
			y, m, d := time.Unix(wall+int64(i)*day, 0).UTC().Date()
			key.days[i] = c.calendar.days(y, m)>>d&1 == 1
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		for a, ok := c.after(s.start - 1); ok && a < s.start+skipped; {
			var b int64
			if b, ok = c.after(a); ok && a >= first && b <= last {
				gap = min(gap, b-a)
			}
			a = b
		}
	}
	return gap
}

// leastGap returns a bound of what gapAtChanges can find. A fixed schedule shows each of its times once. So two ticks
// are as far apart as on the wall clock, less the difference of their offsets. Of a schedule that follows elapsed time,
// ticks can be a second apart: it shows times of the wall clock again.
func (c *clocked) leastGap(gap int64, changes []stretch) int64 {
	if !c.fixed || len(changes) == 0 {
		return 1
	}
	low, high := changes[0].before, changes[0].before
	for i := range changes {
		low, high = min(low, changes[i].offset), max(high, changes[i].offset)
	}
	return gap - (high - low)
}
