package model

// Violation is a broken promise.
type Violation uint8

const (
	None Violation = iota
	FiredTwice
	AttemptTwice
	RunsOverlap
	TickLost
	RunLost
	SkippedAndFired
	Overflow
	MissedTwice
	OverlapToCome
	ForeignLock
	TwoFates
	NoFate
	OverlapFreed
	QueueFreed
	QueueTwice
	OverlapBefore
	LateClaim
	FreedBeside
	StoppedForNothing
	NotStopped
	CancelledAgain
	TickBeside
	PlaceTaken
	OverlapUnbegun
)

var violations = [...]string{
	None:              "none",
	FiredTwice:        "tick fired twice",
	AttemptTwice:      "same attempt started twice",
	RunsOverlap:       "two trusted runs overlap",
	TickLost:          "tick lost",
	RunLost:           "claimed tick neither finished nor run again",
	SkippedAndFired:   "tick counted as skipped or missed, and fired",
	Overflow:          "the model's tables are too small",
	MissedTwice:       "tick counted as missed twice",
	OverlapToCome:     "tick skipped as overlap, and the run ended before it came",
	ForeignLock:       "lock of somebody else taken",
	TwoFates:          "tick counted as missed and as overlap",
	NoFate:            "settled tick has no fate",
	OverlapFreed:      "tick that overlapped set free when its run died",
	QueueFreed:        "several ticks set free under Queue",
	QueueTwice:        "tick made to wait under Queue while another is due",
	OverlapBefore:     "tick skipped for a run that began after it",
	LateClaim:         "tick claimed when the next was due already",
	FreedBeside:       "waiting tick set free beside a run",
	StoppedForNothing: "run told to end for nothing",
	NotStopped:        "replaced run told to go on",
	CancelledAgain:    "cancelled run is due or claimed again",
	TickBeside:        "tick run by hand beside its own run",
	PlaceTaken:        "tick skipped under Queue although none waits",
	OverlapUnbegun:    "tick skipped for a run that never began",
}

func (v Violation) String() string { return violations[v] }

// noteStart counts the start of a fiber's job.
func (m *model) noteStart(s *state, f *fiber) {
	at, shift := kept(f.tick, f.attempt), 2*min(f.attempt&^byHand, 3)
	before := s.starts[at] >> shift & 3
	if before < 3 {
		s.starts[at] += 1 << shift
	}
	switch {
	case s.isBeside(f):
		s.violate(RunsOverlap)
	case s.besideItself(f):
		s.violate(TickBeside)
	case s.marks[at]&(missed|overlapped) != 0:
		s.violate(SkippedAndFired)
	case !m.AtLeastOnce && s.startsOf(at) > 1:
		s.violate(FiredTwice)
	case before > 0:
		s.violate(AttemptTwice)
	}
}

// broken is the promise that a state breaks.
func (m *model) broken(s *state) Violation {
	switch {
	case m.Only != None && s.violation != m.Only && s.violation != Overflow:
		return None
	case s.violation != None:
		return s.violation
	}
	return None
}

func (m *model) trustedRuns(s *state) int {
	n := 0
	for r := range m.Replicas {
		for i := range s.fibers[r] {
			if s.fibers[r][i].works() {
				n++
			}
		}
	}
	return n
}

// brokenAtRest is the promise that a state breaks in which nothing more happens unless something fails.
func (m *model) brokenAtRest(s *state) Violation {
	if m.Only != None && m.Only != NoFate || m.outOfUUIDs(s) || !m.someoneCanStart(s) {
		return None
	}
	if s.redis.asked {
		switch started, k := s.startsOf(0) > 0, s.marks[0]; {
		case !started && k&(diedAtStart|superseded|calledOff) == 0:
			return TickLost
		case started && m.AtLeastOnce && k&finished == 0:
			return RunLost
		}
	}
	for t := uint8(1); int(t) <= m.Ticks; t++ {
		started := s.startsOf(t) > 0
		switch {
		case !started && !m.Strict && t <= s.redis.claimed &&
			s.marks[t]&(overlapped|missed|diedAtStart|superseded|calledOff) == 0:
			return NoFate
		case !started && !m.excused(s, t):
			return TickLost
		case started && m.AtLeastOnce && s.marks[t]&finished == 0:
			return RunLost
		}
	}
	return None
}

// excused reports whether a tick may remain without a start.
func (m *model) excused(s *state, tick uint8) bool {
	k := s.marks[tick]
	asked := k&refused != 0
	switch {
	case k&(overlapped|diedAtStart|superseded|calledOff) != 0:
		return true
	case k&missed != 0 && (!m.Strict || asked):
		return true
	}
	return tick > s.redis.claimed && !m.Strict && !asked // nobody was there; the next claim counts it
}

func (m *model) outOfUUIDs(s *state) bool {
	for r := range m.Replicas {
		for i := range s.fibers[r] {
			if s.fibers[r][i].seq >= uuidsPerFiber {
				return true
			}
		}
	}
	return false
}

func (m *model) someoneCanStart(s *state) bool {
	for r := range m.Replicas {
		if s.alive[r] && !m.CannotStart[r] {
			return true
		}
	}
	return false
}

// noteFreed checks that a tick is set free only when no run is there, and that it did not overlap with the dead one.
func (m *model) noteFreed(s *state, e entry, tick uint8, how phase) {
	switch {
	case m.trustedRuns(s) > 0:
		s.violate(FreedBeside)
	case how == dead && e.attempt&byHand == 0 && tick != s.redis.waits && e.began < tick && tick <= e.renewed:
		s.violate(OverlapFreed)
	}
}

// noteBegan checks that a run is in the way only of ticks that came due after it began, and of none if it never began.
func (s *state) noteBegan(e entry, tick uint8, how phase) {
	switch {
	case e.began >= tick:
		s.violate(OverlapBefore)
	case how == handingOver:
		s.violate(OverlapUnbegun)
	}
}

// noteStop checks that a run is told to end when a newer tick replaces it, and then alone.
func (m *model) noteStop(s *state, e entry, told bool) {
	switch {
	case told && !e.toEnd:
		s.violate(StoppedForNothing)
	case !told && e.toEnd && m.has(SoftReplace):
		s.violate(NotStopped)
	}
}

func (s *state) noteOverlap(tick uint8) {
	switch {
	case tick > s.now:
		s.violate(OverlapToCome)
	case s.marks[tick]&missed != 0:
		s.violate(TwoFates)
	case s.startsOf(tick) > 0:
		s.violate(SkippedAndFired)
	}
	s.marks[tick] |= overlapped
}

func (s *state) countMissed(tick uint8) {
	switch {
	case s.marks[tick]&missed != 0:
		s.violate(MissedTwice)
	case s.marks[tick]&overlapped != 0:
		s.violate(TwoFates)
	case s.startsOf(tick) > 0:
		s.violate(SkippedAndFired)
	}
	s.marks[tick] |= missed
}

// holders are the fibers, other than that of a UUID, that have claimed and trust their window.
func (s *state) holders(u uuid) (older [maxReplicas]uint8) {
	for r := range s.fibers {
		for i := range s.fibers[r] {
			f := &s.fibers[r][i]
			if !s.alive[r] || f.uuid == u || f.open == 0 || f.phase < asking || f.phase > running {
				continue
			}
			if f.phase != asking || f.claimed && s.redis.find(f.uuid) >= 0 {
				older[r] |= 1 << i
			}
		}
	}
	return older
}

// isBeside reports whether a run is trusted while another trusted one is there, and either of them was claimed, under
// another policy than Allow, after the other.
func (s *state) isBeside(f *fiber) bool {
	if !f.trusted() {
		return false
	}
	replica, fiber := f.uuid.owner()
	for r := range s.fibers {
		for i := range s.fibers[r] {
			g := &s.fibers[r][i]
			if g == f || !g.works() {
				continue
			}
			both := f.policy != Allow && g.policy != Allow
			if both || f.older[r]>>i&1 == 1 || g.older[replica]>>fiber&1 == 1 {
				return true
			}
		}
	}
	return false
}

// besideItself reports whether a run starts by hand while another trusted one of its tick is there, or the other way
// round.
func (s *state) besideItself(f *fiber) bool {
	for r := range s.fibers {
		for i := range s.fibers[r] {
			g := &s.fibers[r][i]
			if g != f && g.works() && g.tick == f.tick && f.trusted() &&
				(f.attempt|g.attempt)&byHand != 0 {
				return true
			}
		}
	}
	return false
}
