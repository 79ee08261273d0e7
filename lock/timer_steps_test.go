package lock

import (
	"slices"
	"strings"

	"github.com/solotick/solotick/internal/rds"
)

// step takes one step at random; false when there is none. In quiet nobody sets or deletes, and there are no faults.
func (w *timerWalk) step(quiet bool) bool {
	var steps []func()
	if !quiet {
		steps = append(steps, w.begin, w.day)
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
	for i, p := range w.springs {
		steps = append(steps, func() {
			all := []*spring{p}
			w.springs = slices.Delete(w.springs, i, i+1)
			if len(w.springs) > 0 && w.rng.IntN(2) == 0 && w.springs[0].member != p.member {
				all = append(all, w.springs[0])
				w.springs = w.springs[1:]
			}
			w.spring(all, quiet)
			if !quiet && w.rng.IntN(8) == 0 { // a copy comes late
				w.springs = append(w.springs, p)
			}
		})
	}
	for _, m := range w.due() {
		if d, _ := ParseDue(m); d.Kind == Series {
			if len(w.springs) < 4 {
				steps = append(steps, func() { w.reads(m) })
			}
			continue
		}
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
	q.at = rds.Itoa(1 + w.rng.Int64N(2))
	q.source, q.kind = "{\n"+q.at+"}", "timer"
	if w.rng.IntN(2) == 0 {
		q.source, q.kind = "{*"+q.at+"}", Series
		q.at = rds.Itoa(max(w.sprung[q.id]+w.rng.Int64N(4), 1)) // it may have been
	}
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

// day lets a day pass, when no request is under way that could be asked again, and nobody who was taken over goes on:
// what is left of timers is gone, and so is what is remembered of runs.
func (w *timerWalk) day() {
	open := func(q *request) bool { return !q.over }
	goesOn := func(x *shooter) bool { return x.settled && !x.dead && x.stage != over }
	if slices.ContainsFunc(w.requests, open) || slices.ContainsFunc(w.shooters, goesOn) {
		return
	}
	for _, id := range []string{"a", "b"} {
		key := w.keys.Timer(rds.TimerJob(id))
		mark, _ := w.do("GET", key).(string)
		if strings.HasPrefix(mark, "fired ") || strings.HasPrefix(mark, "deleted ") {
			w.do("DEL", key)
			w.newest[id], w.sprung[id] = nil, 0
		}
		if s := w.current[id]; s != nil && s.forgotten && strings.HasPrefix(mark, "fired ") {
			s.state, w.current[id] = "gone", nil
		}
	}
	for _, x := range w.shooters {
		w.do("DEL", w.keys.Memo(x.uuid))
	}
	w.note("a day passes")
}

func (w *timerWalk) stepsOf(x *shooter, quiet bool) []func() {
	var steps []func()
	entry := x.uuid + " " + w.jobOf(x)
	score := w.do("ZSCORE", w.keys.Running, entry)
	if score != nil && (x.dead || !quiet && x.of != nil && (x.stage == inRun || x.stage == abandoning) && w.rng.IntN(8) == 0) { // dead, or it seems so
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
				x.source = w.entry(strings.TrimPrefix(w.jobOf(x), "timer:"))
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
	default:
		w.demand(code == Gone || code == Held, "%q: %s", x.member, code)
		x.stage = over
	}
}

func (w *timerWalk) begins(x *shooter, quiet bool) {
	d, _ := ParseDue(x.member)
	switch fate := w.rng.IntN(9); {
	case quiet || fate < 6:
		w.note("%s starts %s of %s, attempt %d", x.uuid, x.of.id, x.of.request, d.Attempt)
		w.demand(!slices.Contains(x.of.starts, d.Attempt), "attempt %d of %s was started twice", d.Attempt, x.of.request)
		w.demand(w.atLeastOnce || len(x.of.starts) == 0, "%s was started twice", x.of.request)
		x.of.starts = append(x.of.starts, d.Attempt)
		x.stage = inRun
	case fate == 6:
		w.settle(x, "handover", 0)
		x.stage = over
	case fate == 7:
		w.settle(x, "give up", 0)
		x.of.crashed, x.stage = true, over
	default:
		x.dead, x.of.crashed = true, true
	}
}

func (w *timerWalk) ends(x *shooter, quiet bool) {
	switch fate := w.rng.IntN(8); {
	case !quiet && fate == 0:
		x.dead = true
	case !quiet && fate == 1:
		w.settle(x, "requeue", 0)
		x.stage = over
	default:
		w.settle(x, "finish", 0)
		x.stage = over
	}
}
