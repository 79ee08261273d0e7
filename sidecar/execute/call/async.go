package call

import (
	"context"
	"errors"
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

var errNoAPI = errors.New("the app cannot report: this replica was started without an admin address")

// executeAsync calls the app for an attempt of a run that it may end by itself. callbacks.Execute waits for the end.
func (e *caller) executeAsync(ctx context.Context, r execute.Run, p proof) execute.Result {
	if e.callbacks == nil {
		return execute.Result{Status: execute.NotStarted, Err: errNoAPI, Code: -1}
	}
	return e.callbacks.Execute(ctx, r, e.async, func(c *callback.Call) (execute.Result, bool) {
		return e.send(ctx, r, p.with(c))
	})
}

// with adds the headers of a call to a proof: no other server gets them.
func (p proof) with(c *callback.Call) proof {
	h := p.headers.Clone()
	h[callbackHeader] = []string{c.URL()}
	h[tokenHeader] = []string{c.Token()}
	h[heartbeatHeader] = []string{strconv.FormatFloat(c.Heartbeat.Seconds(), 'f', -1, 64)}
	p.headers = h
	return p
}
