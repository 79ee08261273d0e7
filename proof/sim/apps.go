package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
)

// prober asks the app of a replica whether it is ready.
type prober struct{ replica *replica }

var errUnready = errors.New("answered 503")

// Probe implements sidecar.Prober.
func (p prober) Probe(context.Context) error {
	r := p.replica
	r.stall.wait()
	w := r.world
	r.mu.Lock()
	busy := r.busy > 0
	r.mu.Unlock()
	if busy && w.plan.BusyApp || isDown(w.plan.Unready, r.place, w.now(), w.now()) {
		return errUnready
	}
	return nil
}

// works keeps count of the runs that the app is at.
func (r *replica) works(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy += n
}

// isDown reports whether one of the times lies over any part of another.
func isDown(all []Downtime, place int, from, to time.Duration) bool {
	return slices.ContainsFunc(all, func(d Downtime) bool { return d.Place == place && d.From <= to && from < d.To })
}

// answers is how long after a tick came due a replica has it whose app starts jobs, while those of others do not: with
// the ways of a claim, a handover, its message and a look for each replica.
func (w *world) answers() time.Duration {
	return 2*time.Second + 7*time.Duration(len(w.plan.Replicas))*w.plan.Far
}

// checkApps: while the apps of some replicas start nothing, the ticks are those of a replica whose app does, and soon.
func (w *world) checkApps() {
	if len(w.plan.AppsDown) == 0 {
		return
	}
	starts := w.firstStarts()
	for _, name := range w.plan.names() {
		runs := w.runsOf(name)
		for _, l := range w.lives(name) {
			if l.Guarantee == config.EveryReplica {
				continue
			}
			for tick := w.next(l.Job, w.began); ; tick = w.next(l.Job, tick) {
				due, ok := w.dueAt(w.began.Add(w.dueOf(l.Job, tick)))
				by := due + w.answers()
				if by > min(l.to, w.plan.Lasts-time.Second) {
					break
				}
				if ok && w.asksApps(&l, tick, due, by, runs) {
					w.met["ticks while apps refuse"]++
					if s := starts[ofTick{name, tick.UnixMilli()}]; s == nil || s.start > by {
						w.violatedAt(due, "2: apps that refuse", name,
							"tick %s came due at %s, an app that starts jobs was there, and it was not started by %s",
							stamp(tick), due, by)
					}
				}
			}
		}
	}
}

// checkAskedOnce: who could not start a tick leaves it to a replica that was not asked in this round.
func (w *world) checkAskedOnce() {
	if len(w.plan.AppsDown) == 0 {
		return
	}
	type round struct {
		ofTick
		n, attempt int // with a takeover, all replicas are asked anew
	}
	refused := map[round]map[int]bool{} // places
	for _, c := range w.redis.claims.all {
		if c.kind == "manual" || c.kind == "backfill" {
			continue // of one tick there may be several
		}
		k := round{ofTick{c.job, c.tick.UnixMilli()}, c.rounds, c.attempt}
		if refused[k][c.replica.place] {
			w.met["asked again for what was refused"]++
			if place := w.askable(c, refused[k]); place >= 0 {
				w.violatedAt(c.won, "2: asked once", c.job,
					"tick %s, which %s could not start, was claimed by it again, and r%d had not been asked",
					stamp(c.tick), c.replica.process, place+1)
			}
		}
		if c.how == "handover" && c.member != "" {
			if refused[k] == nil {
				refused[k] = map[int]bool{}
			}
			refused[k][c.replica.place] = true
		}
	}
}

// askable is a place that has not refused a tick which is claimed again, and whose replica has been there and well for
// as long as all know it; -1 if there is none, or something else was the matter.
func (w *world) askable(c *claim, refused map[int]bool) int {
	const known = 13 * time.Second // by two heartbeats
	if j := w.during(c.job, c.won-known, c.won); j == nil || c.won > w.dueOf(j, c.tick)+leftAlone-time.Second ||
		w.givesUp(c, j) ||
		w.disturbed(-1, c.won-known, c.won) || w.disturbed(c.replica.place, c.won-known, c.won) {
		return -1
	}
	for place, r := range w.plan.Replicas {
		if !refused[place] && r.Begins+known <= c.won && !w.disturbed(place, c.won-known, c.won) &&
			w.takes(place, c.job, c.won-known, c.won) {
			return place
		}
	}
	return -1
}

// givesUp reports whether a claim came when its tick was not worth firing any more, and only ended it: no app is asked
// for that.
func (w *world) givesUp(c *claim, j *config.Job) bool {
	late := j.StartingDeadline > 0 && c.tick.Sub(w.began)+j.StartingDeadline <= c.won
	return c.how == "handover" && c.member == "" && (late || w.dueOf(j, w.next(j, c.tick)) <= c.won)
}

// leftAlone is how long who has refused a tick leaves it to a replica that has not.
const leftAlone = 5 * time.Second

// asksApps reports whether a tick must be started by then: no app had changed lately, one that starts jobs is well, the
// tick is worth firing until then, and nothing of the job is in its way.
func (w *world) asksApps(l *life, tick time.Time, due, by time.Duration, runs []*lived) bool {
	down, good := 0, false
	for place, r := range w.plan.Replicas {
		switch {
		case isDown(w.plan.AppsDown, place, due-recovery, by) && !downAll(w.plan.AppsDown, place, due-recovery, by):
			return false
		case isDown(w.plan.AppsDown, place, due, by):
			down++
		case r.Begins+recovery <= due && !w.disturbed(place, due-recovery, by) &&
			w.takes(place, l.Name, due-time.Second, by):
			good = true
		}
		if w.disturbed(place, due-recovery, by) {
			return false
		}
	}
	next := w.dueOf(l.Job, w.next(l.Job, tick))
	worth := next > by && (l.StartingDeadline == 0 || tick.Sub(w.began)+l.StartingDeadline > by)
	return down > 0 && good && worth && due > l.from+recovery && !w.disturbed(-1, due-recovery, by) &&
		!w.paused(l.Name, due-recovery, by) && !slices.ContainsFunc(runs, func(r *lived) bool {
		return !r.claim.tick.Equal(tick) && !w.givesUp(r.claim, l.Job) && r.claim.won <= by &&
			(r.claim.settled == 0 || r.claim.settled >= due-slack)
	})
}

// downAll reports whether an app is down all of a time.
func downAll(all []Downtime, place int, from, to time.Duration) bool {
	return slices.ContainsFunc(all, func(d Downtime) bool { return d.Place == place && d.From <= from && to < d.To })
}

// takes reports whether a replica's app is ready, and a slot free for a job, all of a time: as far as can be said from
// the runs that it had.
func (w *world) takes(place int, job string, from, to time.Duration) bool {
	if w.plan.Ready {
		const seen = 500 * time.Millisecond // until a change of the app is known
		if isDown(w.plan.Unready, place, from-seen, to) || w.plan.BusyApp && w.runsAt(place, "", from-seen, to) > 0 {
			return false
		}
	}
	if w.plan.MaxRunning == 0 {
		return true
	}
	if j := w.plan.job(job); j != nil && j.Reserved && w.runsAt(place, job, from, to) == 0 {
		return true
	}
	return w.runsAt(place, "", from, to) < w.plan.MaxRunning
}

// runsAt counts the claims and runs at a place, of one job or of all, that lie over any part of a time.
func (w *world) runsAt(place int, job string, from, to time.Duration) (n int) {
	of := map[string]bool{}
	for _, c := range w.redis.claims.all {
		if c.replica.place == place && (job == "" || c.job == job) && c.sent <= to &&
			(c.settled == 0 || c.settled >= from-slack) {
			of[c.run] = true
		}
	}
	for _, r := range w.runs {
		if r.replica.place == place && (job == "" || r.Job == job) && r.start <= to &&
			(r.end == 0 && !r.replica.isDead() || r.end >= from-slack) {
			of[r.ID] = true
		}
	}
	return len(of)
}
