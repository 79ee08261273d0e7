package nemesis

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

const (
	// wrong is by how much the clock of an app that asks may be off.
	wrong = 2500 * time.Millisecond
	// askAgain is how soon an app asks again that had no clear answer.
	askAgain = 500 * time.Millisecond
	// vacant is how long a lease may stay without a holder although an app asks for it: as long as the lock outlives a
	// run, and an answer.
	vacant = time.Second + prompt
)

// ask lets the app beside each replica ask for the ticks of its jobs and for leases, until ctx ends. It returns what
// waits until all that they have got is over.
func (w *world) ask(ctx context.Context, seed uint64) (wait func()) {
	var all sync.WaitGroup
	for _, r := range w.replicas {
		for _, j := range w.jobs {
			switch {
			case j.isLease():
				all.Go(func() { w.hold(ctx, r, j, dice(seed, r.name+j.name, time.Time{})) })
			case j.asks:
				all.Go(func() { w.schedule(ctx, &all, r, j, seed) })
			}
		}
	}
	return all.Wait
}

// dice are for one app and one of its ticks, or for all of them where the app has no name.
func dice(seed uint64, app string, tick time.Time) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, app, tick.Unix()) // which never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// schedule is an app's own scheduler. Each second tick comes when a wrong clock says so, and one of six at no app.
func (w *world) schedule(ctx context.Context, all *sync.WaitGroup, r *replica, j job, seed uint64) {
	for tick := time.Now().Truncate(j.every).Add(j.every); ; tick = tick.Add(j.every) {
		rng := dice(seed, r.name+j.name, tick)
		at := tick
		if rng.IntN(2) == 0 {
			at = tick.Add(upTo(rng, 2*wrong) - wrong)
		}
		if !pause(ctx, time.Until(at)) {
			return
		}
		if dice(seed, j.name, tick).IntN(6) > 0 {
			all.Go(func() { w.askFor(ctx, r, j, tick, rng) })
		}
	}
}

// askFor asks for a tick until there is a clear answer, or the next tick is due. Some apps ask once, and some for the
// tick next to now, while that is this one.
func (w *world) askFor(ctx context.Context, r *replica, j job, tick time.Time, rng *rand.Rand) {
	q := rig.Question{Job: j.name, Replica: r.name, Tick: tick, Now: j.every > 2*wrong && rng.IntN(3) == 0}
	p, once, until := plan(j, rng), rng.IntN(4) == 0, tick.Add(j.every)
	if q.Now {
		until = tick.Add(j.every / 2)
	}
	for time.Now().Before(until) {
		switch a := r.door.Ask(ctx, r.admin, q, p); {
		case a.Status != 0 && a.Status != http.StatusServiceUnavailable, once, !pause(ctx, askAgain):
			return
		}
	}
}

// hold asks for a lease again and again.
func (w *world) hold(ctx context.Context, r *replica, j job, rng *rand.Rand) {
	for pause(ctx, upTo(rng, askAgain)) {
		p := plan(j, rng)
		if p.Take > 0 {
			p.Take = upTo(rng, p.Take)
		}
		r.door.Ask(ctx, r.admin, rig.Question{Job: j.name, Replica: r.name, Now: true}, p)
	}
}

// plan draws what an app does: it works to the end, fails, falls silent in between, or does not even begin.
func plan(j job, rng *rand.Rand) rig.Plan {
	switch rng.IntN(8) {
	case 0:
		return rig.Plan{Dies: true}
	case 1:
		return rig.Plan{Dies: true, Take: upTo(rng, j.take)}
	case 2:
		return rig.Plan{Fail: true, Take: j.take}
	}
	return rig.Plan{Take: j.take}
}

// upTo draws a duration, which is not 0.
func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d)) + 1)
}

// pause is false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

// attend checks what came of the questions of the job's apps, and of the runs that they got.
func (c *court) attend() {
	if !c.job.asks {
		return
	}
	for i := range c.queries {
		c.answered(&c.queries[i])
	}
	for i := range c.calls {
		c.given(&c.calls[i])
	}
	for _, r := range c.runs {
		if !c.wasAskedFor(r) {
			c.find("claimed, and no app had asked", r)
		}
	}
	if c.job.isLease() {
		c.vacancies()
	}
}

// elsewhere are the reasons of a refusal while nobody has paused a job or changed the table.
var elsewhere = []string{"fired_elsewhere", "overlap", "superseded"}

// answered checks that there is an answer to a question, and of a refusal that its reason can be. Whether the tick was
// another's is for settle.
func (c *court) answered(q *rig.Question) {
	r := &run{job: c.job.name, tick: q.Tick, replica: q.Replica, arrived: q.Sent, ended: q.Answered}
	switch {
	case q.Status == http.StatusOK:
	case q.Status == 0 || q.Status == http.StatusServiceUnavailable:
		ended := !c.left.IsZero() && q.Answered.After(c.left)
		if !ended && !c.harmed(q.Replica, q.Sent.Add(-recovery), q.Answered.Add(edge)) {
			c.find("no clear answer, and nothing had happened", r)
		}
	case q.Status != http.StatusConflict || !slices.Contains(elsewhere, q.Reason):
		c.find(fmt.Sprintf("answered %d %s", q.Status, q.Reason), r)
	}
}

// given checks what a replica made of a run that an app got: the app could begin, unless it died, and of one that died
// the replica heard in time.
func (c *court) given(q *rig.Request) {
	r := c.byID(q.Run)
	if r == nil || !r.started() {
		return // it was held up on the way: see heldUp
	}
	silent := q.Arrived.Add(q.Work.Heartbeat) // a dead app may have worked until then
	if q.Work.Until.After(silent) {
		silent = q.Work.Until
	}
	whole := !c.harmed(q.Replica, q.Arrived.Add(-recovery), silent.Add(prompt))
	t := c.of(c.record.classAt(q.Arrived))
	if c.job.isLease() {
		t.held++
	} else {
		t.given++
	}
	died := !q.Work.Died.IsZero()
	if died {
		t.died++
	}
	switch {
	case !whole || stoodStill(q):
	case !died && q.Work.Began.IsZero():
		c.find("its app could not begin, and nothing had happened", r)
	case !died || len(r.settled) == 0:
	case r.outcome() != interrupted:
		c.find("its app had died, and it is "+r.outcome(), r)
	case r.settled[0].at.Add(edge).Before(silent):
		c.find("its app was taken for dead too soon", r)
	case r.settled[0].at.After(silent.Add(prompt)):
		c.find("that its app had died was noticed late", r)
	}
}

// harmed is struck, and a replica that drains does not give a tick to its app either.
func (c *court) harmed(replica string, from, to time.Time) bool {
	drains := slices.ContainsFunc(c.record.on(replica, from, to), func(s strike) bool { return s.harm == drained })
	return drains || c.record.struck(replica, from, to)
}

// whole reports whether a replica could give ticks to its app all the time: nothing happened to it or to Redis, nor
// shortly before.
func (c *court) whole(replica string, from, to time.Time) bool {
	return !c.harmed(replica, from, to) && !c.record.hit(replica, from.Add(-recovery), to) &&
		!c.record.gone(from.Add(-recovery), to)
}

// wasAskedFor reports whether an app had asked the run's replica for it.
func (c *court) wasAskedFor(r *run) bool {
	return slices.ContainsFunc(c.queries, func(q rig.Question) bool {
		return q.Replica == r.replica && q.Sent.Before(r.end()) &&
			(q.Tick.Equal(r.tick) || q.Now && !q.Answered.Add(edge).Before(r.tick))
	})
}

// asked reports whether an app asked for a tick, and left time enough for an answer before the next one was due.
func (c *court) asked(tick time.Time) bool {
	return slices.ContainsFunc(c.queries, func(q rig.Question) bool {
		return q.Tick.Equal(tick) && !moment(&q).Add(prompt).After(tick.Add(c.job.every))
	})
}

// explained reports whether Redis keeps the right reason for which a tick was missed, if no app asked for it at all. A
// row of several ticks has the reason of one of them.
func (c *court) explained(tick time.Time, f *fate) bool {
	if f.count > 1 || slices.ContainsFunc(c.queries, func(q rig.Question) bool { return q.Tick.Equal(tick) }) {
		return true
	}
	switch {
	case f.detail == "no app asked for it":
		return true
	case strings.HasPrefix(f.detail, "the run of "):
		return slices.ContainsFunc(c.runs, func(r *run) bool {
			return r.outcome() == interrupted && r.tick.Before(tick) && r.end().After(tick)
		})
	case strings.HasPrefix(f.detail, "no replica claimed it before replica "):
		return slices.ContainsFunc(c.record.strikes, func(s strike) bool {
			return (s.harm.kills() || s.harm == drained) && s.to.After(tick) && s.from.Before(f.at)
		})
	}
	return false
}

// toldOfARun reports whether an app that asked for a tick heard that a run was in its way.
func (c *court) toldOfARun(tick time.Time) bool {
	return slices.ContainsFunc(c.queries, func(q rig.Question) bool {
		return q.Tick.Equal(tick) && q.Reason == "overlap"
	})
}

// moment is when the replica of a question could first claim the tick.
func moment(q *rig.Question) time.Time {
	if q.Sent.Before(q.Tick) {
		return q.Tick
	}
	return q.Sent
}

// owed reports whether an app that asked for a tick must have got it, unless something else explains that nobody did:
// before the next tick was due, its replica and Redis were whole for long enough for an answer.
func (c *court) owed(tick time.Time) bool {
	return slices.ContainsFunc(c.queries, func(q rig.Question) bool {
		return q.Tick.Equal(tick) && slices.ContainsFunc(c.chances(&q), func(s span) bool {
			return q.Answered.Add(edge).After(s.from) && !s.to.After(tick.Add(c.job.every)) &&
				c.whole(q.Replica, s.from, s.to)
		})
	})
}

// chances are the stretches of time in which a question gets its answer if its replica is whole: from the moment at
// which the tick can be claimed, and after each strike.
func (c *court) chances(q *rig.Question) []span {
	first := moment(q)
	if q.Now { // after a strike its replica may take it for a question for another tick
		return []span{{from: q.Sent, to: first.Add(prompt)}}
	}
	all := []span{{from: first, to: first.Add(prompt)}}
	for _, s := range c.record.strikes {
		from, enough := s.to.Add(recovery+time.Nanosecond), prompt
		if s.harm == stalled { // the question waits for Redis
			from, enough = s.to.Add(time.Nanosecond), thawed
		}
		if from.After(first) {
			all = append(all, span{from: from, to: from.Add(enough)})
		}
	}
	return all
}

// unansweredAt reports whether a strike fell on a replica as it could claim a tick for its app, so that it may have
// claimed it without hearing so.
func (c *court) unansweredAt(s strike, tick time.Time) bool {
	return slices.ContainsFunc(c.queries, func(q rig.Question) bool {
		return q.Tick.Equal(tick) && q.Replica == s.target && s.from.Sub(moment(&q)).Abs() <= edge
	})
}

// questioned are what a lease has in place of ticks: the moments of its claims, and of whatever else Redis has counted.
func (c *court) questioned(l *ledger) []time.Time {
	ticks := slices.Collect(maps.Keys(c.byTick))
	for _, f := range l.fates {
		if f.run == "" && f.count == 1 && c.byTick[f.tick] == nil {
			ticks = append(ticks, f.tick)
		}
	}
	return ticks
}

// noLeaseMissed is what a lease must not have unless a strike kept an answer from a replica.
const noLeaseMissed = "missed, by a lease, and nothing had happened"

// unheardLease reports whether a strike fell between a question for a lease and the moment it was counted as missed.
func (c *court) unheardLease(f *fate) bool {
	return slices.ContainsFunc(c.record.strikes, func(s strike) bool {
		return s.harm != refused && s.touches(f.tick.Add(-recovery), f.at)
	})
}

// vacancies finds where a lease had no holder although an app asked for it all the time, at a replica that was whole.
func (c *court) vacancies() {
	free := c.from
	for _, r := range c.runs {
		if !r.started() && (r.outcome() != interrupted || !c.harmed(r.replica, r.tick, r.tick.Add(edge))) {
			continue // else its replica was struck as it had claimed the lease, which is the dead one's until it is taken over
		}
		c.vacancy(free, r.begin())
		if r.end().After(free) {
			free = r.end()
		}
	}
	c.vacancy(free, c.left)
}

// vacancy looks for it in [from, to].
func (c *court) vacancy(from, to time.Time) {
	starts := []time.Time{from}
	for _, s := range c.record.strikes {
		starts = append(starts, s.to.Add(recovery+time.Nanosecond))
	}
	for _, q := range c.queries {
		starts = append(starts, q.Sent)
	}
	for _, q := range c.queries {
		if slices.ContainsFunc(starts, func(at time.Time) bool {
			end := at.Add(vacant)
			return !at.Before(from) && !at.Before(q.Sent) && end.Before(to) && end.Before(q.Answered) &&
				!c.harmed(q.Replica, at.Add(-recovery), end)
		}) {
			c.find("a lease without a holder", &run{job: c.job.name, tick: from, replica: q.Replica})
			return
		}
	}
}

// mayBeLate reports whether an answer may have been held up on its way to the app, after the claim of its run. Such an
// app must not begin before a heartbeat is answered.
func (c *court) mayBeLate(q *rig.Request) bool {
	return q.Work.Began.IsZero() && c.record.hit(q.Replica, time.UnixMilli(q.Token).Add(-edge), q.Arrived)
}
