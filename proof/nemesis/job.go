package nemesis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ttl is the lease of a job that says nothing else: long enough that a busy machine renews it in time, short enough
// that a minute holds several takeovers.
const ttl = 3 * time.Second

// job is one row of the table, with what the judge needs to know of it. Its ticks are all multiples of every since the
// Unix epoch, moved by offset: arithmetic of its own, which knows nothing of the product's schedules.
type job struct {
	name     string
	every    time.Duration
	offset   time.Duration
	schedule string        // that says so; "" = @every
	take     time.Duration // how long a run is at work
	allow    bool          // runs may lie beside each other
	again    bool          // a run that was cut short is run again
	all      bool          // every missed tick is fired late
	queue    bool          // one tick waits for the end of the run
	exec     bool          // a process calls the app
	async    bool          // the app accepts a run at once, and ends it by a report
	asks     bool          // the app asks for each tick by itself, and goes on as with async
	beat     time.Duration // how long the app may work for each heartbeat then; 0 = heartbeat
	fails    int           // so many attempts of a run fail before one succeeds
	ttl      time.Duration // its lease; 0 = ttl
	more     string        // a key of the row that means nothing to the judge
}

// lease is how long the job's lock outlives its replica.
func (j job) lease() time.Duration { return cmp.Or(j.ttl, ttl) }

// heartbeat is how long the app may work for one.
func (j job) heartbeat() time.Duration { return cmp.Or(j.beat, heartbeat) }

// isLease reports whether the job has no ticks, and one app holds it at a time.
func (j job) isLease() bool { return j.schedule == "@lease" }

// lasts reports whether a tick is worth firing although a newer one is due.
func (j job) lasts() bool { return j.all || j.queue }

// mix has jobs shorter and longer than their period and their lease, under both guarantees and both policies. Those
// that are run again leave time for it: what is cut short more often than it is run waits ever longer.
var mix = []job{
	{name: "once-1s-0s", every: time.Second},
	{name: "once-1s-300ms", every: time.Second, take: 300 * time.Millisecond},
	{name: "once-1s-beside", every: time.Second, take: 1500 * time.Millisecond, allow: true},
	{name: "once-2s-1s", every: 2 * time.Second, take: time.Second},
	{name: "once-2s-3s", every: 2 * time.Second, take: 3 * time.Second},
	{name: "once-5s-3s", every: 5 * time.Second, take: 3 * time.Second},
	{name: "once-5s-8s", every: 5 * time.Second, take: 8 * time.Second},
	{name: "once-10s-0s", every: 10 * time.Second},
	{name: "again-1s-0s", every: time.Second, again: true},
	{name: "again-2s-1s", every: 2 * time.Second, take: time.Second, again: true},
	{name: "again-2s-beside", every: 2 * time.Second, take: 3 * time.Second, allow: true, again: true},
	{name: "again-10s-3s", every: 10 * time.Second, take: 3 * time.Second, again: true},
	{name: "again-20s-8s", every: 20 * time.Second, take: 8 * time.Second, again: true},
	{name: "async-2s-3s", every: 2 * time.Second, take: 3 * time.Second, async: true, ttl: asyncLease},
	{name: "async-5s-3s", every: 5 * time.Second, take: 3 * time.Second, async: true, ttl: asyncLease},
	{name: "async-again-5s-3s", every: 5 * time.Second, take: 3 * time.Second, async: true,
		again: true, ttl: asyncLease},
	{name: "async-again-20s-8s", every: 20 * time.Second, take: 8 * time.Second, async: true,
		again: true, ttl: asyncLease},
	{name: "claim-5s-1s", every: 5 * time.Second, take: time.Second, asks: true, async: true, ttl: asyncLease},
	{name: "claim-5s-6s", every: 5 * time.Second, take: 6 * time.Second, asks: true, async: true, ttl: asyncLease},
	{name: "claim-10s-3s", every: 10 * time.Second, take: 3 * time.Second, asks: true, async: true, ttl: asyncLease},
	{name: "lease", schedule: "@lease", take: 5 * time.Second, asks: true, async: true, ttl: asyncLease},
}

// longLease outlives a Redis that stands still while a replica drains.
const longLease = 9 * time.Second

// allMix has more jobs, for a Redis that forgets nothing: those whose ticks outlive an outage, and those of which the
// end can be told although Redis is away for a while.
var allMix = append(slices.Clone(mix),
	job{name: "all-1s-0s", every: time.Second, all: true},
	job{name: "all-2s-700ms", every: 2 * time.Second, take: 700 * time.Millisecond, all: true},
	job{name: "queue-1s-1300ms", every: time.Second, take: 1300 * time.Millisecond, queue: true},
	job{name: "told-5s-2s", every: 5 * time.Second, take: 2 * time.Second, ttl: longLease},
	job{name: "told-again-5s-2s", every: 5 * time.Second, take: 2 * time.Second, ttl: longLease, again: true},
	job{name: "retry-5s-700ms", every: 5 * time.Second, take: 700 * time.Millisecond, fails: 2,
		ttl: longLease, again: true},
	job{name: "async-retry-5s-1s", every: 5 * time.Second, take: time.Second, fails: 1, async: true, ttl: asyncLease},
	job{name: "async-2s-10s", every: 2 * time.Second, take: 10 * time.Second, async: true,
		beat: longBeat, ttl: longLease},
	job{name: "async-again-2s-10s", every: 2 * time.Second, take: 10 * time.Second, async: true,
		beat: longBeat, ttl: longLease, again: true},
	job{name: "claim-10s-6s", every: 10 * time.Second, take: 6 * time.Second, asks: true, async: true,
		beat: longBeat, ttl: longLease},
)

// ticks are the job's ticks in [from, to]. A lease has none.
func (j job) ticks(from, to time.Time) []time.Time {
	var all []time.Time
	if j.isLease() {
		return nil
	}
	every, offset := int64(j.every), int64(j.offset)
	for k := (from.UnixNano() - offset + every - 1) / every; k*every+offset <= to.UnixNano(); k++ {
		all = append(all, time.Unix(0, k*every+offset).UTC())
	}
	return all
}

// scarce has more work than one slot of each of three replicas can do at once, and little more than two can do at all.
var scarce = []job{
	{name: "once-5s-1s", every: 5 * time.Second, take: time.Second},
	{name: "once-5s-2s", every: 5 * time.Second, take: 2 * time.Second, more: "priority: 1"},
	{name: "once-5s-3s", every: 5 * time.Second, take: 3 * time.Second},
	{name: "beside-5s-2s", every: 5 * time.Second, take: 2 * time.Second, allow: true},
	{name: "again-5s-1s", every: 5 * time.Second, take: time.Second, again: true},
	{name: "again-10s-3s", every: 10 * time.Second, take: 3 * time.Second, again: true},
	{name: "queue-5s-2s", every: 5 * time.Second, take: 2 * time.Second, queue: true},
	{name: "all-10s-1s", every: 10 * time.Second, take: time.Second, all: true},
}

// table writes the jobs as a table. redis, clock, listen and admin are the values of its keys, slots how many runs a
// replica has at once, and work what a job does.
func table(jobs []job, redis, clock, listen, admin string, slots int, work func(j job) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: nemesis\nredis: %s\nclock: %s\nlisten: %q\nadmin: %q\nshutdownGrace: 20s\n"+
		"maxRunning: %d\ndefaults: {timeout: 1m, lock: {ttl: %s}}\njobs:\n", redis, clock, listen, admin, slots, ttl)
	for _, j := range jobs {
		fmt.Fprintf(&b, "  - name: %s\n    schedule: %q\n    %s\n",
			j.name, cmp.Or(j.schedule, "@every "+j.every.String()), work(j))
		if j.more != "" {
			fmt.Fprintf(&b, "    %s\n", j.more)
		}
		if j.allow {
			b.WriteString("    concurrencyPolicy: Allow\n")
		}
		if j.queue {
			b.WriteString("    concurrencyPolicy: Queue\n")
		}
		if j.all {
			b.WriteString("    missed: all\n")
		}
		if j.fails > 0 {
			fmt.Fprintf(&b, "    retry: {limit: %d, backoff: 500ms}\n", j.fails+1)
		}
		if j.ttl > 0 {
			fmt.Fprintf(&b, "    lock: {ttl: %s}\n", j.ttl)
		}
		if j.again {
			b.WriteString("    guarantee: at-least-once\n")
		}
	}
	return b.String()
}
