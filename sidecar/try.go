package sidecar

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// Trial is one run of a job by itself: without Redis, and so without a lock, a fencing token and a place in the
// history.
type Trial struct {
	Service, Replica string
	Job              config.Job
	Tick             time.Time // zero = now
	Executor         execute.Executor
	Tell             func(lines []string) // as in execute.Run
}

// Tried is the end of a Trial.
type Tried struct {
	Tick    time.Time
	Run     string // its UUID
	Outcome string // as of any run
	Result  execute.Result
	Took    time.Duration // 0 if it never began
}

// Try runs the job once, as for a trigger. It makes one attempt, with the job's timeout. Schedule, readiness gate,
// slots, pauses and retries do not matter. The outcome is cancelled if ctx ends first.
func (t Trial) Try(ctx context.Context) Tried {
	if t.Tick.IsZero() {
		t.Tick = time.Now()
	}
	var start time.Time
	run := execute.Run{Service: t.Service, Job: t.Job.Name, Tick: t.Tick.Truncate(time.Millisecond),
		ID: uuid.NewString(), Attempt: 1,
		Replica: t.Replica, Kind: "manual", Started: func() { start = time.Now() }, Tell: t.Tell}
	ending, end, limit := limited(ctx, 0, t.Job.Timeout)
	defer end(nil)
	run.Accepted = limit
	tried := Tried{Tick: run.Tick, Run: run.ID, Result: t.Executor.Execute(ending, run)}
	o := endedBy(tried.Result, context.Cause(ending))
	switch {
	case tried.Result.Status == execute.Canceled && ctx.Err() != nil:
		o = cancelled
	case start.IsZero():
		o = notStarted
	}
	if !start.IsZero() {
		tried.Took = time.Since(start)
	}
	tried.Outcome = string(o)
	return tried
}
