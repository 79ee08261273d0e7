package lock

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/rds"
)

// step takes one step at random; false when there is none. In quiet the faults are over, and all comes to rest.
func (w *walk) step(quiet bool) bool {
	steps := w.stepsOfReplicas(quiet)
	for _, x := range w.fibers {
		steps = append(steps, w.stepsOf(x, quiet)...)
	}
	for i, z := range w.strays {
		steps = append(steps, func() {
			w.strays = slices.Delete(w.strays, i, i+1)
			w.arrive(z)
		})
	}
	for i, b := range w.bookings {
		steps = append(steps, func() {
			if w.rng.IntN(4) > 0 { // else its reply is lost, and it is sent again
				w.bookings = slices.Delete(w.bookings, i, i+1)
			}
			w.book(b)
		})
	}
	steps = append(steps, w.takeovers(quiet)...)
	if len(steps) == 0 {
		return false
	}
	steps[w.rng.IntN(len(steps))]()
	return true
}

func (w *walk) stepsOfReplicas(quiet bool) []func() {
	var steps []func()
	if !quiet {
		steps = append(steps, w.passes, w.passes)
	}
	members := w.list("ZRANGE", w.keys.DueJobs, 0, -1)
	for r := range w.alive {
		if !w.alive[r] {
			continue
		}
		for n := int64(1); n <= w.ticks; n++ {
			t := nominal(n)
			if at := [2]int64{int64(r), t}; w.clock+1000 >= w.due(t) && !w.woken[at] && (!quiet || r == 0) {
				steps = append(steps, func() {
					w.woken[at] = true
					w.wakes(r, t)
				})
			}
		}
		busy := slices.ContainsFunc(w.fibers, func(x *fiber) bool { return x.replica == r && x.claim.Member != "" && x.stage != over })
		for _, m := range members {
			if !busy {
				steps = append(steps, func() { w.takesDue(r, m) })
			}
		}
		if r > 0 && !quiet { // one replica lives
			steps = append(steps, w.spend("crash", func() { w.crash(r) })...)
		}
	}
	if !quiet {
		steps = append(steps, w.stepsOfOthers(members)...)
	}
	return steps
}

// passes lets time pass: a little, or until something comes due.
func (w *walk) passes() {
	next := w.clock + 1
	if w.rng.IntN(3) > 0 {
		for n := w.ticks; n >= 1; n-- {
			if t := nominal(n); w.due(t) > w.clock {
				next = w.due(t) - []int64{0, 0, 300}[w.rng.IntN(3)]
			}
		}
	}
	w.at(max(next, w.clock+1))
}

// stepsOfOthers are those of thieves and operators.
func (w *walk) stepsOfOthers(members []string) []func() {
	c := Claim{Job: walkJob, Tick: rds.FromMillis(nominal(1 + w.rng.Int64N(w.ticks))), Policy: w.policies[w.rng.IntN(2)]}
	steps := w.spend("steal", func() { w.do("SET", w.lockOf(&c), thief) })
	for _, m := range members {
		steps = append(steps, w.spend("drop", func() { w.dropDue(m) })...)
	}
	steps = append(steps, w.spend("trigger", w.triggers)...)
	for _, which := range bothPauses {
		note := w.text("HGET", w.ledger(), which)
		if note != "" {
			steps = append(steps, func() { w.resume(which) })
		}
		if p := parsePause(note); note == "" || !p.Until.IsZero() && rds.Millis(p.Until) <= w.clock { // of its own accord
			steps = append(steps, w.spend("pause", func() { w.pauseIt(which) })...)
		}
	}
	return steps
}

// bothPauses are the fields of the ledger that may hold a job back: its own pause, and that of all jobs.
var bothPauses = []string{"paused", "pausedAll"}

// pauses are the notes of both, as far as there are any.
// pauseNote is what the ledger keeps of a pause.
type pauseNote struct{ Until, At time.Time }

// parsePause reads `<end ms, 0 = none> <at ms> <reason>`.
func parsePause(note string) pauseNote {
	end, rest, _ := strings.Cut(note, " ")
	at, _, _ := strings.Cut(rest, " ")
	return pauseNote{Until: rds.FromMillis(rds.Number(end)), At: rds.FromMillis(rds.Number(at))}
}

func (s walkSight) pauses() (notes []pauseNote) {
	for _, which := range bothPauses {
		if note := s.fields[which]; note != "" {
			notes = append(notes, parsePause(note))
		}
	}
	return notes
}

// operate sends a request of an operator twice, of which the second must change nothing.
func (w *walk) operate(sc *rds.Script, keys []string, args ...any) int64 {
	w.counter++
	keys = append(keys, w.keys.Memo(fmt.Sprint("o", w.counter)))
	parts := w.eval(sc, keys, args...)
	w.note("%d %v: %v", w.clock-walkStart, args, parts)
	w.demand(parts[0] == "OK", "%v: %v", args, parts)
	after := w.look(nil)
	again := w.eval(sc, keys, args...)
	now := w.look(nil)
	w.demand(again[2] == parts[2] && now.text == after.text, "%v, sent again: %v, and changed\n%s\nto\n%s", args, again, after.text, now.text)
	w.check(now)
	return millisOf(parts[2])
}

func (w *walk) triggers() {
	d := Due{Job: walkJob, Kind: "manual", Attempt: 1, Nonce: fmt.Sprint("t", w.counter)}
	tick := w.operate(w.scripts.ask, []string{w.ledger(), w.keys.DueJobs}, d.Suffix(), w.keys.Events)
	w.demand(!w.ofTable(tick) && tick >= w.clock, "%d is no tick of a trigger", tick)
}

func (w *walk) pauseIt(which string) {
	if p := parsePause(w.text("HGET", w.ledger(), which)); !p.Until.IsZero() {
		w.pauses = append(w.pauses, [2]int64{rds.Millis(p.At), rds.Millis(p.Until) - 1})
	}
	end := int64(0)
	if w.rng.IntN(2) == 0 {
		end = w.clock + 1 + w.rng.Int64N(2*walkPeriod)
	}
	w.operate(w.scripts.pause, []string{w.ledger()}, w.keys.Events, walkJob, verbOf("pause", which), farFuture, 0, end, "why")
}

// verbOf is what the script calls an act upon one of the pauses.
func verbOf(verb, which string) string { return verb + strings.TrimPrefix(which, "paused") }

func (w *walk) resume(which string) {
	p := parsePause(w.text("HGET", w.ledger(), which))
	last := w.clock
	if !p.Until.IsZero() {
		last = min(last, rds.Millis(p.Until)-1)
	}
	w.pauses = append(w.pauses, [2]int64{rds.Millis(p.At), last})
	w.operate(w.scripts.pause, []string{w.ledger()}, w.keys.Events, walkJob, verbOf("resume", which), farFuture, 0)
	w.demand(w.text("HGET", w.ledger(), which) == "" && w.number("HGET", w.ledger(), "pausedTo") >= last, "resumed, and it is not")
}

func (w *walk) spend(kind string, f func()) []func() {
	if w.budget[kind] == 0 {
		return nil
	}
	return []func(){func() {
		w.budget[kind]--
		w.note("-- %s", kind)
		f()
	}}
}

// wakes begins to contend for a tick of the table.
func (w *walk) wakes(r int, tick int64) {
	c := w.newClaim(r, tick)
	c.Kind, c.Attempt, c.Known = "schedule", 1, rds.FromMillis(w.known[r])
	first := tick
	if w.all {
		c.OlderThan = c.Known
		for t := tick - 2*walkPeriod; t < tick; t += walkPeriod {
			if t > w.known[r] {
				c.Older = append(c.Older, Past{rds.FromMillis(t), rds.FromMillis(w.due(t))})
			}
		}
		if len(c.Older) > 0 {
			first = rds.Millis(c.Older[0].Tick)
			c.Older = append(c.Older, Past{c.Tick, c.Due})
		}
	}
	if before := first - walkPeriod; before > w.known[r] {
		c.Before = rds.FromMillis(before)
	}
	if w.budget["look"] > 0 && w.rng.IntN(3) == 0 {
		w.budget["look"]--
		c.MayNotWin = true
	}
	w.begin(r, c)
}

// takesDue begins to contend for a due member.
func (w *walk) takesDue(r int, member string) {
	d, err := ParseDue(member)
	w.demand(err == nil, "%v", err)
	c := w.newClaim(r, rds.Millis(d.Tick))
	c.Member, c.Kind, c.Attempt, c.Rounds, c.Deaths, c.Refused = member, d.Kind, d.Attempt, d.Rounds, d.Deaths, d.Refused
	w.begin(r, c)
}

func (w *walk) newClaim(r int, tick int64) Claim {
	return Claim{Job: walkJob, Tick: rds.FromMillis(tick), Due: rds.FromMillis(w.due(tick)), Run: fmt.Sprintf("u%04d", len(w.fibers)),
		Replica: fmt.Sprint("r", r), TTL: walkTTL,
		Policy: w.policies[w.rng.IntN(2)], Period: walkPeriod * time.Millisecond, Retries: 2, Again: w.atLeastOnce}
}

func (w *walk) begin(r int, c Claim) {
	prepared(&c)
	w.fibers = append(w.fibers, &fiber{claim: c, replica: r, stage: asking, trusted: true})
}

func (w *walk) crash(r int) {
	w.alive[r] = false
	for _, x := range w.fibers {
		if x.replica != r || x.dead || x.stage == over {
			continue
		}
		x.dead = true
		if w.rng.IntN(2) == 0 { // its last request may still be under way
			switch x.stage {
			case asking:
				w.strays = append(w.strays, &stray{of: x, claim: true})
			case finishing, handing:
				w.strays = append(w.strays, &stray{of: x, settle: w.settlement(x)})
			}
		}
	}
}

func (w *walk) stepsOf(x *fiber, quiet bool) []func() {
	var steps []func()
	if x.stage == over || x.dead { // a release that was late, or of a process that is gone
		if x.won && !quiet {
			steps = append(steps, w.spend("release", func() { w.release(x) })...)
		}
		return steps
	}
	steps = append(steps, func() { w.advance(x, quiet) })
	if quiet {
		return steps
	}
	if x.stage == inRun {
		steps = append(steps, w.spend("release", func() { w.release(x) })...)
		steps = append(steps, w.spend("hasty reap", func() { w.reapHastily(x) })...)
	}
	if x.trusted && (x.replica > 0 || x.stage == inRun) && x.stage != finishing && x.stage != handing {
		steps = append(steps, w.spend("stall", func() { x.trusted = false })...)
	}
	switch x.stage {
	case asking:
		steps = append(steps, w.spend("copy", func() {
			x.copied = true
			w.strays = append(w.strays, &stray{of: x, claim: true})
		})...)
		if x.replica > 0 { // the first is well
			steps = append(steps, w.spend("give up", func() { x.stage, x.open = abandoning, true })...)
		}
	case finishing, handing, abandoning:
		steps = append(steps, w.spend("copy", func() { w.strays = append(w.strays, &stray{of: x, settle: w.settlement(x)}) })...)
	case inRun:
		if x.trusted {
			steps = append(steps, func() { w.keep(x) })
		}
	}
	return steps
}

func (w *walk) keep(x *fiber) {
	switch w.extend(x) {
	case "REPLACED":
		x.stage, x.outcome = finishing, "replaced"
		w.finished[x.tick()] = true
	case "LOST":
		x.trusted = false
	}
}

func (w *walk) arrive(z *stray) {
	x := z.of
	if !z.claim {
		w.settle(x, z.settle)
		return
	}
	until := int64(farFuture)
	if !x.dead && !x.open && (!x.trusted || x.stage == over) {
		until = longPast // its sender waited for the end of this copy's window
	}
	won := w.acquire(x, until) == Won
	w.demand(!won || x.dead || x.stage != over, "%s was given back, and claimed again", x)
}

func (w *walk) takeovers(quiet bool) []func() {
	var steps []func()
	for _, e := range w.list("ZRANGE", w.keys.Running, 0, -1) {
		run, _, _ := strings.Cut(e, " ")
		x := w.fibers[slices.IndexFunc(w.fibers, func(x *fiber) bool { return x.claim.Run == run })]
		if !x.dead && x.trusted && x.stage != over {
			continue
		}
		steps = append(steps, func() { w.reap(x, w.text("ZSCORE", w.keys.Running, e)) })
		if !quiet {
			steps = append(steps, func() { w.expire(x) })
		}
	}
	if !quiet {
		for _, x := range w.fibers {
			if x.won && x.stage == over && !w.lives(x.claim.Run) {
				steps = append(steps, w.spend("lapse", func() { w.expire(x) })...)
			}
		}
	}
	return steps
}

func (w *walk) expire(x *fiber) {
	if w.owner(x) == x.claim.Run {
		w.do("DEL", w.lockOf(&x.claim))
	}
}

func (w *walk) advance(x *fiber, quiet bool) {
	switch x.stage {
	case asking:
		w.advanceAsking(x)
	case claimed:
		if !x.trusted {
			if w.extend(x) == "OK" {
				x.trusted = true
			} else {
				x.stage = abandoning
			}
			return
		}
		if w.budget["refuse"] > 0 && !quiet && w.rng.IntN(2) == 0 {
			w.budget["refuse"]--
			x.stage = handing
			if w.rng.IntN(4) == 0 {
				x.outcome = "given up"
				w.finished[x.tick()] = true
			}
			return
		}
		w.start(x)
	case inRun:
		w.advanceRun(x)
	case abandoning:
		if w.settle(x, w.settlement(x))[0] == "OK" || !x.open {
			x.stage = over
			return
		}
		x.open = !quiet && w.rng.IntN(2) == 0 // once more, perhaps after the windows
	case finishing, handing:
		w.settle(x, w.settlement(x))
		x.stage = over
	}
}

// advanceRun tries a run once more, or comes to its end.
func (w *walk) advanceRun(x *fiber) {
	if x.trusted && x.attempt < x.claim.Attempt+x.claim.Retries && w.rng.IntN(3) == 0 {
		w.begins(x, x.attempt+1)
		return
	}
	x.stage, x.outcome = finishing, "cut short"
	if x.trusted || w.rng.IntN(2) == 0 {
		x.outcome = "ok"
	}
	if x.outcome == "ok" {
		w.finished[x.tick()] = true
	}
}

func (w *walk) advanceAsking(x *fiber) {
	if !x.trusted { // it gives up
		x.stage = abandoning
		return
	}
	code := w.acquire(x, farFuture)
	if code == Won {
		x.stage = claimed
		return
	}
	if code == Early || code == Locked || code == Paused && x.claim.Member != "" && !w.quiet() { // asks again
		return
	}
	if code == Gap || code == Free { // asks anew, as another run
		w.wakes(x.replica, x.tick())
	}
	x.stage = over
	if x.copied || code == Lost {
		x.stage, x.trusted = abandoning, false
	}
}

// quiet reports whether time has come to its end.
func (w *walk) quiet() bool { return w.clock >= w.due(nominal(w.ticks))+2000 }

func (w *walk) start(x *fiber) {
	tick := x.tick()
	w.demand(w.atLeastOnce || len(w.started[tick]) == 0, "%s was fired twice", w.name(tick))
	w.demand(!w.overlapped[tick] && !w.begun[tick] || w.atLeastOnce, "%s was counted as skipped, and fired", w.name(tick))
	x.stage = inRun
	w.begins(x, x.claim.Attempt)
	for _, y := range w.fibers {
		beside := y != x && y.stage == inRun && y.trusted && !y.dead
		w.demand(!beside || x.claim.Policy == Allow || y.claim.Policy == Allow && y.token > x.token, "%s runs beside %s", x, y)
	}
}

// begins is one attempt of a run.
func (w *walk) begins(x *fiber, attempt int) {
	tick := x.tick()
	w.note("%s starts %s, attempt %d", x, w.name(tick), attempt)
	w.demand(!slices.Contains(w.started[tick], attempt), "attempt %d of %s was fired twice", attempt, w.name(tick))
	x.attempt = attempt
	w.started[tick] = append(w.started[tick], attempt)
}
