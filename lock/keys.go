package lock

import (
	"strconv"
	"time"
)

// keys are the Redis keys of one service. The service in braces is the hash tag: all of them share one Cluster slot,
// so that every script is legal there.
type keys struct{ prefix, running, due, runs, failures, replicas, events, jobs string }

func newKeys(service string) keys {
	p := "solotick:{" + service + "}:"
	return keys{prefix: p, running: p + "running", due: p + "due", runs: p + "runs", failures: p + "failures", replicas: p + "replicas", events: p + "events",
		jobs: p + "jobs"}
}

func (k keys) lock(job, slot string) string { return k.prefix + "lock:" + job + slot }
func (k keys) ledger(job string) string     { return k.prefix + "job:" + job }

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
