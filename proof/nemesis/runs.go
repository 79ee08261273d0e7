package nemesis

import (
	"cmp"
	"slices"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// entry is one settled run, as the history in Redis has it.
type entry struct {
	at      time.Time // when Redis wrote it
	job     string
	tick    time.Time
	run     string
	replica string
	kind    string
	attempt int
	outcome string
	detail  string
}

// Outcomes on which a verdict depends.
const (
	succeeded   = "succeeded"
	failed      = "failed"
	interrupted = "interrupted"
	notStarted  = "not_started"
	handedOver  = "handed_over"
)

// run is one attempt at a tick, by what the app saw of it and by how it was settled.
type run struct {
	job            string
	tick           time.Time
	id             string
	kind           string
	replica        string
	first, attempt int // of its attempts, the first and the last
	token          int64
	arrived, ended time.Time // zero = the app was never asked
	left           bool      // the caller went before it was answered
	failed         bool      // the app answered by an error
	settled        []entry   // more than one where Redis forgot the first
}

// started reports whether the app was asked.
func (r *run) started() bool { return !r.arrived.IsZero() }

// outcome is how it was settled; "" when it was not. A run whose tick was handed over is one that never started: it is
// the next run of the tick that tells whether somebody did.
func (r *run) outcome() string {
	switch {
	case len(r.settled) == 0:
		return ""
	case r.refused():
		return notStarted
	}
	return r.settled[0].outcome
}

// refused reports whether its replica handed the tick over, because it could not start the job.
func (r *run) refused() bool { return len(r.settled) > 0 && r.settled[0].outcome == handedOver }

// byReplica are those runs that the app was asked for, by who asked.
func byReplica(runs []*run) map[string][]*run {
	at := map[string][]*run{}
	for _, r := range started(runs) {
		at[r.replica] = append(at[r.replica], r)
	}
	return at
}

// claimed is when Redis gave it its token, which is that moment; if it has none, when it began.
func (r *run) claimed() time.Time {
	if at := time.UnixMilli(r.token); r.token > 0 && at.Before(r.begin()) {
		return at
	}
	return r.begin()
}

// begin is when it arrived; of a run that never did, when its tick came.
func (r *run) begin() time.Time {
	if r.started() {
		return r.arrived
	}
	return r.tick
}

// end is when it ended as far as anybody noticed: for the app, or for Redis.
func (r *run) end() time.Time {
	if n := len(r.settled); n > 0 && r.settled[n-1].at.After(r.ended) {
		return r.settled[n-1].at
	}
	return r.ended
}

// join makes runs of what the app was asked and what the history holds, in order of their beginning. A run that the
// app still works on ends at now. An attempt that follows on a failed one is part of the same run.
func join(requests []rig.Request, history []entry, now time.Time) []*run {
	byID := map[string]*run{}
	var all []*run
	for _, q := range requests {
		if b := byID[q.Run]; b != nil && b.failed && q.Attempt > b.attempt && q.Replica == b.replica &&
			q.Arrived.After(b.ended) {
			b.attempt, b.ended, b.left, b.failed = q.Attempt, q.Ended, q.Left, q.Failed
			if b.ended.IsZero() {
				b.ended = now
			}
			continue
		}
		r := &run{job: q.Job, tick: q.Tick.UTC(), id: q.Run, kind: q.Kind, replica: q.Replica, first: q.Attempt,
			attempt: q.Attempt, token: q.Token, arrived: q.Arrived, ended: q.Ended, left: q.Left, failed: q.Failed}
		if r.ended.IsZero() {
			r.ended = now
		}
		all = append(all, r) // the same run twice is two of them
		byID[q.Run] = r
	}
	for _, e := range history {
		if byID[e.run] == nil {
			byID[e.run] = &run{job: e.job, tick: e.tick.UTC(), id: e.run, kind: e.kind, replica: e.replica,
				first: e.attempt, attempt: e.attempt}
			all = append(all, byID[e.run])
		}
		byID[e.run].settled = append(byID[e.run].settled, e)
	}
	slices.SortStableFunc(all, func(a, b *run) int {
		return cmp.Or(a.begin().Compare(b.begin()), cmp.Compare(a.attempt, b.attempt))
	})
	return all
}
