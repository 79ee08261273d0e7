package sim

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/lock"
)

// operator is somebody with the command line, on a network as good as the replicas'.
type operator struct {
	world  *world
	client redis.UniversalClient
	store  *lock.Store
}

// hold is a pause as Redis saw it.
type hold struct {
	job      string
	from, to time.Duration // 0: not ended
	ends     time.Time     // its own end; zero = none
}

// operatorPlace is none of the replicas'.
const operatorPlace = 99

func newOperator(w *world) (*operator, error) {
	r := &replica{world: w, place: operatorPlace, process: "op", dice: w.dice, key: text("op")}
	o := &operator{world: w, client: lock.NewClient(redis.UniversalOptions{Addrs: []string{"redis:6379"}, Dialer: w.network.dialer(r)}, 0)}
	var err error
	o.store, err = lock.New(o.client, service, lock.Options{Boottime: w.now})
	return o, err
}

// do runs one request until it is answered, for at most some seconds.
func (o *operator) do(f func(ctx context.Context) error) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		if err := f(ctx); err != nil {
			o.world.note(nil, "operator", "", "", "", err.Error())
		}
	}()
}

func (o *operator) pause(job string, until time.Time) {
	o.do(func(ctx context.Context) error { return o.store.Pause(ctx, job, "a reason", until) })
}

func (o *operator) resume(job string) {
	o.do(func(ctx context.Context) error {
		_, err := o.store.Resume(ctx, job)
		return err
	})
}

func (o *operator) trigger(job string) {
	o.do(func(ctx context.Context) error {
		_, err := o.store.Trigger(ctx, job, uuid.NewString())
		return err
	})
}

// operated takes in what an operator's script has done. The claims are locked.
func (c *claims) operated(q *call, code string) {
	now := c.world.now()
	if code != "OK" || len(q.reply) < 3 || c.orders[first(q.args)] {
		return // refused, or a copy of what was done before
	}
	c.orders[first(q.args)] = true
	switch {
	case q.name == "ask":
		at := millis(q.reply[2])
		job := strings.Fields(q.args[1])[0]
		c.world.note(nil, "trigger", job, stamp(at), "", "")
		c.triggers = append(c.triggers, queued{job: job, tick: at, at: now})
	case len(q.args) > 3 && q.args[2] == "pause":
		c.world.note(nil, "pause", q.job(), "", "", q.args[3])
		h := hold{job: q.job(), from: now}
		if q.args[3] != "0" {
			h.ends = millis(q.args[3])
		}
		c.endHold(q.job(), now)
		c.held = append(c.held, h)
	default:
		c.world.note(nil, "resume", q.job(), "", "", "")
		c.endHold(q.job(), now)
	}
}

func (c *claims) endHold(job string, now time.Duration) {
	for i := range c.held {
		if h := &c.held[i]; h.job == job && h.to == 0 {
			h.to = now
		}
	}
}

// paused tells whether a pause of a job lay over any part of a time.
func (w *world) paused(job string, from, to time.Duration) bool {
	for _, h := range w.redis.claims.held {
		end := h.to
		if !h.ends.IsZero() {
			if at := w.reached(h.ends, h.from); end == 0 || at < end {
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
			if c.job != h.job || c.won <= h.from || h.to != 0 && c.won >= h.to || c.kind == "manual" || c.kind == "backfill" {
				continue
			}
			// What is due waits for the end of the pause, but for a tick that is none of the pause's.
			if h.ends.IsZero() || c.tick.Before(h.ends) && (c.table || w.began.Add(c.won).Before(h.ends)) {
				w.violatedAt(c.won, "pause", c.job, "tick %s (%s) was claimed at %s, in a pause from %s", stamp(c.tick), c.kind, c.won, h.from)
			}
		}
	}
}
