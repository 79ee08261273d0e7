package main

import (
	"fmt"
	"strings"
	"time"
)

// job is one row of the table, with what the judge needs to know of it. Its ticks are all multiples of every since the
// Unix epoch, moved by offset: arithmetic of its own, which knows nothing of the product's schedules.
type job struct {
	name     string
	schedule string
	every    time.Duration
	offset   time.Duration
	take     time.Duration // how long a run is at work
	allow    bool          // runs may lie beside each other
	exec     bool          // a process that calls the app, instead of a call
	more     string        // further keys of the row
	delayed  bool          // by jitter: the delay of its runs says nothing
}

// ticks are the job's ticks in [from, to].
func (j job) ticks(from, to time.Time) []time.Time {
	every, offset := int64(j.every), int64(j.offset)
	k := (from.UnixNano() - offset + every - 1) / every
	var all []time.Time
	for t := k*every + offset; t <= to.UnixNano(); t += every {
		all = append(all, time.Unix(0, t).UTC())
	}
	return all
}

// mix has jobs shorter and longer than their period, by every kind of schedule that has a tick within minutes.
var mix = []job{
	{name: "each-second-5ms", schedule: "* * * * * *", every: time.Second, take: 5 * time.Millisecond},
	{name: "each-second-20ms", schedule: "*/1 * * * * ?", every: time.Second, take: 20 * time.Millisecond},
	{name: "each-second-100ms", schedule: "@every 1s", every: time.Second, take: 100 * time.Millisecond},
	{name: "each-second-300ms", schedule: "* * * * * *", every: time.Second, take: 300 * time.Millisecond, more: "lock: {safetyDelay: 0s}"},
	{name: "each-second-700ms", schedule: "* * * * * *", every: time.Second, take: 700 * time.Millisecond, more: "lock: {safetyDelay: 5s}"},
	{name: "each-second-900ms", schedule: "* * * * * *", every: time.Second, take: 900 * time.Millisecond},
	{name: "each-second-1400ms", schedule: "* * * * * *", every: time.Second, take: 1400 * time.Millisecond},
	{name: "each-second-3s", schedule: "* * * * * *", every: time.Second, take: 3 * time.Second, more: "lock: {ttl: 2s}"},
	{name: "each-second-beside", schedule: "* * * * * *", every: time.Second, take: 2500 * time.Millisecond, allow: true},
	{name: "each-2s-5ms", schedule: "*/2 * * * * *", every: 2 * time.Second, take: 5 * time.Millisecond},
	{name: "each-2s-500ms", schedule: "*/2 * * * * *", every: 2 * time.Second, take: 500 * time.Millisecond},
	{name: "each-2s-1500ms", schedule: "@every 2s", every: 2 * time.Second, take: 1500 * time.Millisecond},
	{name: "each-2s-2500ms", schedule: "1-59/2 * * * * *", every: 2 * time.Second, offset: time.Second, take: 2500 * time.Millisecond},
	{name: "each-2s-beside", schedule: "*/2 * * * * *", every: 2 * time.Second, take: 3 * time.Second, allow: true},
	{name: "each-3s-5ms", schedule: "@every 3s", every: 3 * time.Second, take: 5 * time.Millisecond},
	{name: "each-5s-5ms", schedule: "*/5 * * * * *", every: 5 * time.Second, take: 5 * time.Millisecond},
	{name: "each-5s-3s", schedule: "2-59/5 * * * * *", every: 5 * time.Second, offset: 2 * time.Second, take: 3 * time.Second, more: "lock: {ttl: 3s}"},
	{name: "each-5s-exec", schedule: "*/5 * * * * *", every: 5 * time.Second, take: 5 * time.Millisecond, exec: true},
	{name: "each-5s-jitter", schedule: "*/5 * * * * *", every: 5 * time.Second, take: 5 * time.Millisecond, more: "jitter: 3s", delayed: true},
	{name: "each-7s-1s", schedule: "@every 7s", every: 7 * time.Second, take: time.Second},
	{name: "each-10s-exec", schedule: "*/10 * * * * *", every: 10 * time.Second, take: 2 * time.Second, exec: true},
	{name: "each-minute-5ms", schedule: "* * * * *", every: time.Minute, take: 5 * time.Millisecond},
	{name: "each-minute-3s", schedule: "* * * * *", every: time.Minute, take: 3 * time.Second, more: "timeZone: Asia/Kathmandu"},
	{name: "each-minute-half", schedule: "30 * * * * *", every: time.Minute, offset: 30 * time.Second, take: 500 * time.Millisecond},
	{name: "each-minute-late", schedule: "59 * * * * *", every: time.Minute, offset: 59 * time.Second, take: 3 * time.Second},
}

// table writes the mix as a table. call is what a job calls; self is the program that a process job runs.
func table(jobs []job, clock, listen, self string, call func(j job) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "service: soak\nclock: %s\nlisten: %q\nadmin: \"\"\nshutdownGrace: 20s\njobs:\n", clock, listen)
	for _, j := range jobs {
		fmt.Fprintf(&b, "  - name: %s\n    schedule: %q\n    timeout: 1m\n", j.name, j.schedule)
		if j.allow {
			b.WriteString("    concurrencyPolicy: Allow\n")
		}
		if j.more != "" {
			fmt.Fprintf(&b, "    %s\n", j.more)
		}
		if j.exec {
			fmt.Fprintf(&b, "    exec: {command: [%q, %q, %q]}\n", self, callArg, call(j))
		} else {
			fmt.Fprintf(&b, "    http: {url: %q}\n", call(j))
		}
	}
	return b.String()
}
