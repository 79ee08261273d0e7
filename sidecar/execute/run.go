package execute

import (
	"context"
	"strconv"
	"time"

	"github.com/solotick/solotick/internal/text"
)

// Run tells the job about this attempt.
type Run struct {
	Service, Job string
	Tick         time.Time // the nominal instant
	Since        time.Time // the tick that succeeded last before this one was claimed; zero = the job is told none
	ID           string    // uuid of the run
	Attempt      int       // from 1
	Token        int64     // fencing token; 0 = there is none, and the job is told none
	Replica      string
	Kind         string // schedule, catchup, handover, takeover, manual, backfill or timer
	Key          string // stands behind the tick in the Idempotency-Key; "" = nothing does
	Parent       string // the attempt's span, as a traceparent; "" = there is none, and the job is told none

	// Await is called once, when all is ready for the job to begin, and returns when it may; nil = at once.
	Await func(context.Context)
	// Started is called once, when the job has begun or may have; nil = not called.
	Started func()
	// Lasts reports whether the right to run the job lasts for at least a time; nil = it always does.
	Lasts func(time.Duration) bool
	// Accepted is called when the app has accepted a run that it ends by itself, with the longest time that it may
	// take; nil = not called.
	Accepted func(time.Duration)
	// Tell is called with what the job gets, before each request and before a command starts; nil = not called. It gets
	// lines for people, without secrets: of what the table sets, it gets names and sizes, but no values.
	Tell func(lines []string)
}

// Wait calls Await. It returns why the job may not begin, the cause of a context that has ended; nil when it may.
func (r Run) Wait(ctx context.Context) error {
	if r.Await != nil {
		r.Await(ctx)
	}
	return context.Cause(ctx)
}

// Begun calls Started.
func (r Run) Begun() {
	if r.Started != nil {
		r.Started()
	}
}

// Status is how an attempt ended.
type Status string

const (
	Succeeded   Status = "succeeded"   // a success code, or exit code 0
	Failed      Status = "failed"      // a clear failure, or no clear answer: it may have run, and Err says so
	Declined    Status = "declined"    // the app answered 409: it says that it runs already
	NotStarted  Status = "not_started" // it certainly never began
	Observed    Status = "observed"    // nothing was called, since the table or a flag says so
	Interrupted Status = "interrupted" // the app had accepted the run, and was silent then, or stopped before the end
	Canceled    Status = "canceled"    // the context ended first; context.Cause says why
)

func (s Status) String() string { return string(s) }

// Result is the result of an attempt.
type Result struct {
	Status     Status
	Err        error         // why, for the log; nil when Succeeded. Without header values, body and query of the table
	Code       int           // HTTP status or exit code; -1 when there is none
	RetryAfter time.Duration // Retry-After of an answer of 400 or above, 409 excepted, at most 24 h; 0 = it has none
	Output     string        // tail of the answer's body, or of stdout and stderr: valid UTF-8, at most MaxOutput bytes
	Reported   bool          // the app has ended the run by a report, and Err and Output are of that
	Reason     string        // why it did not succeed, from these words: one line, at most 300 characters; "" = none
}

// Executor runs one attempt. It is safe for concurrent use.
type Executor interface {
	Execute(ctx context.Context, r Run) Result
}

// Fact is one thing the job is told, under its two names: the header of a call and the environment of a command.
type Fact struct{ Header, Env, Value string }

// RunVariable is the variable that tells a command its run.
const RunVariable = "SOLOTICK_RUN"

// Stamp writes the tick as the job is told it, and as the log has it.
func (r Run) Stamp() string { return stamp(r.Tick) }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Facts lists the facts that both kinds of job are told. The tick is in milliseconds and UTC. The key is the same for
// all attempts of a tick. The quotes belong to the key, which is a string of HTTP's structured fields.
func (r Run) Facts() []Fact {
	tick := r.Stamp()
	key := r.Service + "/" + r.Job + "/" + tick + text.Between("/", r.Key, "")
	f := make([]Fact, 0, 11)
	f = append(f,
		Fact{"Idempotency-Key", "SOLOTICK_IDEMPOTENCY_KEY", `"` + key + `"`},
		Fact{"Solotick-Service", "SOLOTICK_SERVICE", r.Service},
		Fact{"Solotick-Job", "SOLOTICK_JOB", r.Job},
		Fact{"Solotick-Tick", "SOLOTICK_TICK", tick},
		Fact{"Solotick-Run", RunVariable, r.ID},
		Fact{"Solotick-Attempt", "SOLOTICK_ATTEMPT", strconv.Itoa(r.Attempt)},
		Fact{"Solotick-Replica", "SOLOTICK_REPLICA", r.Replica},
		Fact{"Solotick-Kind", "SOLOTICK_KIND", r.Kind},
	)
	if r.Token != 0 {
		f = append(f, Fact{"Solotick-Fencing-Token", "SOLOTICK_FENCING_TOKEN", strconv.FormatInt(r.Token, 10)})
	}
	if !r.Since.IsZero() {
		f = append(f, Fact{"Solotick-Since", "SOLOTICK_SINCE", stamp(r.Since)})
	}
	if r.Parent != "" {
		f = append(f, Fact{"Traceparent", "TRACEPARENT", r.Parent})
	}
	return f
}

// Observer executes nothing: an attempt waits for its tick, and has ended. It stands in place of the executor of a job
// that is observed only, beside the old cron whose work Solotick is to take over.
type Observer struct{}

// Execute waits until the job may begin, and returns Observed.
func (Observer) Execute(ctx context.Context, r Run) Result {
	if err := r.Wait(ctx); err != nil {
		return Result{Status: Canceled, Err: err, Code: -1}
	}
	r.Begun()
	return Result{Status: Observed, Code: -1}
}
