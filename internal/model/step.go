package model

import "slices"

// emit takes one successor of a state. fault: it needs something to fail, so a state with no other successors is at
// rest.
type emit func(next *state, a action, fault bool)

// successors emits everything that can happen next.
func (m *model) successors(s *state, emit emit) {
	if m.readFinalAnswer(s, emit) {
		return
	}
	m.advanceClock(s, emit)
	for r := range m.Replicas {
		if m.Asked {
			m.stopAlone(s, r, emit)
		}
		if !s.alive[r] {
			m.restart(s, r, emit)
			continue
		}
		m.crash(s, r, emit)
		for i := range s.fibers[r] {
			if i < m.Ticks || i == dueFiber {
				m.stepFiber(s, at{r, i}, emit)
			}
		}
	}
	m.deliverStrays(s, emit)
	m.expireLocks(s, emit)
	m.takeOver(s, emit)
	m.failRedis(s, emit)
	m.steal(s, emit)
	m.operate(s, emit)
}

// readFinalAnswer is a partial order: reading an answer that can only end its fiber commutes with everything else, so
// that it need not be tried in every place.
func (m *model) readFinalAnswer(s *state, emit emit) bool {
	if m.Faults[Redis] > 0 {
		return false
	}
	for r := range m.Replicas {
		for i := range s.fibers[r] {
			f := &s.fibers[r][i]
			if !s.alive[r] || f.request != answered || !m.endsFiber(s, f, i) {
				continue
			}
			next := *s
			next.fibers[r][i].end(i)
			emit(&next, action{kind: actRead, replica: uint8(r), fiber: uint8(i), what: uint8(f.answer)}, false)
			return true
		}
	}
	return false
}

// endsFiber reports whether an answer ends the fiber whatever else happens.
func (m *model) endsFiber(s *state, f *fiber, index int) bool {
	switch f.phase {
	case finishing, handingOver, abandoning:
		return true
	case asking:
	default:
		return false
	}
	if f.askedAgain || !m.has(Gaps) {
		return false
	}
	switch f.answer {
	case answerFired, answerGone, answerStale:
		return true
	case answerOverlap:
		return s.left[Loss] == 0 && index != dueFiber
	case answerQueued, answerHeld:
		return s.left[Loss] == 0
	}
	return false
}

// advanceClock lets the next tick come. A healthy replica is given the time to ask for the one before.
func (m *model) advanceClock(s *state, emit emit) {
	if int(s.now) == m.Ticks {
		return
	}
	freezes := false
	if m.Healthy >= 0 && s.now > m.Begin {
		f := &s.fibers[m.Healthy][s.now-1]
		freezes = (f.phase == armed || f.phase == asking) && s.left[Freeze] > 0
		waitsForSlot := f.phase == armed && m.OneSlot && !m.has(Look)
		if (f.phase == idle || f.phase == armed || f.phase == asking) && !freezes && !waitsForSlot {
			return
		}
	}
	next := *s
	if freezes {
		next.left[Freeze]--
	}
	if m.Tolerance && !s.near {
		next.near = true
		emit(&next, action{kind: actNear, what: next.now + 1}, freezes)
		return
	}
	next.now, next.near = s.now+1, false
	emit(&next, action{kind: actClock, what: next.now}, freezes)
}

func (m *model) deliverStrays(s *state, emit emit) {
	for i, z := range s.strays {
		if z.phase == idle {
			continue
		}
		next := *s
		next.removeStray(i)
		next.fromOrphan = z.orphan
		a := m.deliver(&next, z)
		next.fromOrphan, next.heard = false, heard{}
		emit(&next, action{kind: actStrayArrives, replica: z.replica, fiber: z.from, what: uint8(a)}.running(z, true),
			false)
	}
}

// deliver runs a stray copy. One whose window has closed is gone already (see closeWindow); any other is in time, even
// when its fiber has moved on.
func (m *model) deliver(s *state, z stray) answer {
	if z.phase == verifying { // a late copy only lengthens the lease
		if i := s.redis.find(z.uuid); i >= 0 && s.covered(s.redis.running[i]) {
			z.window = s.redis.running[i].window
		}
	}
	return m.call(s, z, true)
}

// call is Redis running a request.
func (m *model) call(s *state, z stray, inTime bool) answer {
	a := m.script(s, z, inTime)
	s.redis.tidy()
	return a
}

// script is the script that a request calls.
func (m *model) script(s *state, z stray, inTime bool) answer {
	switch z.phase {
	case asking:
		return m.acquire(s, claim{uuid: z.uuid, tick: z.tick, attempt: z.attempt, pop: z.from == dueFiber,
			nonce: z.nonce, window: z.window, inTime: inTime, policy: z.policy, look: z.look})
	case verifying:
		return m.extend(s, z.uuid, slotOf(z.policy, z.tick), z.window)
	case finishing:
		return m.finish(s, z)
	case handingOver:
		return m.handover(s, z, z.replica+1)
	default: // abandoning
		return m.handover(s, z, 0)
	}
}

// copyOf is a copy of a fiber's request.
func copyOf(f *fiber, p at) stray {
	return stray{phase: f.phase, replica: uint8(p.replica), from: uint8(p.fiber), uuid: f.uuid, tick: f.tick,
		attempt: f.attempt, nonce: f.nonce, window: f.under, outcome: f.outcome, policy: f.policy, look: f.look}
}

// addStray is false when there are too many to be modelled: then the copy is one that gets lost.
func (s *state) addStray(z stray) bool {
	for i := range s.strays {
		if s.strays[i].phase == idle {
			s.strays[i] = z
			return true
		}
	}
	return false
}

// removeStray keeps those that are left at the front.
func (s *state) removeStray(i int) {
	copy(s.strays[i:], s.strays[i+1:])
	s.strays[maxStrays-1] = stray{}
}

func (s *state) hasStray(u uuid) bool {
	return slices.ContainsFunc(s.strays[:], func(z stray) bool { return z.phase != idle && z.uuid == u })
}
