package sim

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
)

// worker is an app that has got the call of one attempt of a run. It belongs to the world, and not to the replica that
// has called it. It follows the rules: it works only while it may, by the heartbeats that were answered with leave.
type worker struct {
	world   *world
	job     *Job
	caller  *replica
	run     execute.Run
	n       int // of the run
	token   string
	is      kind
	answers time.Duration // from the call until its answer
	begins  time.Duration // from the call until the first heartbeat
	takes   time.Duration // the work
	dies    time.Duration // so long after it has begun to work; never = it does not
	asked   bool          // it has asked for the tick, and was not called
	stands  time.Duration // so long after it has begun it stands still, and then works on; 0 = it does not

	requests uint64
	until    time.Duration // it may work until then
	unknown  bool          // a replica did not know its run
	gives    time.Duration // it gives up then, if it has not begun by then, or because it was told to end

	// The world is locked.
	from, to time.Duration // it worked then; 0 = it never began, or has not stopped
	why      ceased        // it stopped
	granted  []grant
	unsure   bool          // the last heartbeat that counted was refused because of the lease
	heard    time.Duration // a replica last got a heartbeat that counted; 0 = none did
}

// grant says that a replica took a report of a worker.
type grant struct {
	at     time.Duration
	by     *replica
	finish *callback.Report // nil = it was a heartbeat
}

// kind is what befalls a call.
type kind int

const (
	works       kind = iota // the app answers 202, and works
	answerLost              // the same, and the connection breaks before the answer is there
	answerless              // the same, and the answer never comes
	answeredFor             // the same, and a proxy answers 504 in its place
	mute                    // the app answers 202, and is heard of no more
	callLost                // the connection breaks before the app has got the call
	finishes                // the app answers 200: the run has ended
	fails                   // the app answers 500
)

// why a worker stops.
type ceased string

const (
	allDone    ceased = "done"
	appDied    ceased = "died"
	outOfTime  ceased = "out of time"
	toldToEnd  ceased = "told to end"
	hadNoLeave ceased = "never had leave"
	stoodStill ceased = "stood still"
)

// never is later than all that happens.
const never = time.Duration(1<<63 - 1)

// newWorker draws what becomes of a call.
func newWorker(p *replica, j *Job, n int, r execute.Run, token string) *worker {
	a := &worker{world: p.world, job: j, caller: p, run: r, n: n, token: token, dies: never}
	beat := j.Async.Heartbeat
	a.is = pickKind(a.throw(0) % 100)
	a.takes = a.within(j.Takes[0], j.Takes[1]+1, 1)
	a.answers = a.within(0, 20*time.Millisecond, 2)
	switch x := a.throw(3) % 10; {
	case x < 2:
		a.answers = a.within(0, beat, 2)
	case x < 3:
		a.answers = a.within(0, j.Timeout*5/4, 2)
	}
	a.begins = a.within(0, 10*time.Millisecond, 4)
	switch x := a.throw(5) % 10; {
	case x < 3:
		a.begins = a.within(0, beat/2, 4)
	case x < 4:
		a.begins = a.within(0, beat*3/2, 4)
	}
	d := a.world.dice
	switch {
	case d.chance(0.1, forApp, text(r.Job), uint64(r.Tick.UnixMilli())): // so does each run of the tick
		a.dies = a.within(0, 300*time.Millisecond, 6)
	case a.chance(0.1, 7):
		a.dies = a.within(0, a.takes+1, 6)
	}
	w := a.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workers = append(w.workers, a)
	return a
}

func pickKind(x uint64) kind {
	switch {
	case x < 12:
		return answerLost
	case x < 18:
		return answerless
	case x < 22:
		return mute
	case x >= 96:
		return answeredFor
	case x < 25:
		return callLost
	case x < 28:
		return finishes
	case x < 32:
		return fails
	}
	return works
}

func (a *worker) keys(what []uint64) []uint64 {
	return append([]uint64{forApp, text(a.run.Job), uint64(a.run.Tick.UnixMilli()), a.caller.key, uint64(a.run.Attempt),
		text(a.run.Kind)}, what...)
}

func (a *worker) throw(what ...uint64) uint64 { return a.world.dice.throw(a.keys(what)...) }

func (a *worker) chance(p float64, what ...uint64) bool {
	return a.world.dice.chance(p, a.keys(what)...)
}

func (a *worker) within(from, to time.Duration, what ...uint64) time.Duration {
	return a.world.dice.between(from, to, a.keys(what)...)
}

// serve is the life of a call at its app. The answer is its code; -1 = the connection has broken.
func (a *worker) serve(answer chan<- int) {
	codes := map[kind]int{works: 202, mute: 202, answerLost: -1, answeredFor: 504, callLost: -1,
		finishes: 200, fails: 500}
	if code, ok := codes[a.is]; ok {
		time.AfterFunc(a.answers, func() { answer <- code })
	}
	switch a.is {
	case works, answerLost, answerless, answeredFor:
		time.Sleep(a.begins)
		a.work()
	}
}

// reply is the answer to a heartbeat.
type reply struct {
	sent time.Duration
	err  error
}

// work sends heartbeats, and works while it may.
func (a *worker) work() {
	beat := a.job.Async.Heartbeat
	replies := make(chan reply, 1000) // more than are ever sent
	next := time.NewTicker(beat / 3)
	defer next.Stop()
	a.gives = a.world.now() + 3*beat
	a.beat(replies)
	for {
		at, why := a.stops()
		left := at - a.world.now()
		if left <= 0 {
			a.stop(why)
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-next.C:
			a.beat(replies)
		case r := <-replies:
			a.hears(r)
		case <-timer.C:
		}
		timer.Stop()
	}
}

// stops is when it stops, as far as it knows, and why.
func (a *worker) stops() (at time.Duration, why ceased) {
	if a.from == 0 {
		return a.gives, hadNoLeave
	}
	at, why = a.until, outOfTime
	for _, s := range []struct {
		at  time.Duration
		why ceased
	}{{a.gives, toldToEnd}, {a.from + a.takes, allDone}, {a.dies, appDied},
		{cmp.Or(a.stands, never), stoodStill}} {
		if s.at < at {
			at, why = s.at, s.why
		}
	}
	return at, why
}

// beat sends a heartbeat.
func (a *worker) beat(replies chan<- reply) {
	a.requests++
	number, sent := a.requests, a.world.now()
	go func() {
		err, heard := a.asks(number, func(p *replica) error {
			_, err := p.callbacks.Beat(a.run.ID, a.token)
			a.beaten(p, err)
			return err
		})
		if heard {
			replies <- reply{sent, err}
		}
	}()
}

// hears takes the answer to a heartbeat. An app that is told to end takes its time for that, if it has some.
func (a *worker) hears(r reply) {
	now := a.world.now()
	a.unknown = a.unknown || errors.Is(r.err, callback.ErrUnknown)
	switch {
	case r.err == nil:
		a.until = max(a.until, r.sent+a.job.Async.Heartbeat)
		if a.from == 0 && now < a.until {
			a.begin(now)
		}
	case errors.Is(r.err, callback.ErrUnsure): // it asks again
	case a.from == 0:
		a.gives = now
	case a.gives == never:
		a.gives = a.within(now, a.until+1, 8)
	}
}

func (a *worker) begin(now time.Duration) {
	a.world.mu.Lock()
	a.from, a.gives = now, never
	if a.dies != never {
		a.dies += now
	}
	if a.stands != 0 {
		a.stands += now
	}
	a.world.mu.Unlock()
	a.world.note(a.caller, "works", a.run.Job, stamp(a.run.Tick), a.run.ID, "")
}

// stop ends the work. Some apps that must not go on say so, and some do not.
func (a *worker) stop(why ceased) {
	w := a.world
	w.mu.Lock()
	a.why = why
	if a.from != 0 {
		a.to = w.now()
	}
	w.mu.Unlock()
	w.note(a.caller, "stops", a.run.Job, stamp(a.run.Tick), a.run.ID, string(why))
	switch {
	case why == appDied, a.from == 0:
	case why == stoodStill: // and it works on without leave: the fencing token is for that
		time.Sleep(a.standsFor())
		a.beat(make(chan reply, 1))
		a.finish(callback.Report{Outcome: callback.Succeeded})
	case why != allDone:
		if a.chance(0.6, 9) {
			a.finish(callback.Report{Outcome: callback.Interrupted})
		}
	case a.asked && a.chance(0.08, 20):
		a.finish(callback.Report{Outcome: callback.Interrupted})
	case a.job.Ends == "fails":
		a.finish(callback.Report{Outcome: callback.Failed, Detail: "disk full"})
	default:
		a.finish(callback.Report{Outcome: callback.Succeeded})
	}
}

// standsFor is how long an app stands still.
func (a *worker) standsFor() time.Duration {
	beat := a.job.Async.Heartbeat
	return a.within(beat/2, 4*beat, 21)
}

// finish reports until there is an answer, and sometimes once more.
func (a *worker) finish(report callback.Report) {
	if a.chance(0.15, 10) {
		time.Sleep(a.within(0, a.job.Async.Heartbeat*3/2, 11))
	}
	again := a.chance(0.2, 12)
	for range 6 {
		a.requests++
		err, heard := a.asks(a.requests, func(p *replica) error {
			before := a.hasFinished(p)
			err := p.callbacks.Finish(a.run.ID, a.token, report)
			switch {
			case before && err != nil:
				a.world.violated("async: a report", a.run.Job,
					"the report on tick %s was accepted by %s, and when it was repeated: %v",
					stamp(a.run.Tick), p.process, err)
			case err == nil && !before:
				a.grants(p, &report)
			}
			return err
		})
		if heard && (err != nil || !again) {
			return
		}
		again = again && !heard
		time.Sleep(a.within(50*time.Millisecond, 400*time.Millisecond, 13, a.requests))
	}
}

// asks carries a request to whoever has the caller's address now, and the answer back.
func (a *worker) asks(number uint64, do func(*replica) error) (err error, heard bool) {
	slow := func(way uint64) time.Duration {
		if a.chance(0.04, 14, number, way) {
			return a.within(0, a.job.Async.Heartbeat/2, 15, number, way)
		}
		return a.within(0, 3*time.Millisecond, 15, number, way)
	}
	time.Sleep(slow(toServer))
	p := a.world.listening(a.caller.place)
	if p == nil || a.chance(0.03, 16, number, toServer) {
		return nil, false
	}
	p.stall.wait()
	if p.isDead() {
		return nil, false
	}
	err = do(p)
	p.stall.wait()
	if p.isDead() || a.chance(0.03, 16, number, toClient) {
		return nil, false
	}
	time.Sleep(slow(toClient))
	return err, true
}

// listening is the process that listens at the address of a place; nil = none does.
func (w *world) listening(place int) *replica {
	w.mu.Lock()
	p := w.present[place]
	w.mu.Unlock()
	if p == nil || p.isDead() {
		return nil
	}
	select {
	case <-p.done:
		return nil
	default:
		return p
	}
}

// beaten records what a replica said to a heartbeat.
func (a *worker) beaten(p *replica, err error) {
	unsure := errors.Is(err, callback.ErrUnsure)
	a.judgeBeat(p, err)
	if err == nil || unsure {
		a.world.mu.Lock()
		a.unsure = unsure
		a.world.mu.Unlock()
	}
	if err == nil {
		a.grants(p, nil)
	}
}

// grants records that a replica took a report.
func (a *worker) grants(p *replica, finish *callback.Report) {
	if finish == nil {
		a.world.judgeLeave(a, p)
	}
	a.world.mu.Lock()
	a.granted = append(a.granted, grant{a.world.now(), p, finish})
	a.world.mu.Unlock()
	what := "beat"
	if finish != nil {
		what = "finish " + string(finish.Outcome)
	}
	a.world.note(p, what, a.run.Job, stamp(a.run.Tick), a.run.ID, "")
}

// hasFinished reports whether a replica took the worker's last report.
func (a *worker) hasFinished(p *replica) bool {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	return slices.ContainsFunc(a.granted, func(g grant) bool { return g.by == p && g.finish != nil })
}
