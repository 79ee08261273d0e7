package sim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/solotick/solotick/sidecar/service"
)

const prefix = "solotick:{" + serviceName + "}:"

// checkSettled: promise 6, no run is left over in Redis.
func (w *world) checkSettled() {
	for _, c := range w.redis.claims.all {
		if c.settled == 0 {
			w.violatedAt(c.won, "6: accounts", c.job, "run %s of tick %s on %s is not over for Redis",
				short(c.run), stamp(c.tick), c.replica.process)
		}
	}
	if left, err := w.redis.mini.ZMembers(prefix + "running"); err == nil {
		w.violated("6: accounts", "", "entries are left in running: %v", left)
	}
	for _, name := range append(w.plan.names(), service.TimerJobs) {
		fields, err := w.redis.mini.HKeys(prefix + "job:" + name)
		if err != nil {
			continue // no replica registered it since all was lost, or it needs no ledger
		}
		for _, f := range fields {
			if value := w.redis.mini.HGet(prefix+"job:"+name, f); leftover(f, value) {
				w.violated("6: accounts", name, "the ledger still has %s %s", f, value)
			}
		}
		w.judgeOpen(name)
	}
}

// judgeOpen demands that the ledger and the due set agree on what is due, except by hand. Timers have no open ticks.
func (w *world) judgeOpen(job string) {
	var open, due []string
	for entry := range strings.FieldsSeq(w.redis.mini.HGet(prefix+"job:"+job, "open")) {
		if tick, _, is := strings.Cut(entry, "~:"); is {
			open = append(open, tick)
		}
	}
	members, _ := w.redis.mini.ZMembers(prefix + "due") // an error: there is none
	for _, m := range members {
		f := strings.Fields(m)
		if byHand := f[2] == "manual" || strings.HasPrefix(f[2], "backfill"); f[1] == job && !byHand {
			due = append(due, f[0])
		}
	}
	slices.Sort(open)
	slices.Sort(due)
	if !slices.Equal(open, due) {
		w.violated("6: accounts", job, "due are %v, and the ledger has %v", due, open)
	}
}

// checkHistory: promise 6, each run has one entry in the history, and one that was given back has none.
func (w *world) checkHistory() {
	entries := map[string][]string{} // outcomes by run
	for _, e := range w.histories() {
		switch told := entries[e.Run]; {
		case e.Job == "": // a script wrote the fate of a tick: its run was given back, or there was none
		case e.ends && len(told) == 1 && told[0] == "interrupted": // its replica was taken for dead, and finished it
			w.met["finished after a takeover"]++
		default:
			entries[e.Run] = append(told, e.Outcome)
		}
	}
	began := map[string]bool{}
	for _, r := range w.runs {
		began[r.ID] = true
	}
	for _, c := range w.redis.claims.all {
		want := 1
		switch c.how {
		case "", "lost", "forgotten":
			continue
		case "abandon":
			want = 0
			if began[c.run] {
				w.violatedAt(c.won, "6: accounts", c.job, "run %s of tick %s was given back although it was started",
					short(c.run), stamp(c.tick))
			}
		}
		if slices.ContainsFunc(w.redis.claims.loss, func(at time.Duration) bool { return at >= c.settled }) {
			continue
		}
		if got := entries[c.run]; len(got) == want+1 && got[want] == "cancelled" && w.droppedAgain(c) {
			w.met["dropped before it was run again"]++
		} else if len(got) != want {
			w.violatedAt(c.won, "6: accounts", c.job, "run %s of tick %s, over by %s, is in the history as %q",
				short(c.run), stamp(c.tick), c.how, got)
		}
	}
}

// wakeOf is what the wakes of one process for one tick are counted by.
type wakeOf struct {
	replica *replica
	job     string
	tick    int64
}

// checkWakes: promise 5, each wake has one outcome. A wake that asks Redis has a run of its own.
func (w *world) checkWakes() {
	asks := w.questions()
	all, fired := map[wakeOf]int{}, map[wakeOf]int{}
	for _, o := range w.outcomes {
		k := wakeOf{o.replica, o.job, o.tick.UnixMilli()}
		all[k]++
		if o.reason == "fired" {
			fired[k]++
		}
	}
	attempts := map[string]bool{}
	for _, r := range w.runs {
		if !attempts[r.ID] { // of one run
			attempts[r.ID] = true
			fired[wakeOf{r.replica, r.Job, r.Tick.UnixMilli()}]--
		}
	}
	for k, n := range fired {
		if n != 0 && !k.replica.isDead() {
			w.violatedAt(time.UnixMilli(k.tick).Sub(w.began), "5: never silently", k.job,
				"%s counted tick %d as fired %+d times too often", k.replica.process, k.tick, n)
		}
	}
	for k, qs := range asks {
		n := 0
		for i, q := range qs {
			if !q.gap && !q.early &&
				!(i+1 < len(qs) && w.swaps(k.replica, q.sent-overtaking, min(q.answered, qs[len(qs)-1].sent))) {
				n++
			}
		}
		n = max(n, 1) // a replica that was told to ask again does so, or says why not
		if all[k] < n && !k.replica.isDead() {
			w.violatedAt(time.UnixMilli(k.tick).Sub(w.began), "5: never silently", k.job,
				"%s asked with %d runs for tick %d, and counted %d outcomes", k.replica.process, n, k.tick, all[k])
		}
	}
}

// question is what a wake asked Redis with one run. With another run it asks anew after a GAP or a look, and when its
// job is changed before it has an answer.
type question struct {
	run string
	// when it left, which may be after it was put (overtaking), and when that came which ends it
	sent, answered time.Duration
	gap            bool
	early          bool // it was told nothing but that it is too early, or too late, by Redis' clock
}

// ends reports whether nothing more is asked after the answer: the others are an error or a reason to ask again.
func (a *ask) ends() bool {
	return !strings.HasPrefix(a.code, "-") && !slices.Contains([]string{"EARLY", "STALE", "UNKNOWN", "FREE"}, a.code)
}

// questions are all of them, those for one tick in the order in which they were sent first.
func (w *world) questions() map[wakeOf][]*question {
	all := map[wakeOf][]*question{}
	for _, a := range w.redis.claims.asks {
		k := wakeOf{a.replica, a.job, a.tick.UnixMilli()}
		i := slices.IndexFunc(all[k], func(q *question) bool { return q.run == a.run })
		if i < 0 {
			i = len(all[k])
			all[k] = append(all[k], &question{run: a.run, sent: a.sent, answered: math.MaxInt64})
		}
		q := all[k][i]
		q.early = (q.early || a.code == "EARLY" || a.code == "STALE") &&
			(!a.ends() || a.read == 0) // by Redis' clock it is not time, or no more: it asks anew
		q.sent, q.gap = min(q.sent, a.sent), q.gap || a.code == "GAP" || a.code == "FREE"
		// The client forgets what it has read of a batch whose connection breaks.
		if a.read != 0 && a.ends() && !w.disturbed(a.replica.place, a.sent, a.read) {
			q.answered = min(q.answered, a.read)
		}
	}
	for _, qs := range all {
		slices.SortFunc(qs, func(a, b *question) int { return cmp.Compare(a.sent, b.sent) })
	}
	return all
}

// checkTimers: promise 5, in good times the timer of each process wakes once for each tick, and that wake has one
// outcome.
func (w *world) checkTimers() {
	if w.plan.Local || w.stepped {
		return // a clock that is set wakes again, or not at all
	}
	timers, orphans, handed := map[wakeOf]int{}, map[wakeOf]int{}, map[firing]bool{}
	for _, o := range w.outcomes {
		k := wakeOf{o.replica, o.job, o.tick.UnixMilli()}
		if o.timer {
			timers[k]++
		}
		if o.timer && o.reason == "superseded" {
			orphans[k]++
		}
	}
	for _, c := range w.redis.claims.all {
		if c.back { // whoever wakes for it says no other kind than a timer's wake
			handed[firing{job: c.job, tick: c.tick.UnixMilli()}] = true
		}
	}
	for _, r := range w.replicas {
		_, dead := r.stopped()
		if dead {
			continue
		}
		to := r.endsAt()
		if to == 0 {
			to = w.plan.Lasts
		}
		for _, name := range w.plan.names() {
			for _, l := range w.lives(name) {
				if l.Claim != nil { // its app wakes
					continue
				}
				for tick := w.next(l.Job, w.began); ; tick = w.next(l.Job, tick) {
					at := tick.Sub(w.began)
					if at+l.Jitter+time.Second > min(to, l.to) {
						break
					}
					if at < max(l.from, r.began+3*time.Second) ||
						w.disturbed(r.place, at-recovery, at+l.Jitter+time.Second) ||
						handed[firing{job: l.Name, tick: tick.UnixMilli()}] &&
							timers[wakeOf{r, l.Name, tick.UnixMilli()}] > 0 {
						continue
					}
					w.met["wakes in good times"]++
					k := wakeOf{r, l.Name, tick.UnixMilli()}
					n := timers[k]
					if l.from > 0 && n > 1 { // a wake that waited since before the reload is one of its own
						n -= orphans[k]
					}
					if n != 1 && !(n > 1 && w.everAsks(l.Name)) { // its app may have asked since
						w.violatedAt(at, "5: never silently", l.Name,
							"%s was well, and told %d outcomes of its timer's wake for %s", r.process, n, stamp(tick))
					}
				}
			}
		}
	}
}

// checkMetrics: promise 5, the counters say what the log says.
func (w *world) checkMetrics() {
	for _, r := range w.replicas {
		if r.isDead() {
			continue
		}
		want := map[[3]string]float64{}
		for _, o := range w.outcomes {
			if o.replica == r && o.reason == "fired" {
				want[[3]string{"solotick_fires_total", series(o.job), ""}]++
			} else if o.replica == r {
				want[[3]string{"solotick_skips_total", series(o.job), o.reason}]++
			}
		}
		for f, n := range w.settled {
			if f.replica == r {
				want[[3]string{"solotick_runs_total", series(f.job), f.outcome}] += float64(n)
			}
		}
		families, err := r.registry.Gather()
		if err != nil {
			w.violated("5: never silently", "", "%v", err)
		}
		got := map[[3]string]float64{} // what has not occurred has no series
		for _, f := range families {
			switch f.GetName() {
			case "solotick_fires_total", "solotick_skips_total", "solotick_runs_total", "solotick_running":
				for _, m := range f.Metric {
					k := [3]string{f.GetName(), label(m, "job"), label(m, "reason") + label(m, "outcome")}
					got[k] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
					want[k] += 0
				}
			}
		}
		for _, k := range slices.SortedFunc(maps.Keys(want), func(a, b [3]string) int {
			return slices.Compare(a[:], b[:])
		}) {
			// what was not in the table is counted from nothing when it is back
			if got[k] != want[k] && (!r.left[k[1]] || got[k] > want[k]) {
				w.violated("5: never silently", k[1], "%s counts %s %s as %v, and its log has %v",
					r.process, k[0], k[2], got[k], want[k])
			}
		}
	}
}

// series is the name under which a job is counted: all timers have one.
func series(job string) string {
	if service.IsTimer(job) {
		return service.TimerJobs
	}
	return job
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
