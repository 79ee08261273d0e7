package model

func (m *model) restart(s *state, r int, emit emit) {
	if s.left[Restart] == 0 {
		return
	}
	next := *s
	next.left[Restart]--
	next.alive[r] = true
	for i := range next.fibers[r] {
		if f := &next.fibers[r][i]; i < m.Ticks || i == dueFiber {
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
		if next.fibers[r][i].atWork() {
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
	return f.phase != idle && f.phase != done && (f.phase != armed || f.open != 0)
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
