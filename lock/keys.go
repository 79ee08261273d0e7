package lock

import (
	"strconv"
	"time"
)

// keys are the Redis keys of one service. The service in braces is the hash tag: all of them share one Cluster slot,
// so that every script is legal there.
type keys struct{ prefix, running, dueJobs, dueTimers, runs, failures, replicas, events, jobs string }

func newKeys(service string) keys {
	p := "solotick:{" + service + "}:"
	return keys{prefix: p, running: p + "running", dueJobs: p + "due", dueTimers: p + "timers:due", runs: p + "runs", failures: p + "failures",
		replicas: p + "replicas", events: p + "events", jobs: p + "jobs"}
}

func (k keys) lock(job, slot string) string { return k.prefix + "lock:" + job + slot }

// ledger is the job's own, or the one that all timers share.
func (k keys) ledger(job string) string {
	if _, ok := TimerID(job); ok {
		job = TimerJobs
	}
	return k.prefix + "job:" + job
}

// due is where what is due of a job is kept.
func (k keys) due(job string) string {
	if _, ok := TimerID(job); ok {
		return k.dueTimers
	}
	return k.dueJobs
}

// timer is the entry of the timer that a job is.
func (k keys) timer(job string) string { return k.prefix + job }

// memo is what is remembered of a uuid for a day: of a run that was taken over, and of an operator's request.
func (k keys) memo(uuid string) string { return k.prefix + "memo:" + uuid }

// revision is the field of the dynamic jobs that counts their changes. No job has such a name.
const revision = "@revision"

// millis is how scripts see an instant: milliseconds since the Unix epoch; the zero Time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
