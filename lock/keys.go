package lock

import (
	"strconv"
	"time"
)

// keys are the Redis keys of one service. The service in braces is the hash tag: all of them share one Cluster slot,
// so that every script is legal there.
type keys struct{ prefix, running, due, runs, failures, replicas, events, jobs, timers string }

func newKeys(service string) keys {
	p := "solotick:{" + service + "}:"
	return keys{prefix: p, running: p + "running", due: p + "due", runs: p + "runs", failures: p + "failures", replicas: p + "replicas", events: p + "events",
		jobs: p + "jobs", timers: p + "timers"}
}

func (k keys) lock(job, slot string) string { return k.prefix + "lock:" + ledgerName(job) + slot }
func (k keys) ledger(job string) string     { return k.prefix + "job:" + ledgerName(job) }

// memo is what is remembered of a uuid for a day: of a run that was taken over, and of an operator's request.
func (k keys) memo(uuid string) string { return k.prefix + "memo:" + uuid }

// ledgerName is the job itself, or what all timers share.
func ledgerName(job string) string {
	if _, ok := TimerID(job); ok {
		return TimerJobs
	}
	return job
}

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
