package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/solotick/solotick/config"
)

// Reload is a change of the table, which the replicas see one after the other.
type Reload struct {
	At   time.Duration
	Kind string // content, schedule, leaves, returns
	Job  string
}

// version is a table that is in force from some time on.
type version struct {
	at   time.Duration
	jobs []Job
}

// slowest is how long after a change of the table's file the last replica sees it.
const slowest = 1500 * time.Millisecond

// reloads draws changes of the table. They have dice of their own, so that all else of a seed is as it would be without.
func (p *Plan) reloads() {
	r := rand.New(rand.NewPCG(p.Seed, 0x4E10AD))
	end := p.Lasts - 16*time.Second
	for range pick(r, 0, 0, 0, 1, 1, 2, 4) {
		x := Reload{At: 8*time.Second + upTo(r, end-8*time.Second), Kind: pick(r, "content", "content", "schedule", "schedule", "leaves"), Job: p.Jobs[r.IntN(len(p.Jobs))].Name}
		p.Reloads = append(p.Reloads, x)
		if x.Kind == "leaves" {
			p.Reloads = append(p.Reloads, Reload{At: min(x.At+time.Second+upTo(r, 8*time.Second), end), Kind: "returns", Job: x.Job})
		}
	}
	slices.SortStableFunc(p.Reloads, func(a, b Reload) int { return cmp.Compare(a.At, b.At) })
	p.versions = []version{{jobs: p.Jobs}}
	jobs, gone := slices.Clone(p.Jobs), map[string]int{}
	for _, x := range p.Reloads {
		j := &jobs[slices.IndexFunc(jobs, func(j Job) bool { return j.Name == x.Job })]
		switch x.Kind {
		case "content":
			j.Timeout += time.Second
		case "schedule":
			j.Period = time.Duration(pick(r, 1, 2, 3, 5, 7, 10)) * time.Second
			j.Jitter = min(j.Jitter, j.Period/4)
		case "leaves":
			gone[x.Job]++
		case "returns":
			gone[x.Job]--
		}
		there := slices.DeleteFunc(slices.Clone(jobs), func(j Job) bool { return gone[j.Name] > 0 })
		p.versions = append(p.versions, version{x.At, there})
	}
}

// reload changes the table's file. Each replica sees that in its own time, and then reads what the file says by then.
func (w *world) reload(n int) {
	x := w.plan.Reloads[n-1]
	w.note(nil, "TABLE "+x.Kind, x.Job, "", "", "")
	w.mu.Lock()
	w.version = n
	present := make([]*replica, 0, len(w.present))
	for _, r := range w.present {
		present = append(present, r)
	}
	w.mu.Unlock()
	for _, r := range present {
		w.later(w.dice.between(0, slowest, forReload, r.key, uint64(n)), func() {
			r.stall.wait()
			if at, dead := r.stopped(); dead || at != 0 {
				return
			}
			w.swap(r)
		})
	}
}

// swap puts the table that the file has in force on a replica.
func (w *world) swap(r *replica) {
	w.mu.Lock()
	v := w.version
	w.mu.Unlock()
	t := w.tables[v]
	for _, c := range r.sidecar.Table().Jobs {
		if !slices.ContainsFunc(t.Jobs, func(n config.Job) bool { return n.Name == c.Name }) {
			w.mu.Lock()
			r.left[c.Name] = true
			w.mu.Unlock()
		}
	}
	w.note(r, "reloads", "", "", "", "")
	if err := r.sidecar.Reload(t, nil); err != nil {
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

// life is a stretch of time in which a job's ticks are the same for all replicas, whatever else of it changes.
type life struct {
	*config.Job
	from, to time.Duration
}

// settling is how long after the last replica has reloaded a job's new ticks are nobody's yet: it is registered with
// the next look.
const settling = 2 * time.Second

// lives of a job, in order.
func (w *world) lives(name string) []life {
	var all []life
	ticks := "" // of the version before
	for n, v := range w.plan.versions {
		c := row(w.tables[n], name)
		switch {
		case c != nil && c.Fingerprint == ticks:
			all[len(all)-1].Job = c
			continue
		case len(all) > 0 && ticks != "":
			all[len(all)-1].to = v.at
		}
		ticks = ""
		if c == nil {
			continue
		}
		ticks = c.Fingerprint
		l := life{Job: c, to: w.plan.Lasts}
		if n > 0 {
			l.from = max(v.at+slowest, w.lastToSwap(n)) + settling
		}
		all = append(all, l)
	}
	return slices.DeleteFunc(all, func(l life) bool { return l.from >= l.to })
}

// lastToSwap is when the last replica put a version or a newer one in force: one that stands still does so later.
func (w *world) lastToSwap(n int) (at time.Duration) {
	done := map[*replica]bool{}
	for _, s := range w.swapped {
		if s.version >= n && s.replica.began < w.plan.versions[n].at && !done[s.replica] {
			done[s.replica], at = true, s.at
		}
	}
	return at
}

// swaps tells whether a replica put another table in force within a time.
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
			has = c != nil && c.Schedule.Next(r.Tick.Add(-1)).Equal(r.Tick)
		}
		if !has {
			w.violatedAt(r.start, "table", r.Job, "%s starts tick %s, which its table has not had since %s", r.replica.process, stamp(r.Tick), asked-overtaking)
		}
	}
}

// checkCaughtUp: nobody catches up by the table what is still to come.
func (w *world) checkCaughtUp() {
	if w.plan.Local || w.stepped {
		return // what is to come is another matter for each replica, or becomes one
	}
	for _, a := range w.redis.claims.asks {
		if a.table && a.kind == "catchup" && a.sent < a.tick.Sub(w.began) {
			w.violatedAt(a.sent, "table", a.job, "%s was about to catch up tick %s, which was still to come", a.replica.process, stamp(a.tick))
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
