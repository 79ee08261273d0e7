package callback

import (
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

// Execute makes one attempt of a run, and waits for the app's report if the app has accepted the run. call calls the app, and
// returns what came of that, and whether the answer is of another server than the table's.
//
// An app that has sent a heartbeat has accepted the run, even if its answer is lost, or a proxy has answered in its place that
// it got none. If such an app then falls silent, the run ends as the proxy has answered.
func (r *Runs) Execute(ctx context.Context, run execute.Run, async *config.Async, call func(*Call) (res execute.Result, foreign bool)) execute.Result {
	c := r.Open(run.ID, async.Heartbeat, run.Lasts)
	defer c.Close()
	res, foreign := call(c)
	answered := res.Code == http.StatusAccepted && !foreign
	if !answered && !(isLost(res.Code) && !c.closeUnlessBeaten()) {
		return res
	}
	run.IsAccepted(async.Timeout)
	report, err := c.Wait(ctx)
	if answered {
		return resultOf(ctx, res.Code, report, err)
	}
	if res.Code != -1 && errors.Is(err, ErrSilent) {
		return res
	}
	return resultOf(ctx, -1, report, err)
}

// isLost tells whether the code of an answer says nothing of the app's own answer.
func isLost(code int) bool {
	return code == -1 || code == http.StatusBadGateway || code == http.StatusGatewayTimeout
}

// closeUnlessBeaten refuses all reports from now on, and returns true, unless the call is Beaten. It does both at once: a
// heartbeat that is answered in between would let the app work on a run that is over.
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
// because of that.
func resultOf(ctx context.Context, code int, report Report, err error) execute.Result {
	var detail execute.Tail
	_, _ = detail.Write([]byte(report.Detail)) // which never fails
	res := execute.Result{Code: code, Output: detail.String(), Reported: err == nil}
	switch {
	case report.Outcome == Succeeded:
		res.Status = execute.Succeeded
	case ctx.Err() != nil:
		res.Status, res.Err = execute.Canceled, fmt.Errorf("the app was told to end the run: %w", context.Cause(ctx))
	case err != nil:
		res.Status, res.Err = execute.Interrupted, err
	case report.Outcome == Interrupted:
		res.Status, res.Err, res.Reason = execute.Interrupted, ErrStopped, execute.Brief(report.Detail)
	default:
		res.Status, res.Err, res.Reason = execute.Failed, ErrReported, execute.Brief(report.Detail)
	}
	return res
}
