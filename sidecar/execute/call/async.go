package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
)

// The headers by which the app learns where and how it reports.
const (
	callbackHeader  = "Solotick-Callback"       // URL, to which the app adds /heartbeat or /finish
	tokenHeader     = "Solotick-Callback-Token" // for Authorization: Bearer
	heartbeatHeader = "Solotick-Heartbeat"      // seconds
)

var (
	errNoAPI    = errors.New("the app cannot report: in this replica's table admin is \"\"")
	errReported = errors.New("the app ended the run as failed")
	errStopped  = errors.New("the app stopped before the end of the work")
)

// executeAsync makes the calls of an attempt, and waits for the app's report if the app has accepted the run. An app that has
// sent a heartbeat has accepted it, even if its answer is lost.
func (e *caller) executeAsync(ctx context.Context, r execute.Run, p proof) execute.Result {
	if e.callbacks == nil {
		return execute.Result{Status: execute.NotStarted, Err: errNoAPI, Code: -1}
	}
	c := e.callbacks.Open(r.ID, e.async.Heartbeat, r.Lasts)
	defer c.Close()
	res, foreign := e.send(ctx, r, p.with(c))
	accepted := res.Code == http.StatusAccepted && !foreign || res.Code == -1 && c.Beaten()
	if !accepted {
		return res
	}
	r.IsAccepted(e.async.Timeout)
	report, err := c.Wait(ctx)
	return resultOfReport(ctx, res.Code, report, err)
}

// with adds the headers of a call to a proof: no other server gets them.
func (p proof) with(c *callback.Call) proof {
	h := p.headers.Clone()
	if h == nil {
		h = http.Header{}
	}
	h[callbackHeader] = []string{c.URL()}
	h[tokenHeader] = []string{c.Token()}
	h[heartbeatHeader] = []string{strconv.FormatFloat(c.Heartbeat.Seconds(), 'f', -1, 64)}
	p.headers = h
	return p
}

// resultOfReport turns the end of a run that the app had accepted into a result. An app that was told to end has failed only
// because of that.
func resultOfReport(ctx context.Context, code int, report callback.Report, err error) execute.Result {
	var detail execute.Tail
	_, _ = detail.Write([]byte(report.Detail)) // which never fails
	res := execute.Result{Code: code, Output: detail.String(), Reported: err == nil}
	switch {
	case report.Outcome == callback.Succeeded:
		res.Status = execute.Succeeded
	case ctx.Err() != nil:
		res.Status, res.Err = execute.Canceled, fmt.Errorf("the app was told to end the run: %w", context.Cause(ctx))
	case err != nil:
		res.Status, res.Err = execute.Interrupted, err
	case report.Outcome == callback.Interrupted:
		res.Status, res.Err, res.Reason = execute.Interrupted, errStopped, execute.Brief(report.Detail)
	default:
		res.Status, res.Err, res.Reason = execute.Failed, errReported, execute.Brief(report.Detail)
	}
	return res
}
