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
)

var violations = [...]string{"none", "tick fired twice", "same attempt started twice", "two trusted runs overlap", "tick lost",
	"claimed tick neither finished nor run again", "tick counted as skipped or missed, and fired", "the model's tables are too small",
	"tick counted as missed twice", "tick skipped as overlap, and the run ended before it came", "lock of somebody else taken"}

func (v Violation) String() string { return violations[v] }

// noteStart counts the start of a fiber's job.
func (m *model) noteStart(s *state, f *fiber) {
	shift := 2 * min(f.attempt, 3)
	before := s.starts[f.tick] >> shift & 3
	if before < 3 {
		s.starts[f.tick] += 1 << shift
	}
	switch {
	case s.marks[f.tick]&(missed|overlapped) != 0:
		s.violate(SkippedAndFired)
	case !m.AtLeastOnce && s.startsOf(f.tick) > 1:
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
	case m.Policy != Allow && m.trustedRuns(s) > 1:
		return RunsOverlap
	}
	return None
}

func (m *model) trustedRuns(s *state) int {
	n := 0
	for r := range m.Replicas {
		for i := range s.fibers[r] {
			if f := &s.fibers[r][i]; s.alive[r] && f.phase == running && f.trusted() {
				n++
			}
		}
	}
	return n
}

// brokenAtRest is the promise that a state breaks in which nothing more happens unless something fails.
func (m *model) brokenAtRest(s *state) Violation {
	if m.Only != None || m.outOfUUIDs(s) || !m.someoneCanStart(s) {
		return None
	}
	for t := uint8(1); int(t) <= m.Ticks; t++ {
		started := s.startsOf(t) > 0
		switch {
		case !started && !m.excused(s, t):
			return TickLost
		case started && m.AtLeastOnce && s.marks[t]&finished == 0:
			return RunLost
		}
	}
	return None
}

// excused tells whether a tick may remain without a start.
func (m *model) excused(s *state, tick uint8) bool {
	k := s.marks[tick]
	asked := k&refused != 0
	switch {
	case k&(overlapped|diedAtStart|superseded) != 0:
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
