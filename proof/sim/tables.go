package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
)

// Reload is a change of the table, which the replicas see one after the other.
type Reload struct {
	At time.Duration
	// content, schedule, policy, guarantee, missed, zone, jitter, excludes, calendar, leaves, returns, renamed, named
	// back, asks, lease
	Kind string
	Job  string
	To   string                // what a policy, a guarantee, a zone, the excluded calendar or its day is changed to
	Late map[int]time.Duration // places that see it so much later than the others
}

// version is a table that is in force from some time on.
type version struct {
	at        time.Duration
	jobs      []Job
	calendars []Calendar
}

// slowest is how long after a change of the table's file the last replica sees it, where nothing else is said.
const slowest = 1500 * time.Millisecond

// reloads draws changes of the table. They have dice of their own, so that all else of a seed is as it would be
// without.
func (p *Plan) reloads() {
	r := rand.New(rand.NewPCG(p.Seed, 0x4E10AD))
	end := p.Lasts - 16*time.Second
	for range pick(r, 0, 0, 0, 1, 1, 2, 4) {
		x := Reload{At: 8*time.Second + upTo(r, end-8*time.Second),
			Kind: pick(r, "content", "content", "schedule", "schedule", "leaves"),
			Job:  p.Jobs[r.IntN(len(p.Jobs))].Name}
		p.Reloads = append(p.Reloads, x)
		if x.Kind == "leaves" {
			p.Reloads = append(p.Reloads, Reload{At: min(x.At+time.Second+upTo(r, 8*time.Second), end),
				Kind: "returns", Job: x.Job})
		}
	}
	slices.SortStableFunc(p.Reloads, func(a, b Reload) int { return cmp.Compare(a.At, b.At) })
	for i, x := range p.Reloads {
		if x.Kind == "schedule" {
			p.Reloads[i].To = (time.Duration(pick(r, 1, 2, 3, 5, 7, 10)) * time.Second).String()
		}
	}
}

// tables makes the versions of the table from the reloads.
func (p *Plan) tables() {
	p.versions, p.natures = []version{{jobs: p.Jobs, calendars: p.Calendars}}, map[string]*Job{}
	for i := range p.Jobs {
		p.natures[p.Jobs[i].Name] = &p.Jobs[i]
	}
	jobs, calendars, gone := slices.Clone(p.Jobs), p.Calendars, map[string]int{}
	for _, x := range p.Reloads {
		for i := range jobs {
			if j := &jobs[i]; j.Name == x.Job {
				x.change(j, gone)
				if p.natures[j.Name] == nil {
					nature := *j
					p.natures[j.Name] = &nature
				}
			}
		}
		there := slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return gone[j.Name] > 0 })
		if x.Kind == "calendar" {
			calendars = slices.Clone(calendars)
			calendars[0].Dates = []string{x.To}
		}
		p.versions = append(p.versions, version{x.At, there, calendars})
	}
}

// change makes the change in a row of the table.
func (x *Reload) change(j *Job, gone map[string]int) {
	switch x.Kind {
	case "content":
		j.Timeout += time.Second
	case "schedule":
		j.Period, _ = time.ParseDuration(x.To)
		j.Jitter = min(j.Jitter, j.Period/4)
	case "asks":
		j.Asks = !j.Asks
	case "lease":
		j.Lease = !j.Lease
	case "policy":
		j.Policy = x.To
	case "guarantee":
		j.Guarantee = x.To
	case "missed":
		j.Missed = x.To
	case "zone":
		j.Zone = x.To
	case "jitter":
		if j.Jitter += j.Period / 8; j.Jitter > j.Period/2 {
			j.Jitter = 0
		}
	case "excludes":
		days := *j.Days
		days.Exclude, j.Days = x.To, &days
	case "renamed", "named back":
		j.Name = x.To
	case "leaves":
		gone[x.Job]++
	case "returns":
		gone[x.Job]--
	}
}

// reload changes the table's file, at each place when it gets there. Each replica sees that in its own time, and then
// reads what the file says by then.
func (w *world) reload(n int) {
	x := w.plan.Reloads[n-1]
	w.note(nil, "TABLE "+x.Kind, x.Job, "", "", x.To)
	for place := range w.plan.Replicas {
		w.later(x.Late[place], func() { w.arrives(n, place) })
	}
}

// arrives is when a place has a version of the table's file.
func (w *world) arrives(n, place int) {
	w.mu.Lock()
	w.files[place] = max(w.files[place], n)
	r := w.present[place]
	w.mu.Unlock()
	if r == nil {
		return
	}
	w.later(w.dice.between(0, slowest, forReload, r.key, uint64(n)), func() {
		r.stall.wait()
		if at, dead := r.stopped(); dead || at != 0 {
			return
		}
		w.swap(r)
	})
}

// swap puts the table that the file has in force on a replica.
func (w *world) swap(r *replica) {
	w.mu.Lock()
	v := w.files[r.place]
	w.mu.Unlock()
	t := w.tables[v]
	for _, c := range t.Jobs {
		was := row(r.sidecar.Table(), c.Name)
		if c.Claim != nil && was != nil && was.Claim == nil && w.redis.isDue(c.Name, 2*w.plan.Lasts, false) {
			w.mu.Lock()
			w.became++
			w.mu.Unlock()
		}
	}
	for _, c := range r.sidecar.Table().Jobs {
		if !slices.ContainsFunc(t.Jobs, func(n config.Job) bool { return n.Name == c.Name }) {
			w.mu.Lock()
			r.left[c.Name] = true
			w.mu.Unlock()
		}
	}
	w.note(r, "reloads", "", "", "", "")
	if err := r.sidecar.Reload(t, nil); err != nil && !r.drains() {
		w.violated("reload", "", "%s: %v", r.process, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swapped = append(w.swapped, swapped{r, w.now(), v})
}

// swapped is when a replica put which of the tables in force.
type swapped struct {
	replica *replica
	at      time.Duration
	version int
}

// tableOf is the table that a replica had in force at a time.
func (w *world) tableOf(r *replica, at time.Duration) *config.Table {
	version := r.version
	for _, s := range w.swapped {
		if s.replica == r && s.at <= at {
			version = s.version
		}
	}
	return w.tables[version]
}

// ways is what tells two rows apart whose ticks, or what becomes of them, are not the same: as far as this world goes.
func (w *world) ways(c *config.Job) string {
	t := w.ticksOf(c)
	if t.ways == "" {
		var ticks []int64
		for tick := t.last(w.began); tick.Before(w.began.Add(w.plan.Lasts + time.Minute)); tick = t.next(tick) {
			ticks = append(ticks, tick.Unix())
		}
		if c.Guarantee == config.EveryReplica { // no ledger says what goes on
			t.ways = c.Fingerprint
		}
		t.ways += fmt.Sprintln(ticks, c.Jitter, c.Suspend, c.Guarantee, c.ConcurrencyPolicy, c.Missed, c.Claim != nil)
	}
	return t.ways
}

// life is a stretch of time in which a job's ticks, and what becomes of them, are the same for all replicas.
type life struct {
	*config.Job
	from, to time.Duration
	back     bool // the job was in no table just before
}

// settling is how long after the last replica has reloaded a job's new ticks are nobody's yet: it is registered with
// the next look.
const settling = 2 * time.Second

// lives of a job, in order.
func (w *world) lives(name string) []life {
	var all []life
	ticks, everywhere := "", false // of the version before, and what becomes of them
	for n, v := range w.plan.versions {
		c, absent, knew := row(w.tables[n], name), ticks == "", w.plan.Settles
		if everywhere { // a limit: each replica that comes from there settles the ticks before
			knew = w.lastToTell(name, v.at)
		}
		everywhere = c != nil && c.Guarantee == config.EveryReplica
		switch {
		case c != nil && w.ways(c) == ticks:
			all[len(all)-1].Job = c
			continue
		case len(all) > 0 && ticks != "":
			all[len(all)-1].to = v.at
		}
		ticks = ""
		if c == nil {
			continue
		}
		ticks = w.ways(c)
		l := life{Job: c, from: w.plan.Settles, to: w.plan.Lasts}
		if n > 0 {
			l.back = absent
			l.from = max(v.at+slowest, w.lastToSwap(n), knew) + settling
		}
		all = append(all, l)
	}
	return slices.DeleteFunc(all, func(l life) bool { return l.from >= l.to })
}

// lastToTell is when the last replica that was there at a time told Redis of a job after it.
func (w *world) lastToTell(job string, after time.Duration) (at time.Duration) {
	for _, r := range w.replicas {
		i := slices.IndexFunc(w.redis.claims.told, func(t introduced) bool { return t.replica == r && t.job == job && t.at >= after })
		if r.began <= after && i >= 0 {
			at = max(at, w.redis.claims.told[i].at)
		}
	}
	return at
}

// lastToSwap is when the last replica put a version or a newer one in force: one that stands still does so later, and
// one that dies before it does is no matter any more.
func (w *world) lastToSwap(n int) (at time.Duration) {
	for _, r := range w.replicas {
		if r.version >= n {
			continue
		}
		did := r.diedAt()
		if stop, dead := r.stopped(); !dead && stop != 0 {
			did = stop
		} else if !dead && !r.drains() {
			did = w.plan.Lasts
		}
		for _, s := range w.swapped {
			if s.replica == r && s.version >= n {
				did = s.at
				break
			}
		}
		at = max(at, did)
	}
	return at
}

// swaps reports whether a replica put another table in force within a time.
func (w *world) swaps(r *replica, from, to time.Duration) bool {
	return slices.ContainsFunc(w.swapped, func(s swapped) bool { return s.replica == r && s.at >= from && s.at <= to })
}

// overtaking is how long after a replica has another table a question may leave it that was put by the one before: it
// waited for those that were under way, up to two timeouts of a round trip.
const overtaking = 1100 * time.Millisecond

// checkTables: what a replica starts is in the table that it has.
func (w *world) checkTables() {
	for _, r := range w.runs {
		cl, known := w.redis.claims.of(r.ID)
		asked := cl.sent
		switch {
		case r.Attempt > 1:
			continue // a run goes on as it began
		case r.Token == 0:
			asked = r.start
		case !known || !cl.table:
			continue
		}
		from, to := r.replica.version, r.replica.version
		for _, s := range w.swapped {
			if s.replica == r.replica && s.at <= asked {
				to = s.version
				if s.at < asked-overtaking {
					from = s.version
				}
			}
		}
		has := false
		for n := from; n <= to && !has; n++ {
			c := row(w.tables[n], r.Job)
			has = c != nil && w.isTick(c, r.Tick)
		}
		if !has {
			w.violatedAt(r.start, "table", r.Job, "%s starts tick %s, which its table has not had since %s",
				r.replica.process, stamp(r.Tick), asked-overtaking)
		}
	}
}

// checkBegun: the ticks of a job begin anew when a replica registers others than it had registered before, and not when
// it tells Redis once more of those that Redis had from it. In a rollout, other replicas have registered newer ones
// meanwhile. Nor do they for a copy whose sender has given it up.
func (w *world) checkBegun() {
	c := w.redis.claims
	for _, b := range c.begun {
		if b.came > b.at+2*overtaking && !w.stepped {
			w.violatedAt(b.came, "table", b.job, "a copy that %s sent at %s began the ticks of %s anew",
				b.replica.process, b.at, b.job)
		}
		last := c.toldBefore(b)
		if last == nil || last.fingerprint != b.fingerprint || w.swaps(b.replica, last.at, b.at) ||
			w.lostAllBetween(last.at, b.at) ||
			w.disturbed(b.replica.place, last.at, last.at+time.Second) || // the client forgets what it has read of a batch that breaks off
			slices.ContainsFunc(c.left, func(l queued) bool {
				return l.job == b.job && l.at >= last.at-time.Second && l.at <= b.at
			}) ||
			slices.ContainsFunc(c.oblivions, func(o oblivion) bool { return o.from <= b.at && last.at <= o.to }) {
			continue
		}
		w.violatedAt(b.at, "table", b.job, "%s began the ticks of %s anew, although it had registered them at %s",
			b.replica.process, b.job, last.at)
	}
}

// checkCaughtUp: nobody catches up by the table what is still to come.
func (w *world) checkCaughtUp() {
	if w.plan.Local || w.stepped || w.plan.Settles > 0 {
		return // what is to come is another matter for each replica, or becomes one
	}
	for _, a := range w.redis.claims.asks {
		if a.table && a.kind == "catchup" && a.sent < a.tick.Sub(w.began) {
			w.violatedAt(a.sent, "table", a.job, "%s was about to catch up tick %s, which was still to come",
				a.replica.process, stamp(a.tick))
		}
	}
}

// row is a table's job of that name; nil if it has none.
func row(t *config.Table, name string) *config.Job {
	for i := range t.Jobs {
		if t.Jobs[i].Name == name {
			return &t.Jobs[i]
		}
	}
	return nil
}

// during is a job as it was all the time; nil when its ticks changed.
func (w *world) during(name string, from, to time.Duration) *config.Job {
	for _, l := range w.lives(name) {
		if l.from <= from && to <= l.to {
			return l.Job
		}
	}
	return nil
}

// row is a job as the newest version has it at a time; nil if it has none.
func (w *world) row(name string, at time.Duration) (c *config.Job) {
	for n, v := range w.plan.versions {
		if v.at <= at {
			c = row(w.tables[n], name)
		}
	}
	return c
}
