package model

import "fmt"

type model struct {
	Scenario
	mends   Mend
	renamed []renaming
}

func newModel(c Scenario, with Mend) *model {
	c.setDefaults()
	return &model{Scenario: c, mends: with, renamed: c.renamings()}
}

func (m *model) has(mend Mend) bool { return m.mends&mend != 0 }

// Result is what a search found.
type Result struct {
	States    int               // different ones, up to the names of replicas
	AtRest    int               // of them, those in which nothing more happens unless something fails
	Depth     int               // steps to the last one
	Complete  bool              // all states were seen
	Applied   Faults            // how often each kind of fault struck at most
	Starts    [maxTicks + 1]int // steps in which the job was started, by tick; 0 = by hand
	Needless  int               // steps in which a run's finish was answered, and the run stayed due again
	Violation Violation         // None if no promise was broken
	Trace     []string          // a shortest way to the violation
}

// Search looks at every state that a scenario can reach with the given mends, nearest first, until one breaks a promise
// or there are more than maxStates.
func Search(c Scenario, with Mend, maxStates int) Result {
	s := search{model: newModel(c, with), seen: newVisited()}
	return s.run(maxStates)
}

// search is breadth first, so that a counterexample is a shortest one.
type search struct {
	*model
	seen   *visited
	nodes  []node
	result Result
}

// node is a state that was seen: by which successor of which other.
type node struct {
	parent int32
	nth    int16
}

// level is the states that are equally far from the beginning.
type level struct {
	states frontier
	nodes  []int32
}

func (l *level) reset() {
	l.states.reset()
	l.nodes = l.nodes[:0]
}

func (m *model) initial() state {
	s := state{now: m.Begin, left: m.Faults}
	for r := range m.Replicas {
		s.alive[r] = true
	}
	return s
}

func (s *search) run(maxStates int) Result {
	var current, next level
	first := s.initial()
	s.visit(&first, node{parent: -1}, &current)
	for len(current.nodes) > 0 && s.result.Violation == None {
		next.reset()
		for _, n := range current.nodes {
			var st state
			current.states.get(&st)
			if s.expand(&st, n, &next); s.result.Violation != None || len(s.nodes) > maxStates {
				s.result.States = len(s.nodes)
				return s.result
			}
		}
		current, next = next, current
		current.states.read = 0
		s.result.Depth++
	}
	s.result.States, s.result.Complete = len(s.nodes), true
	return s.result
}

func (s *search) visit(st *state, n node, to *level) {
	if s.seen.add(s.fingerprint(st)) {
		s.nodes = append(s.nodes, n)
		to.states.put(st)
		to.nodes = append(to.nodes, int32(len(s.nodes)-1))
	}
}

// expand visits the successors of one state, and checks them.
func (s *search) expand(st *state, n int32, next *level) {
	atRest := true
	nth := int16(-1)
	s.successors(st, func(succ *state, a action, fault bool) {
		nth++
		atRest = atRest && fault
		if s.result.Violation != None {
			return
		}
		s.count(st, succ, a)
		if v := s.broken(succ); v != None {
			s.found(v, n, nth)
			return
		}
		if s.Only != None { // what else breaks tells no states apart
			succ.violation = None
		}
		if s.Only == FiredTwice {
			succ.marks = [maxTicks + 1]mark{}
		}
		s.visit(succ, node{parent: n, nth: nth}, next)
	})
	if !atRest || s.result.Violation != None {
		return
	}
	s.result.AtRest++
	if v := s.brokenAtRest(st); v != None {
		s.found(v, n, -1)
	}
}

// count keeps what tells a search that says something from one in which nothing happened.
func (s *search) count(from, to *state, a action) {
	switch a.kind {
	case actStart:
		f := &to.fibers[a.replica][a.fiber]
		s.result.Starts[kept(f.tick, f.attempt)]++
	case actArrive:
		f := &to.fibers[a.replica][a.fiber]
		if f.phase == finishing && f.outcome == completed && to.redis.findDue(f.tick, f.attempt+1, f.uuid) >= 0 {
			s.result.Needless++
		}
	}
	if from.left != to.left {
		for f, n := range to.left {
			s.result.Applied[f] = max(s.result.Applied[f], s.Faults[f]-n)
		}
	}
}

// found replays the way to a violation: to the node and, unless it is negative, to its nth successor.
func (s *search) found(v Violation, n int32, nth int16) {
	s.result.Violation = v
	var path []int16
	if nth >= 0 {
		path = append(path, nth)
	}
	for ; s.nodes[n].parent >= 0; n = s.nodes[n].parent {
		path = append(path, s.nodes[n].nth)
	}
	st := s.initial()
	for i := len(path) - 1; i >= 0; i-- {
		k := int16(-1)
		var next state
		s.successors(&st, func(succ *state, a action, _ bool) {
			if k++; k == path[i] {
				next = *succ
				s.result.Trace = append(s.result.Trace, a.String())
			}
		})
		st = next
	}
	s.result.Trace = append(s.result.Trace, fmt.Sprintf("=> %s: %s", v, st.redis.describe()))
}
