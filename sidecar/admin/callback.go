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
		return nil, refusedReport(err)
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
		return nil, &refusal{status: http.StatusUnprocessableEntity, err: `"outcome" must be succeeded, failed or interrupted`, hint: `{"outcome": "succeeded"}`}
	}
	if err := a.Callbacks.Finish(run, token, callback.Report{Outcome: in.Outcome, Detail: in.Detail}); err != nil {
		return nil, refusedReport(err)
	}
	return &answer{body: view.Finished{Run: run, Outcome: string(in.Outcome)}}, nil
}

// bearer returns the run of the path, and the token with which the app proves that it has the run.
func bearer(r *http.Request) (run, token string, err error) {
	if _, err := parameters(r); err != nil {
		return "", "", err
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", "", &refusal{status: http.StatusUnauthorized, err: "the token of the run is missing",
			hint: "Authorization: Bearer TOKEN, with the Solotick-Callback-Token of the call"}
	}
	return r.PathValue("run"), strings.TrimSpace(token), nil
}

// refusedReport says why a report is refused.
func refusedReport(err error) *refusal {
	if over, ok := errors.AsType[*callback.OverError](err); ok {
		return &refusal{status: http.StatusGone, err: "the run has to end, or is over: " + over.Error(), hint: "stop the work"}
	}
	if errors.Is(err, callback.ErrUnsure) {
		return &refusal{status: http.StatusServiceUnavailable, err: err.Error(),
			hint: "ask again; stop the work when a heartbeat has passed since the last one that was answered with 200 was sent"}
	}
	return &refusal{status: http.StatusNotFound, err: err.Error(), hint: "stop the work"}
}
