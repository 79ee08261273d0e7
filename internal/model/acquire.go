package model

// answer is what a script returned.
type answer uint8

const (
	noAnswer answer = iota
	answerWon
	answerFired
	answerOverlap
	answerQueued
	answerHeld
	answerGone
	answerStale
	answerEarly
	answerOK
	answerLost
	answerReplaced
	answerLocked
)

var answerNames = [...]string{"-", "WON", "FIRED", "OVERLAP", "QUEUED", "HELD", "GONE", "STALE", "EARLY", "OK", "LOST", "REPLACED", "LOCKED"}

func (a answer) String() string { return answerNames[a] }

// claim is a request to acquire a tick.
type claim struct {
	uuid    uuid
	tick    uint8
	attempt uint8
	pop     bool // the authority is a due member
	nonce   uuid // of that member
	window  uint8
	inTime  bool // its window is open when it reaches Redis
}

// acquire is acquire.lua.
func (m *model) acquire(s *state, c claim) answer {
	rd := &s.redis
	known := rd.find(c.uuid) >= 0
	if !m.has(SameAnswer) {
		known = rd.last == c.uuid // whatever happened since
	}
	switch {
	case !c.pop && !known && rd.claimed >= c.tick:
		return answerFired
	case m.has(Abandon) && !c.inTime:
		return answerStale
	case known && m.has(SameAnswer):
		return m.answerAgain(s, c)
	case known:
		return answerWon
	case c.pop:
		return m.pop(s, c)
	case m.has(NoEarly) && c.tick > s.reach():
		return answerEarly
	case m.holder(rd, c.tick) != 0:
		return m.behind(s, c)
	case m.lockedOut(rd, c.tick):
		return answerLocked
	}
	m.take(s, c)
	return answerWon
}

// lockedOut tells whether the lock has an owner that is not the last run, whose lock may linger.
func (m *model) lockedOut(rd *store, tick uint8) bool {
	owner := rd.lock[m.slot(tick)]
	return m.has(Respect) && owner != 0 && owner != rd.last
}

// answerAgain repeats the answer to a run whose entry is there.
func (m *model) answerAgain(s *state, c claim) answer {
	rd, slot := &s.redis, m.slot(c.tick)
	if owner := rd.lock[slot]; owner != c.uuid && owner != 0 {
		return answerLost
	}
	rd.lock[slot] = c.uuid
	if m.has(Refresh) {
		e := &rd.running[rd.find(c.uuid)]
		e.window, e.jumped = max(e.window, c.window), false
	}
	return answerWon
}

// pop claims by a due member.
func (m *model) pop(s *state, c claim) answer {
	rd := &s.redis
	i := rd.findDue(c.tick, c.attempt, c.nonce)
	switch {
	case i < 0:
		return answerGone
	case !m.has(DueBypass) && rd.claimed >= c.tick:
		return answerFired
	case m.holder(rd, c.tick) != 0:
		return answerHeld
	case m.lockedOut(rd, c.tick):
		return answerLocked
	}
	s.removeDue(i)
	m.take(s, c)
	return answerWon
}

// behind is the answer of the policy to a tick that comes while a run is in the way.
func (m *model) behind(s *state, c claim) answer {
	rd := &s.redis
	switch {
	case m.Policy == Queue && rd.queued == 0:
		m.countGap(s, c)
		rd.queued, rd.claimed = c.tick, c.tick
		return answerQueued
	case m.Policy == Replace && m.has(SoftReplace):
		m.countGap(s, c)
		if rd.queued != 0 {
			s.marks[rd.queued] |= superseded
		}
		rd.queued, rd.claimed, rd.stop = c.tick, c.tick, true
		return answerQueued
	case m.Policy == Replace:
		m.take(s, c)
		return answerWon
	}
	if m.has(NotYet) && c.tick > s.now { // the run may be over by then
		return answerEarly
	}
	if m.has(Pend) {
		rd.pend = max(rd.pend, c.tick)
	} else if f := s.live(m.holder(rd, c.tick)); f != nil && f.phase >= asking && f.phase <= finishing {
		s.marks[c.tick] |= overlapped
	}
	s.marks[c.tick] |= refused
	return answerOverlap
}

// take gives the tick and the lock to a run.
func (m *model) take(s *state, c claim) {
	rd := &s.redis
	if !c.pop {
		m.countGap(s, c)
		rd.claimed = c.tick
		if rd.pend <= c.tick {
			rd.pend = 0
		}
	}
	slot := m.slot(c.tick)
	if rd.lock[slot] == foreign {
		s.violate(ForeignLock)
	}
	rd.lock[slot], rd.last = c.uuid, c.uuid
	s.addEntry(entry{uuid: c.uuid, tick: c.tick, attempt: c.attempt, window: c.window})
	if s.fromOrphan {
		s.marks[c.tick] |= diedAtStart
	} else if f := s.live(c.uuid); f != nil {
		f.claimed = true
	}
}

// countGap sees to the ticks between the newest claimed one and the one of the claim, which nobody claimed.
func (m *model) countGap(s *state, c claim) {
	for t := s.redis.claimed + 1; t < c.tick; t++ {
		switch {
		case m.MissedAll && m.has(GapInClaim):
			m.addDue(s, due{tick: t, nonce: c.uuid})
		case m.MissedAll:
			m.leaveGapToClaimant(s, c.uuid, t)
		case s.marks[t]&refused != 0 && s.marks[t]&overlapped != 0:
		default:
			s.countMissed(t)
		}
	}
}

func (m *model) leaveGapToClaimant(s *state, claimant uuid, tick uint8) {
	f := s.live(claimant)
	switch {
	case f == nil:
		s.marks[tick] |= diedAtStart
	case f.gap == 0:
		f.gap = tick
	}
}

func (s *state) countMissed(tick uint8) {
	if s.marks[tick]&missed != 0 {
		s.violate(MissedTwice)
	}
	s.marks[tick] |= missed
}
