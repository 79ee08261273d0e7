package sim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// operator is somebody with the command line, on a network as good as the replicas'. Each request has a Store of its
// own, which has seen nothing before, as that of a new process has.
type operator struct {
	world  *world
	client redis.UniversalClient
}

// hold is a pause as Redis saw it.
type hold struct {
	job      string
	all      bool          // it is the pause of all jobs, and not the job's own
	from, to time.Duration // 0: not ended
	ends     time.Time     // its own end; zero = none
	began    time.Duration // when the job was first paused, if this one has replaced others
}

// operatorPlace is none of the replicas'.
const operatorPlace = 99

func newOperator(w *world) (*operator, error) {
	r := &replica{world: w, place: operatorPlace, process: "op", dice: w.dice, key: text("op")}
	o := &operator{world: w,
		client: lock.NewClient(redis.UniversalOptions{Addrs: []string{"redis:6379"}, Dialer: w.network.dialer(r)}, 0)}
	_, err := o.store()
	return o, err
}

func (o *operator) store() (*service.Store, error) {
	return service.New(o.client, serviceName,
		lock.Options{History: keepAll, WaitReplicas: o.world.plan.Confirms, Boottime: o.world.now})
}

// do runs one request until it is answered, for at most some seconds.
func (o *operator) do(f func(ctx context.Context, s *service.Store) error) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		store, err := o.store()
		if err == nil {
			err = f(ctx, store)
		}
		if err != nil {
			o.world.note(nil, "operator", "", "", "", err.Error())
		}
	}()
}

// pause holds a job back, by its own pause or by that of all jobs.
func (o *operator) pause(job string, all bool, until time.Time) {
	o.do(func(ctx context.Context, s *service.Store) error {
		verb, by := "pause", service.Author{}
		if all {
			verb, by.All = "pauseAll", "a command"
		}
		err := s.As(by).Pause(ctx, job, "a reason", until)
		if err == nil {
			o.promisedLast(verb, job)
		}
		return err
	})
}

func (o *operator) resume(job string, all bool) {
	o.do(func(ctx context.Context, s *service.Store) error {
		verb, by := "resume", service.Author{}
		if all {
			verb, by.All = "resumeAll", "a command"
		}
		_, err := s.As(by).Resume(ctx, job)
		if err == nil {
			o.promisedLast(verb, job)
		}
		return err
	})
}

// trigger asks for a run, under an id that may have been asked with before; "" is a new one.
func (o *operator) trigger(job, id string) {
	id = cmp.Or(id, uuid.NewString())
	o.do(func(ctx context.Context, s *service.Store) error {
		d, err := s.Trigger(ctx, job, id)
		if err == nil {
			o.promised(id, job, d.Tick)
		}
		return err
	})
}

// rerun asks for the newest tick that failed.
func (o *operator) rerun(job, id string, now time.Duration) {
	c := o.world.row(job, now)
	if c == nil {
		return
	}
	o.do(func(ctx context.Context, s *service.Store) error {
		op := &service.Operator{Store: s, Limit: 8 * time.Second}
		at := o.world.now()
		d, err := op.Rerun(ctx, *c, service.Moment{}, true, cmp.Or(id, uuid.NewString()))
		if err == nil && id == "" {
			o.reran(job, d.Tick, at)
		}
		id := cmp.Or(id, d.Nonce)
		if err == nil {
			o.promised(id, job, d.Tick)
		}
		return err
	})
}

// reran notes which tick a rerun chose.
func (o *operator) reran(job string, tick time.Time, at time.Duration) {
	c := o.world.redis.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reruns = append(c.reruns, queued{job: job, tick: tick, at: at})
}

// backfill asks for the newest n ticks of a job that have been, under an id as trigger does.
func (o *operator) backfill(job, id string, now time.Duration, n int) {
	c := o.world.row(job, now)
	if c == nil {
		return
	}
	at := o.world.began.Add(now - 2*time.Second)
	var ticks []time.Time
	for range n {
		at = o.world.last(c, at)
		ticks = append([]time.Time{at}, ticks...)
		at = at.Add(-time.Nanosecond)
	}
	if ticks[0].Equal(noTickBefore) {
		return
	}
	id = cmp.Or(id, uuid.NewString())
	o.do(func(ctx context.Context, s *service.Store) error {
		_, err := s.Backfill(ctx, job, ticks, id, false)
		if err == nil {
			o.promised(id, job, ticks[0])
		}
		return err
	})
}

// promised notes that a request was answered with a yes: this tick is run.
func (o *operator) promised(id, job string, tick time.Time) {
	c := o.world.redis.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	c.promised[id] = o.world.now()
	c.answered = append(c.answered, queued{job: job, tick: tick, at: o.world.now(), id: id})
}

// checkAnswered: what somebody was told is due is what Redis has made due under the id of the request, and not what
// another request with that id had asked for.
func (w *world) checkAnswered() {
	ids := map[string]int{}
	for _, a := range w.redis.claims.answered {
		if ids[a.id]++; ids[a.id] == 2 {
			w.met["requests that shared an id"]++
		}
		if !slices.ContainsFunc(w.redis.claims.triggers, func(t queued) bool {
			return t.id == a.id && t.job == a.job && t.tick.Equal(a.tick)
		}) {
			w.violatedAt(a.at, "asked again", a.job,
				"the request %s was answered with tick %s, which it has not made due", short(a.id), stamp(a.tick))
		}
	}
}

// promisedLast notes that the newest pause or resumption of a job was answered with a yes. Only the store knows its id.
func (o *operator) promisedLast(verb, job string) {
	c := o.world.redis.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	last := ""
	for id, d := range c.orders {
		if d.verb == verb && d.job == job && c.promised[id] == 0 && (last == "" || d.at > c.orders[last].at) {
			last = id
		}
	}
	if last != "" {
		c.promised[last] = o.world.now()
		c.world.met["pauses that somebody was told of"]++
	}
}

// done is a request of an operator as Redis has answered it.
type done struct {
	at        time.Duration
	verb, job string // the verb of a pause
	ticks     string // that it made due
	forgotten bool   // by a failover
}

// operated records what an operator's script has done. The claims are locked.
func (c *claims) operated(q *call, code string) {
	now := c.world.now()
	if code != "OK" || len(q.reply) <= answerMade {
		return // refused
	}
	d := done{at: now}
	if q.name == "ask" {
		d.job, d.ticks = strings.Fields(q.args[argSuffix])[0], q.reply[answerMade]
		if ticks := q.backfilled(); len(ticks) > 0 {
			d.ticks = strings.Join(ticks, " ")
		}
	} else {
		d.verb, d.job = q.args[argPause], q.job()
	}
	if was, ok := c.orders[q.request()]; ok && !was.forgotten && !c.world.lostAllBetween(was.at, now) {
		c.askedAgain(q, was, d)
		return
	}
	c.orders[q.request()] = d
	switch {
	case q.name == "ask":
		c.world.note(nil, "ask", d.job, "", "", d.ticks)
		for _, tick := range strings.Fields(d.ticks) {
			c.triggers = append(c.triggers, queued{job: d.job, tick: millis(tick), at: now, id: q.request()})
		}
	case strings.HasPrefix(q.args[argPause], "pause"):
		c.world.note(nil, q.args[argPause], q.job(), "", "", q.args[argEnds])
		h := hold{job: q.job(), all: q.ofAll(), from: now, began: now}
		for _, o := range c.held {
			if o.job == h.job && o.all == h.all && o.to == 0 &&
				(o.ends.IsZero() || o.ends.After(c.world.began.Add(now+c.world.offsetAt(now)))) {
				h.began = o.began
			}
		}
		if q.args[argEnds] != "0" {
			h.ends = millis(q.args[argEnds])
		}
		c.endHold(q.job(), q.ofAll(), now)
		c.held = append(c.held, h)
	default:
		c.world.note(nil, q.args[argPause], q.job(), "", "", "")
		c.endHold(q.job(), q.ofAll(), now)
	}
}

// ofAll tells of a request to pause or resume whether it is about the pause of all jobs.
func (q *call) ofAll() bool { return strings.HasSuffix(q.args[argPause], "All") }

// askedAgain: the id of a request makes it safe to ask again. A copy of what was done before has no effect. The claims
// are locked.
func (c *claims) askedAgain(q *call, was, d done) {
	if q.name != "ask" || len(q.backfilled()) > 0 {
		return
	}
	c.world.met["asked again"]++
	if was.ticks != d.ticks {
		c.world.violated("asked again", d.job, "the request %s was answered with tick %s, and asked again with %s: "+
			"it is run twice", short(q.request()), was.ticks, d.ticks)
	}
}

func (c *claims) endHold(job string, all bool, now time.Duration) {
	for i := range c.held {
		if h := &c.held[i]; h.job == job && h.all == all && h.to == 0 {
			h.to = now
		}
	}
}

// followed is how long after a step of Redis' clock all replicas follow it: a resumption may go by the time before it
// until then.
const followed = 11 * time.Second

// liftedTo is up to which tick a pause holds that somebody ended; 0 if nobody did.
func (w *world) liftedTo(h hold) time.Duration {
	if h.to == 0 {
		return 0
	}
	to, off := h.to+w.offsetAt(h.to), time.Duration(0)
	for _, p := range w.phases() {
		before := off
		if off = p.off; p.far() {
			off = 0 // replicas have their own time
		}
		if p.from > 0 && p.from <= h.to && h.to <= p.from+followed {
			to = max(to, h.to+max(before, off)+skews)
		}
	}
	return to
}

// notFollowed reports whether Redis' clock had stepped so shortly before an instant that not all replicas followed it
// yet.
func (w *world) notFollowed(at time.Duration) bool {
	return slices.ContainsFunc(w.phases(), func(p phase) bool {
		return p.from > 0 && p.from <= at && at <= p.from+followed
	})
}

// unheard is how long after a step of Redis' clock no heartbeat may look recent, by which an operator could tell whose
// time counts.
const unheard = 6 * time.Second

// heldAhead reports whether a pause of a job ended so soon after a step of Redis' clock that it may hold back a tick by
// the wrong time of that clock: a limit.
func (w *world) heldAhead(job string, tick time.Time) bool {
	return slices.ContainsFunc(w.redis.claims.held, func(h hold) bool {
		return h.job == job && h.to != 0 && tick.Sub(w.began) <= w.liftedTo(h) &&
			slices.ContainsFunc(w.phases(), func(p phase) bool {
				return p.from > 0 && p.from <= h.to && h.to <= p.from+unheard
			})
	})
}

// paused reports whether a pause of a job lay over any part of a time.
func (w *world) paused(job string, from, to time.Duration) bool {
	for _, h := range w.redis.claims.held {
		end := h.to
		if to := w.liftedTo(h); to > end+w.offsetAt(end) {
			end, _ = w.dueAt(w.began.Add(to))
		}
		if !h.ends.IsZero() {
			at := w.reached(h.ends, h.from)
			if slices.ContainsFunc(w.phases(), phase.far) {
				at = max(at, h.ends.Sub(w.began)+skews) // by the replicas' own clocks
			}
			if end == 0 || at < end {
				end = at + pauseRetry
			}
		}
		if h.job == job && h.from <= to && (end == 0 || from <= end+pauseRetry) {
			return true
		}
	}
	return false
}

// pauseRetry is how long a due tick that met with a pause may be left alone.
const pauseRetry = 6 * time.Second

// checkPaused: while a job is paused nothing of it is claimed but what somebody asked for.
func (w *world) checkPaused() {
	if w.stepped {
		return
	}
	for _, h := range w.redis.claims.held {
		for _, c := range w.redis.claims.all {
			if c.job != h.job || c.won <= h.from || h.to != 0 && c.won >= h.to {
				continue
			}
			at, first := w.redis.claims.askedAt(c)
			if c.isByHand() && (!first || at >= h.began-2*time.Millisecond) {
				// it had begun before, or was asked for in the pause: Redis counts in milliseconds, and a trigger's
				// tick is the next one
				continue
			}
			if first {
				w.met["waited by hand as a pause began"]++
			}
			if w.redis.claims.forgot(c.won) {
				continue // the pause had been ended by then, which a failover forgot as well
			}
			// A due tick waits for the end of the pause, unless it lies outside the pause.
			if h.ends.IsZero() || c.tick.Before(h.ends) && (c.table || w.began.Add(c.won).Before(h.ends)) {
				w.violatedAt(c.won, "pause", c.job, "tick %s (%s) was claimed at %s, in a pause from %s",
					stamp(c.tick), c.kind, c.won, h.from)
			}
		}
	}
}

// justBefore is how long before a tick a job is resumed for it to be looked at by checkResumed: replicas have asked for
// it by then.
const justBefore = 40 * time.Millisecond

// checkResumed: a tick that comes due when the job has just been resumed is none of the pause, and is claimed at once.
func (w *world) checkResumed() {
	if w.stepped || w.plan.Local || len(w.redis.claims.oblivions) > 0 {
		return
	}
	for _, h := range w.redis.claims.held {
		j := w.during(h.job, h.from, h.to+prompt)
		if h.to == 0 || j == nil || j.Suspend || !h.ends.IsZero() && h.ends.Sub(w.began) < h.to {
			continue
		}
		tick := w.next(j, w.began.Add(h.to))
		due := w.dueOf(j, tick)
		again := slices.ContainsFunc(w.redis.claims.held, func(o hold) bool {
			return o.job == h.job && o.from >= h.to && o.from <= due+prompt
		})
		if again || tick.Sub(w.began)-h.to > justBefore || due+prompt > w.plan.Lasts-settling ||
			w.disturbed(-1, h.from, due+prompt) || !w.fit(h.job, due, due+prompt) || w.pausedAt(j, tick) ||
			w.lostAllBetween(h.from, due) || j.Claim != nil && !w.asksInTime(h.job, tick, due, due+prompt) {
			continue
		}
		w.met["ticks of jobs that were just resumed"]++
		claimed := func(c *claim) bool { return c.job == h.job && c.tick.Equal(tick) }
		settled := func(a *ask) bool { return a.job == h.job && a.tick.Equal(tick) && a.settles() }
		started := func(r *run) bool { return r.Job == h.job && r.Tick.Equal(tick) } // on every replica, without a claim
		if !slices.ContainsFunc(w.redis.claims.all, claimed) && !slices.ContainsFunc(w.runs, started) &&
			!slices.ContainsFunc(w.redis.claims.asks, settled) {
			w.violatedAt(due, "2: never lost", h.job,
				"the job was resumed at %s, and tick %s, which came due at %s, was not claimed", h.to, stamp(tick), due)
		}
	}
}
