package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/solotick/solotick/sidecar/view"
)

// errStillDraining ends the wait for a drain at the caller's timeout. The drain goes on.
var errStillDraining = errors.New("the caller's time is over")

// patient is asJSON without a limit on the time of the answer.
func patient(serve func(*http.Request) (*answer, error), known ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // a writer without deadlines needs no change
		asJSON(serve, known...)(w, r)
	}
}

// drained makes the replica take no more ticks, and answers when its runs have ended. If the caller's timeout passes
// first, it answers 202, and the drain goes on.
func (a *api) drained(r *http.Request) (*answer, error) {
	ctx := r.Context()
	if p := r.URL.Query(); p.Has("timeout") {
		limit, err := length("timeout", p.Get("timeout"))
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errStillDraining)
		defer cancel()
	}
	if err := decode(r, &struct{}{}); err != nil {
		return nil, err
	}
	a.Log.Info("asked to drain")
	start := time.Now()
	err := a.Replica.Drain(ctx)
	out := view.Drained{Drained: err == nil, Replica: a.Name, TookMS: time.Since(start).Milliseconds()}
	switch {
	case err == nil:
		return &answer{body: out}, nil
	case errors.Is(context.Cause(ctx), errStillDraining):
		return &answer{status: http.StatusAccepted, body: out}, nil
	}
	return nil, refuse(http.StatusInternalServerError, "", "draining: %v", err)
}
