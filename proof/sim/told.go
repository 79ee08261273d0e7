package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/notify"
)

// saying is something that a replica told outside of Redis.
type saying struct {
	replica   *replica
	at        time.Duration
	job, run  string
	what      string // an event of a message, the outcome of a ping, or tookOver
	isMessage bool
}

// tookOver is the line of the log, and the count in runs_total, of a run that was taken over.
const tookOver = "took over"

func (w *world) says(s saying) {
	if s.replica.isDead() {
		return
	}
	s.at = w.now()
	w.note(s.replica, "SAYS", s.job, "", s.run, " "+s.what)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, s)
}

// saidOf is what was told of a run.
func (w *world) saidOf(run, what string, isMessage bool) (all []saying) {
	for _, s := range w.said {
		if s.run == run && s.what == what && s.isMessage == isMessage {
			all = append(all, s)
		}
	}
	return all
}

// crier takes the pings and messages of a replica.
type crier struct{ replica *replica }

// Send implements sidecar.Notifier.
func (c crier) Send(p notify.Ping) {
	c.replica.world.says(saying{replica: c.replica, job: p.Job, run: p.Run, what: p.Outcome})
}

// Tell implements sidecar.Notifier.
func (c crier) Tell(m notify.Message) {
	c.replica.world.says(saying{replica: c.replica, job: m.Job, run: m.Run, what: string(m.Event), isMessage: true})
}

// turn is a change of a row of failures, as Redis told it to the replica that settled a run.
type turn struct {
	run           *claim
	verb          string
	before, after int
	at, heard     time.Duration // heard: when the replica read of it; 0 = never
	replica       *replica
	outcome       string        // of the run, that was settled then
	anew          time.Duration // when the replica asked once more, after all: another answer of its batch was lost
}

// event is what people are told of it; "" = nothing.
func (t *turn) event() config.Event {
	switch {
	case t.before == 0 && t.after == 1:
		return config.Failed
	case t.before > 0 && t.after == 0:
		return config.Recovered
	}
	return ""
}

// turned records that a settlement has changed a row of failures. One tick fails once in a row. The claims are locked.
func (c *claims) turned(q *call, cl *claim) {
	if cl == nil || len(q.reply) <= answerAfter {
		return
	}
	before, _ := strconv.Atoi(q.reply[answerBefore])
	after, _ := strconv.Atoi(q.reply[answerAfter])
	i := slices.IndexFunc(c.turns, func(t *turn) bool { return t.run == cl && t.verb == q.args[argVerb] })
	if i >= 0 && c.world.plan.DeafReaps > 0 && c.turns[i].replica == q.replica {
		c.turns[i].anew = c.world.now()
	}
	if i >= 0 || before == after {
		return
	}
	for i := len(c.turns) - 1; i >= 0 && after > before && len(c.oblivions) == 0; i-- {
		t := c.turns[i]
		if t.run.job == cl.job && (t.after == 0 || c.world.lostAllBetween(t.at, c.world.now())) {
			break
		}
		if t.run.job == cl.job && t.run.tick.Equal(cl.tick) {
			c.world.violated("5: a tick fails once", cl.job, "tick %s made the row of failures %d long, and %d at %s",
				stamp(cl.tick), after, t.after, t.at)
		}
	}
	c.turns = append(c.turns, &turn{run: cl, verb: q.args[argVerb], before: before, after: after, at: c.world.now(),
		replica: q.replica, outcome: outcomeIn(q.args[argEntry])})
}

// inTime is how long a replica surely waits for an answer.
const inTime = 300 * time.Millisecond

// heardOf is called when a replica has read the answer to a settlement. The claims are locked.
func (c *claims) heardOf(q *call, cl *claim) {
	verb, now := q.args[argVerb], c.world.now()
	switch {
	case verb != "reap" && cl.told == 0:
		cl.told = now
	case verb == "reap" && q.replica == cl.reaper && first(q.reply) == "OK" && cl.heard == 0:
		cl.heard = now
	}
	if len(q.reply) <= answerAfter || now-q.sent > inTime || q.reply[answerBefore] == q.reply[answerAfter] {
		return
	}
	for _, t := range c.turns {
		if t.run == cl && t.verb == verb && t.replica == q.replica && t.heard == 0 {
			t.heard = now
		}
	}
}

// endsWell reports whether a replica had time to hear what it had asked, after all trouble: it lives, and when it was
// told to end, it had been well for some seconds.
func (w *world) endsWell(r *replica, since time.Duration) bool {
	if r.isDead() {
		return false
	}
	end := r.endsAt()
	if end == 0 || end > w.plan.Lasts {
		end = w.plan.Lasts
	}
	return since < end-recovery && !w.disturbed(r.place, end-recovery, end) && !w.disturbed(-1, end-recovery, end)
}

// checkTold: promise 5, of each run that was taken over exactly one replica has logged and counted the end, and has
// sent a ping.
func (w *world) checkTold() {
	for _, c := range w.redis.claims.all {
		if c.how != "reap" || len(w.redis.claims.oblivions) > 0 {
			continue
		}
		// The replica of the run may ping for its own end, which was not answered, and then take the run over itself.
		told, pings, own := w.saidOf(c.run, tookOver, false), 0, 0
		for _, o := range []string{"interrupted", "cancelled"} {
			for _, s := range w.saidOf(c.run, o, false) {
				if s.replica == c.replica {
					own++
				} else {
					pings++
				}
			}
		}
		lost := w.lostAllBetween(c.settled, w.plan.Lasts)
		w.met["runs that were taken over"]++
		switch {
		case len(told) > 1 || pings > 1 || own > 2:
			w.violatedAt(c.settled, "5: told once", c.job,
				"the end of the run for tick %s, which %s took over, was told %d times, and pinged %d times",
				stamp(c.tick), c.reaper.process, len(told), pings+own)
		case len(told) == 0 && !lost && w.endsWell(c.reaper, c.settled):
			w.violatedAt(c.settled, "5: told once", c.job, "%s took over the run for tick %s, is well, and told nobody",
				c.reaper.process, stamp(c.tick))
		case len(told) == 1 && pings == 0 && (own == 0 || c.reaper != c.replica) && w.someoneHas(c):
			w.violatedAt(c.settled, "5: told once", c.job, "%s took over the run for tick %s, and nobody was pinged",
				c.reaper.process, stamp(c.tick))
		}
	}
}

// hasSince is since when a replica's table has a job, at a time; false if it has none then.
func (w *world) hasSince(r *replica, job string, at time.Duration) (since time.Duration, has bool) {
	since, has = r.began, row(w.tables[r.version], job) != nil
	for _, s := range w.swapped {
		if s.replica == r && s.at <= at {
			had := has
			if has = row(w.tables[s.version], job) != nil; has && !had {
				since = s.at
			}
		}
	}
	return since, has
}

// someoneHas reports whether a replica that was well had the job of a run in its table, and was there early enough to
// take the run over: it has one lease more for that than others.
func (w *world) someoneHas(c *claim) bool {
	if w.disturbed(-1, c.renewed-recovery, c.settled) {
		return false
	}
	return slices.ContainsFunc(w.replicas, func(r *replica) bool {
		if at := r.endsAt(); r.isDead() || at != 0 && at < c.settled ||
			w.disturbed(r.place, max(c.renewed, r.began)+recovery+1, c.settled) {
			return false
		}
		since, has := w.hasSince(r, c.job, c.settled)
		left, ttl := c.settled-c.renewed, w.plan.ttl(c.job)
		return has && c.settled-since > waited && (left < 2*ttl || c.settled-since > ttl+waited)
	})
}

// checkTurns: promise 5, when a row of failures begins or ends, people are told so once.
func (w *world) checkTurns() {
	for _, t := range w.redis.claims.turns {
		c, event := t.run, t.event()
		if event == "" || len(w.redis.claims.oblivions) > 0 {
			continue
		}
		w.met["rows of failures that began or ended"]++
		n := len(w.saidOf(c.run, string(event), true))
		_, has := w.hasSince(t.replica, c.job, t.at)
		// Redis has forgotten the row when it is asked again, as by a replica that had given up before it heard
		again := t.heard == 0 || w.disturbed(t.replica.place, t.at, t.heard)
		newer := slices.ContainsFunc(w.redis.claims.all, func(o *claim) bool {
			return o.job == c.job && o != c && o.settled >= t.at && (again || o.settled <= max(t.heard, t.anew))
		})
		switch {
		case n > 1:
			w.violatedAt(t.at, "5: told once", c.job, "%q was told %d times for tick %s", event, n, stamp(c.tick))
		case n == 1 || t.replica.isDead() || !has || w.swaps(t.replica, t.at-settling, w.plan.Lasts):
		// the client forgets what it has read of a batch whose connection breaks
		case t.heard != 0 && !newer && !w.disturbed(t.replica.place, t.at, t.heard+w.plan.Far) &&
			!w.disturbed(-1, t.at, t.heard),
			t.verb == "reap" && !newer && !w.lostAllBetween(t.at, w.plan.Lasts) && w.endsWell(t.replica, t.at):
			w.violatedAt(t.at, "5: told once", c.job, "%q was not told for tick %s by %s, which settled its run",
				event, stamp(c.tick), t.replica.process)
		}
	}
}
