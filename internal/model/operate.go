package model

// wish is a request of an operator that may still arrive. Its sender asks again with the same UUID when it gets no
// answer, so there may be two copies.
type wish struct {
	run    uuid  // that is to be cancelled
	tick   uint8 // that is to be run again
	copies uint8
}

const copiesOfAWish = 2

// operate emits what an operator does, who may always leave it. The first copy of what is asked for arrives; a second
// one is there only if the reply to the first was lost.
func (m *model) operate(s *state, emit emit) {
	if m.Faults[CancelAsked] > 0 {
		m.cancels(s, emit)
	}
	if m.Faults[RerunAsked] > 0 {
		m.reruns(s, emit)
	}
}

// cancels has the operator name a run that lives, and the request arrive, at any time after that.
func (m *model) cancels(s *state, emit emit) {
	if c := s.cancel; c.copies > 0 {
		next := *s
		m.endRun(&next, c.run)
		next.redis.tidy()
		if next.cancel.copies--; next.cancel.copies == 0 {
			next.cancel = wish{}
		}
		z := stray{phase: cancelling, uuid: c.run}
		emit(&next, action{kind: actCancelled}.running(z, true), c.copies < copiesOfAWish)
		return
	}
	for _, e := range s.redis.running {
		if e.uuid == 0 || s.left[CancelAsked] == 0 {
			continue
		}
		next := *s
		next.left[CancelAsked]--
		next.cancel = wish{run: e.uuid, copies: copiesOfAWish}
		emit(&next, action{kind: actCancels, what: e.tick}, true)
	}
}

// endRun is cancel.lua. Its memo is left out: a copy that comes again marks what is marked, or finds no run.
func (m *model) endRun(s *state, named uuid) {
	for i := maxEntries - 1; i >= 0; i-- {
		e := &s.redis.running[i]
		if e.uuid == 0 || m.has(Named) && e.uuid != named {
			continue
		}
		if e.uuid != named {
			s.violate(StoppedForNothing)
		}
		e.calledOff = true
		if !m.has(SoftCancel) {
			gone := m.remove(s, i)
			s.redis.unlock(int(gone.slot), gone.uuid)
			m.wake(s, gone, finishing)
		}
	}
}

// reruns has the operator name a tick that was claimed, and the request arrive.
func (m *model) reruns(s *state, emit emit) {
	if a := s.rerun; a.copies > 0 {
		next := *s
		m.askFor(&next, a.tick)
		if next.rerun.copies--; next.rerun.copies == 0 {
			next.rerun = wish{}
		}
		z := stray{phase: askingFor, tick: a.tick, attempt: byHand, nonce: byOperator}
		emit(&next, action{kind: actAsked}.running(z, true), a.copies < copiesOfAWish)
		return
	}
	for t := uint8(1); t <= s.redis.claimed && s.left[RerunAsked] > 0; t++ {
		next := *s
		next.left[RerunAsked]--
		next.rerun = wish{tick: t, copies: copiesOfAWish}
		emit(&next, action{kind: actAsks, what: t}, true)
	}
}

// askFor is ask.lua with a tick that is given.
func (m *model) askFor(s *state, tick uint8) {
	if s.redis.asked && m.has(AskedOnce) {
		return
	}
	s.redis.asked = true
	m.addDue(s, due{tick: tick, attempt: byHand, nonce: byOperator})
}
