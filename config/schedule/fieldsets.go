package schedule

import (
	"math/bits"
	"time"

	"github.com/netresearch/go-cron"
)

// This file counts in wall seconds: the seconds of a wall clock and calendar, counted as if they were UTC. So it knows
// no zone.
const day = 24 * 60 * 60

// wildcard is the bit by which the library marks a field that was written as *.
const wildcard = 1 << 63

// fieldSets is a set of wall-clock times: a set of days times a set of times of day.
type fieldSets struct {
	second, minute, hour uint64
	month                uint64
	dayOfMonth           uint64
	dayOfWeek            uint64
	dayOfMonthRules      []cron.DomConstraint
	dayOfWeekRules       []cron.DowConstraint
	years                map[int]struct{} // nil = all
	either               bool             // a day need match only one of the two day fields
}

// newFieldSets copies the sets from the library. As in Kubernetes, "*/2" restricts a day field and "*/1" does not.
// cron(5) differs: it only looks whether the field begins with *.
func newFieldSets(s *cron.SpecSchedule) fieldSets {
	return fieldSets{
		second:          s.Second &^ wildcard,
		minute:          s.Minute &^ wildcard,
		hour:            s.Hour &^ wildcard,
		month:           s.Month &^ wildcard,
		dayOfMonth:      s.Dom &^ wildcard,
		dayOfWeek:       s.Dow &^ wildcard,
		dayOfMonthRules: s.DomConstraints,
		dayOfWeekRules:  s.DowConstraints,
		years:           s.Year,
		either:          s.Dom&wildcard == 0 && s.Dow&wildcard == 0,
	}
}

// runsThroughHours reports whether the hours are spread evenly over the day, at most four hours apart.
func (c *fieldSets) runsThroughHours() bool {
	for before, hours := range []uint64{0xffffff, 0x555555, 0x249249, 0x111111} { // all, each 2nd, 3rd and 4th
		if first := bits.TrailingZeros64(c.hour); first <= before && c.hour == hours<<first {
			return true
		}
	}
	return false
}

// after returns the earliest wall second of the set after another one.
func (c *fieldSets) after(w int64) (int64, bool) { return c.from(w + 1) }

// from returns the earliest wall second of the set that is not before w.
func (c *fieldSets) from(w int64) (int64, bool) {
	y, m, d := time.Unix(w, 0).UTC().Date()
	days := c.days(y, m)
	if days>>d&1 == 1 {
		if t := c.clockFrom(int(w - midnight(y, m, d))); t >= 0 {
			return midnight(y, m, d) + int64(t), true
		}
	}
	days &= ^uint32(0) << d << 1
	for days == 0 {
		// The wall clock may be a day ahead of UTC, and so in the year after the last tick's.
		if y, m = c.monthAfter(y, m); y > lastYear+1 {
			return 0, false
		}
		days = c.days(y, m)
	}
	return midnight(y, m, bits.TrailingZeros32(days)) + int64(c.clockFrom(0)), true
}

// notAfter returns the newest wall second of the set that is not after w.
func (c *fieldSets) notAfter(w int64) (int64, bool) {
	y, m, d := time.Unix(w, 0).UTC().Date()
	days := c.days(y, m)
	if days>>d&1 == 1 {
		if t := c.clockUpTo(int(w - midnight(y, m, d))); t >= 0 {
			return midnight(y, m, d) + int64(t), true
		}
	}
	days &= 1<<d - 1
	for days == 0 {
		if y, m = c.monthBefore(y, m); y < 0 {
			return 0, false
		}
		days = c.days(y, m)
	}
	return midnight(y, m, bits.Len32(days)-1) + int64(c.clockUpTo(day-1)), true
}

// monthAfter steps to the next month, over whole years that have no days.
func (c *fieldSets) monthAfter(y int, m time.Month) (int, time.Month) {
	if m < time.December && c.hasYear(y) {
		return y, m + 1
	}
	return y + 1, time.January
}

func (c *fieldSets) monthBefore(y int, m time.Month) (int, time.Month) {
	if m > time.January && c.hasYear(y) {
		return y, m - 1
	}
	return y - 1, time.December
}

func (c *fieldSets) hasYear(y int) bool {
	_, ok := c.years[y]
	return ok || c.years == nil
}

// days returns the days of one month that are in the set, day n as bit n.
func (c *fieldSets) days(y int, m time.Month) uint32 {
	if c.month>>m&1 == 0 || !c.hasYear(y) {
		return 0
	}
	start := daysTo(y, m, 1)
	const thursday = 4 // 1 January 1970
	first := int((start%7 + thursday + 7) % 7)
	length := int(daysTo(y, m+1, 1) - start)
	every := uint32(1)<<length<<1 - 2
	byMonth := uint32(c.dayOfMonth)
	for _, r := range c.dayOfMonthRules {
		byMonth |= 1 << ruleDay(r, first, length)
	}
	byWeek := c.weekdays(first, length)
	if c.either {
		return (byMonth | byWeek) & every
	}
	return byMonth & byWeek & every
}

// ruleDay returns the day of an L or W, or 0 if this month has none.
func ruleDay(r cron.DomConstraint, first, length int) int {
	weekday := func(d int) time.Weekday { return time.Weekday((first + d - 1) % 7) }
	d := length
	switch r.Type {
	case cron.DomLast:
		return d
	case cron.DomLastOffset:
		return max(0, d-r.N)
	case cron.DomNearestWeekday:
		if d = r.N; d > length {
			return 0
		}
	}
	// The rule takes the nearest working day within the month.
	switch {
	case weekday(d) == time.Saturday && d > 1:
		return d - 1
	case weekday(d) == time.Saturday:
		return d + 2
	case weekday(d) == time.Sunday && d < length:
		return d + 1
	case weekday(d) == time.Sunday:
		return d - 2
	}
	return d
}

// weekdays returns the days of a month that the day of week field matches. The month begins on weekday first.
func (c *fieldSets) weekdays(first, length int) uint32 {
	const weekly = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
	earliest := func(weekday int) int { return 1 + (weekday-first+7)%7 }
	var days uint32
	for weekday := range 7 {
		if c.dayOfWeek>>weekday&1 == 1 {
			days |= weekly << earliest(weekday)
		}
	}
	for _, r := range c.dayOfWeekRules {
		d := earliest(r.Weekday)
		if r.N < 0 {
			days |= 1 << (d + (length-d)/7*7)
		} else {
			days |= 1 << (d + (r.N-1)*7)
		}
	}
	return days
}

// clockFrom returns the earliest time of day of the set that is not before t, in seconds; -1 if there is none.
func (c *fieldSets) clockFrom(t int) int {
	h, m, s := t/3600, t/60%60, t%60
	if c.hour>>h&1 == 1 {
		if c.minute>>m&1 == 1 {
			if s = atLeast(c.second, s); s < 64 {
				return h*3600 + m*60 + s
			}
		}
		if m = atLeast(c.minute, m+1); m < 64 {
			return h*3600 + m*60 + atLeast(c.second, 0)
		}
	}
	if h = atLeast(c.hour, h+1); h < 64 {
		return h*3600 + atLeast(c.minute, 0)*60 + atLeast(c.second, 0)
	}
	return -1
}

// clockUpTo returns the latest time of day of the set that is not after t, in seconds; -1 if there is none.
func (c *fieldSets) clockUpTo(t int) int {
	h, m, s := t/3600, t/60%60, t%60
	if c.hour>>h&1 == 1 {
		if c.minute>>m&1 == 1 {
			if s = below(c.second, s+1); s >= 0 {
				return h*3600 + m*60 + s
			}
		}
		if m = below(c.minute, m); m >= 0 {
			return h*3600 + m*60 + below(c.second, 60)
		}
	}
	if h = below(c.hour, h); h >= 0 {
		return h*3600 + below(c.minute, 60)*60 + below(c.second, 60)
	}
	return -1
}

// atLeast returns the smallest member that is not below n; 64 if there is none.
func atLeast(set uint64, n int) int { return bits.TrailingZeros64(set &^ (1<<n - 1)) }

// below returns the largest member below n; -1 if there is none.
func below(set uint64, n int) int { return bits.Len64(set&(1<<n-1)) - 1 }

// midnight returns the wall second at which a day begins.
func midnight(y int, m time.Month, d int) int64 { return daysTo(y, m, d) * day }

// daysTo returns how many days lie between 1 January 1970 and a day. The month may be the 13th.
func daysTo(y int, m time.Month, d int) int64 {
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / day
}
