package lock

import (
	"slices"
	"strings"
)

// step takes one step at random; false when there is none. In quiet nobody sets or deletes, and there are no faults.
func (w *timerWalk) step(quiet bool) bool {
	var steps []func()
	if !quiet {
		steps = append(steps, w.begin, w.clean, w.day)
	}
	for _, q := range w.requests {
		if !q.over {
			steps = append(steps, func() { w.send(q, quiet) })
		}
	}
	for i, q := range w.strays {
		steps = append(steps, func() {
			w.strays = slices.Delete(w.strays, i, i+1)
			w.ask(q, longPast)
		})
	}
	for _, m := range w.due() {
		busy := slices.ContainsFunc(w.shooters, func(x *shooter) bool { return x.member == m && x.stage == asking })
		if !busy {
			steps = append(steps, func() {
				w.shooters = append(w.shooters, &shooter{uuid: w.name("u"), member: m, stage: asking})
			})
		}
	}
	for _, x := range w.shooters {
		steps = append(steps, w.stepsOf(x, quiet)...)
	}
	if len(steps) == 0 {
		return false
	}
	steps[w.rng.IntN(len(steps))]()
	w.check()
	return true
}

func (w *timerWalk) begin() {
	q := &request{verb: []string{"set", "set", "delete"}[w.rng.IntN(3)], id: []string{"a", "b"}[w.rng.IntN(2)], uuid: w.name("q")}
	q.at = itoa(1 + w.rng.Int64N(2))
	q.source = "{\n" + q.at + "}"
	w.requests = append(w.requests, q)
}

// send sends a request's next copy when the one before it can have no effect any more.
func (w *timerWalk) send(q *request, quiet bool) {
	switch fate := w.rng.IntN(6); {
	case quiet || fate < 3:
		w.ask(q, farFuture)
		q.over = true
	case fate == 3: // its reply is lost
		w.ask(q, farFuture)
		q.over = w.rng.IntN(4) == 0 // and its sender gives up
	default: // it comes late
		w.strays = append(w.strays, q)
		q.over = w.rng.IntN(4) == 0
	}
}

// clean is somebody who finds a timer that looks old, when those have given up who may still hand it on.
func (w *timerWalk) clean() {
	id := []string{"a", "b"}[w.rng.IntN(2)]
	s := w.current[id]
	if slices.ContainsFunc(w.shooters, func(x *shooter) bool { return x.of == s && x.stage == abandoning }) {
		return
	}
	idle := w.idle(s)
	_, n := w.timer("clean", id)
	w.note("clean %s: %d", id, n)
	w.demand((n == 1) == idle, "%s was cleaned up: %d", id, n)
	if idle {
		s.ended = true
	}
}

// idle tells whether a shot is kept although nobody deals with it.
func (w *timerWalk) idle(s *shot) bool {
	idle := s != nil && s.state == "in hand" && w.entry(s.id) != ""
	for _, x := range w.shooters {
		idle = idle && (x.of != s || x.settled)
	}
	for _, m := range w.due() {
		idle = idle && w.members[m] != s
	}
	return idle
}

// day lets a day pass, when no request is under way that could be asked again, nothing is due of what has been dealt with, and
// nobody who was taken over goes on.
func (w *timerWalk) day() {
	open := func(q *request) bool { return !q.over }
	late := func(m string) bool { return w.members[m].ended }
	goesOn := func(x *shooter) bool { return x.settled && !x.dead && x.stage != over }
	if slices.ContainsFunc(w.requests, open) || slices.ContainsFunc(w.due(), late) || slices.ContainsFunc(w.shooters, goesOn) {
		return
	}
	for _, id := range []string{"a", "b"} {
		key := w.keys.lock(TimerJob(id), timerSlot(id))
		mark, _ := w.do("GET", key).(string)
		if strings.HasPrefix(mark, "fired ") || strings.HasPrefix(mark, "deleted ") {
			w.do("DEL", key)
			w.newest[id] = nil
		}
		if s := w.current[id]; s != nil && s.ended && w.entry(id) == "" && strings.HasPrefix(mark, "fired ") {
			s.state, w.current[id] = "gone", nil
		}
	}
	w.note("a day passes")
}

func (w *timerWalk) stepsOf(x *shooter, quiet bool) []func() {
	var steps []func()
	entry := x.uuid + " " + w.jobOf(x)
	score := w.do("ZSCORE", w.keys.running, entry)
	if score != nil && (x.dead || !quiet && x.of != nil && x.stage == inRun && w.rng.IntN(8) == 0) { // dead, or it seems so
		steps = append(steps, func() {
			w.demand(w.settle(x, "reap", score) == "OK", "%s was not reaped", x.uuid)
			x.of.crashed = true
		})
	}
	if x.dead {
		return steps
	}
	switch x.stage {
	case asking:
		if x.source == "" {
			return append(steps, func() {
				x.source = w.entry(strings.TrimPrefix(w.jobOf(x), timerPrefix))
				if x.source == "" {
					x.source = "none"
				}
			})
		}
		steps = append(steps, func() { w.asks(x, quiet) })
	case claimed:
		steps = append(steps, func() { w.begins(x, quiet) })
	case inRun:
		steps = append(steps, func() { w.ends(x, quiet) })
	case handing:
		steps = append(steps, func() { w.forgets(x) })
	case abandoning:
		steps = append(steps, func() {
			w.settle(x, "abandon", 0)
			x.stage = over
		})
	}
	return steps
}

func (w *timerWalk) jobOf(x *shooter) string {
	d, _ := ParseDue(x.member)
	return d.Job
}

func (w *timerWalk) asks(x *shooter, quiet bool) {
	code := w.claim(x)
	switch {
	case code == Won && !quiet && w.rng.IntN(6) == 0:
		x.stage = abandoning // it did not hear of it
	case code == Won:
		x.stage = claimed
	case code == Locked: // the re-run of what a late end has ended
		w.demand(w.members[x.member].ended, "%q is locked", x.member)
		w.do("ZREM", w.keys.due, x.member)
		x.stage = over
	default:
		w.demand(code == Gone || code == Held, "%q: %s", x.member, code)
		x.stage = over
	}
}

func (w *timerWalk) begins(x *shooter, quiet bool) {
	d, _ := ParseDue(x.member)
	switch fate := w.rng.IntN(8); {
	case quiet || fate < 6:
		w.note("%s starts %s of %s, attempt %d", x.uuid, x.of.id, x.of.request, d.Attempt)
		w.demand(!slices.Contains(x.of.starts, d.Attempt), "attempt %d of %s was started twice", d.Attempt, x.of.request)
		w.demand(w.atLeastOnce || len(x.of.starts) == 0, "%s was started twice", x.of.request)
		x.of.starts = append(x.of.starts, d.Attempt)
		x.stage = inRun
	case fate == 6:
		w.settle(x, "handover", 0)
		x.stage = over
	default:
		x.dead, x.of.crashed = true, true
	}
}

func (w *timerWalk) ends(x *shooter, quiet bool) {
	switch fate := w.rng.IntN(8); {
	case !quiet && fate == 0:
		x.dead = true
	case !quiet && fate == 1 && w.atLeastOnce:
		w.settle(x, "requeue", 0)
		x.stage = over
	default:
		w.settle(x, "finish", 0)
		x.of.ended = true
		x.stage = handing // the timer to oblivion
		x.dead = !quiet && fate == 2
	}
}

func (w *timerWalk) forgets(x *shooter) {
	code, n := w.timer("forget", x.of.id)
	w.note("%s forgets %s: %s %d", x.uuid, x.of.id, code, n)
	w.demand(n == 0 || w.current[x.of.id] == x.of, "%s forgot another's timer", x.uuid)
	x.stage = over
}
