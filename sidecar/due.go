package sidecar

import (
	"context"
	"log/slog"
	"slices"
	"sort"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// foreignAge is how long a replica leaves due members of jobs that its table lacks to replicas that may have them.
const foreignAge = 24 * time.Hour

// dueTicks fires the due set: ticks that were handed over, or set free by the end of the run before. While there is no
// slot for them, their jobs are in line for one with the wakes, each job once, however much of it is due.
type dueTicks struct {
	locks      *lock.Store
	clock      *clock
	log        *slog.Logger
	jobs       func() roster
	timers     *timers
	rendezvous *rendezvous
	slots      *slots
	deferred   *deferred
	nudges     *nudges
	firer      *firer

	line map[string]*inLine // by job; its next due member fires with the slot. The looker's alone
}

// inLine is a job that waits for a slot, or has just got it.
type inLine struct {
	slot *slot
	seen bool // the present look has found something for it
}

// fireDue fires the members that a look has found due.
func (t *dueTicks) fireDue(ctx context.Context, runs []lock.Running, dues []lock.Due) {
	living := map[string]int{} // by job, its runs and the older ticks that are about to run
	for _, r := range runs {
		living[r.Job]++
	}
	awaited := map[string]bool{}
	before := map[string]bool{} // jobs whose deferred tick goes before their backfills
	defer t.nudges.awaitEnds(awaited)
	defer t.leaveLine(true)
	jobs := slices.IndexFunc(dues, func(d lock.Due) bool { return service.IsTimer(d.Job) })
	if jobs < 0 {
		jobs = len(dues)
	}
	sort.SliceStable(dues[:jobs], func(i, j int) bool { return lateness(dues[i]) < lateness(dues[j]) })
	for _, d := range dues[:jobs] {
		j := t.jobs()[d.Job]
		sp := j.inForce()
		switch {
		case sp == nil || !sp.hasFates(): // here: another table may have it, and claim its ticks
			if d.Age > foreignAge && t.slots.idle() == "" {
				t.discard(ctx, d, "no replica has the job, or each runs it by itself")
			}
		case d.Kind == kindBackfill && before[d.Job]:
		case t.takeOne(ctx, j.dueWake(sp, d, t.clock.Now()), !sp.hasRoom(living[d.Job]+sp.keptFree(d.Kind))):
			living[d.Job]++
		default:
			byHand := d.Kind == kindBackfill || d.Kind == kindManual
			before[d.Job] = before[d.Job] || !byHand && t.deferred.isBrief(d.Member())
			awaited[d.Job] = living[d.Job] > 0
		}
	}
	t.takeTimers(ctx, dues[jobs:])
}

// lateness orders what is due of a job: the schedule's ticks go before those of a backfill.
func lateness(d lock.Due) int { return map[bool]int{true: 1}[d.Kind == kindBackfill] }

// turn is how long a timer that is due is left to the replica that asks first for it.
const turn = 2 * stagger

// takeTimers fires timers that are due while this replica has room for more, first those that it asks first for. Of
// thousands that are due at once, the other replicas take other ones.
func (t *dueTicks) takeTimers(ctx context.Context, dues []lock.Due) {
	room, fired := t.timers.room(), 0
	if room <= 0 {
		return
	}
	ours, others := dues[:0], make([]lock.Due, 0, len(dues))
	wait := time.Duration(0) // until the turns of all others are over
	for _, d := range dues {
		first, _ := t.rendezvous.firstFor(d.Job, d.Tick)
		switch {
		case first == t.rendezvous.replica:
			ours = append(ours, d)
		case d.Age < turn:
			wait = max(wait, turn-d.Age)
		default:
			others = append(others, d)
		}
	}
	now, left := t.clock.Now(), append(ours, others...)
	t.timers.failed = false
	for n := room; len(left) > 0 && fired < room && !t.timers.failed; { // those that are not fired take no room
		n = min(n, len(left))
		taken, jobs := make([]lock.Due, 0, n), make(map[string]bool, n)
		left = slices.DeleteFunc(left, func(d lock.Due) bool {
			// The newer time of one that is taken may replace it.
			later := len(jobs) >= n && !jobs[d.Job]
			if !later && !t.leavesTimer(d, now) {
				taken, jobs[service.SeriesJob(d.Job)] = append(taken, d), true
			}
			return !later
		})
		if more := t.take(ctx, taken, room-fired); more > 0 {
			fired += more
			n = room - fired
		} else {
			n *= 2
		}
	}
	if wait > 0 {
		t.nudges.nudgeIn(wait)
	}
}

// take fires timers that are due, and the newest times of schedules that are, while there is room. It returns how many.
func (t *dueTicks) take(ctx context.Context, taken []lock.Due, room int) (fired int) {
	var series []dueTimer
	all := slices.DeleteFunc(t.timers.read(ctx, taken), func(d dueTimer) bool {
		if d.Of.Kind == lock.Series {
			series = append(series, d)
		}
		return d.Of.Kind == lock.Series
	})
	newer := map[string]bool{}
	made := t.timers.spring(ctx, series)
	for _, d := range made {
		newer[service.SeriesJob(d.Of.Job)] = true
	}
	all = slices.DeleteFunc(all, func(d dueTimer) bool { return newer[service.SeriesJob(d.Of.Job)] }) // replaced
	for _, d := range append(all, made...) {
		if fired < room && t.takeTimer(ctx, d) {
			fired++
		}
	}
	return fired
}

// leavesTimer reports whether a timer is left alone now.
func (t *dueTicks) leavesTimer(d lock.Due, now time.Time) bool {
	member := d.Member()
	return t.deferred.leavesTimer(member) || t.deferEarly(member, d.Job, d.Tick.Add(-ahead).Sub(now))
}

// takeTimer fires a timer that is due, unless it is left to others or has no slot.
func (t *dueTicks) takeTimer(ctx context.Context, d dueTimer) bool {
	j := t.timers.job
	w := j.dueWake(j.inForce(), d.Of, d.Of.Tick)
	if t.rendezvous.leavesToOthers(ctx, d.Of) {
		t.deferred.deferUntil(w.member, d.Of.Job, time.Now().Add(lookEvery)) // so that it hides none behind it
		return false
	}
	done, ok := t.begin(w)
	if ok {
		t.timers.fire(w, d.timer, done)
	}
	return ok
}

// takeOne fires a due member, unless it has to wait or is dropped. waits tells that runs, or older members, of its
// job are in its way. True if it is fired.
func (t *dueTicks) takeOne(ctx context.Context, w *wake, waits bool) bool {
	switch {
	case t.dropStale(ctx, w):
	case w.spec.asks() && w.byHand():
		t.discard(ctx, w.of, "the job's app runs it by itself")
	case t.dropWorthless(ctx, w, waits):
	case t.rendezvous.leavesToOthers(ctx, w.of):
	case waits:
	case t.isDeferred(w), t.deferEarly(w.member, w.of.Job, w.askAt().Sub(t.clock.Now())):
	default:
		t.fire(w)
		return true
	}
	return false
}

// dropStale discards what waited when its job left the table, unless its run was cut short. It returns true if it must
// not fire now. Redis knows when the job came back: before it has answered, nothing of the job fires.
func (t *dueTicks) dropStale(ctx context.Context, w *wake) bool {
	back, ok := w.job.cameBack()
	since := w.tick
	if now, known := t.locks.Now(); known && w.byHand() { // when it was asked for
		since = now.Add(-w.of.Age)
	}
	switch {
	case !ok:
		return true
	case w.attempt > 1, since.After(back):
		return false
	}
	t.discard(ctx, w.of, "its job had left the table")
	return true
}

// deferEarly defers a member that is due by Redis' clock but comes so early by the cluster clock; otherwise it would
// hold a slot until then.
func (t *dueTicks) deferEarly(member, job string, early time.Duration) bool {
	if early <= 0 {
		return false
	}
	wait := min(early, lookEvery)
	t.deferred.deferUntil(member, job, time.Now().Add(wait))
	t.nudges.nudgeIn(wait)
	return true
}

// dropWorthless removes a tick from the due set that is not worth firing any more. The replica that removes it counts
// it.
func (t *dueTicks) dropWorthless(ctx context.Context, w *wake, waits bool) bool {
	r := t.firer.gate(w)
	if r == "" && w.expired(t.clock) {
		r = superseded // a newer tick is due
	}
	refused := len(w.of.Refused) > 0 && w.kind != kindTakeover
	switch {
	case r == "":
		return false
	case refused && (waits || t.isDeferred(w)): // it is given up by a claim, which would be refused now
		return true
	}
	resumptions := t.deferred.resumptionCount()
	t.deferred.once(w.member, func() {
		if refused {
			t.deferRefused(w, t.firer.giveUp(ctx, w, r), resumptions)
			return
		}
		fate := lock.Missed
		if w.kind == kindTakeover { // it was fired
			fate = string(wasInterrupted)
		}
		ours, gaps, err := t.locks.Drop(ctx, w.of, fate)
		if ours && err == nil {
			t.firer.record.skipped(w, skip{reason: r})
		}
		t.firer.record.book(w.spec, gaps)
	})
	return true
}

// discard removes a tick from the due set that no replica will ever fire.
func (t *dueTicks) discard(ctx context.Context, d lock.Due, why string) {
	t.deferred.once(d.Member(), func() {
		if ours, _, err := t.locks.Drop(ctx, d, ""); ours && err == nil {
			t.log.Warn("a due tick is dropped", "job", d.Job, "tick", stamp(d.Tick), "kind", d.Kind, "why", why)
		}
	})
}

// fire starts a due tick, if it gets a slot.
func (t *dueTicks) fire(w *wake) {
	done, ok := t.begin(w)
	if !ok {
		return
	}
	resumptions := t.deferred.resumptionCount()
	t.firer.launch(w, func(why skip) {
		defer done()
		t.deferRefused(w, why, resumptions)
	})
}

// deferRefused leaves a member alone whose claim was refused.
func (t *dueTicks) deferRefused(w *wake, why skip, resumptions int) {
	switch why.reason {
	case paused:
		t.deferred.deferPaused(w.of.Suffix(), w.of.Job, pauseOver(why, t.clock), resumptions)
		t.nudges.nudgeIn(lookEvery / 10) // what was asked for since the pause began may wait behind it
	case queued, overlap: // looks do not show the run in its way, which may end soon
		wait := lookEvery
		if w.of.Age < lookEvery {
			wait /= 10
		}
		t.deferred.deferUntil(w.member, w.of.Job, time.Now().Add(wait))
		t.nudges.nudgeIn(wait)
	}
}

// isDeferred reports whether a member is left alone now, by itself or with its batch.
func (t *dueTicks) isDeferred(w *wake) bool {
	return t.deferred.isDeferred(w.member) || t.deferred.isDeferred(w.of.Suffix())
}

// begin gives the wake of a due member a slot, and marks the member as busy until done is called. Not ok if it is busy
// already, or there is no slot. Then its job waits for one, and the looker looks when it is granted.
func (t *dueTicks) begin(w *wake) (done func(), ok bool) {
	if done, ok = t.deferred.begin(w.member); !ok {
		return nil, false
	}
	at := t.line[w.spec.Name]
	if at != nil && at.slot.spec != w.spec { // its priority may be another one
		t.slots.release(at.slot)
		at = nil
	}
	if at == nil {
		at = &inLine{slot: t.slots.ask(w.spec, w.deadline(), t.nudges.nudge)}
	}
	if t.slots.missing(at.slot) != "" {
		at.seen, t.line[w.spec.Name] = true, at
		done()
		return nil, false
	}
	delete(t.line, w.spec.Name)
	w.slot = at.slot
	return done, true
}

// leaveLine gives back the slots for which the look has found nothing; unanswered, only those that are granted.
func (t *dueTicks) leaveLine(answered bool) {
	for job, at := range t.line {
		if !at.seen && (answered || t.slots.missing(at.slot) == "") {
			t.slots.release(at.slot)
			delete(t.line, job)
		}
		at.seen = false
	}
}
