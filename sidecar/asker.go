package sidecar

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/view"
)

// asker is an app that asks for a tick, which its own scheduler is about to run. It stands in place of the job's
// executor: a run begins when the app gets the answer, and the app reports its end.
type asker struct {
	async   *config.Async // of the spec in force when the run begins
	runs    callback.Executor
	waits   context.Context   // while the app waits for the answer
	granted chan view.Granted // the app takes it while it waits
	refused chan skip         // holds why the wake did not fire
	idle    func() string     // of a lease: why its app cannot hold it; "" if it can. nil = the job has ticks
}

// errGone is why a run was given to no app.
var errGone = errors.New("the app that had asked for the tick was gone before it came")

// Execute waits until the job may begin, and gives the run to the app. It returns when the run is over.
func (a *asker) Execute(ctx context.Context, r execute.Run) execute.Result {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	lasts, unready := r.Lasts, errors.New("the app is not ready")
	r.Lasts = func(d time.Duration) bool {
		if a.idle != nil && d > 0 && a.idle() != "" {
			leave(unready) // the heartbeats after this one are refused
		}
		return lasts(d)
	}
	res := a.runs.Execute(ctx, r, a.async, func(c *callback.Call) (execute.Result, bool) {
		err := r.Wait(ctx)
		if err == nil {
			select {
			case a.granted <- view.NewGranted(r, c.Token(), c.Heartbeat):
				r.Begun()
				return execute.Result{Code: http.StatusAccepted}, false
			case <-a.waits.Done():
				err = errGone
			}
		}
		return execute.Result{Status: execute.Failed, Err: err, Code: -1}, false // for no other app asks for the tick
	})
	if res.Status == execute.Canceled && errors.Is(res.Err, unready) {
		res.Status = execute.Interrupted
	}
	return res
}
