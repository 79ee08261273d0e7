package schedule

// clocked puts the wall-clock times of field sets into real time.
//
// Every tick lies in one stretch of constant offset. A stretch has its own ticks, whose wall clock it shows. A fixed
// schedule also has the ticks that the change at the start of the stretch skipped: they keep the offset before the
// change, and so shift by the length of the gap. A fixed schedule leaves out a stretch's own ticks that the stretch
// before has already shown.
//
// Three facts about the world's time zones bound the search, and a test holds them against the whole database: no
// offset reaches a day, no change exceeds one, and two changes lie more than two days apart, so that a gap or a
// repetition is over before the next change.
type clocked struct {
	sets  fieldSets
	zone  *zone
	fixed bool
}

func (c *clocked) after(u int64) (int64, bool) {
	for {
		s := c.zone.at(u + 1)
		from := u + 1 + s.offset
		if c.fixed {
			from = max(from, s.start+s.before)
		}
		w, more := c.sets.from(from)
		tick := int64(distantFuture)
		if more && w-s.offset < s.end {
			tick = w - s.offset
		}
		if c.fixed && u+1+s.before < s.start+s.offset {
			if skipped, ok := c.sets.from(u + 1 + s.before); ok && skipped < s.start+s.offset {
				tick = min(tick, skipped-s.before)
			}
		}
		if tick < distantFuture {
			return tick, true
		}
		// No wall time between from and w matches. Near the end of a stretch, within a day, this is no reason to skip
		// it: the next stretch may turn the wall clock back. Otherwise all stretches up to w can be skipped.
		near := from >= s.end+s.offset-day
		u = s.end - 1
		switch {
		case near:
		case !more:
			return 0, false
		default:
			u = max(u, w-day)
		}
	}
}

func (c *clocked) notAfter(u int64) (int64, bool) {
	for {
		s := c.zone.at(u)
		low := s.start + s.offset
		if c.fixed {
			low = max(low, s.start+s.before)
		}
		w, more := c.sets.notAfter(u + s.offset)
		tick := int64(distantPast)
		if more && w >= low {
			tick = w - s.offset
		}
		if c.fixed && s.before < s.offset {
			skipped, ok := c.sets.notAfter(min(u+s.before, s.start+s.offset-1))
			if ok && skipped >= s.start+s.before {
				tick = max(tick, skipped-s.before)
			}
		}
		if tick > distantPast {
			return tick, true
		}
		// This is the reverse of after: within a day of the start, the stretch before may show later wall times than
		// u's.
		near := u < s.start+day
		u = s.start - 1
		switch {
		case near:
		case !more:
			return 0, false
		default:
			u = min(u, w+day)
		}
		if u < oldestTick {
			return 0, false
		}
	}
}
