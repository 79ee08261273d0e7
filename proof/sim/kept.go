package sim

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// kept are the fates of a job's ticks as Redis keeps them for those who ask later.
type kept struct {
	runs      map[int64][]string // outcomes by tick, in the order in which they were written
	intervals []interval
	counted   int64 // by the ledger, over all fates
}

// interval is an entry for ticks without a run.
type interval struct {
	first, last int64
	count       int64
	fate        string
}

// entry is one of a job's history.
type entry struct {
	ends               bool // its ticks: it is their fate
	Job, Run           string
	Tick, First, Count int64
	Outcome, Kind      string
}

// historyOf reads the history of a job, the oldest entry first.
func (w *world) historyOf(job string) (all []entry) {
	stream, _ := w.redis.mini.Stream(prefix + "history:" + job)
	for _, e := range stream {
		read := entry{ends: e.Values[0] == "tick"}
		if err := json.Unmarshal([]byte(e.Values[1]), &read); err != nil {
			w.violated("fates", job, "the history has %q: %v", e.Values, err)
		}
		all = append(all, read)
	}
	return all
}

// histories reads those of all jobs and timers.
func (w *world) histories() (all []entry) {
	for _, key := range w.redis.mini.Keys() {
		if job, ok := strings.CutPrefix(key, prefix+"history:"); ok {
			all = append(all, w.historyOf(job)...)
		}
	}
	return all
}

// keptOf reads what Redis keeps of a job.
func (w *world) keptOf(job string) *kept {
	k := &kept{runs: map[int64][]string{}}
	fields, _ := w.redis.mini.HKeys(prefix + "job:" + job)
	for _, f := range fields {
		if strings.HasPrefix(f, "fate:") {
			k.counted += numbers(w.redis.mini.HGet(prefix+"job:"+job, f))[0]
		}
	}
	for _, f := range w.historyOf(job) {
		switch {
		case !f.ends:
		case f.Count > 0:
			k.intervals = append(k.intervals, interval{f.First, f.Tick, f.Count, f.Outcome})
		case f.Kind != "backfill":
			k.runs[f.Tick] = append(k.runs[f.Tick], f.Outcome)
		}
	}
	return k
}

// of is the fate of a tick: that of its last run or, if it had none, that of the shortest interval in which it lies.
func (k *kept) of(tick int64) (fate string, run bool) {
	if outcomes := k.runs[tick]; len(outcomes) > 0 {
		return outcomes[len(outcomes)-1], true
	}
	shortest := interval{}
	for _, i := range k.intervals {
		if i.first <= tick && tick <= i.last && (shortest.fate == "" || i.last-i.first < shortest.last-shortest.first) {
			shortest = i
		}
	}
	return shortest.fate, false
}

// keepAll is how many fates Redis keeps of a job: all, so that each can be judged.
const keepAll = 100_000

// bounds are how many ticks have a fate, at least and at most: a tick has a second entry if it was run after its fate
// was counted, and was counted twice if Redis lost all data meanwhile.
func (k *kept) bounds() (least, most int64) {
	least = int64(len(k.runs))
	for _, outcomes := range k.runs {
		most += int64(len(outcomes))
	}
	for _, i := range k.intervals {
		least, most = least+i.count, most+i.count
	}
	return least, most
}

// judgeKept compares the fate of a tick that the trace tells with the one that Redis keeps.
func (w *world) judgeKept(l *life, tick time.Time, said fate, k *kept, end *ending) {
	if w.forgets() || end.open[tick.UnixMilli()] ||
		slices.ContainsFunc(w.redis.claims.loss, func(at time.Duration) bool { return at >= said.at }) {
		return // a failover may have forgotten it; it waits to be run again; Redis has lost what it had kept
	}
	if slices.ContainsFunc(w.redis.claims.all, func(c *claim) bool {
		return c.job == l.Name && c.tick.Equal(tick) && c.how == "lost"
	}) {
		return // its run was forgotten before it ended: a limit
	}
	got, run := k.of(tick.UnixMilli())
	if got == "" && !run && end.counted(tick.UnixMilli()) {
		return // Redis knows it, and nobody has counted it yet
	}
	ok := false
	switch said.what {
	case fired:
		ok = run && got != "not_started" || got == "interrupted"
	case notStarted:
		ok = run && (got == "not_started" || got == "cancelled") || got == "interrupted"
	case missed:
		ok = !run && (got == lock.Missed || got == lock.Displaced)
	default:
		ok = !run && got == said.what
	}
	w.met["fates that are kept"]++
	if !ok {
		w.violatedAt(said.at, "fates", l.Name, "tick %s: %s, and Redis keeps the fate %q",
			stamp(tick), list([]fate{said}), got)
	}
}

// forgets reports whether a failover could forget what a replica was told.
func (w *world) forgets() bool { return len(w.redis.claims.oblivions) > 0 && w.plan.Confirms == 0 }

// ticksIn is how many ticks of a job lie in an interval, by any table that some replica had when they came. Those count,
// too, that it had before it left, or before others of which Redis never heard: Redis goes by these.
func (w *world) ticksIn(name string, i interval) int {
	there := map[time.Time]bool{}
	var c *config.Job
	next := 0
	for n, v := range w.plan.versions {
		to := time.Duration(math.MaxInt64)
		if n < next {
			continue
		}
		if now := row(w.tables[n], name); now != nil {
			c = now
		}
		if c == nil {
			continue
		}
		if next = w.after(n, name); next < len(w.plan.versions) {
			to = max(w.plan.versions[next].at+slowest, w.lastToSwap(next)) + settling + c.Jitter
		}
		for tick := w.next(c, time.UnixMilli(i.first-1)); tick.UnixMilli() <= i.last; tick = w.next(c, tick) {
			if at := tick.Sub(w.began); (n == 0 || at+c.Jitter >= v.at || c.Claim != nil && at+10*time.Second >= v.at) && // an app asks late
				at <= to {
				there[tick] = true
			}
		}
	}
	return len(there)
}

// after is the version of the table that follows one in Redis' eyes: versions of which no replica told it, because it was
// away, are none to it if the job then had the ticks from before again.
func (w *world) after(n int, name string) int {
	before := row(w.tables[n], name)
	for k := n + 1; before != nil && k < len(w.tables) && w.away(-1, w.plan.versions[n+1].at, w.plan.versions[k].at); k++ {
		c := row(w.tables[k], name)
		switch {
		case c != nil && c.Fingerprint == before.Fingerprint:
			return k
		case c == nil, slices.ContainsFunc(w.redis.claims.told, func(i introduced) bool {
			return i.job == name && i.fingerprint == c.Fingerprint && i.at >= w.plan.versions[n+1].at &&
				i.at <= max(w.plan.versions[k].at+slowest, w.lastToSwap(k+1))
		}):
			return n + 1
		}
	}
	return n + 1
}

// lostWithAChange reports whether Redis lost all its data, and the replica that tells it first of a job that it had told
// it of before had not told it of the newest ticks: a limit. It knows from before which tick was claimed last, and not
// since when the ticks are others, and counts those since that claim, or since the newest that it has seen.
func (w *world) lostWithAChange(name string, counted interval) bool {
	return slices.ContainsFunc(w.redis.claims.loss, func(lost time.Duration) bool {
		var first introduced
		for _, i := range slices.Backward(w.redis.claims.told) {
			if i.job == name && i.at >= lost && w.told(i.replica, name, 0, lost) {
				first = i
			}
		}
		changed := time.Duration(-1) // when the ticks became those that it then has
		for n := 1; n < len(w.tables) && w.plan.versions[n].at <= first.at; n++ {
			was, is := row(w.tables[n-1], name), row(w.tables[n], name)
			if is != nil && (was == nil || w.ways(was) != w.ways(is)) {
				changed = w.plan.versions[n].at
			}
		}
		claimed := slices.ContainsFunc(w.redis.claims.all, func(c *claim) bool {
			return c.job == name && c.won < lost && c.tick.UnixMilli() >= counted.first
		})
		return changed >= 0 && first.replica != nil && !w.told(first.replica, name, changed, lost) &&
			counted.first <= w.began.Add(lost).UnixMilli() &&
			(!claimed || counted.last >= w.began.Add(changed).UnixMilli()) &&
			slices.ContainsFunc(w.tables, func(t *config.Table) bool { return counted.count <= w.ticksOfRow(row(t, name), counted) })
	})
}

// ticksOfRow is how many ticks a job has in an interval by one row.
func (w *world) ticksOfRow(c *config.Job, i interval) (n int64) {
	if c == nil {
		return 0
	}
	for tick := w.next(c, time.UnixMilli(i.first-1)); tick.UnixMilli() <= i.last; tick = w.next(c, tick) {
		n++
	}
	return n
}

// told reports whether a replica told Redis of a job within a time.
func (w *world) told(by *replica, job string, from, to time.Duration) bool {
	return slices.ContainsFunc(w.redis.claims.told, func(i introduced) bool {
		return i.replica == by && i.job == job && i.at >= from && i.at < to
	})
}

// checkKept demands that the fates of a job add up: each tick was counted once.
func (w *world) checkKept() {
	if w.plan.Local || w.forgets() {
		return
	}
	for _, name := range w.plan.names() {
		k := w.keptOf(name)
		least, most := k.bounds()
		if len(w.redis.claims.loss) == 0 {
			most = least
		}
		if k.counted < least || k.counted > most {
			w.violated("fates", name, "%d to %d ticks have a fate, and %d were counted", least, most, k.counted)
		}
		for _, i := range k.intervals {
			if there := w.ticksIn(name, i); !w.stepped && i.count > int64(there) &&
				!(i.fate != missed && w.everLease(name)) && !w.lostWithAChange(name, i) {
				w.violatedAt(time.UnixMilli(i.first).Sub(w.began), "fates", name,
					"Redis has counted %d ticks from %s to %s as %s, and there were %d",
					i.count, stamp(time.UnixMilli(i.first)), stamp(time.UnixMilli(i.last)), i.fate, there)
			}
		}
	}
}
