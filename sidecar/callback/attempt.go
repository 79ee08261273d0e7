package callback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// The errors of runs that their apps have ended.
var (
	ErrReported = errors.New("the app ended the run as failed")
	ErrStopped  = errors.New("the app stopped before the end of the work")
)

// Execute makes one attempt of a run, and waits for the app's report if the app has accepted the run. call calls the
// app, and returns what came of that, and whether the answer is of another server than the table's.
//
// An app that has sent a heartbeat has accepted the run, whatever was answered: the answer may be lost, or a proxy's,
// or that of a handler whose work goes on. If no report comes from such an app, the run ends as it was answered.
func (r *Runs) Execute(ctx context.Context, run execute.Run, async *config.Async,
	call func(*Call) (res execute.Result, foreign bool)) execute.Result {
	c := r.Open(run.ID, async.Heartbeat, run.Lasts)
	defer c.Close()
	res, foreign := call(c)
	accepts := res.Code == http.StatusAccepted && !foreign
	if !accepts && c.closeUnlessBeaten() {
		return res
	}
	if run.Accepted != nil {
		run.Accepted(async.Timeout)
	}
	report, err := c.Wait(ctx)
	if err != nil && !accepts && res.Code != -1 {
		return res
	}
	return resultOf(ctx, report, err, c.isUnsure())
}

// closeUnlessBeaten refuses all reports from now on, and returns true, unless the call is Beaten. It does both at once:
// a heartbeat that is answered in between would let the app work on a run that is over.
func (c *Call) closeUnlessBeaten() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isBeaten() {
		return false
	}
	c.closed = true
	c.end(ErrOver)
	return true
}

// resultOf turns the end of a run that the app had accepted into a result. An app that was told to end has failed only
// because of that. unsure tells that the app could not go on because of the lease.
func resultOf(ctx context.Context, report Report, err error, unsure bool) execute.Result {
	var detail execute.Tail
	_, _ = detail.Write([]byte(report.Detail)) // which never fails
	res := execute.Result{Code: -1, Output: detail.String(), Reported: err == nil}
	switch {
	case report.Outcome == Succeeded:
		res.Status = execute.Succeeded
	case ctx.Err() != nil:
		res.Status, res.Err = execute.Canceled, fmt.Errorf("the app was told to end the run: %w", context.Cause(ctx))
	case err != nil || report.Outcome == Interrupted:
		res.Status, res.Err, res.Reason = execute.Interrupted, cmp.Or(err, ErrStopped), execute.Brief(report.Detail)
		if unsure {
			res.Err = fmt.Errorf("%w: %w", res.Err, ErrUnsure)
		}
	default:
		res.Status, res.Err, res.Reason = execute.Failed, ErrReported, execute.Brief(report.Detail)
	}
	return res
}
