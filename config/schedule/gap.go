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

// MinGap returns the smallest distance of two successive ticks; 0 when there are fewer than two.
//
// It counts ticks from 2020 on, unless the schedule has fewer than two of those. It walks through the first ticks, so
// that the result for a short window is exact. For more ticks it takes the smallest distance on the wall clock from the
// sets of days, hours, minutes and seconds. It then compares the ticks around every change of the zone's offset up to
// 2199: a day may have 23 hours there, and a skipped tick may move between two others. For a long window that leaves
// out some times of the year, the result may be less than the true distance, never more.
func (s *Schedule) MinGap() time.Duration {
	first := max(s.first, gapEra)
	gap, ticks := s.walk(first)
	if ticks < 2 {
		first = s.first
		gap, ticks = s.walk(first)
	}
	if c, ok := s.series.(*clocked); ok && ticks == walked {
		gap = min(gap, c.calendar.gap(first, s.last), c.gapAtChanges(first, s.last))
	}
	if gap == unbounded {
		return 0
	}
	return time.Duration(gap) * time.Second
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

// gapAtChanges returns the smallest distance of successive ticks around the zone's changes of offset.
func (c *clocked) gapAtChanges(first, last int64) int64 {
	gap := int64(unbounded)
	across := func(u int64) { // the last tick before u and the first that is not
		a, before := c.notAfter(u - 1)
		b, after := c.after(u - 1)
		if before && after && a >= first && b <= last {
			gap = min(gap, b-a)
		}
	}
	type change struct {
		from, to, clock int64
		days            [3]bool
	}
	seen := map[change]bool{}
	for s := stretchAt(c.zone, first); s.end < last; {
		s = stretchAt(c.zone, s.end)
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
