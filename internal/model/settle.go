package model

// extend is extend.lua. window is that of the request.
func (m *model) extend(s *state, u uuid, tick, window uint8) answer {
	rd, slot := &s.redis, m.slot(tick)
	i := rd.find(u)
	if i >= 0 && m.has(Settle) && rd.lock[slot] == 0 {
		rd.lock[slot] = u // nobody can have claimed meanwhile
	}
	switch {
	case i < 0 || rd.lock[slot] != u:
		return answerLost
	case rd.stop && m.Policy == Replace && m.has(SoftReplace):
		return answerReplaced
	}
	rd.running[i].window, rd.running[i].jumped = window, false
	return answerOK
}

// finish is settle.lua for the verbs finish and requeue.
func (m *model) finish(s *state, u uuid, tick, attempt uint8, o outcome) answer {
	rd := &s.redis
	if !m.has(PerRun) && rd.last != u {
		return answerLost
	}
	i := rd.find(u)
	if i < 0 {
		if m.has(LateFinish) && o == completed && m.AtLeastOnce {
			if j := rd.findDue(tick, attempt+1, u); j >= 0 {
				s.removeDue(j)
			}
		}
		return answerLost
	}
	s.removeEntry(i)
	if o == cutShort && m.AtLeastOnce && m.has(Requeue) {
		m.runAgain(s, tick, attempt, u)
	} else if o == replaced {
		s.marks[tick] |= finished
	}
	if m.Policy == Allow { // else the lock stays for its safety delay
		rd.unlock(m.slot(tick), u)
	}
	if m.ownsSlot(rd, u, tick) {
		m.wake(s, u, true)
	}
	return answerOK
}

// handover is settle.lua for the verbs handover and abandon (avoid = 0).
func (m *model) handover(s *state, u uuid, tick, attempt, avoid uint8) answer {
	rd := &s.redis
	i := rd.find(u)
	if i < 0 {
		m.takeBack(s, u, attempt, avoid)
		return answerLost
	}
	s.removeEntry(i)
	owns := m.ownsSlot(rd, u, tick)
	rd.unlock(m.slot(tick), u)
	m.addDue(s, due{tick: tick, attempt: attempt, nonce: u, avoid: avoid})
	if owns {
		m.wake(s, u, false)
	}
	return answerOK
}

// takeBack makes a tick due whose run was recorded as interrupted, while its replica knows that it never started.
func (m *model) takeBack(s *state, u uuid, attempt, avoid uint8) {
	for i, e := range s.redis.evidence {
		if m.has(LateEvidence) && e.uuid == u && u != 0 {
			m.addDue(s, due{tick: e.tick, attempt: attempt, nonce: u, avoid: avoid})
			s.redis.evidence[i] = interrupted{}
		}
	}
}

// reap is settle.lua for the verb reap: the takeover of a run whose lease is over.
func (m *model) reap(s *state, i int) {
	rd := &s.redis
	e := s.removeEntry(i)
	owns := m.ownsSlot(rd, e.uuid, e.tick)
	rd.unlock(m.slot(e.tick), e.uuid)
	if !m.has(PerRun) && rd.last != e.uuid {
		return // the ledger speaks of another run by now
	}
	switch {
	case rd.stop && m.Policy == Replace:
		s.marks[e.tick] |= finished | superseded
	case m.AtLeastOnce:
		m.runAgain(s, e.tick, e.attempt, e.uuid)
	}
	if !m.hasRerun(e.attempt) || !m.has(OneRerun) {
		copy(rd.evidence[1:], rd.evidence[:])
		rd.evidence[0] = interrupted{e.uuid, e.tick}
	}
	if owns {
		m.wake(s, e.uuid, false)
	}
}

// ownsSlot tells whether no other run has taken the lock over.
func (m *model) ownsSlot(rd *store, u uuid, tick uint8) bool {
	owner := rd.lock[m.slot(tick)]
	return owner == u || owner == 0 || owner == foreign
}

// unlock is a compare-and-delete.
func (rd *store) unlock(slot int, u uuid) {
	if rd.lock[slot] == u {
		rd.lock[slot] = 0
	}
}

// hasRerun tells whether a run that is cut short in this attempt is run again.
func (m *model) hasRerun(attempt uint8) bool { return m.AtLeastOnce && attempt+1 < m.MaxAttempts }

func (m *model) runAgain(s *state, tick, attempt uint8, nonce uuid) {
	if !m.hasRerun(attempt) {
		s.marks[tick] |= finished
		return
	}
	m.addDue(s, due{tick: tick, attempt: attempt + 1, nonce: nonce})
}

// wake moves on what waited behind a run. ended: the run really ended, so what was refused for it did overlap.
func (m *model) wake(s *state, u uuid, ended bool) {
	rd := &s.redis
	if rd.queued != 0 {
		m.addDue(s, due{tick: rd.queued, nonce: u})
		rd.queued, rd.stop = 0, false
	}
	if rd.pend > rd.claimed {
		for t := rd.claimed + 1; t <= rd.pend; t++ {
			switch {
			case ended:
				s.noteOverlap(t)
			case t == rd.pend || m.MissedAll && m.has(GapBehind):
				m.addDue(s, due{tick: t, nonce: u})
			case !m.MissedAll:
				s.marks[t] |= missed
			}
		}
		rd.claimed = rd.pend
	}
	rd.pend = 0
}

func (s *state) noteOverlap(tick uint8) {
	if tick > s.now {
		s.violate(OverlapToCome)
	}
	s.marks[tick] |= overlapped
}
