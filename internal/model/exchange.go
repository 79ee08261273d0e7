package model

// closeWindows closes a fiber's trust windows: at no cost once it only waits for that, else as a stall.
func (m *model) closeWindows(s *state, p at, emit emit) {
	f := p.in(s)
	if f.open == 0 || f.phase == done || f.phase == idle || f.phase == armed || f.phase == alone {
		return
	}
	free := f.phase == waiting || f.phase == abandoning
	if !free && (p.replica == m.Healthy || s.left[Stall] == 0) {
		return
	}
	for w := range uint8(2) {
		if !f.isOpen(w) || f.closesLater(w) {
			continue
		}
		next := *s
		p.in(&next).close(w)
		if m.has(Abandon) {
			next.dropClaims(f.uuid, w)
		}
		if !free {
			next.left[Stall]--
		}
		emit(&next, p.act(actWindowCloses, w), !free)
	}
}

// closesLater reports whether the other window has to close before this one: that of the first copy before that of the
// second, the one believed in before that of its extension.
func (f *fiber) closesLater(window uint8) bool {
	switch {
	case f.open != 3:
		return false
	case f.phase == asking, f.phase == won, f.phase == waiting, f.phase == verifying, f.phase == checked,
		f.extension == notExtending:
		return window == 1 && f.askedAgain
	}
	return window != f.trusts
}

// dropClaims drops copies of a claim that are past their window: they have no effect any more.
func (s *state) dropClaims(u uuid, window uint8) {
	for i := maxStrays - 1; i >= 0; i-- {
		if z := s.strays[i]; z.phase == asking && z.uuid == u && z.window == window && !z.orphan {
			s.removeStray(i)
		}
	}
}

// exchange emits what can happen to a request and its answer.
func (m *model) exchange(s *state, p at, emit emit) {
	switch f := p.in(s); f.request {
	case sent:
		m.arrive(s, p, emit)
		m.loseMessage(s, p, actRequestLost, emit)
		m.goAstray(s, p, emit)
	case answered:
		m.read(s, p, emit)
		m.loseMessage(s, p, actReplyLost, emit)
	case noRequest:
		if f.mayAskAgain() {
			next := *s
			p.in(&next).askAgain()
			emit(&next, p.act(actAskAgain, 0), false)
		}
	}
	m.giveUp(s, p, emit)
}

func (m *model) arrive(s *state, p at, emit emit) {
	next := *s
	f := p.in(&next)
	z, inTime := copyOf(f, p), f.isOpen(f.under)
	a := m.call(&next, z, inTime)
	f.request, f.answer = answered, a
	if !m.has(Gaps) {
		f.heard = next.heard
	}
	next.heard = heard{}
	emit(&next, p.act(actArrive, uint8(a)).running(z, inTime), false)
}

func (m *model) loseMessage(s *state, p at, kind actionKind, emit emit) {
	if s.left[Loss] == 0 {
		return
	}
	next := *s
	next.left[Loss]--
	f := p.in(&next)
	f.request, f.answer = noRequest, noAnswer
	emit(&next, p.act(kind, 0), true)
}

// goAstray is a timeout whose request is still under way; the fiber asks again.
func (m *model) goAstray(s *state, p at, emit emit) {
	f := p.in(s)
	tooLate := m.has(Abandon) && f.phase == asking && !f.isOpen(f.under)
	if s.left[Stray] == 0 || tooLate || f.phase == asking && !f.mayClaimAgain() {
		return
	}
	next := *s
	next.left[Stray]--
	if next.addStray(copyOf(f, p)) {
		p.in(&next).askAgain()
		emit(&next, p.act(actStray, 0), true)
	}
}

// mayAskAgain: a settlement always, a claim and its verification while there is a window to ask under.
func (f *fiber) mayAskAgain() bool {
	switch f.phase {
	case asking:
		return f.mayClaimAgain()
	case verifying:
		return f.isOpen(0)
	}
	return true
}

func (f *fiber) mayClaimAgain() bool { return !f.askedAgain || f.isOpen(1) }

// askAgain sends the same question. A second copy of a claim opens a window of its own; a third goes under that of the
// second, which ends earlier than its own would: the safe side.
func (f *fiber) askAgain() {
	f.request, f.answer = sent, noAnswer
	if f.phase == asking && !f.askedAgain {
		f.askedAgain, f.under = true, 1
		f.open |= 2
	}
}

// giveUp is what is left when no answer came within any window, or for as long as the tick was worth asking for.
func (m *model) giveUp(s *state, p at, emit emit) {
	f := p.in(s)
	early := f.open != 0
	switch {
	case f.phase != asking && f.phase != verifying, f.request == answered:
		return
	case early && (!m.has(Abandon) || f.phase == verifying || p.replica == m.Healthy ||
		f.request == sent && s.left[Stray] == 0):
		return
	}
	next := *s
	g := p.in(&next)
	if f.request == sent && (early || !m.has(Abandon)) {
		next.addStray(copyOf(f, p))
	}
	if f.request == sent && early {
		next.left[Stray]--
	}
	g.request = noRequest
	if m.has(Abandon) {
		g.phase = waiting
	} else {
		g.end(p.fiber)
	}
	emit(&next, p.act(actGiveUp, 0), false)
}

// read is the step in which a fiber reads an answer.
func (m *model) read(s *state, p at, emit emit) {
	f := p.in(s)
	if m.WaitReplicas && f.phase == asking && f.answer == answerWon && s.standby.find(f.uuid) < 0 {
		return // not replicated yet
	}
	next := *s
	g := p.in(&next)
	if f.phase == asking && !m.has(Gaps) && p.fiber != dueFiber {
		m.countHeard(&next, f)
	}
	g.request, g.answer, g.heard = noRequest, noAnswer, heard{}
	switch f.phase {
	case asking:
		m.readClaimed(g, p.fiber, f.answer)
	case verifying:
		m.readVerified(g, p.fiber, f.answer)
	default:
		g.end(p.fiber)
	}
	emit(&next, p.act(actRead, uint8(f.answer)), false)
}

func (m *model) readClaimed(f *fiber, index int, a answer) {
	switch {
	case a == answerWon:
		f.phase, f.trusts = won, f.under
	case (a == answerEarly || a == answerLocked || a == answerFree) && index != dueFiber:
		m.arm(f)
	case m.unclear(f, a): // another copy may still claim, or has
		f.phase = waiting
	default:
		f.end(index)
	}
}

// arm lets a fiber come back later. Until all its copies are answered their windows stay with it.
func (m *model) arm(f *fiber) {
	if f.askedAgain && m.has(Abandon) {
		f.phase = armed
		return
	}
	*f = fiber{phase: armed, tick: f.tick, seq: f.seq, uuid: f.uuid}
}

// unclear reports whether an answer leaves open what became of the other copies.
func (m *model) unclear(f *fiber, a answer) bool {
	switch a {
	case answerLost:
		return m.has(Abandon)
	case answerHeld, answerLocked, answerStale, answerFree:
		return m.has(Abandon) && f.askedAgain
	case answerFired, answerGone: // it may be our own claim, reaped before the answer came
		return m.has(LateEvidence) && f.askedAgain
	}
	return false
}

func (m *model) readVerified(f *fiber, index int, a answer) {
	switch {
	case a == answerOK:
		f.phase, f.trusts, f.askedAgain = won, 0, false
	case m.has(Abandon):
		f.phase, f.open = waiting, 0
	default:
		f.end(index)
	}
}

// countHeard counts the ticks that nobody fired, as the reader of an answer does.
func (m *model) countHeard(s *state, f *fiber) {
	if f.heard == (heard{}) {
		return
	}
	switch f.answer {
	case answerWon, answerQueued:
		if m.MissedAll && m.has(GapInClaim) {
			break // they are due
		}
		fallthrough
	case answerOverlap:
		for t := f.heard.after + 1; t < f.tick; t++ {
			s.countMissed(t)
		}
	}
	if t := f.heard.waited; t != 0 {
		s.countMissed(t)
	}
}
