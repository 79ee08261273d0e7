package series

// answer is the code of a script's answer.
type answer uint8

const (
	notAsked answer = iota
	set
	unchanged
	gone // DELETED
	notThere
	stale
	due
	replaced
	overlaps
	past
	goneOn
	kindsOfAnswer
)

var answers = [kindsOfAnswer]string{"", "SET", "SET, the same one waits", "DELETED", "NONE", "STALE", "DUE", "REPLACED",
	"OVERLAPPED", "PAST", "GONE"}

func (a answer) String() string { return answers[a] }

func (s *state) weigh(plus, minus uint8) { s.bytes += plus - min(minus, s.bytes+plus) }

// set is timer.lua, verb set.
func (m *model) set(s *state, of definition, at uint8, by copied, inTime bool) answer {
	e := s.entry
	old := member{e.at, e.by, e.series()}
	waits := e.kind == waiting
	switch {
	case waits && e.by.request() == by.request() && m.has(AskedOnce):
		return set
	case e.kind == deleted && e.by.request() == by.request() && m.has(AskedOnce):
		return set
	case !inTime && m.has(Window):
		return stale
	case waits && s.isDue(old) && e.of == of && (of.repeats() || e.at == at):
		return unchanged
	}
	if e.series() && of.repeats() && s.isDue(old) && e.at <= s.now && m.has(Keep) {
		at = e.at
	}
	newest := e.newest
	if !of.repeats() || e.kind == waiting && !m.has(Newest) || e.kind == deleted && !m.has(MarkNewest) {
		newest = 0
	}
	s.add(member{at, by, of.repeats()})
	if waits && m.has(OldMember) {
		s.remove(old)
	}
	s.entry = entry{kind: waiting, of: of, at: at, newest: newest, by: by}
	if waits {
		s.weigh(of.bytes(), e.of.bytes())
	} else {
		s.weigh(of.bytes(), 0)
	}
	return set
}

// delete is timer.lua, verb delete, for the timer itself. It tells the newest time that was made due.
func (m *model) delete(s *state, request uint8, inTime bool) (answer, uint8) {
	e := s.entry
	switch {
	case e.kind == deleted && e.deletedBy == request+1 && m.has(AskedOnce):
		return gone, e.newest
	case !inTime && m.has(Window):
		return stale, 0
	case e.kind != waiting:
		return notThere, e.newest
	}
	s.remove(member{e.at, e.by, e.series()})
	s.entry = entry{kind: deleted, newest: e.newest, by: e.by, deletedBy: request + 1}
	s.weigh(0, e.of.bytes())
	return gone, e.newest
}

// deleteTime is timer.lua, verb delete, for a time that was made due.
func (m *model) deleteTime(s *state, tick, request uint8, inTime bool) answer {
	o := &s.times[tick]
	switch {
	case o.kind == deleted && o.deletedBy == request+1:
		return gone
	case !inTime && m.has(Window):
		return stale
	case o.kind != waiting || o.due != 1 || o.dueBy != o.by:
		return notThere
	}
	s.weigh(0, o.of.bytes())
	*o = occurrence{kind: deleted, deletedBy: request + 1}
	s.fates[tick] |= excused
	return gone
}

// spring is spring.lua, for one timer, by what a replica has read.
func (m *model) spring(s *state, p move) answer {
	tick := p.member.at
	following := m.next(p.of, tick)
	var told []uint8
	if following != 0 && following <= p.now {
		tick = last(p.of, p.now)
		from := p.newest
		if !m.has(MissedFrom) {
			from = 0
		}
		for t := max(from+1, p.member.at); t < tick; t++ {
			if p.of.has(t) || t == p.member.at && m.has(OfBefore) {
				told = append(told, t)
			}
		}
		following = m.next(p.of, tick)
	}
	e := s.entry
	seen := member{e.at, e.by, true}
	switch {
	case !e.series():
		return goneOn
	case m.has(Member) && p.member != seen && (m.has(MemberCopy) || p.member.at != seen.at):
		return goneOn
	}
	s.remove(seen)
	if !m.has(Member) {
		s.remove(p.member)
	}
	code := due
	if tick <= e.newest && m.has(Past) {
		code = past
	}
	for _, t := range []uint8{tick, p.newest} {
		if code == past || t == 0 {
			continue
		}
		switch o := &s.times[t]; {
		case o.kind == waiting && o.due == 1 && o.dueBy == o.by && m.has(GivesWay):
			if code == due {
				code = replaced
			}
			if m.has(Weighed) {
				s.weigh(0, o.of.bytes())
			}
			*o = occurrence{}
			if m.has(ReplacedTold) {
				m.tell(s, t, missed)
			}
		case o.kind == waiting && m.has(Overlap):
			if code = overlaps; s.fates[t]&claimed == 0 {
				s.violate(Blocked)
			}
		}
	}
	if code != past && m.has(MissedTold) {
		for _, t := range told {
			m.tell(s, t, missed)
		}
	}
	if code == overlaps {
		m.tell(s, tick, overlapped)
	}
	newest := e.newest
	if code == due || code == replaced {
		newest = tick
		s.weigh(e.of.bytes(), 0)
		o := &s.times[tick]
		*o = occurrence{kind: waiting, of: e.of, by: e.by, due: 1, dueBy: e.by, run: o.run, attempt: o.attempt, dead: o.dead}
		s.fates[tick] |= sprung
	}
	for t := uint8(1); t <= tick; t++ {
		s.fates[t] |= passed
	}
	if following == 0 {
		s.entry = entry{kind: deleted, newest: newest, by: e.by}
		if !m.has(EndedMark) {
			s.entry = entry{}
		}
		s.weigh(0, e.of.bytes())
		if m.next(e.of, tick) != 0 {
			s.violate(EndedEarly)
		}
		return code
	}
	s.entry.newest, s.entry.at = newest, following
	s.add(member{following, e.by, true})
	return code
}

// claim reports whether a replica has won the time that it saw due.
func (m *model) claim(s *state, r int, f run) bool {
	o := &s.times[f.tick]
	if o.due != f.due || o.dueBy != f.by {
		return false
	}
	if s.fates[f.tick] |= claimed; f.of != o.of {
		s.violate(WrongRequest)
	}
	o.due, o.dueBy, o.run, o.attempt, o.dead = 0, 0, uint8(r+1), f.due&^handedOn, !s.alive[r]
	return true
}

// handOver gives a time to another replica.
func (m *model) handOver(s *state, r int, f run) {
	if o := &s.times[f.tick]; o.run == uint8(r+1) {
		o.run, o.due, o.dueBy = 0, o.attempt|handedOn, o.by
	}
}

// finish forgets a time whose run has ended.
func (m *model) finish(s *state, r int, f run) {
	if s.times[f.tick].run == uint8(r+1) {
		m.forget(s, f.tick)
	}
}

func (m *model) forget(s *state, tick uint8) {
	o := &s.times[tick]
	if o.kind == waiting && !m.has(Forget) {
		o.run = 0
		return
	}
	s.weigh(0, o.of.bytes())
	*o = occurrence{}
}

// takeOver ends the run of a dead replica.
func (m *model) takeOver(s *state, tick uint8) {
	o := &s.times[tick]
	if m.AtLeastOnce && o.attempt == 1 {
		o.due, o.dueBy, o.run, o.dead = 2, o.by, 0, false
		return
	}
	if s.starts[tick] == 0 {
		s.fates[tick] |= excused
	}
	m.forget(s, tick)
}

// tell tells the history what became of a time that nobody starts.
func (m *model) tell(s *state, tick uint8, f fate) {
	if s.fates[tick]&(missed|overlapped) != 0 || s.starts[tick] != 0 {
		s.violate(TwoFates)
	}
	s.fates[tick] |= f
}
