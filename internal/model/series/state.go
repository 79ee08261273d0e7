package series

import "fmt"

const (
	maxTicks    = 4
	replicas    = 2
	callers     = 2
	maxRequests = 4 // of a caller
)

// definition is what a caller has sent: of a timer with a schedule, or without one.
type definition uint8

const (
	none definition = iota
	each            // every time
	even            // every second time
	once            // no schedule: it comes due behind the last time
)

func (d definition) String() string { return [...]string{"nothing", "each", "even", "once"}[d] }

func (d definition) repeats() bool { return d == each || d == even }

func (d definition) has(tick uint8) bool { return d == each || d == even && tick%2 == 0 }

// bytes is how many it has.
func (d definition) bytes() uint8 { return uint8(d) }

// next is the first time after another one; 0 = there is none.
func (m *model) next(d definition, after uint8) uint8 {
	if d == once {
		return m.Ticks + 1
	}
	for tick := after + 1; tick <= m.Ticks; tick++ {
		if d.has(tick) {
			return tick
		}
	}
	return 0
}

// last is the newest time up to another one; 0 = there is none.
func last(d definition, upTo uint8) uint8 {
	for ; upTo > 0 && !d.has(upTo); upTo-- {
	}
	return upTo
}

// copied names a copy of a request that sets a timer; 0 = none. Each caller sends at most two copies of each.
type copied uint8

func newCopy(caller, request, try uint8) copied {
	return copied((caller*maxRequests+request)*2 + try + 1)
}

func (c copied) request() uint8 { return (uint8(c) - 1) / 2 }

func (c copied) String() string {
	if c == 0 {
		return "-"
	}
	r := c.request()
	return fmt.Sprintf("%c%d.%d", 'X'+r/maxRequests, r%maxRequests+1, (c-1)%2)
}

type kind uint8

const (
	nothing kind = iota
	waiting      // the entry of a timer, or of a time that was made due
	deleted      // a mark
)

// entry is that of the timer.
type entry struct {
	kind      kind
	of        definition
	at        uint8  // the time for which it waits
	newest    uint8  // that was made due
	by        copied // that set it
	deletedBy uint8  // request + 1; 0 = its schedule has ended
}

func (e entry) series() bool { return e.kind == waiting && e.of.repeats() }

// member is one of the timer in the due set; a zero `at` is none.
type member struct {
	at     uint8
	by     copied
	series bool
}

// occurrence is a time that was made due, as a timer of its own.
type occurrence struct {
	kind      kind
	of        definition
	by        copied
	deletedBy uint8

	due   uint8  // its member: 0 = none, else its attempt, and handedOn
	dueBy copied // that the member names

	run     uint8 // 0 = none, else 1 + its replica
	attempt uint8
	dead    bool // the replica of the run is
}

// handedOn is added to the attempt of a due member that a replica could not start.
const handedOn = 4

// fate is what became of a time.
type fate uint8

const (
	owed       fate = 1 << iota // it came while the timer waited for it
	passed                      // the timer was moved on from it, or from a newer one
	sprung                      // it was made due
	claimed                     // and claimed
	missed                      // the history has it so
	overlapped                  // the history has it so
	excused                     // it was taken back, lost with the data, or its claimant died
)

// phases of a replica that moves a timer on, or runs a time of it.
const (
	idle uint8 = iota
	looked
	sent
	won
	running
)

// move is a replica's request to move a timer on.
type move struct {
	phase  uint8
	member member // that it saw
	now    uint8  // when
	of     definition
	newest uint8
}

// run is what a replica does about a time that is due.
type run struct {
	phase, tick, due uint8
	by               copied
	of               definition
}

// caller goes through its list of requests.
type caller struct {
	request, try, part uint8 // part 1 of a DELETE is for the newest time
	underWay           bool  // a copy is
	asked              bool  // the request has been sent
	at, newest         uint8
	before             uint16 // requests that had returned when it was sent
	alone              bool   // no other request, no end and no loss since
	late               letter // a copy that arrives when nobody waits for it
}

// letter is a copy of a request.
type letter struct {
	request, try, part, at, newest uint8
	there                          bool
}

type state struct {
	now   uint8
	left  Faults
	entry entry
	due   [2]member // of the timer; more than one only if something is broken
	times [maxTicks + 1]occurrence
	bytes uint8 // of all entries, as the ledger has it

	alive [replicas]bool
	moves [replicas + 1]move // the last one is a request that nobody waits for
	runs  [replicas]run
	calls [callers]caller

	returned  uint16 // requests whose callers do not wait any more
	past      uint16 // requests that had returned before one was sent that is answered
	fates     [maxTicks + 1]fate
	starts    [maxTicks + 1]uint8 // a bit for each attempt
	violation Violation
}

func (s *state) violate(v Violation) {
	if s.violation == None {
		s.violation = v
	}
}

func (s *state) add(m member) {
	for i := range s.due {
		if s.due[i] == m {
			return
		}
	}
	for i := range s.due {
		if s.due[i].at == 0 {
			s.due[i] = m
			return
		}
	}
	s.violate(Leftover)
}

// remove reports whether the member was there.
func (s *state) remove(m member) bool {
	for i := range s.due {
		if s.due[i] == m && m.at != 0 {
			s.due[i] = member{}
			return true
		}
	}
	return false
}

func (s *state) isDue(m member) bool { return m.at != 0 && (s.due[0] == m || s.due[1] == m) }
