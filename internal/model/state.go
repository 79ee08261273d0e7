package model

// Sizes of the state. The model reports a state that does not fit as a violation, and never drops one.
const (
	maxReplicas   = 3
	maxTicks      = 4
	maxEntries    = 6 // of running and due
	maxStrays     = 2
	maxEvidence   = 4
	uuidsPerFiber = 6

	dueFiber = maxTicks // the fiber of a replica that pops the due set; those before it wake for one tick each
	fibers   = maxTicks + 1
)

// uuid stands for a run's UUID; 0 is none. It tells which fiber made it.
type uuid uint8

func newUUID(replica, fiber int, seq uint8) uuid {
	return uuid(1+(replica*fibers+fiber)*uuidsPerFiber) + uuid(seq)
}

func (u uuid) owner() (replica, fiber int) {
	i := int(u-1) / uuidsPerFiber
	return i / fibers, i % fibers
}

// foreign is an owner of a lock who is none of ours.
const foreign uuid = 255

// byOperator is the nonce of the due member that an operator has asked for.
const byOperator uuid = 254

// byHand is added to the attempt of a run that an operator has asked for, and to that of its repetitions.
const byHand uint8 = 4

// kept is where it is kept what became of a tick: of its run by hand at 0, which is no tick.
func kept(tick, attempt uint8) uint8 {
	if attempt&byHand != 0 {
		return 0
	}
	return tick
}

// phase is where a fiber stands between its wake and the end of its run.
type phase uint8

const (
	idle        phase = iota
	armed             // told to come back: asks again, with the same UUID
	asking            // acquire, of a tick or of a due member, under way
	won               // the answer is read
	verifying         // extend under way before the start: the answer came after its window
	checked           // trusted, about to start
	running           //
	finishing         // finish under way
	handingOver       // handover under way: the job could not be started
	waiting           // without one clear answer: waits until the windows of all copies have closed
	abandoning        // abandon under way
	dropping          // without DropCounts: has taken a member out of the due set, and not yet counted its tick
	done              //
	dead              // its replica has crashed
	alone             // likewise, and its app works on
	cancelling        // no phase of a fiber: the operator that cancels
	askingFor         // likewise: the one that asks for a rerun
	watching          // likewise: a watcher whose takeover comes later
)

// request is the state of a fiber's request.
type request uint8

const (
	noRequest request = iota
	sent
	answered
)

// extension is the state of the keeper of a running fiber.
type extension uint8

const (
	notExtending extension = iota
	extending
	extended
	extensionLost
	extensionReplaced
	extensionCancelled
)

// outcome is what a finish reports.
type outcome uint8

const (
	noOutcome outcome = iota
	completed
	cutShort // by its own replica: lock lost, shutdown
	replaced
	cancelled // by an operator
	untaken   // no handover: the app that had asked was gone before the run began
)

// fiber is what one replica does about one tick, or about the due member that it popped last.
//
// A window is the time for which the lease that a request sets is trusted. A fiber has at most two open at a time: bit
// 0 of open is the first, bit 1 that of the copy that was sent again or of an extension.
type fiber struct {
	phase      phase
	tick       uint8
	attempt    uint8
	uuid       uuid
	nonce      uuid  // of the due member that is its authority
	open       uint8 // windows
	trusts     uint8 // the window that it believes in
	under      uint8 // the window of the request under way
	request    request
	answer     answer
	askedAgain bool
	outcome    outcome
	seq        uint8 // UUIDs used up
	extension  extension
	look       bool               // it asks without a free slot
	claimed    bool               // Redis has run its claim
	policy     Policy             // that the tick is asked with
	older      [maxReplicas]uint8 // fibers, a bit each, that held a claim when this one got its own, not under Allow
	heard      heard              // what the answer says of other ticks
	gap        uint8              // without GapInClaim: first of the older ticks that the claimant has to enqueue
}

func (f *fiber) isOpen(window uint8) bool { return f.open>>window&1 == 1 }
func (f *fiber) close(window uint8)       { f.open &^= 1 << window }
func (f *fiber) trusted() bool            { return f.isOpen(f.trusts) }

// works reports whether the fiber's job, or its app, is at work and may be.
func (f *fiber) works() bool { return (f.phase == running || f.phase == alone) && f.trusted() }

// awaits reports whether the fiber is in the middle of a call to Redis.
func (f *fiber) awaits() bool {
	switch f.phase {
	case asking, verifying, finishing, handingOver, abandoning:
		return true
	}
	return false
}

// end is the end of a fiber. That of the due set may pop again, under another UUID.
func (f *fiber) end(index int) {
	if index == dueFiber {
		*f = fiber{seq: f.seq + 1}
		return
	}
	*f = fiber{phase: done, seq: f.seq, uuid: f.uuid, tick: f.tick}
}

// heard is what an answer says of ticks that nobody fired, for its reader to count.
type heard struct {
	after  uint8 // newest tick claimed, or refused, before
	waited uint8 // tick that waited until now, and does not any more
}

// entry is a run in `running`.
type entry struct {
	uuid      uuid
	tick      uint8
	attempt   uint8
	window    uint8 // the window of the request that set its lease
	jumped    bool  // Redis' clock has stepped over its end
	slot      uint8 // where it took its lock
	began     uint8 // newest tick that had come when it was claimed
	renewed   uint8 // newest tick that had come when its lease was last renewed
	toEnd     bool  // a newer tick has come that replaces it
	calledOff bool  // an operator has cancelled it
}

// due is a member of the due set.
type due struct {
	tick    uint8
	attempt uint8
	nonce   uuid
	avoid   uint8 // replica + 1 that stands back
}

// interrupted is a run that was taken over.
type interrupted struct {
	uuid uuid
	tick uint8
}

// store is what Redis knows.
type store struct {
	lock     [maxTicks + 1]uuid // by slot: the tick under Allow, else 0
	claimed  uint8              // newest tick claimed
	last     uuid               // newest run under another policy than Allow
	newest   uuid               // without PerRun or SameAnswer: newest run
	refused  uint8              // ticks that came due behind runs and were refused: a bit each
	waits    uint8              // tick that came due behind a run and waits for the end of all
	stop     bool               // without StopRuns: the run is to end
	evidence [maxEvidence]interrupted
	running  [maxEntries]entry // by UUID
	due      [maxEntries]due   // by tick, attempt, nonce
	asked    bool              // the memo of the request for a rerun
}

// stray is a copy of a request that its sender no longer waits for.
type stray struct {
	phase         phase // of its sender; idle = no stray
	replica, from uint8
	uuid          uuid
	tick, attempt uint8
	nonce         uuid
	window        uint8
	outcome       outcome
	policy        Policy
	look          bool
	orphan        bool // its replica has crashed
}

// sighting is a lease that a watcher has seen unchanged for a whole ttl, while its takeover is under way.
type sighting struct {
	run   uuid // 0 = none
	moved bool // the lease has another end by now
}

// mark is what the checker remembers of a tick.
type mark uint8

const (
	finished    mark = 1 << iota // a run came to its end, or was given up for good (attempts spent, replaced)
	overlapped                   // skipped for a true overlap
	diedAtStart                  // claimed by a replica that died before it could start: the price of at-most-once
	missed                       // counted as missed
	superseded                   // in the queue, by a newer tick
	refused                      // as an overlap, at least once
	calledOff                    // its run was cancelled, and is over
)

// state is the whole world. It consists of bytes only, so that it can be hashed and packed as such.
type state struct {
	redis, standby store
	fibers         [maxReplicas][fibers]fiber
	alive          [maxReplicas]bool
	strays         [maxStrays]stray
	now            uint8 // newest tick that has come on Redis' clock
	near           bool  // the next one is so near that it can be claimed
	left           Faults
	cancel         wish
	rerun          wish
	sighted        sighting
	starts         [maxTicks + 1]uint8 // by tick, or 0 (see kept): two bits for each of four attempts
	marks          [maxTicks + 1]mark  // likewise
	violation      Violation
	fromOrphan     bool  // while a stray copy of a crashed replica is run
	heard          heard // while a request is run: what its answer says
}

// live is the fiber that still works under a UUID, nil if none does.
func (s *state) live(u uuid) *fiber {
	if u == 0 || u >= byOperator {
		return nil
	}
	r, i := u.owner()
	f := &s.fibers[r][i]
	if s.alive[r] && f.uuid == u && f.phase != dead && f.phase != alone && f.phase != idle {
		return f
	}
	return nil
}

// covered reports whether the window that covers a lease is still open: before it closes, the lease does not end. That
// of an app without its replica closes at least as early as the one that was covering the lease.
func (s *state) covered(e entry) bool {
	if f := s.live(e.uuid); f != nil {
		return f.isOpen(e.window)
	}
	return s.isAlone(e.uuid)
}

// isAlone reports whether an app works on a run without its replica.
func (s *state) isAlone(u uuid) bool {
	if u == 0 {
		return false
	}
	r, i := u.owner()
	f := &s.fibers[r][i]
	return f.phase == alone && f.uuid == u
}

// startsOf counts the starts of a tick over all attempts.
func (s *state) startsOf(tick uint8) int {
	n := 0
	for shift := 0; shift < 8; shift += 2 {
		n += int(s.starts[tick] >> shift & 3)
	}
	return n
}

// reach is the newest tick that can be claimed: the present one, or the next within the tolerance.
func (s *state) reach() uint8 {
	if s.near {
		return s.now + 1
	}
	return s.now
}

func (s *state) violate(v Violation) { s.violation = v }
