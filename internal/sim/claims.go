package sim

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/solotick/solotick/lock"
)

// claims is what Redis was asked and answered for runs, whether the answers arrived or not.
type claims struct {
	world *world

	mu       sync.Mutex
	all      []*claim
	by       map[string]*claim // by run
	asks     []*ask
	queued   []queued
	late     map[string]bool // runs that ended well after they were taken over
	loss     []time.Duration // when all was forgotten
	births   []birth
	held     []hold
	orders   map[string]bool // ids of what the operator did
	triggers []queued        // manual runs that were asked for
}

// claim is one run as Redis saw it.
type claim struct {
	run, job  string
	tick      time.Time
	replica   *replica
	sent, won time.Duration
	token     int64
	kind      string
	attempt   int
	handovers int
	again     bool // to be run again when it is cut short
	table     bool // its authority was the table, not a due member

	settled time.Duration // 0: not yet
	how     string        // finish, requeue, handover, abandon, reap, lost
	back    bool          // it never started, and so its tick is due again as it was, maybe after it was reaped
	trust   time.Duration // until when its replica may rely on it, by the answers that it has read
}

// ask is one answer to a question for a tick.
type ask struct {
	run, job, code string
	kind           string
	table          bool // it is asked for by the table, and not by a due member
	tick           time.Time
	replica        *replica
	sent, read     time.Duration // read: 0 when it never was
	behind         *claim        // with OVERLAP: the run that was in the way
}

// birth is a ledger made anew: it counts every tick up to one as settled.
type birth struct {
	job  string
	at   time.Duration
	tick time.Time
}

// queued is a tick that was claimed to wait behind a run.
type queued struct {
	job    string
	tick   time.Time
	at     time.Duration
	behind *claim
}

func newClaims(w *world) *claims {
	return &claims{world: w, by: map[string]*claim{}, late: map[string]bool{}, orders: map[string]bool{}}
}

// ran takes in a script that Redis has run.
func (c *claims) ran(q *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	code := first(q.reply)
	switch q.name {
	case "acquire":
		c.acquired(q, code)
	case "settle":
		c.ended(q, code)
	case "pause", "ask":
		c.operated(q, code)
	case "register":
		c.world.note(q.replica, "register", "", "", "", "")
		if len(q.reply) > 3 && q.reply[0] == q.reply[1] { // now, and when it was born
			c.births = append(c.births, birth{job: q.job(), at: c.world.now(), tick: millis(q.reply[3])})
		}
	case "extend":
		if code != "OK" && len(q.args) > 1 {
			c.world.note(q.replica, "extend", q.args[1], "", q.run(), code)
		}
	}
}

// The arguments of acquire: see its source.
const (
	argJob = iota + 1
	argTick
	_
	_
	_
	_
	argRecord
	_
	argMember
)

func (c *claims) acquired(q *call, code string) {
	if len(q.args) <= argRecord {
		return
	}
	job, tick := q.args[argJob], millis(q.args[argTick])
	c.world.note(q.replica, "acquire", job, stamp(tick), q.run(), code)
	q.ask = &ask{run: q.run(), job: job, code: code, tick: tick, replica: q.replica, sent: q.sent, behind: c.running1(job)}
	q.ask.table = len(q.args) <= argMember || q.args[argMember] == ""
	record := strings.Fields(q.args[argRecord]) // policy, ttl, kind, attempt, handovers, again
	if len(record) > 5 {
		q.ask.kind = record[2]
	}
	c.asks = append(c.asks, q.ask)
	switch code {
	case "QUEUED":
		c.queued = append(c.queued, queued{job: job, tick: tick, at: c.world.now(), behind: c.running1(job)})
	case "WON":
		if len(q.reply) > 2 {
			c.won(q, record)
		}
	}
}

func (c *claims) won(q *call, record []string) {
	job, tick := q.ask.job, q.ask.tick
	token, _ := strconv.ParseInt(q.reply[len(q.reply)-1], 10, 64)
	if old := c.by[q.run()]; old != nil {
		switch {
		case old.how == "lost", c.world.bornBehind(old.settled, c.world.now()): // a copy that came late
		case old.settled != 0:
			c.world.violated("1: never twice", job, "run %s of tick %s was won again after %s", short(old.run), stamp(tick), old.how)
		case old.token != token:
			c.world.violated("6: tokens", job, "run %s was told the token %d and then %d", short(old.run), old.token, token)
		}
		if old.settled == 0 {
			return
		}
	}
	if p := c.newest(job); p != nil && p.token >= token && !c.world.stepped {
		c.world.violated("6: tokens", job, "run %s has token %d after %d", short(q.run()), token, p.token)
	}
	cl := &claim{run: q.run(), job: job, tick: tick, replica: q.replica, sent: q.sent, won: c.world.now(), token: token, kind: q.ask.kind, table: q.ask.table}
	if len(record) > 5 {
		cl.again = record[5] == "1"
		cl.attempt, _ = strconv.Atoi(record[3])
		cl.handovers, _ = strconv.Atoi(record[4])
	}
	c.all = append(c.all, cl)
	c.by[cl.run] = cl
}

func (c *claims) newest(job string) *claim {
	for i := len(c.all) - 1; i >= 0; i-- {
		if c.all[i].job == job {
			return c.all[i]
		}
	}
	return nil
}

// running1 is the run of a job that lets one run at a time.
func (c *claims) running1(job string) *claim {
	if n := c.newest(job); n != nil && n.settled == 0 {
		return n
	}
	return nil
}

func (c *claims) ended(q *call, code string) {
	if len(q.args) < 3 {
		return
	}
	verb := q.args[0]
	c.world.note(q.replica, verb, q.args[2], "", q.run(), code)
	cl := c.by[q.run()]
	switch {
	case cl == nil:
	case verb == "finish" && cl.how == "reap":
		c.late[cl.run] = true
	case verb == "abandon" && code == "LATE":
		cl.back = true
	case code == "OK" && cl.settled == 0:
		cl.settled, cl.how, cl.back = c.world.now(), verb, verb == "abandon"
	}
}

// known is called when a replica has read an answer: a lease may be relied on from then, for as long as its ttl lasts
// from when the request was sent.
func (c *claims) known(q *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.ask != nil {
		q.ask.read = c.world.now()
	}
	code := first(q.reply)
	if code != "WON" && code != "OK" || q.name != "acquire" && q.name != "extend" {
		return
	}
	if cl := c.by[q.run()]; cl != nil {
		cl.trust = max(cl.trust, q.sent+c.world.plan.ttl(cl.job)-lock.Margin)
	}
}

// running tells whether Redis takes a run for one that is not over.
func (c *claims) running(run string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.by[run]
	return cl != nil && cl.settled == 0
}

// of gives a copy of what is known of a run.
func (c *claims) of(run string) (claim, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.by[run]
	if cl == nil {
		return claim{}, false
	}
	return *cl, true
}

// lost is the end of all claims: Redis knows of none any more.
func (c *claims) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.world.now()
	c.loss = append(c.loss, now)
	for _, cl := range c.all {
		if cl.settled == 0 {
			cl.settled, cl.how = now, "lost"
		}
	}
	for i := range c.held {
		if c.held[i].to == 0 {
			c.held[i].to = now
		}
	}
}

func millis(s string) time.Time {
	ms, _ := strconv.ParseInt(s, 10, 64)
	return time.UnixMilli(ms).UTC()
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000") }
