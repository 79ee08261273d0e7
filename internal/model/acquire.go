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
	answerFree
	answerCancelled
	answerMoved
)

var answerNames = [...]string{"-", "WON", "FIRED", "OVERLAP", "QUEUED", "HELD", "GONE", "STALE", "EARLY", "OK", "LOST",
	"REPLACED", "LOCKED", "FREE", "CANCELLED", "MOVED"}

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
	policy  Policy
	look    bool // the asker has no slot free, and must not win
}

// acquire is acquire.lua.
func (m *model) acquire(s *state, c claim) answer {
	rd := &s.redis
	known := rd.find(c.uuid) >= 0
	if !m.has(SameAnswer) {
		known = rd.newest == c.uuid // whatever happened since
	}
	switch {
	case !c.pop && !known && (c.tick <= rd.claimed || rd.passedOver(c.tick)):
		return answerFired
	case m.has(Abandon) && !c.inTime, m.has(Superseded) && !c.pop && c.tick < s.now:
		return answerStale
	case known && m.has(SameAnswer):
		return m.answerAgain(s, c)
	case known:
		return answerWon
	case c.pop:
		return m.pop(s, c)
	case m.has(NoEarly) && c.tick > s.reach():
		return answerEarly
	case m.inTheWay(rd, c.policy, c.tick):
		return m.behind(s, c)
	case c.look:
		return answerFree
	case m.lockedOut(rd, c.policy, c.tick):
		return answerLocked
	}
	if m.lists(rd, c.tick) {
		m.claimList(s, c)
		return answerQueued
	}
	m.take(s, c)
	return answerWon
}

// lockedOut reports whether the lock has an owner that is not the last run, whose lock may linger. Under Allow none
// does.
func (m *model) lockedOut(rd *store, p Policy, tick uint8) bool {
	slot := slotOf(p, tick)
	owner := rd.lock[slot]
	return m.has(Respect) && owner != 0 && (slot != 0 || owner != rd.last)
}

// answerAgain repeats the answer to a run whose entry is there.
func (m *model) answerAgain(s *state, c claim) answer {
	rd, slot := &s.redis, slotOf(c.policy, c.tick)
	if owner := rd.lock[slot]; owner != c.uuid && owner != 0 {
		return answerLost
	}
	rd.lock[slot] = c.uuid
	if m.has(Refresh) {
		e := &rd.running[rd.find(c.uuid)]
		e.window, e.jumped, e.renewed = max(e.window, c.window), false, s.now
		s.moveLease(c.uuid)
	}
	return answerWon
}

// waits reports whether the run of a due member waits for the end of others.
func (m *model) waits(attempt uint8) bool { return attempt&byHand == 0 || m.has(HandWaits) }

// pop claims by a due member.
func (m *model) pop(s *state, c claim) answer {
	rd := &s.redis
	i := rd.findDue(c.tick, c.attempt, c.nonce)
	switch {
	case i < 0:
		return answerGone
	case !m.has(DueBypass) && rd.claimed >= c.tick:
		return answerFired
	case m.waits(c.attempt) && m.inTheWay(rd, c.policy, c.tick):
		return answerHeld
	case c.look:
		return answerFree
	case m.waits(c.attempt) && m.lockedOut(rd, c.policy, c.tick):
		if rd.find(rd.lock[slotOf(c.policy, c.tick)]) >= 0 { // under Allow, the same tick runs already
			return answerHeld
		}
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
	case m.has(NotYet) && c.tick > s.now: // the run may be over by then
		return answerEarly
	case c.policy == Replace && !m.has(SoftReplace):
		m.take(s, c)
		return answerWon
	case c.policy == Replace, c.policy == Queue && !m.queueFull(rd, c.tick):
		m.wait(s, c)
		return answerQueued
	}
	s.marks[c.tick] |= refused
	if c.policy == Queue && m.has(OneWaits) {
		if rd.waits == 0 && !rd.dueOfTable(false) {
			s.violate(PlaceTaken)
		}
		m.passOver(s, c.tick)
		rd.refused &^= 1 << c.tick
		rd.claimed = c.tick
		s.noteOverlap(c.tick)
		return answerOverlap
	}
	if rd.refused>>c.tick&1 == 0 {
		m.refuse(s, c)
	} else {
		s.heard.after = rd.newestKnown()
	}
	return answerOverlap
}

// queueFull reports whether a tick waits already, behind the run or in the due set. A list finds room all the same.
func (m *model) queueFull(rd *store, tick uint8) bool {
	return !m.lists(rd, tick) && (rd.waits != 0 || m.has(DueWaits) && rd.dueOfTable(!m.has(HandAside)))
}

// lists reports whether a claim makes older ticks due as well.
func (m *model) lists(rd *store, tick uint8) bool {
	return m.MissedAll && m.has(GapInClaim) && rd.claimed+1 < tick
}

// refuse writes down that a tick, or the list that ends with it, came while a run was in the way.
func (m *model) refuse(s *state, c claim) {
	rd := &s.redis
	if !m.has(Pend) {
		for _, e := range rd.running {
			if f := s.live(e.uuid); f != nil && f.phase >= asking && f.phase <= finishing {
				s.marks[c.tick] |= overlapped
			}
		}
		return
	}
	first := c.tick
	if m.MissedAll && m.has(GapInClaim) {
		first = rd.claimed + 1
	}
	m.passOver(s, first)
	for t := first; t <= c.tick; t++ {
		if t != rd.waits {
			rd.refused |= 1 << t
		}
	}
}

// wait claims a tick that the end of the last live run sets free. Under Replace it displaces the one that waited, and
// all live runs are told to end.
func (m *model) wait(s *state, c claim) {
	rd := &s.redis
	if m.lists(rd, c.tick) {
		m.claimList(s, c)
	} else {
		if c.policy == Queue && rd.dueOfTable(false) {
			s.violate(QueueTwice)
		}
		m.passOver(s, c.tick)
		if t := rd.waits; t != 0 {
			s.marks[t] |= superseded
			if m.has(Gaps) {
				s.countMissed(t)
			}
			s.heard.waited = t
		}
		m.noteClaim(s, c.tick)
		rd.refused &^= 1 << c.tick
		rd.waits, rd.claimed = c.tick, c.tick
	}
	if c.policy != Replace {
		return
	}
	rd.stop = !m.has(StopRuns)
	for i := range rd.running {
		if e := &rd.running[i]; e.uuid != 0 {
			if e.tick >= c.tick || c.tick > s.now {
				s.violate(StoppedForNothing)
			}
			e.toEnd = true
		}
	}
}

// claimList makes all ticks due that nobody has claimed, so that they are run in order.
func (m *model) claimList(s *state, c claim) {
	rd := &s.redis
	m.noteClaim(s, c.tick)
	for t := rd.claimed + 1; t <= c.tick; t++ {
		m.addDue(s, due{tick: t, nonce: c.uuid})
		rd.refused &^= 1 << t
	}
	if rd.waits != 0 { // it is the first of them
		m.addDue(s, due{tick: rd.waits, nonce: c.uuid})
		rd.waits = 0
	}
	rd.claimed = c.tick
}

// take gives the tick and the lock to a run.
func (m *model) take(s *state, c claim) {
	rd := &s.redis
	if !c.pop {
		m.noteClaim(s, c.tick)
		if m.MissedAll && !m.has(GapInClaim) {
			m.leaveGapToClaimant(s, c)
		} else {
			m.passOver(s, c.tick)
		}
		rd.claimed = c.tick
		if m.has(OutOfBehind) {
			rd.refused &^= 1 << c.tick
		}
	}
	if s.marks[kept(c.tick, c.attempt)]&calledOff != 0 {
		s.violate(CancelledAgain)
	}
	slot := slotOf(c.policy, c.tick)
	if rd.lock[slot] == foreign {
		s.violate(ForeignLock)
	}
	rd.lock[slot] = c.uuid
	if slot == 0 {
		rd.last = c.uuid
	}
	if !m.has(PerRun) || !m.has(SameAnswer) {
		rd.newest = c.uuid
	}
	s.addEntry(entry{uuid: c.uuid, tick: c.tick, attempt: c.attempt, window: c.window, slot: uint8(slot),
		began: s.now, renewed: s.now})
	if s.fromOrphan {
		s.marks[kept(c.tick, c.attempt)] |= diedAtStart
	} else if f := s.live(c.uuid); f != nil {
		f.claimed = true
		if c.policy != Allow && m.mixed() {
			f.older = s.holders(c.uuid)
		}
	}
}

// noteClaim checks that a tick is claimed from the table only before the next one is due.
func (m *model) noteClaim(s *state, tick uint8) {
	if tick < s.now {
		s.violate(LateClaim)
	}
}

// passOver sees to the ticks between the newest one that was claimed or refused and the one of a claim: nobody asked
// for them in time.
func (m *model) passOver(s *state, upTo uint8) {
	newest := s.redis.newestKnown()
	s.heard.after = newest
	for t := newest + 1; m.has(Gaps) && t < upTo; t++ {
		s.countMissed(t)
	}
}

func (m *model) leaveGapToClaimant(s *state, c claim) {
	for t := s.redis.newestKnown() + 1; t < c.tick; t++ {
		f := s.live(c.uuid)
		switch {
		case f == nil:
			s.marks[t] |= diedAtStart
		case f.gap == 0:
			f.gap = t
		}
	}
}
