package model

// at names a fiber.
type at struct{ replica, fiber int }

func (p at) in(s *state) *fiber { return &s.fibers[p.replica][p.fiber] }

// act names what a fiber does.
func (p at) act(kind actionKind, what uint8) action {
	return action{kind: kind, replica: uint8(p.replica), fiber: uint8(p.fiber), what: what}
}

// stepFiber emits what one fiber, its keeper and its network can do next.
func (m *model) stepFiber(s *state, p at, emit emit) {
	m.closeWindows(s, p, emit)
	if p.in(s).awaits() {
		m.exchange(s, p, emit)
	}
	switch p.in(s).phase {
	case idle, armed:
		m.begin(s, p, emit)
	case won:
		m.checkTrust(s, p, emit)
	case checked:
		m.start(s, p, emit)
	case running:
		m.run(s, p, emit)
	case waiting:
		m.abandon(s, p, emit)
	case dropping:
		m.countDropped(s, p, emit)
	}
}

func (m *model) begin(s *state, p at, emit emit) {
	if p.in(s).seq >= uuidsPerFiber {
		return
	}
	if p.fiber == dueFiber {
		if m.Drops || m.Asked {
			m.drop(s, p, emit)
		}
		if !m.Asked {
			m.poll(s, p, emit)
		}
		return
	}
	tick := uint8(p.fiber + 1)
	early := tick == s.reach() || m.Skew && p.replica != m.Healthy
	if m.has(Superseded) && s.now > tick { // superseded by a newer one
		if p.in(s).open != 0 {
			next := *s
			p.in(&next).phase = waiting
			emit(&next, p.act(actGiveUp, 0), false)
		}
		return
	}
	if s.now >= tick || early && p.in(s).phase == idle { // once told that it was early, it waits for the tick
		next := *s
		look := m.OneSlot && s.slotTaken(p)
		if look && !m.has(Look) { // waits for its slot, and asks nothing
			if p.in(s).phase == idle {
				*p.in(&next) = fiber{phase: armed, tick: tick, seq: p.in(s).seq}
				emit(&next, p.act(actNoSlot, 0), false)
			}
			return
		}
		if f := p.in(&next); f.open != 0 {
			f.phase, f.request = asking, sent // under the windows that it has
		} else {
			next.ask(p, fiber{tick: tick, policy: m.policyOf(p.replica, tick), look: look})
		}
		emit(&next, p.act(actWake, 0), false)
	}
}

// slotTaken reports whether another fiber of the replica runs the job, or may be about to.
func (s *state) slotTaken(p at) bool {
	for i := range s.fibers[p.replica] {
		if f := &s.fibers[p.replica][i]; i != p.fiber && f.phase >= asking && f.phase <= handingOver && !f.look {
			return true
		}
	}
	return false
}

// drop takes members out of the due set that a newer tick has superseded, or that no app asks for. Their ticks are
// missed.
func (m *model) drop(s *state, p at, emit emit) {
	for i, d := range s.redis.due {
		superseded := d.tick < s.now && d.attempt == 0 && s.startsOf(d.tick) == 0
		if d.tick == 0 || !superseded && !m.Asked {
			continue
		}
		next := *s
		next.removeDue(i)
		if m.has(DropCounts) {
			next.countMissed(d.tick)
		} else {
			f := p.in(&next)
			f.phase, f.tick = dropping, d.tick
		}
		z := stray{phase: dropping, tick: d.tick, attempt: d.attempt, nonce: d.nonce}
		emit(&next, p.act(actDrop, d.tick).running(z, true), false)
	}
}

// countDropped counts what the fiber has dropped.
func (m *model) countDropped(s *state, p at, emit emit) {
	next := *s
	f := p.in(&next)
	next.countMissed(f.tick)
	f.end(p.fiber)
	emit(&next, p.act(actCount, p.in(s).tick), false)
}

// ask begins a claim: the first copy is on its way, its window open.
func (s *state) ask(p at, f fiber) {
	for r := range s.fibers {
		for i := range s.fibers[r] {
			s.fibers[r][i].older[p.replica] &^= 1 << p.fiber // it was another run
		}
	}
	f.phase, f.request, f.open = asking, sent, 1
	f.seq = p.in(s).seq
	f.uuid = newUUID(p.replica, p.fiber, f.seq)
	*p.in(s) = f
}

// poll asks for each due member that a look at Redis does not show to be in vain.
func (m *model) poll(s *state, p at, emit emit) {
	if m.OneSlot && s.slotTaken(p) {
		return
	}
	policy := m.policyOf(p.replica, s.now)
	for _, d := range s.redis.due {
		switch {
		case d.tick == 0,
			m.waits(d.attempt) && (m.inTheWay(&s.redis, policy, d.tick) || m.lockedOut(&s.redis, policy, d.tick)):
			continue
		case m.standsBack(s, d, p.replica), !m.has(DueBypass) && s.redis.claimed >= d.tick:
			continue
		}
		next := *s
		next.ask(p, fiber{tick: d.tick, attempt: d.attempt, nonce: d.nonce, policy: policy})
		emit(&next, p.act(actPoll, d.tick), false)
	}
}

// standsBack reports whether a replica that could not start the tick leaves it to another one that can.
func (m *model) standsBack(s *state, d due, replica int) bool {
	if d.avoid != uint8(replica+1) {
		return false
	}
	for r := range m.Replicas {
		if r != replica && s.alive[r] && !m.CannotStart[r] {
			return true
		}
	}
	return false
}

func (m *model) checkTrust(s *state, p at, emit emit) {
	next := *s
	f := p.in(&next)
	switch {
	case f.gap != 0:
		for t := f.gap; t < f.tick; t++ {
			m.addDue(&next, due{tick: t, nonce: f.uuid})
		}
		f.gap = 0
		emit(&next, p.act(actEnqueue, 0), false)
		return
	case f.trusted():
		f.phase = checked
	default:
		f.phase, f.request, f.open, f.under, f.askedAgain = verifying, sent, 1, 0, true
		if i := next.redis.find(f.uuid); i >= 0 {
			next.redis.running[i].window = 1 // its lease is covered by nothing any more
		}
	}
	emit(&next, p.act(actCheckTrust, uint8(f.phase)), false)
}

func (m *model) start(s *state, p at, emit emit) {
	broken := m.CannotStart[p.replica]
	if broken || s.left[Refusal] > 0 {
		next := *s
		if !broken {
			next.left[Refusal]--
		}
		f := p.in(&next)
		f.phase, f.request = handingOver, sent
		emit(&next, p.act(actRefuse, 0), !broken)
	}
	if m.Asked && s.left[AppGone] > 0 {
		next := *s
		next.left[AppGone]--
		f := p.in(&next)
		f.phase, f.request, f.outcome = handingOver, sent, untaken
		next.marks[kept(f.tick, f.attempt)] |= diedAtStart
		emit(&next, p.act(actGone, 0), true)
	}
	if !broken {
		next := *s
		f := p.in(&next)
		f.phase, f.askedAgain = running, false
		m.noteStart(&next, f)
		emit(&next, p.act(actStart, f.tick), false)
	}
}

func (m *model) run(s *state, p at, emit emit) {
	next := *s
	f := p.in(&next)
	f.finish(completed)
	next.marks[kept(f.tick, f.attempt)] |= finished
	emit(&next, p.act(actJobEnds, 0), false)

	if f := p.in(s); !f.trusted() || f.extension >= extensionLost {
		next := *s
		o := cutShort
		switch f.extension {
		case extensionReplaced:
			o = replaced
		case extensionCancelled:
			o = cancelled
		}
		p.in(&next).finish(o)
		emit(&next, p.act(actCancel, 0), false)
	}
	m.keep(s, p, emit)
}

func (f *fiber) finish(o outcome) {
	f.phase, f.request, f.outcome, f.extension = finishing, sent, o, notExtending
}

// keep is the keeper: it extends the lease with a window of its own, which is believed in when the answer is read.
func (m *model) keep(s *state, p at, emit emit) {
	f := p.in(s)
	other := 1 - f.trusts
	switch f.extension {
	case notExtending:
		if s.left[Extension] > 0 && f.trusted() && !f.isOpen(other) && s.leaseIsOf(f) {
			next := *s
			next.left[Extension]--
			g := p.in(&next)
			g.extension = extending
			g.open |= 1 << other
			emit(&next, p.act(actExtend, 0), false)
		}
	case extending:
		m.extendKept(s, p, other, emit)
	case extended:
		next := *s
		g := p.in(&next)
		g.close(g.trusts)
		g.trusts, g.extension = other, notExtending
		if next.isBeside(g) {
			next.violate(RunsOverlap)
		}
		emit(&next, p.act(actReadExtended, 0), false)
	}
}

func (m *model) extendKept(s *state, p at, window uint8, emit emit) {
	next := *s
	f := p.in(&next)
	z := copyOf(f, p)
	z.phase, z.window = verifying, window
	a := m.call(&next, z, true)
	switch a {
	case answerOK:
		f.extension = extended
	case answerReplaced:
		f.extension = extensionReplaced
		f.close(window)
	case answerCancelled:
		f.extension = extensionCancelled
		f.close(window)
	default:
		f.extension = extensionLost
		f.close(window)
	}
	emit(&next, p.act(actExtendArrives, uint8(a)).running(z, true), false)
	if s.left[Loss] > 0 {
		next := *s
		next.left[Loss]--
		f := p.in(&next)
		f.extension = notExtending
		f.close(window)
		emit(&next, p.act(actExtendLost, 0), true)
	}
}

// leaseIsOf reports whether the lease was set by the request whose window the fiber believes in.
func (s *state) leaseIsOf(f *fiber) bool {
	i := s.redis.find(f.uuid)
	return i < 0 || s.redis.running[i].window == f.trusts
}

// abandon gives back what a copy may have claimed, when no copy can have an effect any more, and before that too.
func (m *model) abandon(s *state, p at, emit emit) {
	f := p.in(s)
	if f.open != 0 && m.has(Abandon) {
		m.takeBackEarly(s, p, emit)
		return
	}
	if f.open != 0 || !m.has(Abandon) && s.hasStray(f.uuid) {
		return
	}
	next := *s
	g := p.in(&next)
	g.phase, g.request = abandoning, sent
	emit(&next, p.act(actAbandon, 0), false)
}

// takeBackEarly is an abandon while copies may still have an effect. After that no copy can claim the tick again. While
// nothing is known of a copy, the fiber waits. It arrives and is answered in one step: one that is under way for longer
// is as good as one that is sent later, or as a copy of the last one.
func (m *model) takeBackEarly(s *state, p at, emit emit) {
	next := *s
	g := p.in(&next)
	z := copyOf(g, p)
	z.phase = abandoning
	a := m.call(&next, z, true)
	if a == answerOK {
		g.end(p.fiber)
	}
	if next != *s {
		emit(&next, p.act(actAbandon, uint8(a)).running(z, true), false)
	}
}
