package model

// extend is extend.lua. window is that of the request.
func (m *model) extend(s *state, u uuid, slot int, window uint8) answer {
	rd := &s.redis
	i := rd.find(u)
	if i >= 0 && m.has(Settle) && rd.lock[slot] == 0 {
		rd.lock[slot] = u // nobody can have claimed meanwhile
	}
	if i < 0 || rd.lock[slot] != u {
		if !m.has(Owner) {
			return answerOK
		}
		return answerLost
	}
	e := &rd.running[i]
	e.renewed = s.now
	s.moveLease(u)
	told := m.isReplaced(rd, *e)
	m.noteStop(s, *e, told)
	if e.calledOff {
		return answerCancelled
	}
	if told {
		return answerReplaced
	}
	e.window, e.jumped = window, false
	return answerOK
}

// isReplaced reports whether a run is to end. With StopRuns each has a mark of its own.
func (m *model) isReplaced(rd *store, e entry) bool {
	switch {
	case !m.has(SoftReplace):
		return false
	case m.has(StopRuns):
		return e.toEnd
	}
	return rd.stop
}

// finish is settle.lua for the verbs finish and requeue.
func (m *model) finish(s *state, z stray) answer {
	rd, u := &s.redis, z.uuid
	if !m.has(PerRun) && rd.newest != u {
		return answerLost
	}
	i := rd.find(u)
	if !m.has(Owner) && rd.running[0].uuid != 0 {
		i = 0
	}
	if i < 0 {
		if m.has(LateFinish) && z.outcome != cutShort && m.AtLeastOnce {
			if j := rd.findDue(z.tick, z.attempt+1, u); j >= 0 {
				s.removeDue(j)
			}
		}
		rd.forget(u)
		return answerLost
	}
	e := m.remove(s, i)
	requeued := z.outcome == cutShort && m.AtLeastOnce && m.has(Requeue)
	if requeued {
		if m.isReplaced(rd, e) {
			s.marks[kept(z.tick, z.attempt)] |= finished
		} else if !m.isOver(e) {
			m.runAgain(s, z.tick, z.attempt, u)
		}
	} else if z.outcome == replaced {
		s.marks[kept(z.tick, z.attempt)] |= finished
	}
	if requeued || e.slot != 0 { // else the lock stays for its safety delay
		rd.unlock(int(e.slot), u)
	}
	m.wake(s, e, finishing)
	return answerOK
}

// handover is settle.lua for the verbs handover and abandon (avoid = 0). A run that no app takes is not handed on.
func (m *model) handover(s *state, z stray, avoid uint8) answer {
	rd, u := &s.redis, z.uuid
	i := rd.find(u)
	switch {
	case i < 0 && z.outcome == untaken:
		rd.forget(u)
		return answerLost
	case i < 0:
		m.takeBack(s, u, z.attempt, avoid)
		return answerLost
	}
	e := m.remove(s, i)
	rd.unlock(int(e.slot), u)
	if !m.isOver(e) && z.outcome != untaken {
		m.addDue(s, due{tick: z.tick, attempt: z.attempt, nonce: u, avoid: avoid})
	}
	m.wake(s, e, handingOver)
	return answerOK
}

// takeBack makes a tick due whose run was recorded as interrupted, while its replica knows that it never started.
func (m *model) takeBack(s *state, u uuid, attempt, avoid uint8) {
	if tick := s.redis.forget(u); tick != 0 && m.has(LateEvidence) {
		m.addDue(s, due{tick: tick, attempt: attempt, nonce: u, avoid: avoid})
	}
}

// reap is settle.lua for the verb reap: the takeover of a run whose lease is over.
func (m *model) reap(s *state, i int) {
	rd := &s.redis
	e := m.remove(s, i)
	rd.unlock(int(e.slot), e.uuid)
	if !m.has(PerRun) && rd.newest != e.uuid {
		return // the ledger speaks of another run by now
	}
	replaced, over := m.isReplaced(rd, e), m.isOver(e)
	switch {
	case over:
	case replaced:
		s.marks[kept(e.tick, e.attempt)] |= finished | superseded
	case m.AtLeastOnce:
		m.runAgain(s, e.tick, e.attempt, e.uuid)
	}
	if !over && (!m.hasRerun(e.attempt) && !replaced || !m.has(OneRerun)) {
		m.remember(s, interrupted{e.uuid, e.tick})
	}
	m.wake(s, e, dead)
}

// remove takes a run out of the entries that settle then sees to.
func (m *model) remove(s *state, i int) entry {
	e := s.removeEntry(i)
	if e.calledOff {
		s.marks[kept(e.tick, e.attempt)] |= finished | calledOff
	}
	return e
}

// isOver reports whether a run is over for good, since an operator has cancelled it.
func (m *model) isOver(e entry) bool { return e.calledOff && m.has(Cancel) }

// unlock is a compare-and-delete.
func (rd *store) unlock(slot int, u uuid) {
	if rd.lock[slot] == u {
		rd.lock[slot] = 0
	}
}

// hasRerun reports whether a run that is cut short in this attempt is run again.
func (m *model) hasRerun(attempt uint8) bool {
	return m.AtLeastOnce && attempt&^byHand+1 < m.MaxAttempts
}

func (m *model) runAgain(s *state, tick, attempt uint8, nonce uuid) {
	if !m.hasRerun(attempt) {
		s.marks[kept(tick, attempt)] |= finished
		return
	}
	m.addDue(s, due{tick: tick, attempt: attempt + 1, nonce: nonce})
}

// wake sees to what came due behind a run. how: finishing, it ran to its end; handingOver, it never started; dead, its
// lease was over.
func (m *model) wake(s *state, e entry, how phase) {
	rd, lived := &s.redis, uint8(0) // until when the run certainly lived
	switch {
	case how == finishing, how == handingOver && !m.has(Unbegun):
		lived = maxTicks
	case how == dead && m.has(Lived):
		lived = e.renewed
	}
	rd.stop = false
	others := m.has(WaitForAll) && rd.running[0].uuid != 0
	freed := 0
	for t := uint8(1); int(t) <= m.Ticks; t++ {
		behind := rd.refused>>t&1 == 1
		spared := e.attempt&byHand != 0 && t == rd.newestRefused() // a run by hand takes no tick away
		switch {
		case behind && !spared && (e.began < t || !m.has(BeganBefore)) && t <= lived:
			rd.refused &^= 1 << t
			rd.claimed = max(rd.claimed, t)
			s.noteOverlap(t)
			s.noteBegan(e, t, how)
		case !behind && t != rd.waits, others:
		case behind && !m.has(GapBehind) && t != rd.newestRefused():
			rd.refused &^= 1 << t
		default:
			m.noteFreed(s, e, t, how)
			m.addDue(s, due{tick: t, nonce: e.uuid})
			rd.refused &^= 1 << t
			rd.claimed = max(rd.claimed, t)
			if t == rd.waits {
				rd.waits = 0
			}
			freed++
		}
	}
	if freed > 1 && m.Policy == Queue && !m.mixed() && !m.MissedAll {
		s.violate(QueueFreed)
	}
}

// remember keeps that a run was interrupted, for as long as its replica may give the tick back.
func (m *model) remember(s *state, x interrupted) {
	if f := s.live(x.uuid); (f == nil || f.phase == done) && !s.hasStray(x.uuid) {
		return
	}
	list := &s.redis.evidence
	if !m.has(Memo) {
		list[0] = x
		return
	}
	for i := range list {
		switch {
		case list[i].uuid == 0:
			list[i] = x
			return
		case list[i].uuid > x.uuid:
			list[i], x = x, list[i]
		}
	}
	s.violate(Overflow)
}

// forget takes what is remembered of a run, and returns its tick; 0 = nothing is.
func (rd *store) forget(u uuid) uint8 {
	for i, x := range rd.evidence {
		if x.uuid == u && u != 0 {
			copy(rd.evidence[i:], rd.evidence[i+1:])
			rd.evidence[maxEvidence-1] = interrupted{}
			return x.tick
		}
	}
	return 0
}
