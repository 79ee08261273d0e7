package series

import (
	"fmt"
	"slices"
)

// step calls what with each state that can come next, and with how often it needs a fault for that. The text tells the
// step.
func (m *model) step(s *state, what func(next *state, fault bool, told string)) {
	try := func(fault bool, told string, change func(n *state)) {
		n := *s
		change(&n)
		m.check(s, &n)
		what(&n, fault, told)
	}
	strike := func(f Fault, told string, change func(n *state)) {
		if s.left[f] > 0 {
			try(true, told, func(n *state) {
				n.left[f]--
				change(n)
			})
		}
	}
	if s.now < m.Ticks {
		try(false, m.say("Redis' clock reaches T%d", s.now+1), m.tick)
	}
	for c := range m.Callers {
		m.stepCaller(s, uint8(c), try, strike)
	}
	for r := range s.moves {
		m.stepMove(s, r, try, strike)
	}
	for r := range replicas {
		m.stepRun(s, r, try, strike)
	}
	for t := range s.times { // dead runs
		if s.times[t].run != 0 && s.times[t].dead {
			try(false, m.say("the run of T%d is taken over", t), func(n *state) { m.takeOver(n, uint8(t)) })
		}
	}
	if s.alive[0] { // the other one lives
		strike(Crash, "A CRASHES", func(n *state) {
			n.alive[0] = false
			if n.moves[0].phase == looked {
				n.moves[0] = move{}
			}
			f := &n.runs[0]
			if f.phase >= won {
				if o := &n.times[f.tick]; o.run == 1 {
					o.dead = true
				}
				*f = run{}
			}
		})
	}
	if m.Quiet && slices.ContainsFunc(s.calls[:], func(x caller) bool { return x.asked || x.late.there }) {
		return
	}
	strike(Flush, "Redis LOSES ITS DATA", func(n *state) {
		n.entry, n.due, n.times, n.bytes = entry{}, [2]member{}, [maxTicks + 1]occurrence{}, 0
		for t := range n.fates {
			n.fates[t] = n.fates[t]&^(missed|overlapped) | excused
		}
		for c := range n.calls {
			n.calls[c].alone = false
		}
	})
}

// say makes the text of a step, if anybody wants to read it.
func (m *model) say(format string, args ...any) string {
	if !m.telling {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

type (
	try    func(fault bool, told string, change func(n *state))
	strike func(f Fault, told string, change func(n *state))
)

// tick lets the next time come.
func (m *model) tick(n *state) {
	n.now++
	if e := n.entry; e.series() && e.of.has(n.now) {
		if n.fates[n.now] |= owed; e.at > n.now {
			n.violate(SteppedOver)
		}
	}
}

func (m *model) stepCaller(s *state, c uint8, try try, strike strike) {
	x := &s.calls[c]
	name := m.say("%c%d ", 'X'+c, x.request+1)
	if x.late.there {
		l := x.late
		try(false, m.say("a late copy %c%d.%d arrives", 'X'+c, l.request+1, l.try), func(n *state) {
			n.calls[c].late = letter{}
			m.arrive(n, c, l, !m.has(Wait))
		})
	}
	if int(x.request) >= len(m.Callers[c]) {
		return
	}
	of := m.Callers[c][x.request]
	switch {
	case !x.asked:
		told := name + "is sent: DELETE"
		if of != none {
			told = name + "is sent: PUT " + of.String()
		}
		try(false, told, func(n *state) {
			x := &n.calls[c]
			x.asked, x.underWay, x.alone, x.before = true, true, true, n.returned
			if of == none {
				return
			}
			if x.at = m.next(of, n.now); x.at == 0 { // there is no such time any more, and the caller hears so
				m.end(n, c)
			}
		})
	case x.underWay:
		now := letter{x.request, x.try, x.part, x.at, x.newest, true}
		try(false, name+"is run by Redis, and answered", func(n *state) {
			a, newest := m.arrive(n, c, now, true)
			m.answered(n, c, a, newest)
		})
		strike(Loss, name+"is run by Redis, and its reply is lost", func(n *state) {
			m.arrive(n, c, now, true)
			n.calls[c].underWay = false
		})
		strike(Loss, name+"is lost", func(n *state) { n.calls[c].underWay = false })
		if !x.late.there {
			strike(Late, name+"is under way when its window closes", func(n *state) {
				n.calls[c].underWay, n.calls[c].late = false, now
			})
		}
	default: // its window is closed
		if x.try == 0 {
			try(false, name+"is sent again", func(n *state) { n.calls[c].try, n.calls[c].underWay = 1, true })
		}
		try(false, name+"is given up", func(n *state) { m.end(n, c) })
	}
}

// arrive has Redis run a copy of a request.
func (m *model) arrive(n *state, c uint8, l letter, inTime bool) (a answer, newest uint8) {
	before, request := n.entry, c*maxRequests+l.request
	switch of := m.Callers[c][l.request]; {
	case of != none:
		a = m.set(n, of, l.at, newCopy(c, l.request, l.try), inTime)
	case l.part == 0:
		a, newest = m.delete(n, request, inTime)
	default:
		a = m.deleteTime(n, l.newest, request, inTime)
	}
	m.answers[a]++
	if n.entry != before {
		m.changed(n, before)
		for other := range n.calls {
			if uint8(other) != c {
				n.calls[other].alone = false
			}
		}
	}
	return a, newest
}

// changed notes what a request has changed: times that came, and that nobody deals with, are owed, or taken back.
func (m *model) changed(n *state, before entry) {
	e := n.entry
	if e.kind == waiting && before.kind == deleted && before.by.request() == e.by.request() {
		n.violate(SetAgain)
	}
	for t := uint8(1); t <= n.now; t++ {
		f := &n.fates[t]
		switch {
		case t <= e.newest || *f&sprung != 0:
		case e.series() && e.at <= t && (e.of.has(t) || e.at == t): // though it may have been passed over before
			*f = *f&^(excused|passed|missed|overlapped) | owed
		case *f&owed != 0 && (!before.series() || !e.series() || t != before.at || !before.of.has(t)):
			*f |= excused
		}
	}
}

// answered is a caller that reads an answer.
func (m *model) answered(n *state, c uint8, a answer, newest uint8) {
	x := &n.calls[c]
	if a == stale {
		x.underWay = false
		return
	}
	of := m.Callers[c][x.request]
	if of == none && x.part == 0 && newest > 0 && m.has(TakenBack) {
		x.part, x.try, x.newest = 1, 0, newest
		return
	}
	if in := n.entry.kind == waiting; x.alone && (of == none && in || of != none && (!in || n.entry.of != of)) {
		n.violate(NotInForce)
	}
	n.past |= x.before
	if of == none {
		for t := range n.times {
			o := &n.times[t]
			if o.kind == waiting && o.due != 0 && n.fates[t]&claimed == 0 && m.isPast(n, o.of, o.by) {
				n.violate(LeftDue)
			}
		}
	}
	m.end(n, c)
}

// isPast reports whether a definition is of no request but older ones than one that is answered.
func (m *model) isPast(n *state, of definition, by copied) bool {
	if n.past>>by.request()&1 == 0 {
		return false
	}
	for c, requests := range m.Callers {
		for i, same := range requests {
			r := c*maxRequests + i
			if same == of && n.past>>r&1 == 0 && i <= int(n.calls[c].request) {
				return false
			}
		}
	}
	return true
}

// end has a caller go on to its next request.
func (m *model) end(n *state, c uint8) {
	x := &n.calls[c]
	n.returned |= 1 << (c*maxRequests + x.request)
	*x = caller{request: x.request + 1, late: x.late}
}

// stepMove is what a replica does that sees that the timer is due; the last one is a request that nobody waits for.
func (m *model) stepMove(s *state, r int, try try, strike strike) {
	p := &s.moves[r]
	name := m.say("%c/timer ", 'A'+r)
	if r == replicas {
		name = "a late request "
	}
	switch p.phase {
	case idle:
		for _, d := range s.due {
			if r < replicas && s.alive[r] && d.series && d.at != 0 && d.at <= s.now {
				try(false, m.say("%ssees T%d due by %s", name, d.at, d.by), func(n *state) {
					n.moves[r] = move{phase: looked, member: d, now: n.now}
				})
			}
		}
	case looked:
		if !s.entry.series() {
			try(false, name+"finds no entry", func(n *state) { n.moves[r] = move{} })
			return
		}
		try(false, m.say("%sreads the entry: %s, and asks", name, s.entry.of), func(n *state) {
			p := &n.moves[r]
			p.phase, p.of, p.newest = sent, n.entry.of, n.entry.newest
		})
	case sent:
		if r < replicas && s.alive[r] && s.moves[replicas].phase == idle {
			strike(Stray, name+"gives up its request, which is under way", func(n *state) {
				n.moves[replicas], n.moves[r] = n.moves[r], move{}
			})
		}
		code, n := goneOn, *s
		n.moves[r] = move{}
		code = m.spring(&n, *p)
		m.answers[code]++
		if n.entry.kind != waiting && s.entry.kind == waiting {
			for c := range n.calls {
				n.calls[c].alone = false
			}
		}
		try(false, name+"is run by Redis: "+code.String(), func(to *state) { *to = n })
	}
}

// stepRun is what a replica does about times that are due.
func (m *model) stepRun(s *state, r int, try try, strike strike) {
	f := s.runs[r]
	name := m.say("%c/T%d ", 'A'+r, f.tick)
	change := func(fault bool, told string, what func(n *state)) { try(fault, name+told, what) }
	switch f.phase {
	case idle:
		for t := range s.times {
			o := &s.times[t]
			if o.due == 0 || !s.alive[r] {
				continue
			}
			of := o.of
			if !m.has(OwnEntry) {
				of = s.entry.of
			}
			try(false, m.say("%c reads T%d, and claims it", 'A'+r, t), func(n *state) {
				n.runs[r] = run{sent, uint8(t), o.due, o.dueBy, of}
			})
		}
	case sent:
		n := *s
		told := "claims in vain"
		if n.runs[r] = (run{}); m.claim(&n, r, f) {
			told = "wins"
			if s.alive[r] {
				n.runs[r] = run{phase: won, tick: f.tick, due: f.due &^ handedOn}
			}
		}
		change(false, told, func(to *state) { *to = n })
	case won:
		change(false, m.say("STARTS attempt %d", f.due), func(n *state) {
			if n.starts[f.tick]>>f.due&1 == 1 || n.starts[f.tick] != 0 && !m.AtLeastOnce {
				n.violate(StartedTwice)
			}
			if n.fates[f.tick]&(missed|overlapped) != 0 {
				n.violate(TwoFates)
			}
			n.starts[f.tick] |= 1 << f.due
			n.runs[r].phase = running
			m.started++
		})
		strike(Refusal, name+"cannot start, hands it on", func(n *state) {
			m.handOver(n, r, f)
			n.runs[r] = run{}
		})
	case running:
		change(false, "ends", func(n *state) {
			m.finish(n, r, f)
			n.runs[r] = run{}
		})
	}
}

// check looks at a state for broken promises.
func (m *model) check(from, n *state) {
	e := n.entry
	mine, members := member{e.at, e.by, e.series()}, 0
	for _, d := range n.due {
		if d.at != 0 {
			members++
		}
	}
	sum, dealt := uint8(0), 0
	if e.kind == waiting {
		sum = e.of.bytes()
	}
	for t := range n.times {
		o := &n.times[t]
		if o.kind == waiting {
			sum += o.of.bytes()
			dealt++
		}
		if isDealt := o.due != 0 || o.run != 0; isDealt != (o.kind == waiting) {
			n.violate(Leftover)
		}
		if n.fates[t]&(owed|passed) == owed|passed && m.lacks(n, t) {
			n.violate(NoFate)
		}
	}
	switch {
	case (e.kind == waiting) != (members == 1 && n.isDue(mine)) || members > 1:
		n.violate(Leftover)
	case e.kind == waiting && m.isPast(n, e.of, e.by):
		n.violate(OldDefinition)
	case dealt > 1:
		n.violate(Beside)
	case n.bytes != sum:
		n.violate(WrongBytes)
	}
}

// lacks reports whether a time has no fate, and nobody deals with it.
func (m *model) lacks(n *state, t int) bool {
	if n.fates[t]&(missed|overlapped|excused) != 0 || n.starts[t] != 0 || n.times[t].kind == waiting {
		return false
	}
	for r := range n.runs { // won, and lost with the data
		if n.runs[r].phase == won && int(n.runs[r].tick) == t {
			return false
		}
	}
	return true
}

// atRest checks a state in which nothing more happens unless something fails.
func (m *model) atRest(s *state) Violation {
	for t := uint8(1); t <= s.now; t++ {
		if s.fates[t]&owed != 0 && m.lacks(s, int(t)) {
			return NoFate
		}
	}
	return None
}
