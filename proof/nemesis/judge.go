package nemesis

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// The allowances of the judge.
const (
	// edge is what the clock's error and a busy machine may move an instant by.
	edge = 300 * time.Millisecond
	// hair is how long after its claim a run arrives at the app, on a busy machine.
	hair = 100 * time.Millisecond
	// prompt is how soon a tick is started although the apps of some replicas refuse it.
	prompt = 2 * time.Second
	// thawed is how long after Redis stood still a replica may take to ask again.
	thawed = 700 * time.Millisecond
	// little is too short a time after an outage for anybody to be asked to fire what came due in it.
	little = time.Second
	// recovery is how long after an outage a tick may still be missed: connections are made anew, and a replica that
	// waits for Redis asks again.
	recovery = 2 * time.Second
	// catchUp is how long a tick of an outage must still be worth firing after it for the catch-up to have to fire it.
	catchUp = 4 * time.Second
	// dying is how much longer than its lease a run of a dead replica may stay unnoticed: two looks, and a busy
	// machine.
	dying = 3 * time.Second
	// written is by how much the time of an entry of the history may lie before the moment it is of: Redis looks at its
	// clock now and then.
	written = 20 * time.Millisecond
	// takeovers bounds how often a run that was cut short is taken over.
	takeovers = 3
)

// cause is what explains a tick that was not fired, without an overlap.
type cause string

const (
	anOutage         cause = "an outage"
	besideAnOutage   cause = "no chance beside an outage"
	struck           cause = "its claimant was struck before the start"
	behindTheStruck  cause = "behind a claimant that was struck"
	behindUnanswered cause = "behind a claim that may not have been answered"
	behindHandedOn   cause = "behind an older tick that was handed on"
	perhapsStarted   cause = "may have been started"
	allSlotsTaken    cause = "no slot was free for long enough"
	besideTheStruck  cause = "all replicas that were asked were struck"
)

// cause is also why a tick may lack its fate, have another one, or have two.
const (
	notCounted  cause = "was missed, and no newer tick came due"
	neverBegun  cause = "its run was taken for dead, and had never begun"
	forgotFates cause = "Redis forgot its fate"
)

// bounds says how many of a thousand ticks of a class each cause may excuse, and how many where there are few ticks: a
// strike at the moment of a tick meets all jobs that are due then. An outage may excuse a share of the ticks that came
// in it or just after it, since on a busy machine replicas come back late, and outages are long: the others of these
// ticks are fired after it. Runs of a minute have shown at most 455 of a thousand of them. Three runs of half an hour,
// with 25,000 to 29,000 ticks, have shown at most 15 of a thousand struck before the start, and 10 for all other causes
// together.
var bounds = map[cause]struct{ perMille, few int }{
	anOutage:         {650, 20}, // of those in an outage
	besideAnOutage:   {20, 8},
	struck:           {40, 22},
	behindTheStruck:  {10, 8},
	behindUnanswered: {10, 8},
	behindHandedOn:   {10, 8},
	perhapsStarted:   {10, 26}, // an app's door that closed at a full ten seconds met 13 jobs of 19
	allSlotsTaken:    {200, 20},
	besideTheStruck:  {10, 8},
	notCounted:       {2, 4},
	neverBegun:       {10, 8},
	forgotFates:      {20, 16},
}

// trial is all that the judge is told.
type trial struct {
	jobs     []job
	requests []rig.Request
	history  []entry
	ledgers  map[string]*ledger // of all jobs; nil = nobody has read them, and no fate is judged
	record   *record
	replicas []string
	from, to time.Time // of the ticks that count
	left     time.Time // when the replicas were told to end
	memory   memory
	local    bool            // replicas follow their own clocks, which may be wrong
	slots    int             // of each replica; 0 = enough
	reserved map[string]bool // jobs of which one run on a replica takes none of them
	// withoutAnswer reports whether a replica has logged that it asked for a tick, and ended without an answer; nil =
	// none has.
	withoutAnswer func(job string, tick time.Time) bool

	questions []rig.Question // of apps that ask for their ticks
}

// memory says what Redis still knows after it was struck.
type memory int

const (
	// keepsAll: what it has acknowledged: one server that writes before it answers.
	keepsAll memory = iota
	// keepsClaims: all claims, since those wait for a replica of Redis, but perhaps not the end of a run.
	keepsClaims
	// forgets: not everything. This is the limit of promise 1, so what follows from it is counted, and is no violation.
	forgets
)

// forever is longer than any tick is worth firing.
const forever = math.MaxInt64

// tally is what became of the ticks of one class of faults.
type tally struct {
	strikes                int
	ticks, fired, overlaps int
	exposed                int // ticks in an outage, or just after one
	outages                int // excused by anOutage
	interrupted            int // excused by struck
	excused                int // by what else explains a tick that was not fired
	drained                int // runs that were under way when their replica was told to end
	late                   int // ticks that outlived an outage, and were fired after it
	doubles, lost          int
	machine                int // findings that a machine that stood still explains
	limits                 int // what would be a violation, had Redis not been allowed to forget
	takeovers, handovers   int
	slowestTakeover        time.Duration // from the death to the next attempt, or to the record that there is none
	slowestHandover        time.Duration // from the refusal to the arrival at the app
	works, stops, reports  int           // of runs that the app accepted: it worked, had to stop, reported success
	stood                  int           // of these works: the app stood still, and may have been taken for dead
	given, held            int           // ticks that apps got by asking; leases that they held
	unasked                int           // ticks for which no app asked in time
	died                   int           // apps that fell silent after they had got a tick or a lease
}

// finding is one violation.
type finding struct {
	what string
	job  string
	tick time.Time
	end  time.Time // of the run, if there was one
}

// excuse is a tick that was not fired, without a finding.
type excuse struct {
	class string
	cause cause
	job   string
	tick  time.Time
}

// verdict is what the judge says.
type verdict struct {
	byClass  map[string]*tally
	findings []finding
	excuses  []excuse
	fates    account
}

func (v *verdict) of(class string) *tally {
	if v.byClass[class] == nil {
		v.byClass[class] = &tally{}
	}
	return v.byClass[class]
}

// excuse lets a tick of the court's job pass that was not fired.
func (c *court) excuse(why cause, tick time.Time) {
	class := c.record.classAt(tick)
	switch t := c.of(class); why {
	case anOutage:
		t.outages++
	case struck:
		t.interrupted++
	case behindUnanswered:
		t.overlaps++
	case notCounted, neverBegun, forgotFates: // those of its fate, in an account of their own
	default:
		t.excused++
	}
	c.excuses = append(c.excuses, excuse{class, why, c.job.name, tick})
}

// leniency is how many ticks of a class one cause has excused, of how many that it may.
type leniency struct {
	class       string
	cause       cause
	n, of, most int
}

// leniencies are those of all causes that have excused ticks, in order.
func (v *verdict) leniencies() (all []leniency) {
	n := map[leniency]int{}
	for _, e := range v.excuses {
		n[leniency{class: e.class, cause: e.cause}]++
	}
	for l, n := range n {
		bound := bounds[l.cause]
		l.n, l.of = n, v.of(l.class).ticks
		if l.cause == anOutage {
			l.of = v.of(l.class).exposed
		}
		l.most = max(bound.few, l.of*bound.perMille/1000)
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b leniency) int {
		return cmp.Or(cmp.Compare(a.cause, b.cause), cmp.Compare(a.class, b.class))
	})
	return all
}

func (v *verdict) find(what string, r *run) {
	v.findings = append(v.findings, finding{what, r.job, r.tick, r.end()})
}

// judge settles what became of every tick and of every run.
func judge(t trial) *verdict {
	v := &verdict{byClass: map[string]*tally{}, fates: account{byName: map[string]int{}}}
	for _, p := range t.record.phases {
		v.of(p.class)
	}
	for _, s := range t.record.strikes {
		v.of(t.record.classAt(s.from)).strikes++
	}
	now := time.Now()
	outages := t.record.outages(t.replicas, now)
	requests := map[string][]rig.Request{}
	for _, q := range t.requests {
		requests[q.Job] = append(requests[q.Job], q)
	}
	questions := map[string][]rig.Question{}
	for _, q := range t.questions {
		questions[q.Job] = append(questions[q.Job], q)
	}
	byJob := map[string][]*run{}
	all := join(t.requests, t.history, now)
	for _, r := range all {
		if t.heldUp(r) {
			r.arrived, r.ended = time.Time{}, time.Time{}
		}
		byJob[r.job] = append(byJob[r.job], r)
	}
	at := byReplica(all)
	for _, j := range t.jobs {
		c := &court{trial: t, verdict: v, job: j, runs: byJob[j.name], at: at,
			calls: requests[j.name], queries: questions[j.name], outages: outages}
		c.hear()
		delete(byJob, j.name)
	}
	for _, runs := range byJob {
		v.find("no job of the table", runs[0])
	}
	return v
}

// heldUp reports whether a process was stopped between its last look at the lease, which is on the tick, and the call
// of the app. It makes the call when it goes on, and hangs up at once, since the run was taken over meanwhile. That is
// a limit (docs/guarantees.md), and the run has not started.
func (t *trial) heldUp(r *run) bool {
	looked := r.tick
	if r.claimed().After(looked) {
		looked = r.claimed()
	}
	takenOver := r.outcome() == interrupted && r.settled[0].at.Before(r.arrived)
	return takenOver && r.left && r.ended.Sub(r.arrived) <= hair &&
		slices.ContainsFunc(t.record.on(r.replica, looked, r.arrived), func(s strike) bool {
			return s.harm == stopped && s.from.After(looked.Add(-written)) && s.from.Before(looked.Add(hair)) &&
				s.to.Sub(r.arrived).Abs() <= hair
		})
}

// court judges one job.
type court struct {
	trial
	*verdict
	job     job
	runs    []*run            // in order of their beginning
	at      map[string][]*run // those of all jobs that the app was asked for, by replica
	calls   []rig.Request     // in order of their arrival
	queries []rig.Question    // of the job's apps
	byTick  map[time.Time][]*run
	outages []span
}

// early is how long before its tick a run may begin. Redis lets a wrong clock claim a tick early by half a period, and
// by a second at most.
func (c *court) early() time.Duration {
	if !c.local {
		return edge
	}
	return edge + min(c.job.every/2, time.Second)
}

func (c *court) hear() {
	c.byTick = map[time.Time][]*run{}
	for _, r := range c.runs {
		c.byTick[r.tick] = append(c.byTick[r.tick], r)
	}
	for _, r := range c.runs {
		c.look(r)
	}
	c.order()
	c.watch()
	c.attend()
	for _, tick := range c.job.ticks(c.from, c.to) {
		t := c.of(c.record.classAt(tick))
		t.ticks++
		if c.outage(tick) >= 0 {
			t.exposed++
		}
		c.settle(t, tick, c.byTick[tick])
	}
	if c.ledgers != nil {
		c.weigh()
	}
}

// forbid finds a violation that Redis' loss of memory would explain, where it may not forget.
func (c *court) forbid(what string, r *run) {
	if c.memory == forgets {
		c.of(c.record.classAt(r.begin())).limits++
		return
	}
	c.find(what, r)
}

// started are those of the runs that the app was asked for.
func started(runs []*run) []*run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return !r.started() })
}

// settle says what became of one tick.
func (c *court) settle(t *tally, tick time.Time, runs []*run) {
	if started := started(runs); len(started) > 0 {
		t.fired++
		if c.job.all && started[0].arrived.After(tick.Add(c.job.every)) {
			t.late++
		}
		if c.slow(tick, started[0]) {
			c.find("started late", started[0])
		}
		if last := started[len(started)-1]; c.unfinished(last) {
			t.lost++
			c.find("cut short and not run again", last)
		}
		return
	}
	switch {
	case c.job.asks && !c.asked(tick):
		t.unasked++
	case slices.ContainsFunc(runs, c.diedBeforeTheStart), !c.job.lasts() && c.unanswered(tick):
		c.excuse(struck, tick)
	case c.overlapped(tick):
		t.overlaps++
	case c.behindTheUnanswered(tick):
		c.excuse(behindUnanswered, tick)
	case c.behindTheStruck(tick):
		c.excuse(behindTheStruck, tick)
	case c.behindTheHandedOn(tick):
		c.excuse(behindHandedOn, tick)
	case slices.ContainsFunc(runs, c.mayHaveStarted):
		c.excuse(perhapsStarted, tick)
	case c.job.asks && !c.owed(tick) && c.outage(tick) >= 0:
		c.excuse(anOutage, tick)
	case c.job.asks && !c.owed(tick):
		c.excuse(besideTheStruck, tick)
	case c.job.asks:
		t.lost++
		c.find("lost", &run{job: c.job.name, tick: tick})
	case !c.job.all && c.slots > 0 && !c.free(tick, tick, tick.Add(c.job.every), prompt):
		c.excuse(allSlotsTaken, tick)
	case !c.job.all && c.hadNoChance(tick, little):
		c.excuse(anOutage, tick)
	case !c.job.all && c.hadNoChance(tick, forever):
		c.excuse(besideAnOutage, tick)
	default:
		t.lost++
		c.find("lost", &run{job: c.job.name, tick: tick})
	}
}

// twice reports whether the tick of a run, its first, was fired again although nothing had cut the run short.
func (c *court) twice(r *run) bool {
	started := started(c.byTick[r.tick])
	for i := 1; i < len(started) && started[0] == r; i++ {
		before, r := started[i-1], started[i]
		if !c.job.again || r.first <= before.attempt || !c.cutShort(before, r.arrived) {
			return true
		}
	}
	return false
}

// cutShort reports whether a run was to be run again at that instant.
func (c *court) cutShort(r *run, at time.Time) bool {
	return r.left || (r.outcome() != succeeded || c.memory != keepsAll) && c.untold(r, at)
}

// unfinished reports whether a run that was cut short, the last of its tick, should have been run again.
func (c *court) unfinished(r *run) bool {
	return c.job.again && r.left && r.attempt <= takeovers
}

// diedBeforeTheStart reports whether a run was claimed by a replica that was struck before it could start it: it was
// taken over, which under at-least-once is to run it again, or given back when the next tick was due, or so close that
// nobody could take this one any more.
func (c *court) diedBeforeTheStart(r *run) bool {
	if !c.record.struck(r.replica, r.tick.Add(-edge), r.end()) {
		return false
	}
	return r.outcome() == interrupted && !c.job.again ||
		r.outcome() == notStarted && !c.job.lasts() && !r.end().Add(edge).Before(r.tick.Add(c.job.every))
}

// behindTheStruck reports whether a tick was refused behind a claim whose replica was struck before it could start the
// job, and was set free only when the next tick was due, which took its place.
func (c *court) behindTheStruck(tick time.Time) bool {
	return slices.ContainsFunc(c.runs, func(r *run) bool {
		return !c.job.allow && r.outcome() == notStarted && r.tick.Before(tick) &&
			!r.end().Add(edge).Before(tick.Add(c.job.every)) && c.record.struck(r.replica, r.tick.Add(-edge), r.end())
	})
}

// behindTheHandedOn reports whether a tick was refused behind an older one that was given back and, under
// at-least-once, run late all the same, and was set free only when the next tick was due, which took its place.
func (c *court) behindTheHandedOn(tick time.Time) bool {
	next := tick.Add(c.job.every)
	return c.job.again && !c.job.allow && slices.ContainsFunc(c.runs, func(r *run) bool {
		return r.started() && r.kind == "handover" && r.tick.Before(tick) && r.begin().Before(next) &&
			!r.end().Add(edge).Before(next)
	})
}

// givenBack reports whether a run under at-least-once is the second of its tick. A replica that was cut off or stopped
// at that moment may have claimed it, and so may one that asked a struck Redis and says that it had no answer. It gives
// the tick back when it hears of that, under the kind that it had.
func (c *court) givenBack(r *run) bool {
	return c.job.again && r.kind == "schedule" && r.first == 1 &&
		(c.withoutAnswer != nil && c.withoutAnswer(r.job, r.tick) &&
			len(c.record.on(theRedis, r.tick.Add(-edge), r.begin())) > 0 ||
			slices.ContainsFunc(c.record.strikes, func(s strike) bool {
				return (s.harm == cut || s.harm == stopped) && s.target != r.replica &&
					s.from.Sub(r.tick).Abs() <= edge && !r.begin().Add(edge).Before(s.to)
			}))
}

// unanswered reports whether a tick may have been claimed by a replica that was cut off before it heard so: it gives
// the claim back once no copy of its question can arrive any more, which is a lease later, and leaves no entry. One
// that stood still does so when it goes on, and the tick is gone if the next one is due by then.
func (c *court) unanswered(tick time.Time) bool {
	runs := c.byTick[tick]
	if slices.ContainsFunc(runs, func(r *run) bool { // a takeover follows on the run before it
		return !c.givenBack(r) && (r == runs[0] || r.first == 1)
	}) {
		return false
	}
	return slices.ContainsFunc(c.record.strikes, func(s strike) bool {
		if c.job.asks && !c.unansweredAt(s, tick) {
			return false
		}
		return (s.harm == cut || s.harm == stopped && !s.to.Before(tick.Add(c.job.every))) &&
			(c.job.asks || s.from.Sub(tick).Abs() <= edge)
	})
}

// mayHaveStarted reports whether the call of one of a run's attempts was on its way when the app shut its door.
func (c *court) mayHaveStarted(r *run) bool {
	if r.outcome() != failed {
		return false
	}
	to := r.settled[0].at
	from := to.Add(-edge)
	if r.settled[0].attempt > 1 { // the first one was on the tick
		from = r.tick.Add(-edge)
	}
	return slices.ContainsFunc(c.record.on(r.replica, from, to), func(s strike) bool {
		return s.harm == refused && s.from.After(from)
	})
}

// overlapped reports whether a tick met a run of its job, and under Queue another tick that waited for its end too, or
// had been handed on.
func (c *court) overlapped(tick time.Time) bool {
	if !c.job.queue {
		return c.behindARun(tick)
	}
	return c.waited(tick) && (c.behindARun(tick) || slices.ContainsFunc(c.runs, func(r *run) bool {
		return r.kind == "handover" && r.tick.Before(tick) && r.claimed().Add(edge).After(tick)
	}))
}

// behindARun reports whether a run of the job was under way at the tick, for the app or, after a strike, for Redis.
func (c *court) behindARun(tick time.Time) bool {
	if c.job.allow {
		return false
	}
	return slices.ContainsFunc(c.runs, func(r *run) bool { return c.inTheWay(r, tick) })
}

// inTheWay reports whether that run was under way at the tick.
func (c *court) inTheWay(r *run, tick time.Time) bool {
	if r.outcome() == notStarted || r.tick.Equal(tick) {
		return false
	}
	begin, end := r.claimed(), r.ended
	refusedMeanwhile := slices.ContainsFunc(c.record.on(r.replica, r.begin(), r.end()), func(s strike) bool {
		return s.harm == refused
	})
	toldSoon := r.end().Before(end.Add(prompt)) // as soon as a busy machine could
	// it goes on, and the app does not see that
	if !r.started() || toldSoon || refusedMeanwhile || c.record.struck(r.replica, r.begin().Add(-edge), r.end()) {
		end = r.end()
	}
	if r.kind == "schedule" &&
		(c.record.hit(r.replica, r.tick.Add(-edge), begin) || c.record.gone(r.tick.Add(-edge), begin)) {
		begin = r.tick // it was claimed, and its replica held up before it could start it
	}
	return !begin.Add(-hair).After(tick) && !end.Add(edge).Before(tick)
}

// behindTheUnanswered reports whether a claim of an older tick may have been unanswered at the tick: until the
// claimant, or a takeover, gives it back.
func (c *court) behindTheUnanswered(tick time.Time) bool {
	if c.job.allow {
		return false
	}
	for before := tick.Add(-c.job.every); tick.Sub(before) <= c.job.lease()+edge; before = before.Add(-c.job.every) {
		if c.unanswered(before) {
			return true
		}
	}
	return false
}

// waited reports whether an older tick waited for the end of a run when this one came due: no more than one may. When
// the replicas were told to end before that run had ended, nobody has run the tick that waited.
func (c *court) waited(tick time.Time) bool {
	return slices.ContainsFunc(c.runs, func(r *run) bool {
		if !c.left.IsZero() && !r.end().Add(edge).Before(c.left) && c.inTheWay(r, tick) {
			return true
		}
		return r.tick.Before(tick) && r.end().After(tick) && (!r.started() || r.arrived.Add(edge).After(tick))
	})
}

// slow reports whether a tick was started late although the app beside a replica that was whole took it all the time.
func (c *court) slow(tick time.Time, r *run) bool {
	end := tick.Add(prompt)
	refuses := !c.job.asks && slices.ContainsFunc(c.record.strikes, func(s strike) bool {
		return s.harm == refused && s.touches(tick, tick)
	})
	healthy := slices.ContainsFunc(c.replicas, func(name string) bool {
		return !c.record.touched(name, tick.Add(-edge), end)
	})
	return refuses && healthy && r.arrived.After(end) && !c.behindARun(tick) && !c.behindTheUnanswered(tick) &&
		(c.slots == 0 || c.free(tick, tick, r.arrived, prompt))
}

// aftermath is how long after an outage a tick may still be missed, and how long a tick of the outage must be worth
// firing after it for the catch-up to have to fire it.
func (s span) aftermath() (again, enough time.Duration) {
	switch s.harm {
	case stalled:
		return thawed, thawed
	case refused:
		return edge, prompt
	}
	return recovery, catchUp
}

// outage is the outage in which a tick came, or soon after which; -1 = none.
func (c *court) outage(tick time.Time) int {
	return slices.IndexFunc(c.outages, func(s span) bool {
		again, _ := s.aftermath()
		return !s.from.Add(-edge).After(tick) && !s.to.Add(again).Before(tick)
	})
}

// hadNoChance reports whether an outage took a tick's chance: it came in one, or soon after, and before the next tick
// took its place there was not time enough to catch up, nor as much as most.
func (c *court) hadNoChance(tick time.Time, most time.Duration) bool {
	hit := c.outage(tick)
	if hit < 0 {
		return false
	}
	_, enough := c.outages[hit].aftermath()
	next := tick.Add(c.job.every)
	from := tick
	var longest time.Duration // of the stretches without an outage until the next tick
	for _, s := range c.outages {
		if s.to.After(from) && s.from.Before(next) {
			longest = max(longest, s.from.Sub(from))
			from = s.to
		}
	}
	return max(longest, next.Sub(from)) < min(enough, most)
}
