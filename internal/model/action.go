package model

import "fmt"

type actionKind uint8

const (
	actClock actionKind = iota
	actNear
	actWake
	actPoll
	actArrive
	actRead
	actRequestLost
	actReplyLost
	actAskAgain
	actStray
	actStrayArrives
	actWindowCloses
	actCheckTrust
	actEnqueue
	actStart
	actRefuse
	actJobEnds
	actCancel
	actExtend
	actExtendArrives
	actReadExtended
	actExtendLost
	actGiveUp
	actAbandon
	actExpire
	actReap
	actReapLeft
	actCrash
	actRestart
	actReplicate
	actRedisFails
	actSteal
	actNoSlot
	actDrop
	actCount
	actCancels
	actCancelled
	actAsks
	actAsked
	actWatch
	actBelieve
	actReapLate
	actGone
	actAppStops
)

// action is one step, to be told in a counterexample or replayed. what depends on the kind.
type action struct {
	kind           actionKind
	replica, fiber uint8
	what           uint8
	request        stray // that Redis runs in this step; its phase is idle if there is none
	inTime         bool  // its window is open
}

// running is an action in which Redis runs a request.
func (a action) running(z stray, inTime bool) action {
	a.request, a.inTime = z, inTime
	return a
}

func (a action) who() string {
	if a.fiber == dueFiber {
		return fmt.Sprintf("%c/due", 'A'+a.replica)
	}
	return fmt.Sprintf("%c/T%d", 'A'+a.replica, a.fiber+1)
}

func (a action) String() string {
	if text, ok := a.ofTheWorld(); ok {
		return text
	}
	return a.who() + " " + a.ofAFiber()
}

func (a action) ofTheWorld() (string, bool) {
	switch a.kind {
	case actClock:
		return fmt.Sprintf("Redis' clock reaches T%d", a.what), true
	case actNear:
		return fmt.Sprintf("Redis' clock comes within the tolerance of T%d", a.what), true
	case actStrayArrives:
		return fmt.Sprintf("a stray copy of %s's request arrives at Redis: %s", a.who(), answer(a.what)), true
	case actExpire:
		if a.what == 0 {
			return "the lock expires, or is released", true
		}
		return fmt.Sprintf("the lock of T%d expires, or is released", a.what), true
	case actSteal:
		return "SOMEBODY ELSE takes the lock", true
	case actReap:
		return fmt.Sprintf("the run for T%d is taken over", a.what), true
	case actReapLeft:
		return fmt.Sprintf("a restarted replica takes the run for T%d for a dead process' one: it is taken over",
			a.what), true
	case actWatch:
		return fmt.Sprintf("a WATCHER has seen the lease of the run for T%d unchanged, sends its takeover",
			a.what), true
	case actBelieve:
		return fmt.Sprintf("another watcher believes the same of the present lease of the run for T%d", a.what), true
	case actReapLate:
		return fmt.Sprintf("Redis runs the takeover of the run for T%d: %s", a.request.tick, answer(a.what)), true
	case actCrash:
		return fmt.Sprintf("%c CRASHES", 'A'+a.replica), true
	case actRestart:
		return fmt.Sprintf("%c restarts", 'A'+a.replica), true
	case actCancels:
		return fmt.Sprintf("an OPERATOR cancels the run for T%d", a.what), true
	case actCancelled:
		return "Redis runs the operator's cancel", true
	case actAsks:
		return fmt.Sprintf("an OPERATOR asks for a rerun of T%d", a.what), true
	case actAsked:
		return "Redis runs the operator's request for a rerun", true
	case actReplicate:
		return "the standby of Redis catches up", true
	case actRedisFails:
		return [...]string{"Redis FAILS OVER to its standby", "Redis LOSES ITS DATA",
			"Redis' CLOCK STEPS over all lease ends"}[a.what], true
	}
	return "", false
}

func (a action) ofAFiber() string {
	switch a.kind {
	case actWake:
		return "wakes, sends acquire"
	case actPoll:
		return fmt.Sprintf("sends acquire for the due member of T%d", a.what)
	case actArrive:
		return fmt.Sprintf("Redis runs its request: %s", answer(a.what))
	case actRead:
		return fmt.Sprintf("reads the answer %s", answer(a.what))
	case actRequestLost:
		return "its request is lost"
	case actReplyLost:
		return "the reply is lost"
	case actAskAgain:
		return "asks again with the same UUID"
	case actStray:
		return "times out, its request still under way; asks again"
	case actWindowCloses:
		return fmt.Sprintf("its window %d closes", a.what)
	case actCheckTrust:
		if phase(a.what) == checked {
			return "finds that it is trusted"
		}
		return "finds that its window is closed, sends extend first"
	case actEnqueue:
		return "makes the older ticks due"
	}
	return a.ofARun()
}

func (a action) ofARun() string {
	switch a.kind {
	case actStart:
		return fmt.Sprintf("STARTS the job for T%d", a.what)
	case actRefuse:
		return "cannot start the job, sends handover"
	case actJobEnds:
		return "the job ends, sends finish"
	case actCancel:
		return "cancels its run, sends finish"
	case actExtend:
		return "its keeper sends extend"
	case actExtendArrives:
		return fmt.Sprintf("Redis runs its extend: %s", answer(a.what))
	case actReadExtended:
		return "its keeper reads OK"
	case actExtendLost:
		return "its extend is lost"
	case actGiveUp:
		return "gives up without an answer"
	case actNoSlot:
		return "wakes, waits for a slot"
	case actDrop:
		return fmt.Sprintf("drops the due member of T%d", a.what)
	case actCount:
		return fmt.Sprintf("counts T%d as missed", a.what)
	case actAbandon:
		return "sends abandon"
	case actGone:
		return "finds its app GONE, gives the run up"
	case actAppStops:
		return "its app stops, which had worked on alone"
	}
	return "?"
}

// describe is the end of a counterexample: what Redis knows.
func (rd *store) describe() string {
	text := fmt.Sprintf("claimed up to T%d", rd.claimed)
	for t := range maxTicks {
		if rd.refused>>(t+1)&1 == 1 {
			text += fmt.Sprintf(", refused T%d", t+1)
		}
	}
	if rd.waits != 0 {
		text += fmt.Sprintf(", waiting T%d", rd.waits)
	}
	for _, e := range rd.running {
		if e.uuid != 0 {
			text += fmt.Sprintf(", running T%d %s", e.tick, attemptText(e.attempt))
		}
	}
	for _, d := range rd.due {
		if d.tick != 0 {
			text += fmt.Sprintf(", due T%d %s", d.tick, attemptText(d.attempt))
		}
	}
	return text
}

func attemptText(attempt uint8) string {
	text := fmt.Sprintf("attempt %d", attempt&^byHand+1)
	if attempt&byHand != 0 {
		text += " by hand"
	}
	return text
}
