package lock

import (
	"fmt"
	"slices"
	"strings"
)

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
	steps = append(steps, w.takeovers(quiet)...)
	if len(steps) == 0 {
		return false
	}
	steps[w.rng.IntN(len(steps))]()
	w.takeOverlaps()
	return true
}

func (w *walk) stepsOfReplicas(quiet bool) []func() {
	var steps []func()
	if w.now < w.ticks && !quiet {
		steps = append(steps, func() { w.now++ })
	}
	members := w.list("ZRANGE", w.keys.due, 0, -1)
	for r := range w.alive {
		if !w.alive[r] {
			continue
		}
		for t := int64(1); t <= w.now; t++ {
			if at := [2]int64{int64(r), t}; !w.woken[at] && (!quiet || r == 0) {
				steps = append(steps, func() {
					w.woken[at] = true
					w.begin(r, t, 0, "")
				})
			}
		}
		busy := slices.ContainsFunc(w.fibers, func(x *fiber) bool { return x.replica == r && x.member != "" && x.stage != over })
		for _, m := range members {
			if !busy {
				steps = append(steps, func() {
					d, err := ParseDue(m)
					w.demand(err == nil, "%v", err)
					w.begin(r, millis(d.Tick), d.Attempt, m)
				})
			}
		}
		if r > 0 && !quiet { // one replica lives
			steps = append(steps, w.spend("crash", func() { w.crash(r) })...)
		}
	}
	if !quiet {
		tick := 1 + w.rng.Int64N(w.ticks)
		steps = append(steps, w.spend("steal", func() { w.do("SET", w.lockOf(tick), thief) })...)
	}
	return steps
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

func (w *walk) begin(r int, tick int64, attempt int, member string) {
	w.fibers = append(w.fibers, &fiber{uuid: fmt.Sprintf("u%04d", len(w.fibers)), replica: r, tick: tick, attempt: attempt,
		member: member, stage: asking, trusted: true})
}

func (w *walk) crash(r int) {
	w.alive[r] = false
	for _, x := range w.fibers {
		if x.replica != r || x.dead || x.stage == over {
			continue
		}
		x.dead = true
		if len(w.started[x.tick]) == 0 {
			w.crashed[x.tick] = true
		}
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
		w.finished[x.tick] = true
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
	w.demand(!won || x.dead || x.stage != over, "%s was given back, and claimed again", x.uuid)
	if won && x.dead {
		w.crashed[x.tick] = true
	}
}

func (w *walk) takeovers(quiet bool) []func() {
	var steps []func()
	entries := w.list("ZRANGE", w.keys.running, 0, -1)
	for _, e := range entries {
		run, _, _ := strings.Cut(e, " ")
		x := w.fibers[slices.IndexFunc(w.fibers, func(x *fiber) bool { return x.uuid == run })]
		if !x.dead && x.trusted && x.stage != over {
			continue
		}
		steps = append(steps, func() { w.reap(x, w.text("ZSCORE", w.keys.running, e)) })
		if !quiet {
			steps = append(steps, func() { w.expire(x) })
		}
	}
	if !quiet {
		for _, x := range w.fibers {
			if x.won && x.stage == over && w.holderOf(x.tick) != x.uuid {
				steps = append(steps, w.spend("lapse", func() { w.expire(x) })...)
			}
		}
	}
	return steps
}

func (w *walk) expire(x *fiber) {
	if w.text("GET", w.lockOf(x.tick)) == x.uuid {
		w.do("DEL", w.lockOf(x.tick))
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
			return
		}
		w.start(x)
	case inRun:
		x.stage, x.outcome = finishing, "cut short"
		if x.trusted || w.rng.IntN(2) == 0 {
			x.outcome = "ok"
		}
		if x.outcome == "ok" || w.atLeastOnce && x.attempt >= 2 {
			w.finished[x.tick] = true
		}
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

func (w *walk) advanceAsking(x *fiber) {
	if !x.trusted { // it gives up
		x.stage = abandoning
		return
	}
	switch code := w.acquire(x, farFuture); {
	case code == Won:
		x.stage = claimed
	case code == Gap || code == Locked: // asks again
	case x.copied || code == Lost:
		x.stage, x.trusted = abandoning, false
	default:
		x.stage = over
	}
}

func (w *walk) start(x *fiber) {
	w.note("%s starts T%d, attempt %d", x.uuid, x.tick, x.attempt)
	w.demand(w.atLeastOnce || len(w.started[x.tick]) == 0, "T%d was fired twice", x.tick)
	w.demand(!slices.Contains(w.started[x.tick], x.attempt), "attempt %d of T%d was fired twice", x.attempt, x.tick)
	w.demand(!w.overlapped[x.tick] && !w.missed[x.tick], "T%d was counted as skipped, and fired", x.tick)
	w.started[x.tick] = append(w.started[x.tick], x.attempt)
	x.stage = inRun
	if w.policy == Allow {
		return
	}
	for _, y := range w.fibers {
		w.demand(y == x || y.stage != inRun || !y.trusted || y.dead, "%s runs beside %s", x.uuid, y.uuid)
	}
}
