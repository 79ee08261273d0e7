package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// cancel ends the live runs of a job.
func (o *operator) cancel(job string) {
	id := uuid.NewString()
	o.do(func(ctx context.Context, s *service.Store) error {
		states, err := s.States(ctx, []string{job})
		if err != nil {
			return err
		}
		var runs []string
		for _, r := range states[job].Running {
			runs = append(runs, r.Run)
		}
		if len(runs) == 0 {
			o.world.note(nil, "operator", job, "", "", "nothing runs")
			return nil
		}
		_, err = s.Cancel(ctx, job, runs, id)
		return err
	})
}

// cancel records which runs an operator's script has cancelled. The claims are locked.
func (c *claims) cancel(q *call, code string) {
	if code != "OK" || len(q.reply) <= answerCancelled {
		return
	}
	if slices.Contains(q.keys, prefix+"due") {
		c.drops(q)
		return
	}
	for _, run := range strings.Fields(q.reply[answerCancelled]) {
		if cl := c.by[run]; cl != nil && cl.settled == 0 && cl.cancelled == 0 {
			cl.cancelled = c.world.now()
			c.world.note(nil, "cancel", cl.job, stamp(cl.tick), run, "")
		}
	}
}

// cancelWithin is how long after a cancel a run has ended, if its replica and Redis are well.
const cancelWithin = 2 * time.Second

// checkCancelled: the tick of a cancelled run is not run again, and a run whose replica and Redis are well ends at
// once. A tick of the schedule that waited for the end of a run by hand is one of its own.
func (w *world) checkCancelled() {
	for _, c := range w.redis.claims.all {
		if c.cancelled == 0 || w.lostAllBetween(c.won, w.plan.Lasts) {
			continue
		}
		w.met["runs that were cancelled"]++
		if said := w.recorded(c.run); slices.Contains(cutShort, said) && !w.forgets() {
			w.violatedAt(c.cancelled, "cancelled", c.job,
				"the run of tick %s was cancelled at %s, and is recorded as %s", stamp(c.tick), c.cancelled, said)
		}
		w.judgeCancelled(c)
		for _, n := range w.redis.claims.all {
			if n.job == c.job && n.tick.Equal(c.tick) && n.won > c.cancelled &&
				c.isByHand() == n.isByHand() && (!c.isByHand() || n.parent == c.run) && !w.redis.claims.forgot(c.won) {
				w.violatedAt(n.won, "cancelled", c.job, "the run of tick %s was cancelled at %s, ended by %s, "+
					"and was claimed again at %s (%s)", stamp(c.tick), c.cancelled, c.how, n.won, n.kind)
			}
		}
	}
}

// judgeCancelled: a replica that is well hears of the cancel at once, and ends its run as cancelled.
func (w *world) judgeCancelled(c *claim) {
	by, place := c.cancelled+cancelWithin, c.replica.place
	if j := w.plan.job(c.job); j.Async != nil { // its app may have to stop first
		by += j.Async.Heartbeat
	}
	if by > w.plan.Lasts || c.replica.began+recovery > c.cancelled || w.disturbed(place, c.cancelled-recovery, by) ||
		w.disturbed(-1, c.cancelled-recovery, by) || w.plan.job(c.job).Ignores || w.redis.claims.unread(c) ||
		len(c.undone) > 0 {
		return
	}
	w.met["cancelled in good times"]++
	switch {
	case c.settled == 0 || c.settled > by:
		w.violatedAt(c.cancelled, "cancelled", c.job,
			"the run of tick %s on %s, which was well, was cancelled at %s, and had not ended by %s",
			stamp(c.tick), c.replica.process, c.cancelled, by)
	case c.outcome == "interrupted" && w.hadGivenUp(c):
		w.met["cancelled as they gave their leases up"]++
	case c.outcome == "interrupted" && w.fellSilent(c):
		w.met["cancelled as their apps fell silent"]++
	case c.outcome == "cancelled":
		w.met["ended as cancelled"]++
	case c.outcome == "lost_lock" || c.outcome == "interrupted" || c.outcome == "shutdown":
		w.violatedAt(c.cancelled, "cancelled", c.job,
			"the run of tick %s on %s, which was well, was cancelled at %s, and ended as %s",
			stamp(c.tick), c.replica.process, c.cancelled, c.outcome)
	}
}

// cutShort are the ends of runs that nothing but their replicas, or the want of them, brought about.
var cutShort = []string{"shutdown", "interrupted", "lost_lock", "not_started", "replaced", "handed_over"}

// recorded is the outcome of a run in the history, in its last entry; "" = there is none.
func (w *world) recorded(run string) (outcome string) {
	for _, e := range w.histories() {
		if e.Run == run {
			outcome = e.Outcome
		}
	}
	return outcome
}

// fellSilent reports whether a run ended because of its app, before its replica had heard that it is cancelled.
func (w *world) fellSilent(c *claim) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool {
		return r.ID == c.run && r.status == execute.Interrupted && r.cause == nil
	})
}

// unread reports whether the replica of a run had not yet read that it is its own, or had only just, when the run was
// cancelled: it has no keeper yet that the nudge could reach.
func (c *claims) unread(cl *claim) bool {
	for _, a := range c.asks {
		if a.run == cl.run && a.code == "WON" && a.read != 0 && a.read < cl.cancelled {
			return false
		}
	}
	return true
}
