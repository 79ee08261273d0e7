package model

func (m *model) restart(s *state, r int, emit emit) {
	if s.left[Restart] == 0 {
		return
	}
	next := *s
	next.left[Restart]--
	next.alive[r] = true
	for i := range next.fibers[r] {
		if f := &next.fibers[r][i]; f.phase != alone && (i < m.Ticks || i == dueFiber) {
			*f = fiber{seq: f.seq + 1}
		}
	}
	emit(&next, action{kind: actRestart, replica: uint8(r)}, true)
}

// crash ends a replica that is in the middle of something.
func (m *model) crash(s *state, r int, emit emit) {
	if s.left[Crash] == 0 || r == m.Healthy || !s.busy(r) {
		return
	}
	next := *s
	next.left[Crash]--
	next.alive[r] = false
	for i := range next.fibers[r] {
		switch f := &next.fibers[r][i]; {
		case m.Asked && f.works():
			*f = fiber{phase: alone, uuid: f.uuid, tick: f.tick, seq: f.seq, policy: f.policy, open: 1}
		case f.atWork():
			next.kill(at{r, i})
		}
	}
	for i := range next.strays {
		if z := &next.strays[i]; z.phase != idle && int(z.replica) == r {
			z.orphan = true
		}
	}
	emit(&next, action{kind: actCrash, replica: uint8(r)}, true)
}

func (f *fiber) atWork() bool {
	return f.phase != idle && f.phase != done && f.phase != alone && (f.phase != armed || f.open != 0)
}

func (s *state) busy(r int) bool {
	for i := range s.fibers[r] {
		if s.fibers[r][i].atWork() {
			return true
		}
	}
	return false
}

// kill ends a fiber whose replica has crashed. Its request may still be under way.
func (s *state) kill(p at) {
	f := &s.fibers[p.replica][p.fiber]
	if f.request == sent {
		z := copyOf(f, p)
		z.orphan = true
		s.addStray(z)
	}
	if f.phase != running && f.phase != finishing && s.diesWith(f) {
		s.marks[kept(f.tick, f.attempt)] |= diedAtStart
	}
	*f = fiber{phase: dead, uuid: f.uuid, tick: f.tick, seq: f.seq}
}

// diesWith reports whether a tick that was not started is lost with its fiber: claimed, and not handed on.
func (s *state) diesWith(f *fiber) bool {
	return s.redis.find(f.uuid) >= 0 || f.claimed && s.startsOf(kept(f.tick, f.attempt)) == 0 &&
		!s.redis.isDueFrom(f.uuid, f.tick)
}

// stopAlone ends the work of apps without their replica, when the time that their last heartbeat gave them is over.
func (m *model) stopAlone(s *state, r int, emit emit) {
	for i := range s.fibers[r] {
		if s.fibers[r][i].phase != alone {
			continue
		}
		next := *s
		f := &next.fibers[r][i]
		*f = fiber{phase: dead, uuid: f.uuid, tick: f.tick, seq: f.seq}
		emit(&next, at{r, i}.act(actAppStops, 0), false)
	}
}
