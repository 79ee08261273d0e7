package sim

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// claims is what Redis was asked and answered for runs, whether the answers arrived or not.
type claims struct {
	world *world

	mu        sync.Mutex
	all       []*claim
	by        map[string]*claim // by run
	asks      []*ask
	queued    []queued
	late      map[string]bool // runs that ended well after they were taken over
	loss      []time.Duration // when all was forgotten
	births    []birth
	sinces    []birth // from when on a job has the ticks that it has
	uncounted []missing
	told      []introduced
	begun     []introduced // whose registration, sent then, began a job's ticks anew
	held      []hold
	orders    map[string]done          // what the operator did, by id
	bookings  map[string]time.Duration // requests that counted missed ticks, and when
	promised  map[string]time.Duration // ids of what the operator was told is done, and when
	answered  []queued                 // what the operator was told is due
	triggers  []queued                 // runs by hand that were asked for
	drop      []queued                 // what waited by hand, and an operator has dropped
	timers    map[string]*timerState
	oblivions []oblivion
	left      []queued // jobs of which Redis was told that they have left
	fates     *fates
	successes map[string][]success // of each job, that Redis has not forgotten
	stands    map[string]standing  // of each job
	reruns    []queued             // of the newest tick that failed, which an operator was told of
	struck    bool                 // the fault that waits for many timers has begun
	ambush    *Fault               // waits for a replica that wins
	turns     []*turn              // of rows of failures
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
	rounds    int           // how often all replicas had refused it
	finished  time.Duration // when its replica said so
	deaths    int           // how many replicas had died with it
	refused   int           // how many replicas had refused it in its round
	again     bool          // to be run again when it is cut short
	table     bool          // its authority was the table, not a due member
	parent    string        // the run that made its due member: it goes on with that one, or waited for its end

	policy    string
	member    string        // that hands it on; "" = it is given up, or it has ended
	renewed   time.Duration // when Redis last heard of it that it lives
	unrenewed bool          // a failover forgot a renewal
	settled   time.Duration // 0: not yet
	how       string        // finish, requeue, handover, abandon, reap, lost, forgotten
	told      time.Duration // when its replica read that it is settled
	undone    []settlement  // that a failover forgot
	waits     time.Duration // from its end until its tick is due again

	reaper *replica      // that took it over
	heard  time.Duration // when that one read so; 0: never

	cancelled time.Duration // when an operator cancelled it; 0: nobody did, or a failover forgot that
	outcome   string        // that its end was recorded with
	known     []success     // of the job, when it was won
	back      bool          // it never started, and so its tick is due again as it was, maybe after it was reaped
	trust     time.Duration // until when its replica may rely on it, by the answers that it has read
}

// settlement is one end of a run.
type settlement struct {
	how      string
	at, told time.Duration // told: when its replica read the answer; 0 = never
}

// ask is one answer to a question for a tick.
type ask struct {
	run, job, code string
	kind           string
	policy         string
	table          bool     // it is asked for by the table, and not by a due member
	list           []string // due members that it would make
	at             time.Duration
	tick, came     time.Time // came: when it came due, on Redis' clock
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

// missing is a time of which the ticks were missed, and not counted yet, when Redis lost all data: those between the
// two.
type missing struct {
	job      string
	from, to int64
}

// introduced says that a replica was told of a job's ledger.
type introduced struct {
	replica     *replica
	job         string
	at          time.Duration
	came        time.Duration // when the registration reached Redis
	fingerprint string        // of the ticks that it registered
}

// toldBefore is what a replica was last told of a job before it registered the job once more; nil if it was told
// nothing.
func (c *claims) toldBefore(b introduced) (last *introduced) {
	for i := range c.told {
		if t := &c.told[i]; t.replica == b.replica && t.job == b.job && t.at < b.at-overtaking {
			last = t
		}
	}
	return last
}

// queued is a tick that was claimed to wait behind a run.
type queued struct {
	job       string
	tick      time.Time
	at        time.Duration
	behind    *claim
	policy    string
	id        string        // of the request, of what was asked for by hand
	forgotten time.Duration // when a failover forgot it; 0 = none did
	dropped   time.Duration // when an operator dropped what waited; 0 = none did
}

func newClaims(w *world) *claims {
	c := &claims{world: w, by: map[string]*claim{}, late: map[string]bool{}, orders: map[string]done{},
		bookings: map[string]time.Duration{}, promised: map[string]time.Duration{}, timers: map[string]*timerState{},
		fates: newFates(w), successes: map[string][]success{}, stands: map[string]standing{}}
	for _, t := range w.plan.Timers {
		c.timers[t.ID] = &timerState{plan: t}
	}
	return c
}

// ran notes a script that Redis has run.
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
	case "cancel":
		c.cancel(q, code)
	case "timer":
		c.timed(q, code)
	case "spring":
		c.sprang(q)
	case "book":
		c.booked(q)
	case "drop":
		c.dropped(q)
	case "register":
		c.registered(q)
	case "extend":
		if cl := c.by[q.run()]; cl != nil && (code == "OK" || code == "REPLACED" || code == "CANCELLED") {
			cl.renewed, cl.unrenewed = c.world.now(), false
		}
		if code != "OK" && len(q.args) > argExtendedJob {
			c.world.note(q.replica, "extend", service.SeriesJob(q.args[argExtendedJob]), "", q.run(), code)
		}
	}
}

// dropped checks what left the due set without a run: a tick that replicas could not start is given up, and not missed.
func (c *claims) dropped(q *call) {
	if len(q.args) < 2 || q.args[1] != lock.Missed || len(q.reply) < 3 || q.reply[2] != "1" {
		return
	}
	if d, err := lock.ParseDue(q.args[0]); err != nil || len(d.Refused) > 0 {
		c.world.violated("given up", q.job(), "tick %s, which %v could not start, is dropped as missed",
			stamp(d.Tick), d.Refused)
	}
}

// registered records what Redis answered for a job that was told to it.
func (c *claims) registered(q *call) {
	extra := ""
	if q.args[argFingerprint] == gone {
		extra = " has left"
		c.left = append(c.left, queued{job: q.job(), at: c.world.now()})
	}
	// who registers which job when is no matter of the seed
	c.world.note(q.replica, "register", "", "", "", q.job()+extra)
	if len(q.reply) <= answerTick {
		return
	}
	since := millis(q.reply[answerSince])
	if !slices.ContainsFunc(c.sinces, func(b birth) bool { return b.job == q.job() && b.tick.Equal(since) }) &&
		q.reply[answerNow] != q.reply[answerBorn] {
		c.begun = append(c.begun, introduced{q.replica, q.job(), q.sent, c.world.now(), q.args[argFingerprint]})
	}
	c.sinces = append(c.sinces, birth{job: q.job(), at: c.world.now(), tick: since})
	if q.reply[answerNow] == q.reply[answerBorn] {
		c.births = append(c.births, birth{job: q.job(), at: c.world.now(), tick: millis(q.reply[answerTick])})
	}
}

func (c *claims) acquired(q *call, code string) {
	if len(q.args) <= argRecord {
		return
	}
	job, tick := service.SeriesJob(q.args[argJob]), millis(q.args[argTick])
	c.world.note(q.replica, "acquire", job, stamp(tick), q.run(), code)
	q.ask = &ask{run: q.run(), job: job, code: code, tick: tick, came: tick, replica: q.replica, sent: q.sent, at: c.world.now(),
		policy: q.args[argPolicy], behind: c.live(job)}
	if len(q.args) > argList {
		q.ask.list = q.args[argList:]
	}
	if len(q.args) > argCame {
		q.ask.came = millis(q.args[argCame])
	}
	q.ask.table = len(q.args) <= argMember || q.args[argMember] == ""
	record := strings.Fields(q.args[argRecord])
	if len(record) > recordAgain {
		q.ask.kind = kindIn(record[recordKind])
	}
	c.asks = append(c.asks, q.ask)
	switch code {
	case "OVERLAP":
		c.comes(q)
		c.fates.overlappedAtOnce(q)
	case "QUEUED":
		c.comes(q)
		c.queued = append(c.queued, queued{job: job, tick: tick, at: c.world.now(), behind: c.live(job),
			policy: q.ask.policy})
	case "WON":
		if len(q.reply) > answerToken {
			c.won(q, record)
		}
	}
}

// comes checks that a tick is refused, or made to wait, only when it has come due: the run in its way may be over by then.
func (c *claims) comes(q *call) {
	if now := millis(q.reply[answerAt]); len(q.ask.list) == 0 && now.Before(q.ask.came) {
		c.world.violated("3: not yet", q.ask.job, "tick %s comes due at %s, and was told %s at %s",
			stamp(q.ask.tick), stamp(q.ask.came), q.ask.code, stamp(now))
	}
}

func (c *claims) won(q *call, record []string) {
	job, tick := q.ask.job, q.ask.tick
	token, _ := strconv.ParseInt(q.reply[answerToken], 10, 64)
	if old := c.by[q.run()]; old != nil {
		switch {
		// a copy that came late
		case old.how == "lost", old.how == "forgotten", c.bornBehind(job, tick, old.settled, c.world.now()):
		case old.settled != 0:
			c.world.violated("1: never twice", job, "run %s of tick %s was won again after %s",
				short(old.run), stamp(tick), old.how)
		case old.token != token:
			c.world.violated("6: tokens", job, "run %s was told the token %d and then %d",
				short(old.run), old.token, token)
		}
		if old.settled == 0 {
			return
		}
	}
	if p := c.newest(job); p != nil && p.token >= token && !c.world.wentBack() {
		c.world.violated("6: tokens", job, "run %s has token %d after %d", short(q.run()), token, p.token)
	}
	cl := &claim{run: q.run(), job: job, tick: tick, replica: q.replica, sent: q.sent, won: c.world.now(), token: token,
		kind: q.ask.kind, table: q.ask.table, policy: q.ask.policy, renewed: c.world.now(), known: c.successes[job]}
	if len(q.args) > argMember {
		member := strings.Fields(q.args[argMember])
		cl.refused = max(len(member)-refusals, 0)
		if len(member) > memberRun {
			cl.parent = member[memberRun]
		}
	}
	if len(record) > recordAgain {
		cl.again = record[recordAgain] == "1"
		cl.attempt, _ = strconv.Atoi(record[recordAttempt])
		cl.rounds, _ = strconv.Atoi(record[recordRounds])
		cl.deaths, _ = strconv.Atoi(record[recordDeaths])
	}
	c.all = append(c.all, cl)
	c.by[cl.run] = cl
	if service.IsTimer(job) {
		c.timerWon(cl)
	}
}

func (c *claims) newest(job string) *claim {
	for i := len(c.all) - 1; i >= 0; i-- {
		if c.all[i].job == job {
			return c.all[i]
		}
	}
	return nil
}

// live is the newest run of a job that is not over, whatever policy it began under.
func (c *claims) live(job string) *claim {
	for i := len(c.all) - 1; i >= 0; i-- {
		if c.all[i].job == job && c.all[i].settled == 0 {
			return c.all[i]
		}
	}
	return nil
}

func (c *claims) ended(q *call, code string) {
	if len(q.args) <= argSettledJob {
		return
	}
	verb := q.args[argVerb]
	c.fates.settled(q, code)
	c.world.note(q.replica, verb, service.SeriesJob(q.args[argSettledJob]), "", q.run(), code)
	cl := c.by[q.run()]
	c.turned(q, cl)
	c.besideHand(q, cl)
	c.judgeStanding(q, cl)
	succeeded := verb == "finish" && outcomeIn(q.args[argEntry]) == "succeeded"
	switch {
	case cl == nil:
	case verb == "finish" && cl.how == "reap":
		c.late[cl.run] = true
		if succeeded {
			c.succeeds(cl, false)
		}
	// a replica stood still, and knows that it never started
	case (verb == "abandon" || verb == "handover") && code == "LATE":
		cl.back = len(q.args) > argAgain && q.args[argAgain] != ""
	case code == "OK" && cl.settled == 0:
		cl.settled, cl.how, cl.back = c.world.now(), verb, verb == "abandon"
		if verb == "reap" {
			cl.reaper = q.replica
		}
		cl.outcome = outcomeIn(q.args[argEntry])
		if succeeded {
			c.succeeds(cl, true)
		}
		if len(q.args) > argAgain {
			cl.member = q.args[argAgain]
			cl.waits = waitIn(q.args)
		}
	}
}

// known is called when a replica has read an answer: a lease may be relied on from then, for as long as its ttl lasts
// from when the request was sent.
func (c *claims) known(q *call) {
	if f := c.ambushed(q); f != nil {
		c.world.strike(*f)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.ask != nil {
		q.ask.read = c.world.now()
	}
	if q.name == "register" && len(q.reply) > answerTick {
		c.told = append(c.told, introduced{q.replica, q.job(), c.world.now(), c.world.now(), q.args[argFingerprint]})
	}
	code := first(q.reply)
	if cl := c.by[q.run()]; cl != nil && q.name == "settle" {
		c.heardOf(q, cl)
	}
	won := q.name == "acquire" && code == "WON"
	// which are renewed until they end
	if !won && (q.name != "extend" || code != "OK" && code != "REPLACED" && code != "CANCELLED") {
		return
	}
	if cl := c.by[q.run()]; cl != nil {
		cl.trust = max(cl.trust, q.sent+c.world.plan.ttl(cl.job)-lock.Margin)
	}
}

// wins is what a fault waits for that strikes a replica between its claim and the start of the job.
const wins = "WON"

func (c *claims) lieInWait(f *Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ambush = f
}

// ambushed is the fault that waits for a replica to read that it has won a tick, and is that one's now; nil if none
// does.
func (c *claims) ambushed(q *call) *Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.ambush
	if f == nil || q.name != "acquire" || first(q.reply) != "WON" {
		return nil
	}
	c.ambush = nil
	return &Fault{At: f.At, Kind: f.Kind, Replica: q.replica.place, For: f.For}
}

// running reports whether Redis takes a run for one that is not over.
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
func (c *claims) lost(uncounted []missing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.world.now()
	c.uncounted = append(c.uncounted, uncounted...)
	c.loss = append(c.loss, now)
	c.forgetSuccesses(0)
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
