package series

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Fault is a kind of thing that goes wrong.
type Fault uint8

const (
	Crash   Fault = iota // of a replica
	Loss                 // of a caller's request, or of the reply
	Late                 // a caller's request arrives when its window is closed
	Stray                // a replica's request arrives when it has given it up
	Refusal              // a replica cannot start a time
	Flush                // Redis loses all its data
	kindsOfFault
)

var faultNames = [kindsOfFault]string{"crash", "loss", "late", "stray", "refusal", "flush"}

func (f Fault) String() string { return faultNames[f] }

// Faults says how often each kind may strike. In a state it is what is left.
type Faults [kindsOfFault]uint8

// World is a bounded one to be searched in full.
type World struct {
	Name        string
	Ticks       uint8                 // of the schedule; it ends with the last one
	Callers     [callers][]definition // what each asks for, one after the other; none = DELETE
	AtLeastOnce bool
	Faults      Faults
	Quiet       bool      // no data is lost while a request is under way
	Limit       Violation // a known limit, which has to be found; None = there is none
}

type model struct {
	World
	rules   Rule
	telling bool
	answers [kindsOfAnswer]int
	started int
}

func (m *model) has(r Rule) bool { return m.rules&r != 0 }

// Result is what a search found.
type Result struct {
	States    int // different ones
	AtRest    int // of them, those in which nothing more happens unless something fails
	Depth     int // steps to the last one
	Complete  bool
	Started   int                // steps in which a time was started
	Answers   [kindsOfAnswer]int // steps in which a script gave each answer
	Struck    Faults             // how often each kind of fault struck at most
	Violation Violation
	Trace     []string // a shortest way to the violation
}

// Counterexample is the trace as numbered lines.
func (r Result) Counterexample() string {
	var text strings.Builder
	for i, line := range r.Trace {
		fmt.Fprintf(&text, "  %3d %s\n", i+1, line)
	}
	return text.String()
}

// search is breadth first, so that a counterexample is a shortest one.
type search struct {
	*model
	seed   maphash.Seed
	seen   map[uint64]struct{} // fingerprints
	nodes  []node
	result Result
}

// node is a state that was seen: by which successor of which other.
type node struct {
	parent int32
	nth    int16
}

type reached struct {
	state state
	node  int32
}

// Search looks at every state that a world can reach with the given rules, nearest first, until one breaks a promise or
// there are more than maxStates.
func Search(w World, with Rule, maxStates int) Result {
	s := search{model: &model{World: w, rules: with}, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	s.run(maxStates)
	r := &s.result
	r.States, r.Answers, r.Started = len(s.nodes), s.answers, s.started
	return *r
}

func (m *model) initial() state {
	s := state{left: m.Faults}
	for r := range s.alive {
		s.alive[r] = true
	}
	return s
}

func (s *search) run(maxStates int) {
	first := s.initial()
	level, next := []reached{{first, s.visit(&first, node{parent: -1})}}, []reached(nil)
	for ; len(level) > 0; level, next = next, level[:0] {
		for i := range level {
			next = s.expand(&level[i], next)
			if s.result.Violation != None || len(s.nodes) > maxStates {
				return
			}
		}
		s.result.Depth++
	}
	s.result.Complete = true
}

// visit returns the number of a state's node; negative if it was seen before. Both replicas are alike while none may
// crash.
func (s *search) visit(st *state, n node) int32 {
	print := maphash.Comparable(s.seed, *st)
	if s.Faults[Crash] == 0 {
		print = min(print, maphash.Comparable(s.seed, st.swapped()))
	}
	if _, there := s.seen[print]; there {
		return -1
	}
	s.seen[print] = struct{}{}
	s.nodes = append(s.nodes, n)
	return int32(len(s.nodes) - 1)
}

// swapped is the state with the names of the replicas exchanged.
func (s *state) swapped() state {
	n := *s
	n.moves[0], n.moves[1] = s.moves[1], s.moves[0]
	n.runs[0], n.runs[1] = s.runs[1], s.runs[0]
	n.alive[0], n.alive[1] = s.alive[1], s.alive[0]
	for t := range n.times {
		if o := &n.times[t]; o.run != 0 {
			o.run = 3 - o.run
		}
	}
	return n
}

// expand visits the successors of one state, and checks them.
func (s *search) expand(of *reached, next []reached) []reached {
	atRest, nth := true, int16(-1)
	s.step(&of.state, func(n *state, fault bool, _ string) {
		nth++
		atRest = atRest && fault
		if s.Limit != None && n.violation != s.Limit { // nothing else is looked for
			n.violation = None
		}
		switch {
		case s.result.Violation != None:
			return
		case n.violation != None:
			s.found(n.violation, of.node, nth)
			return
		}
		for f, left := range n.left {
			s.result.Struck[f] = max(s.result.Struck[f], s.Faults[f]-left)
		}
		if number := s.visit(n, node{of.node, nth}); number >= 0 {
			next = append(next, reached{*n, number})
		}
	})
	if atRest && s.result.Violation == None && s.Limit == None {
		s.result.AtRest++
		if v := s.atRest(&of.state); v != None {
			s.found(v, of.node, -1)
		}
	}
	return next
}

// found replays the way to a violation: to the node and, unless it is negative, to its nth successor.
func (s *search) found(v Violation, at int32, nth int16) {
	s.result.Violation = v
	var path []int16
	if nth >= 0 {
		path = append(path, nth)
	}
	for ; s.nodes[at].parent >= 0; at = s.nodes[at].parent {
		path = append(path, s.nodes[at].nth)
	}
	s.telling = true
	st := s.initial()
	for i := len(path) - 1; i >= 0; i-- {
		k := int16(-1)
		var next state
		s.step(&st, func(n *state, _ bool, told string) {
			if k++; k == path[i] {
				next = *n
				s.result.Trace = append(s.result.Trace, told)
			}
		})
		st = next
	}
	s.result.Trace = append(s.result.Trace, fmt.Sprintf("=> %s: %+v", v, st.entry))
}
