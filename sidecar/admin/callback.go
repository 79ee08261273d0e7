package admin

import (
	"errors"
	"net/http"
	"strings"

	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/view"
)

// heartbeat takes a heartbeat of an app that works on a run.
func (a *api) heartbeat(r *http.Request) (*answer, error) {
	run, token, err := bearer(r)
	if err != nil {
		return nil, err
	}
	if err := decode(r, &struct{}{}); err != nil {
		return nil, err
	}
	span, err := a.Callbacks.Beat(run, token)
	if err != nil {
		return nil, refusedHeartbeat(err)
	}
	return &answer{body: view.Beaten{Run: run, HeartbeatMS: span.Milliseconds()}}, nil
}

// finish takes the report with which an app ends a run.
func (a *api) finish(r *http.Request) (*answer, error) {
	run, token, err := bearer(r)
	if err != nil {
		return nil, err
	}
	in := struct {
		Outcome callback.Outcome `json:"outcome"`
		Detail  string           `json:"detail"`
	}{}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if !in.Outcome.Known() {
		return nil, &refusal{status: http.StatusUnprocessableEntity, err: `"outcome" must be succeeded, failed or interrupted`,
			hint: `{"outcome": "failed", "detail": "the disk is full"}`}
	}
	if err := a.Callbacks.Finish(run, token, callback.Report{Outcome: in.Outcome, Detail: in.Detail}); err != nil {
		return nil, refusedFinish(err)
	}
	return &answer{body: view.Finished{Run: run, Outcome: string(in.Outcome)}}, nil
}

// bearer returns the run of the path, and the token with which the app proves that it has the run.
func bearer(r *http.Request) (run, token string, err error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", "", &refusal{status: http.StatusUnauthorized, err: "the request has no token",
			hint: "send Authorization: Bearer TOKEN, where TOKEN is the header Solotick-Callback-Token of the call"}
	}
	return r.PathValue("run"), token, nil
}

// refusedHeartbeat says why a heartbeat is refused, and what the app does then.
func refusedHeartbeat(err error) *refusal {
	over, isOver := errors.AsType[*callback.OverError](err)
	switch {
	case errors.Is(err, callback.ErrOver):
		return &refusal{status: http.StatusGone, err: err.Error(), hint: "stop the work"}
	case errors.Is(err, callback.ErrSilent):
		return &refusal{status: http.StatusGone, err: "the run is over: " + over.Error(), hint: "stop the work"}
	case isOver:
		return &refusal{status: http.StatusGone, err: "the run has to end: " + over.Error(), hint: "stop the work, and then finish the run"}
	case errors.Is(err, callback.ErrUnsure):
		return &refusal{status: http.StatusServiceUnavailable, err: err.Error(),
			hint: "send another heartbeat in a second; stop the work when the time of the last heartbeat that got 200 is over"}
	}
	return &refusal{status: http.StatusNotFound, err: err.Error(), hint: "stop the work: the run has ended, or the replica was restarted"}
}

// refusedFinish says why the end of a run is refused.
func refusedFinish(err error) *refusal {
	const hint = "do not send it again"
	over, isOver := errors.AsType[*callback.OverError](err)
	switch {
	case errors.Is(err, callback.ErrOver):
		return &refusal{status: http.StatusGone, err: err.Error(), hint: hint}
	case isOver:
		return &refusal{status: http.StatusGone, err: "the run is over: " + over.Error(), hint: hint}
	}
	return &refusal{status: http.StatusNotFound, err: err.Error(), hint: hint}
}
