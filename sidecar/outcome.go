package sidecar

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
)

// reason says why a wake did not fire.
type reason string

const (
	firedElsewhere reason = "fired_elsewhere" // the tick is settled; mostly, another replica claimed it
	overlap        reason = "overlap"         // the job's previous run is not over
	queued         reason = "queued"          // a due tick has to wait for the present run
	superseded     reason = "superseded"      // a newer tick was claimed first
	paused         reason = "paused"
	suspended      reason = "suspended"
	notReady       reason = "not_ready"    // the readiness gate: the app says that it is not ready
	startFailed    reason = "start_failed" // the job could not be started here
	noSlot         reason = "no_slot"
	tooLate        reason = "too_late" // past the starting deadline
	outsideWindow  reason = "outside_window"
	draining       reason = "draining"
	redisError     reason = "redis_error" // no clear answer while the tick was worth firing
	unasked        reason = "not_asked"   // no app asks for the tick any more, and none else runs the job
)

var reasons = [...]reason{firedElsewhere, overlap, queued, superseded, paused, suspended, notReady, startFailed, noSlot,
	tooLate, outsideWindow, draining, redisError, unasked}

// skipWords say for people why a replica let a tick go that became a missed one.
var skipWords = map[reason]string{
	redisError:    "Redis did not answer",
	unasked:       "the app that had asked was gone",
	notReady:      "its app was not ready",
	startFailed:   "it could not start the job",
	noSlot:        "all its slots were taken",
	tooLate:       "the starting deadline had passed",
	superseded:    "a newer tick had taken its place",
	draining:      "it was draining",
	suspended:     "the table suspended the job",
	outsideWindow: "the job's window had ended",
}

// outcome says what ended a run.
type outcome string

const (
	succeeded      outcome = "succeeded"
	failed         outcome = "failed"
	timedOut       outcome = "timed_out"
	lostLock       outcome = "lost_lock"
	replaced       outcome = "replaced"
	cancelled      outcome = "cancelled"   // by an operator
	declined       outcome = "declined"    // the app says that it runs already
	observed       outcome = "observed"    // nothing was called: the job is observed only
	notStarted     outcome = "not_started" // it could not be started, and no replica is left for a handover
	wasInterrupted outcome = "interrupted" // its replica is gone, or the app that had accepted it
	shutdown       outcome = "shutdown"
)

// handedOver stands in the history for a tick that this replica could not start and gave to another one. It is no fate
// of the tick, so it is not among the counted outcomes.
const handedOver outcome = service.HandedOver

var outcomes = [...]outcome{succeeded, failed, timedOut, lostLock, replaced, cancelled, declined, observed, notStarted,
	wasInterrupted, shutdown}

// Recorded returns all that the history can have as an outcome.
func Recorded() []string {
	var words []string
	for _, o := range outcomes {
		words = append(words, string(o))
	}
	return append(words, string(handedOver), lock.Missed, lock.Overlapped, lock.PausedTick)
}

// skip is why a wake did not fire. With an empty reason, the wake goes on.
type skip struct {
	reason reason
	until  time.Time   // end of the pause that it met; zero = not known
	holder string      // the replica that was there first; "" = none, or not known
	attrs  []slog.Attr // further attributes for the log
}

// ended is how a run ended.
type ended struct {
	outcome outcome
	start   time.Time      // when the job began; zero = it never did
	result  execute.Result // of the last attempt
	cause   error          // why the last attempt's context ended, if it did
	attempt int            // the last one
	took    time.Duration  // the run with all its attempts; 0 if it never began
}

// cutShort reports whether the run ended before the job did, and the job did not end it.
func (e *ended) cutShort() bool {
	return e.outcome == lostLock || e.outcome == shutdown || e.outcome == wasInterrupted
}

// endedBy tells the outcome of an attempt that began, from the executor's result and the cause of the attempt's
// context.
func endedBy(r execute.Result, cause error) outcome {
	switch r.Status {
	case execute.Succeeded, execute.Declined, execute.Observed, execute.Interrupted: // these have the same words
		return outcome(r.Status)
	case execute.Canceled:
		return outcomeOf(cause)
	}
	return failed
}

// timeoutError is the cause with which a run's context ends at its timeout, in nanoseconds.
type timeoutError struct{ after atomic.Int64 }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("the run took longer than its timeout of %s", time.Duration(e.after.Load()))
}

// outcomeOf tells the outcome of a run from the cause of its context.
func outcomeOf(cause error) outcome {
	_, over := errors.AsType[*timeoutError](cause)
	switch {
	case over:
		return timedOut
	case errors.Is(cause, lock.ErrLost):
		return lostLock
	case errors.Is(cause, lock.ErrReplaced):
		return replaced
	case errors.Is(cause, lock.ErrCancelled):
		return cancelled
	case errors.Is(cause, errShutdown):
		return shutdown
	}
	return failed
}

// maxDetail bounds the text of a failure in the history.
const maxDetail = 512

func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") // without half a character
}

// leftAs is the outcome of a run that its replica left: nobody waits for a cancelled one.
func leftAs(rec lock.Record) outcome {
	if rec.Cancelled {
		return cancelled
	}
	return wasInterrupted
}
