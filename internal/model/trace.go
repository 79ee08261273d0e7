package model

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
)

// Deed is what a step of a trace asks of Redis, or does to it.
type Deed uint8

// The deeds: those up to Watches are requests.
const (
	Acquires Deed = iota
	Extends
	Finishes  // a run that ended, or was told to end for a newer tick
	Requeues  // a run that was cut short, and is to be run again
	HandsOver // a run that could not be started
	GivesUp   // a run that could not be started, for good
	Abandons  // a run that was given up before it started
	Reaps     // a run whose replica is gone
	Drops     // a due member that is not worth a run any more
	Cancels   // a run, for an operator
	Asks      // for a rerun of a tick, for an operator
	Watches   // a lease: a takeover that comes late has seen its end in this step
	Expires   // a lock ends, or is released
	Steals    // a lock, for somebody else
	Replicates
	FailsOver
	LosesData // and registers the job again
	StepsClock
)

var deedNames = [...]string{"acquire", "extend", "finish", "requeue", "handover", "give up", "abandon", "reap", "drop",
	"cancel", "ask", "watch", "expire", "steal", "replicate", "fail over", "lose data", "step clock"}

func (d Deed) String() string { return deedNames[d] }

// Run names a run; "" is none.
type Run string

// Foreign owns a lock and is no run.
const Foreign Run = "foreign"

// Operator is the nonce of the due member that an operator has asked for.
const Operator Run = "operator"

// Store is what Redis knows after a step, as far as a script can tell. Ticks and replicas count from 1, 0 = none.
type Store struct {
	Claimed  int
	Last     Run
	Refused  []int
	Waits    int
	Locks    map[int]Run // by slot: the tick under Allow, else 0
	Evidence []Run       // recorded as interrupted; at least those whose replica may still say that they never started
	Running  []Entry     // by run
	Due      []Member    // by tick, attempt, nonce
}

// Entry is a run in the set of runs.
type Entry struct {
	Run                    Run
	Tick, Attempt, Slot    int
	BeganUpTo, RenewedUpTo int  // newest tick of OpenUpTo that had come at its claim, and at its last renewal
	ToEnd, Cancelled       bool // of these, a cancel is what Redis keeps
	ByHand                 bool // an operator has asked for it
}

// Member is a member of the due set.
type Member struct {
	Tick, Attempt int
	Nonce         Run
	ByHand        bool
	Avoids        int // replica that could not start it
}

// Step is one step of a trace in which Redis has a part.
type Step struct {
	Deed
	Before []string // steps since the last one in which Redis had no part
	Text   string

	// Of a request. A run's Attempt counts from 0, and Again reports whether it is run again when it is cut short.
	Run           Run
	Replica       int
	Tick, Attempt int
	ByHand        bool
	Again         bool
	Policy        Policy
	Popped        bool // its authority is the due member with this tick, attempt and Nonce
	Nonce         Run
	InTime        bool // its window is open
	Look          bool
	Late          bool // a takeover whose watcher has seen the lease in an earlier step
	Slot          int  // of Expire and Steal

	Now  int  // newest tick that has come on Redis' clock
	Near bool // the next one is within the tolerance

	Answer             string // of a request; "" = it has none
	Missed, Overlapped []int  // ticks that this step has settled as such
	Store              Store
}

// Trace is a random path through the states of a scenario with the given mends, of at most so many steps. It ends early
// when nothing more can happen, or when the model's tables are too small for what happens next.
func Trace(c Scenario, with Mend, rng *rand.Rand, most int) iter.Seq[Step] {
	m := newModel(c, with)
	return func(yield func(Step) bool) {
		s := m.initial()
		var before []string
		for range most {
			var a action
			if s, a = m.anyOf(s, rng); s.violation == Overflow || a == (action{}) {
				return
			}
			step, ok := m.stepOf(&s, a)
			if !ok {
				before = append(before, a.String())
				continue
			}
			step.Before = before
			before = nil
			if !yield(step) {
				return
			}
		}
	}
}

// anyOf is one of the states that can come next, and what leads there; the zero action if there is none. Time and
// faults are drawn less often than the rest, so that something has happened by the next tick. Marks and violations are
// those of this step alone: nothing that happens depends on them.
func (m *model) anyOf(s state, rng *rand.Rand) (next state, by action) {
	s.marks, s.violation = [maxTicks + 1]mark{}, None
	all := 0
	m.successors(&s, func(succ *state, a action, fault bool) {
		weight := 4
		switch {
		case a.kind == actExtend || a.kind == actWatch:
			weight = 12
		case fault || a.kind == actClock || a.kind == actNear || a.kind == actExpire || a.kind == actReplicate ||
			a.kind == actJobEnds || a.kind == actReapLate:
			weight = 1
		}
		if all += weight; rng.IntN(all) < weight {
			next, by = *succ, a
		}
	})
	return next, by
}

// stepOf is the step that has led to a state; not ok when Redis had no part in it.
func (m *model) stepOf(s *state, a action) (step Step, ok bool) {
	step = Step{Text: a.String(), Now: int(s.now), Near: s.near, Store: m.storeOf(&s.redis)}
	switch {
	case a.request.phase != idle:
		m.request(&step, a)
	case a.kind == actExpire:
		step.Deed, step.Slot = Expires, int(a.what)
	case a.kind == actSteal:
		step.Deed, step.Slot = Steals, int(a.what)
	case a.kind == actReplicate:
		step.Deed = Replicates
	case a.kind == actRedisFails:
		step.Deed = [...]Deed{Failover: FailsOver, Flush: LosesData, ClockJump: StepsClock}[a.what]
	default:
		return step, false
	}
	for t := range s.marks {
		if s.marks[t]&missed != 0 {
			step.Missed = append(step.Missed, t)
		}
		if s.marks[t]&overlapped != 0 {
			step.Overlapped = append(step.Overlapped, t)
		}
	}
	return step, true
}

func (m *model) request(step *Step, a action) {
	z := a.request
	step.Run, step.Nonce, step.Replica = z.uuid.run(), z.nonce.run(), int(z.replica)+1
	step.Tick, step.Attempt, step.Again = int(z.tick), int(z.attempt&^byHand), m.hasRerun(z.attempt)
	step.ByHand = z.attempt&byHand != 0
	step.Policy, step.Popped, step.InTime, step.Look = z.policy, z.from == dueFiber, a.inTime, z.look
	step.Deed, step.Answer = m.deed(z), answer(a.what).String()
	step.Late = a.kind == actReapLate
	switch {
	case step.Late:
	case z.phase == watching:
		step.Answer = ""
	// nothing can have come before, or it makes no difference
	case z.phase == dead, z.phase == dropping, z.phase == cancelling, z.phase == askingFor:
		step.Answer = answerOK.String()
	}
}

func (m *model) deed(z stray) Deed {
	switch z.phase {
	case asking:
		return Acquires
	case verifying:
		return Extends
	case finishing:
		if z.outcome == cutShort && m.AtLeastOnce {
			return Requeues
		}
		return Finishes
	case handingOver:
		if z.outcome == untaken {
			return GivesUp
		}
		return HandsOver
	case dead:
		return Reaps
	case dropping:
		return Drops
	case cancelling:
		return Cancels
	case askingFor:
		return Asks
	case watching:
		return Watches
	}
	return Abandons
}

func (u uuid) run() Run {
	switch u {
	case 0:
		return ""
	case foreign:
		return Foreign
	case byOperator:
		return Operator
	}
	r, i := u.owner()
	return Run(fmt.Sprintf("%s/%d", at{r, i}.act(0, 0).who(), int(u-1)%uuidsPerFiber))
}

func (m *model) storeOf(rd *store) Store {
	s := Store{Claimed: int(rd.claimed), Last: rd.last.run(), Waits: int(rd.waits), Locks: map[int]Run{}}
	for t := range maxTicks + 1 {
		if rd.refused>>t&1 == 1 {
			s.Refused = append(s.Refused, t)
		}
		if rd.lock[t] != 0 {
			s.Locks[t] = rd.lock[t].run()
		}
	}
	for _, x := range rd.evidence {
		if x.uuid != 0 {
			s.Evidence = append(s.Evidence, x.uuid.run())
		}
	}
	for _, e := range rd.running {
		if e.uuid != 0 {
			s.Running = append(s.Running, Entry{e.uuid.run(), int(e.tick), int(e.attempt &^ byHand), int(e.slot),
				int(e.began), int(e.renewed), e.toEnd && !e.calledOff, e.calledOff, e.attempt&byHand != 0})
		}
	}
	for _, d := range rd.due {
		if d.tick != 0 {
			s.Due = append(s.Due, Member{int(d.tick), int(d.attempt &^ byHand), d.nonce.run(),
				d.attempt&byHand != 0, int(d.avoid)})
		}
	}
	s.Sort()
	return s
}

// OpenUpTo is the newest tick up to the given one whose fate is open: it is not claimed, or stands behind a run. When
// something happened makes a difference as far as that.
func (s *Store) OpenUpTo(tick int) int {
	for ; tick > 0 && tick <= s.Claimed && !slices.Contains(s.Refused, tick); tick-- {
	}
	return tick
}

// Sort puts runs and members in order.
func (s *Store) Sort() {
	slices.SortFunc(s.Running, func(a, b Entry) int { return cmp.Compare(a.Run, b.Run) })
	slices.SortFunc(s.Due, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Tick, b.Tick), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Nonce, b.Nonce))
	})
	slices.Sort(s.Evidence)
}
