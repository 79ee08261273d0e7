package model

// expireLocks lets locks end that no open window covers: by their ttl, or released after the safety delay.
func (m *model) expireLocks(s *state, emit emit) {
	for slot, owner := range s.redis.lock {
		if owner == 0 {
			continue
		}
		if i := s.redis.find(owner); i >= 0 && s.covered(s.redis.running[i]) && !s.redis.running[i].jumped {
			continue
		}
		next := *s
		next.redis.lock[slot] = 0
		emit(&next, action{kind: actExpire, what: uint8(slot)}, false)
	}
}

// takeOver reaps runs whose lease is over, if there is somebody to do it. The watcher looks and reaps in one step,
// unless its takeover is late.
func (m *model) takeOver(s *state, emit emit) {
	m.takeOverLate(s, emit)
	if s.alive == [maxReplicas]bool{} {
		return
	}
	for i, e := range s.redis.running {
		over := m.leaseLooksOver(s, e)
		if e.uuid == 0 || !over && !m.looksLeft(s, e) {
			continue
		}
		next := *s
		m.reap(&next, i)
		next.redis.tidy()
		z := stray{phase: dead, uuid: e.uuid, tick: e.tick, attempt: e.attempt}
		if !over {
			emit(&next, action{kind: actReapLeft, what: e.tick}.running(z, true), false)
			continue
		}
		emit(&next, action{kind: actReap, what: e.tick}.running(z, true), false)
		if s.left[LateReap] > 0 && s.sighted.run == 0 {
			next := *s
			next.left[LateReap]--
			next.sighted = sighting{run: e.uuid}
			z := stray{phase: watching, uuid: e.uuid, tick: e.tick}
			emit(&next, action{kind: actWatch, what: e.tick}.running(z, true), true)
		}
	}
}

// takeOverLate is the takeover of a run that a watcher has seen before. Redis compares the lease end that it saw.
// Without Sightings another watcher believes the same of the present lease end, and has Redis compare that one.
func (m *model) takeOverLate(s *state, emit emit) {
	i := s.redis.find(s.sighted.run)
	if i < 0 {
		return
	}
	e := s.redis.running[i]
	if s.sighted.moved && !m.has(Sightings) {
		next := *s
		next.sighted.moved = false
		emit(&next, action{kind: actBelieve, what: e.tick}, false)
	}
	next := *s
	next.sighted = sighting{}
	a := answerMoved
	if !s.sighted.moved || !m.has(SameEnd) {
		a = answerOK
		m.reap(&next, i)
		next.redis.tidy()
	}
	z := stray{phase: dead, uuid: e.uuid, tick: e.tick, attempt: e.attempt}
	emit(&next, action{kind: actReapLate, what: uint8(a)}.running(z, true), false)
}

// leaseLooksOver is true to the watcher's own clock, or, without Settle, to Redis' clock.
func (m *model) leaseLooksOver(s *state, e entry) bool {
	if m.has(Settle) {
		return !s.covered(e)
	}
	return (!s.covered(e) || e.jumped) && s.redis.lock[e.slot] != e.uuid
}

// looksLeft reports whether a replica that was restarted takes a run for one that an earlier process left in its place.
// The runs of a process that is dead are covered by no window: each may be taken over as soon as the process has died.
// Only where an app works on without it, the lease has to end.
func (m *model) looksLeft(s *state, e entry) bool {
	owner, _ := e.uuid.owner()
	restarted := s.left[Restart] < m.Faults[Restart]
	return restarted && s.alive[owner] && (!m.has(Place) || !m.has(Alone) && s.isAlone(e.uuid))
}

func (m *model) failRedis(s *state, emit emit) {
	if m.Faults[Redis] == 0 {
		return
	}
	lagging := s.standby != s.redis
	if m.RedisFault == Failover && lagging {
		next := *s
		next.standby = next.redis
		emit(&next, action{kind: actReplicate}, false)
	}
	if s.left[Redis] == 0 || m.RedisFault == Failover && !lagging {
		return
	}
	next := *s
	next.left[Redis]--
	switch m.RedisFault {
	case Failover:
		next.redis = next.standby
	case Flush:
		next.redis = store{}
		if m.has(Born) {
			next.redis.claimed = next.now
			if m.has(BornAhead) {
				next.redis.claimed = next.reach()
			}
		}
	case ClockJump:
		next.redis.jump()
	}
	emit(&next, action{kind: actRedisFails, what: uint8(m.RedisFault)}, true)
}

// jump steps Redis' clock over the end of every lease.
func (rd *store) jump() {
	for i := range rd.running {
		if rd.running[i].uuid != 0 {
			rd.running[i].jumped = true
		}
	}
}

// steal gives a lock to somebody who knows nothing of the protocol. Like every lock it ends.
func (m *model) steal(s *state, emit emit) {
	if s.left[Theft] == 0 {
		return
	}
	for t := uint8(1); int(t) <= m.Ticks; t++ {
		slot := slotOf(m.Policy, t)
		if s.redis.lock[slot] == foreign || slot == 0 && t > 1 {
			continue
		}
		next := *s
		next.left[Theft]--
		next.redis.lock[slot] = foreign
		emit(&next, action{kind: actSteal, what: uint8(slot)}, true)
	}
}
