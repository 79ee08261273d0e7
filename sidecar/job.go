package sidecar

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// job is one row of the table at work.
type job struct {
	config.Job
	label    string // of its series in the metrics: its name, but for timers
	series   series
	executor execute.Executor
	timer    uuid.UUID       // gocron's name for it
	life     context.Context // ends when the job leaves the table, or heir takes its place
	end      context.CancelFunc

	mu         sync.Mutex
	retired    bool // life has ended
	heir       *job
	taken      time.Time    // newest tick that a wake of this replica took
	answered   time.Time    // newest tick of which this replica knows what became of it
	claimed    time.Time    // newest tick claimed, as Redis last said: a failover may forget
	highest    time.Time    // newest tick that was ever said to be claimed
	overlapped time.Time    // newest tick that this replica was refused for a run in its way
	pausedTo   time.Time    // end of the last pause, as Redis last said
	held       time.Time    // newest tick that this replica was refused for a pause
	born       time.Time    // when Redis' memory of the job began
	since      time.Time    // when Redis first saw this series of ticks; zero = not known yet
	back       time.Time    // when the job came back after no replica had it; zero = it never did
	registered time.Time    // when Redis was last told of the job
	returns    bool         // it ran on every replica before, or Redis may not know that: it is told so first
	asking     int          // wakes for ticks of the table that are not answered yet
	holds      []lock.Pause // of a job that every replica runs: what holds it back, as Redis last said
}

// wake is one reason to fire one tick: a timer's, a catch-up's, or a due entry's.
type wake struct {
	job     *job
	tick    time.Time // nominal
	due     time.Time // when it came due: tick plus jitter
	kind    string
	attempt int
	of      lock.Due  // the due member that it is for; the zero Due for a tick of the table
	member  string    // of the due set; "" for a tick of the table
	claimed bool      // the tick was claimed from the table: here, or before it became due
	looked  bool      // it has asked whether something is in its way, without a slot to win for
	second  bool      // another replica is to ask first
	open    bool      // it counts in job.asking
	refused reason    // why it did not fire
	until   time.Time // when the pause that it met with ends; zero = nobody knows
	place   *place    // the slot that it got before it began; nil = none yet
}

// The kinds of wakes, as the job is told them.
const (
	kindSchedule = "schedule"
	kindCatchup  = "catchup"
	kindTakeover = "takeover"
	kindManual   = "manual"
	kindBackfill = "backfill"
)

// awake is when a wake asks for its tick: ahead of it, so that the job can start on the tick and not a round trip later.
func (w *wake) awake() time.Time {
	if w.second {
		return w.due.Add(-ahead + stagger)
	}
	return w.due.Add(-ahead)
}

// punctual is how late a wake may be that is still none of a missed tick.
const punctual = 5 * time.Second

// byHand tells whether somebody asked for this run: then neither the table's conditions nor newer ticks are in its way.
func (w *wake) byHand() bool { return w.kind == kindManual || w.kind == kindBackfill }

// take tells which tick a timer woke for, which gocron does not: the newest that is due at t and was not taken before. A late
// wake passes over older ticks, which the claim then counts as missed. A wake before its time, on a clock that was
// set back, takes the tick to come, and waits for it.
func (j *job) take(t time.Time) (wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.retired {
		if j.heir == nil {
			return wake{}, false
		}
		return j.heir.take(t)
	}
	tick := j.series.newest(t)
	if !tick.After(j.taken) {
		if j.series.due(j.taken).After(t) {
			return wake{}, false
		}
		tick = j.series.schedule.Next(j.taken)
	}
	if tick.IsZero() {
		return wake{}, false
	}
	j.taken = tick
	w := j.tableWake(tick, kindSchedule)
	if t.Sub(w.due) > punctual {
		w.kind = kindCatchup
	}
	return w, true
}

// passOn retires a job in favour of another of its name, nil when there is none any more. Where both have the same ticks,
// the heir goes on from what is known of them.
func (j *job) passOn(heir *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retired, j.heir = true, heir
	j.end()
	if heir == nil {
		return
	}
	heir.mu.Lock()
	defer heir.mu.Unlock()
	heir.holds = j.holds
	heir.returns = heir.claims() && (j.returns || !j.claims())
	if !heir.succeeds(j) {
		// What is being fired, no claim keeps from being fired again. What was only taken is not fired any more: a wake may
		// take its tick long before it is due, and the heir may have others until then.
		tick := heir.series.schedule.Last(j.answered)
		switch {
		case !j.claims(): // what it has fired may lie in the future, on a clock that was set back: no older tick is the heir's to take
		case heir.claims(), !tick.Equal(j.answered):
			return
		}
		heir.taken, heir.answered = newestOf(heir.taken, tick), j.answered
		return
	}
	heir.taken, heir.answered, heir.claimed, heir.highest, heir.pausedTo = j.taken, j.answered, j.claimed, j.highest, j.pausedTo
	heir.overlapped, heir.held = j.overlapped, j.held
	heir.born, heir.since, heir.back, heir.registered = j.born, j.since, j.back, j.registered
}

// claims tells whether the job's ticks are claimed: not so when every replica fires them.
func (j *job) claims() bool { return j.Guarantee != config.EveryReplica }

// fingerprint stands for the job's claimed ticks in Redis.
func (j *job) fingerprint() string {
	if !j.claims() {
		return lock.NoTicks
	}
	return j.Fingerprint
}

// succeeds tells whether the wakes of a job that was changed are those of its heir: both have the same ticks, and claim
// them or do not.
func (j *job) succeeds(old *job) bool {
	return j.Fingerprint == old.Fingerprint && j.fingerprint() == old.fingerprint()
}

// orphaned tells whether a wake's job has left the table, or has other ticks now. The wake of a job that was only changed
// becomes the new one's.
func (w *wake) orphaned() bool {
	for {
		j := w.job
		j.mu.Lock()
		heir, retired := j.heir, j.retired
		if retired && heir != nil && heir.succeeds(j) && w.open {
			j.asking--
		}
		j.mu.Unlock()
		switch {
		case !retired:
			return false
		case heir == nil || !heir.succeeds(j):
			return true
		}
		heir.mu.Lock()
		if w.open {
			heir.asking++
		}
		heir.mu.Unlock()
		w.job = heir
	}
}

// owed is the wake for a tick that came due and of which this replica does not know what became: no replica was there,
// or Redis was not. That is looked for all the time, since what hides an outage hides its end as well. A tick that is
// still to come is owed by nobody: after a reload a job does not know of the wake that took it, until that has asked.
func (j *job) owed(now time.Time) (wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Guarantee == config.EveryReplica || j.Missed == config.Skip || j.registered.IsZero() || j.asking > 0 ||
		!j.taken.After(newestOf(j.answered, j.since, j.pausedTo)) || j.series.due(j.taken).After(now) {
		return wake{}, false
	}
	return j.tableWake(j.taken, kindCatchup), true
}

func (j *job) tableWake(tick time.Time, kind string) wake {
	j.asking++
	return wake{job: j, tick: tick, due: j.series.due(tick), kind: kind, attempt: 1, open: true}
}

// close ends the asking of a wake. known says that it is clear what became of its tick.
func (w *wake) close(known bool) {
	if !w.open {
		return
	}
	w.open = false
	j := w.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asking--
	if known {
		j.answered = newestOf(j.answered, w.tick)
	}
}

// begins tells whether a wake that asks nobody for its tick may fire it. Not so when its job was changed since it entered:
// the heir was not told that the tick is being fired.
func (w *wake) begins() bool {
	j := w.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if !w.open {
		return true
	}
	if j.retired {
		return false
	}
	w.open = false
	j.asking--
	j.answered = newestOf(j.answered, w.tick)
	return true
}

// heard records what Redis said of the job's ticks. True when it said that of another ledger than the one that the job was
// registered in: then Redis has lost its data, and what is known of the ticks before stays until Redis has been told.
func (j *job) heard(w *wake, a lock.Answer) (lost bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.born.IsZero() && !a.Born.IsZero() && !a.Born.Equal(j.born) {
		j.registered = time.Time{}
		j.answered = newestOf(j.answered, w.tick)
		return true
	}
	if !a.Prev.IsZero() {
		j.claimed = a.Prev
	}
	if w.member == "" && (a.Code == lock.Won || a.Code == lock.Queued) {
		j.claimed = w.tick
	}
	switch {
	case a.Code == lock.Overlap:
		j.overlapped = newestOf(j.overlapped, w.tick)
	case a.Code == lock.Paused && w.member == "":
		j.held = newestOf(j.held, w.tick)
	}
	j.pausedTo = newestOf(j.pausedTo, a.PausedTo)
	j.highest = newestOf(j.highest, j.claimed)
	j.answered = newestOf(j.answered, j.claimed)
	return false
}

// heardBefore is the newest tick that was ever said to be claimed.
func (j *job) heardBefore() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.highest
}

func newestOf(ts ...time.Time) time.Time { return slices.MaxFunc(ts, time.Time.Compare) }

// safetyDelay is how long the lock outlives a run. A lock per tick, or none, has nothing to protect afterwards.
func (j *job) safetyDelay() time.Duration {
	if j.ConcurrencyPolicy == config.Allow || j.Guarantee == config.EveryReplica {
		return 0
	}
	return j.Lock.SafetyDelay
}

// dueWake is the wake of a member of the due set. What somebody asked for is due at once: its tick is by Redis' clock, and
// jitter is for what comes by the table.
func (j *job) dueWake(d lock.Due, now time.Time) *wake {
	w := &wake{job: j, tick: d.Tick, due: j.series.due(d.Tick), kind: d.Kind, attempt: d.Attempt, of: d, member: d.Member(), claimed: true}
	if w.byHand() {
		w.due = now
		if d.Tick.Before(now) {
			w.due = d.Tick
		}
	}
	return w
}

// setBack records that the clock was set back, to t or later. What was taken lies in the future then, and only what came
// due before t counts as taken.
func (j *job) setBack(t time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.taken.After(t) && j.Guarantee != config.EveryReplica { // which no claim would keep from firing again
		j.taken = j.series.newest(t)
	}
}

// overdue tells whether a tick that came due by t was taken by no wake.
func (j *job) overdue(t time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.series.newest(t).After(j.taken)
}

// claim is the question that a wake asks Redis.
func (s *Sidecar) claim(w *wake) lock.Claim {
	j := w.job
	c := lock.Claim{
		Job: j.Name, Tick: w.tick, Due: s.onRedis(w.due), Run: uuid.NewString(), Replica: s.replica, TTL: j.Lock.TTL,
		Policy: lock.Policy(j.ConcurrencyPolicy), Period: j.series.period, Kind: w.kind, Key: w.of.Key, AgainKey: w.againKey(),
		Attempt: w.attempt, Retries: j.Retry.Limit, Rounds: w.of.Rounds, Deaths: w.of.Deaths,
		Refused: w.of.Refused, Again: j.Guarantee == config.AtLeastOnce, Fingerprint: j.Fingerprint, Second: w.second, Member: w.member,
	}
	if w.member != "" {
		return c
	}
	c.Known = j.heardBefore()
	if j.Missed == config.All {
		s.addOlder(&c, j)
	}
	first := w.tick
	if len(c.Older) > 0 {
		first = c.Older[0].Tick
	}
	if first.Sub(c.Known) > j.series.period { // else there is no tick in between
		c.Before = j.series.schedule.Last(first.Add(-time.Nanosecond))
	}
	return c
}

// maxOlder bounds how many missed ticks are fired late.
const maxOlder = 100

// addOlder has the claim of a tick make those due that nobody fired before it, and this one after them.
func (s *Sidecar) addOlder(c *lock.Claim, j *job) {
	j.mu.Lock()
	claimed, from := j.claimed, newestOf(j.claimed, j.highest, j.overlapped, j.since, j.pausedTo)
	j.mu.Unlock()
	if claimed.IsZero() {
		return
	}
	if d := j.StartingDeadline; d > 0 {
		from = newestOf(from, s.clock.Now().Add(-d))
	}
	c.OlderThan = claimed
	older := j.series.between(from, c.Tick, maxOlder)
	if len(older) == 0 {
		return
	}
	c.Older = j.series.past(append(older, c.Tick))
	for i := range c.Older {
		c.Older[i].Due = s.onRedis(c.Older[i].Due)
	}
}

// owes is what Redis is told of the job besides its fingerprint, in case it has lost its data: what this replica knew, and
// under at-least-once the ticks that came due since and are to be fired late.
func (j *job) owes(now time.Time) lock.Before {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := lock.Before{
		Born:  j.born,
		Tick:  newestOf(j.highest, j.overlapped, j.held, j.since, j.pausedTo),
		Again: j.Guarantee == config.AtLeastOnce,
	}
	if j.Suspend { // it has missed nothing
		b.Born = time.Time{}
	}
	if !b.Again || b.Born.IsZero() {
		return b
	}
	most := 1
	switch j.Missed {
	case config.All:
		most = maxOlder
	case config.Skip:
		return b
	}
	from := b.Tick
	if d := j.StartingDeadline; d > 0 {
		from = newestOf(from, now.Add(-d))
	}
	b.Owed = j.series.past(j.series.between(from, j.series.newest(now).Add(time.Nanosecond), most))
	return b
}

// worthUntil is the instant after which a wake is not worth firing any more: its starting deadline, or the next tick,
// which takes its place. Zero when there is neither.
func (w *wake) worthUntil() time.Time {
	until, j := w.deadline(), w.job
	lasting := w.claimed && (j.Missed == config.All || j.ConcurrencyPolicy == config.Queue || j.Guarantee == config.AtLeastOnce && w.kind != kindCatchup)
	if w.byHand() || w.kind == kindTakeover || lasting {
		return until
	}
	next := j.series.due(j.series.schedule.Next(w.tick))
	if until.IsZero() || !next.IsZero() && next.Before(until) {
		return next
	}
	return until
}

// deadline is when a tick is too late to be started; zero when it never is. What ran already, and what somebody asked
// for, has none.
func (w *wake) deadline() time.Time {
	switch j := w.job; {
	case w.byHand() || w.kind == kindTakeover:
	case j.StartingDeadline > 0:
		return w.tick.Add(j.StartingDeadline)
	case j.Missed == config.Skip && w.member == "": // what is due besides the table was claimed in time
		return w.due.Add(punctual)
	}
	return time.Time{}
}

// registerDue tells whether Redis should be told of the job: at first, and daily, since what nobody registers expires.
func (j *job) registerDue() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.registered.IsZero() || time.Since(j.registered) >= registerEvery
}

func (j *job) registeredAs(l lock.Ledger) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.born, j.since, j.back, j.registered, j.claimed, j.returns = l.Born, l.Since, l.Back, time.Now(), l.Tick, false
	j.highest = newestOf(j.highest, l.Tick)
	j.answered = newestOf(j.answered, l.Tick)
}

// forget makes registerDue say yes.
func (j *job) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.registered = time.Time{}
}

func (j *job) comesBack() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.returns
}

func (j *job) bornAt() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.born
}

// cameBack is when the job came back after no replica had it. Not ok: Redis has not been told of it yet.
func (j *job) cameBack() (at time.Time, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.back, !j.registered.IsZero()
}

// knownSince is when Redis first saw the job's present series of ticks; zero when Redis has not been told yet.
func (j *job) knownSince() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.since
}
