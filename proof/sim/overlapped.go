package sim

import (
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/config/schedule"
)

// slack is the time around the instant at which a tick comes due that the checks leave to the ways of messages, and to
// a claim that is ahead of its tick.
const (
	slack = 100 * time.Millisecond
	asked = 1200 * time.Millisecond // in which somebody who is well has asked
)

// dueOf is the instant at which a tick of a job comes due, in a world whose clocks agree.
func (w *world) dueOf(j *config.Job, tick time.Time) time.Duration {
	at := tick
	if j.Jitter > 0 {
		at = tick.Add(schedule.Jitter(j.Name, tick, j.Jitter))
	}
	return at.Sub(w.began)
}

// checkSkipped: promise 3. A tick that comes due while a run of the job lives is skipped for good under Forbid. Under
// Queue one of them waits. Under Replace the run is told to end at once. Under a limit, as many runs must live as may.
// It is asked where somebody well could ask Redis while the run lived.
func (w *world) checkSkipped() {
	if w.plan.Local || w.stepped {
		return
	}
	starts := w.firstStarts()
	for _, name := range w.plan.names() {
		runs := w.runsOf(name)
		for _, l := range w.lives(name) {
			if l.Guarantee == config.EveryReplica || l.Suspend || l.Claim != nil ||
				l.ConcurrencyPolicy == config.Allow && l.Concurrency == 0 {
				continue
			}
			w.judgeSkipped(&l, runs, starts)
		}
	}
}

func (w *world) judgeSkipped(l *life, runs []*lived, starts map[ofTick]*run) {
	waited := map[*lived]time.Time{} // the tick that waited for a run
	for tick := w.next(l.Job, w.began); ; tick = w.next(l.Job, tick) {
		due := w.dueOf(l.Job, tick)
		if due > l.to-asked {
			return
		}
		but := redisFull // an overlap takes no memory
		if l.ConcurrencyPolicy == config.Queue || l.Missed == config.All {
			but = "" // what waits does; and one that was not told of the overlap fires it as missed
		}
		if due < l.from+asked || w.disturbed(-1, due-time.Second, due+asked, but) ||
			!w.healthy(due-time.Second, due+asked, but) || w.paused(l.Name, due-time.Second, due+asked) {
			continue
		}
		if l.ConcurrencyPolicy == config.Replace {
			w.judgeReplaced(l, runs, tick, due)
			continue
		}
		in := livedAt(runs, due, max(l.Concurrency, 1))
		if in == nil || in.claim.tick.Equal(tick) || standsBeside(l.Job, in.claim) {
			continue
		}
		s := starts[ofTick{l.Name, tick.UnixMilli()}]
		switch {
		case s == nil || s.start > l.to:
			w.met["skipped for good"]++
			if l.Concurrency > 0 {
				w.met["skipped for good beside as many runs as may"]++
			}
		case l.ConcurrencyPolicy == config.Queue && waited[in].IsZero():
			w.met["waited for the end of a run"]++
			waited[in] = tick
		case l.ConcurrencyPolicy == config.Queue:
			w.violatedAt(due, "3: one tick waits", l.Name, "ticks %s and %s both came due "+
				"while the run of tick %s on %s lived (%s to %s), and the second was fired as well, at %s",
				stamp(waited[in]), stamp(tick), stamp(in.claim.tick), in.claim.replica.process, in.from, in.to, s.start)
		case l.Concurrency > 0 && w.redis.claims.listed(l.Name, tick) > 0:
			w.met["waited beside as many runs as may, with missed ticks before it"]++
		case l.Guarantee == config.AtLeastOnce && w.forgotten(due) < s.start:
			w.met["an overlap that was lost with all data"]++
		case w.redis.claims.forgot(due):
			w.met["an overlap that Redis forgot, as it came back older or failed over"]++
		case w.disturbed(-1, due, due+asked) &&
			(s.replica.began > due || w.disturbed(s.replica.place, due, due+asked, redisFull)):
			// Memory was full: it could not be written down for a replica that came later, or was away.
			w.met["an overlap that could not be written"]++
		default:
			w.violatedAt(due, "3: skipped for good", l.Name,
				"tick %s came due at %s while the run of tick %s on %s lived (%s to %s), and was fired at %s",
				stamp(tick), due, stamp(in.claim.tick), in.claim.replica.process, in.from, in.to, s.start)
		}
	}
}

// listed is when a tick was made due with the missed ones before it, to be fired in order; 0 = it was not.
func (c *claims) listed(job string, tick time.Time) time.Duration {
	for _, a := range c.asks {
		if a.job == job && a.tick.Equal(tick) && a.code == "QUEUED" && len(a.list) > 0 {
			return a.at
		}
	}
	return 0
}

// judgeReplaced: under Replace the run in the way is told to end as soon as a newer tick is due.
func (w *world) judgeReplaced(l *life, runs []*lived, tick time.Time, due time.Duration) {
	by := due + w.nudge() + slack
	for _, in := range runs {
		r, p := in.run, in.claim.replica
		if r.start > due-slack || r.over != 0 && r.over <= due+slack || in.claim.tick.Equal(tick) ||
			in.claim.how == "lost" || in.claim.how == "forgotten" || p.isDead() || p.drains() && p.endsAt() <= by ||
			w.disturbed(p.place, due-recovery, by) || w.disturbed(-1, due-recovery, by) || by > w.plan.Lasts ||
			p.began+recovery > due {
			continue
		}
		w.met["to be replaced"]++
		if r.over > by || r.over == 0 {
			w.violatedAt(due, "3: replaced", l.Name,
				"tick %s came due at %s while the run of tick %s on %s lived, which was not told to end by %s",
				stamp(tick), due, stamp(in.claim.tick), p.process, by)
		}
	}
}

// lived is a run with the time in which it lived beyond doubt.
type lived struct {
	claim    *claim
	run      *run
	from, to time.Duration
}

// runsOf are those of a job: each from its start until Redis was told of its end, or last heard of it.
func (w *world) runsOf(job string) (all []*lived) {
	began := map[string]*run{}
	for _, r := range w.runs {
		if r.Job == job && began[r.ID] == nil {
			began[r.ID] = r
		}
	}
	for _, r := range w.runs { // with the attempt that was the last
		if b := began[r.ID]; b != nil && r.start > b.start {
			began[r.ID] = &run{Run: r.Run, replica: r.replica, start: b.start, over: r.over, cause: r.cause,
				end: r.end, status: r.status}
		}
	}
	for _, c := range w.redis.claims.all {
		r := began[c.run]
		if c.job != job || r == nil {
			continue
		}
		to := c.renewed
		if c.how == "finish" || c.how == "requeue" {
			to = min(c.settled, r.end) // Redis is told how long ago it ended
		}
		all = append(all, &lived{c, r, r.start, to})
	}
	return all
}

// livedAt is a run that lived well before an instant and well after it; nil when there were fewer than n.
func livedAt(all []*lived, at time.Duration, n int) *lived {
	for _, r := range all {
		if r.from <= at-slack && r.to >= at+asked {
			if n--; n == 0 {
				return r
			}
		}
	}
	return nil
}

// firstStarts are the starts of ticks by their schedule. A run that is run again has begun before.
func (w *world) firstStarts() map[ofTick]*run {
	starts := map[ofTick]*run{}
	for _, r := range w.runs {
		k := ofTick{r.Job, r.Tick.UnixMilli()}
		if starts[k] == nil && r.Token != 0 && r.Kind != "manual" && r.Kind != "backfill" {
			starts[k] = r
		}
	}
	return starts
}

// checkSuperseded: a tick that a newer due one has superseded is not claimed from the table any more, however late a
// copy of the question comes.
func (w *world) checkSuperseded() {
	if w.plan.Local || w.stepped {
		return
	}
	for _, a := range w.redis.claims.asks {
		if a.code != "WON" || !a.table {
			continue
		}
		j := w.during(a.job, a.sent-2*time.Second, a.at)
		if j == nil || w.redis.claims.forgot(a.sent) {
			continue
		}
		w.met["claimed from the table"]++
		next := w.dueOf(j, w.next(j, a.tick))
		if a.at > next+slack+2*w.plan.Far && w.firstWon(a) {
			w.violatedAt(a.at, "1: superseded", a.job,
				"a copy that was sent at %s claimed tick %s at %s, when the next one had been due since %s",
				a.sent, stamp(a.tick), a.at, next)
		}
	}
}

// firstWon reports whether it is the answer by which a claim was made, and not one to a copy.
func (w *world) firstWon(a *ask) bool {
	c, ok := w.redis.claims.of(a.run)
	return ok && c.won == a.at
}
