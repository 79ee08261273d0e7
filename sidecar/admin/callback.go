package admin

import (
	"errors"
	"net/http"
	"strings"

	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/view"
)

// mostAsking is how many apps' questions wait for their ticks at once: the other connections are for the rest.
const mostAsking = maxConns * 3 / 4

// claim answers an app that asks for a tick, once the tick has come.
func (a *api) claim(r *http.Request) (*answer, error) {
	defer a.asking.Add(-1)
	if a.asking.Add(1) > mostAsking {
		return nil, refuse(http.StatusServiceUnavailable, "ask again", "%d apps ask already", mostAsking)
	}
	tick, err := tickOf(r)
	if err == nil {
		err = decode(r, &struct{}{})
	}
	if err != nil {
		return nil, err
	}
	granted, err := a.Replica.Ask(r.Context(), r.PathValue("job"), tick, a.Callbacks)
	return &answer{body: granted}, err
}

// heartbeat takes a heartbeat of an app that works on a run.
func (a *api) heartbeat(r *http.Request) (*answer, error) {
	run, token, err := reportIn(r, &struct{}{})
	if err != nil {
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
	in := struct {
		Outcome callback.Outcome `json:"outcome"`
		Detail  string           `json:"detail"`
	}{}
	run, token, err := reportIn(r, &in)
	if err != nil {
		return nil, err
	}
	if !in.Outcome.Known() {
		return nil, refuse(http.StatusUnprocessableEntity, `{"outcome": "failed", "detail": "the disk is full"}`,
			`"outcome" must be succeeded, failed or interrupted`)
	}
	if err := a.Callbacks.Finish(run, token, callback.Report{Outcome: in.Outcome, Detail: in.Detail}); err != nil {
		return nil, refusedFinish(err)
	}
	return &answer{body: view.Finished{Run: run, Outcome: string(in.Outcome)}}, nil
}

// reportIn reads a report of an app: the run of the path, the token with which the app proves that it has the run, and
// the body.
func reportIn(r *http.Request, into any) (run, token string, err error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", "", refuse(http.StatusUnauthorized, "send Authorization: Bearer TOKEN, "+
			"where TOKEN is the header Solotick-Callback-Token of the call", "the request has no token")
	}
	return r.PathValue("run"), token, decode(r, into)
}

// refusedHeartbeat says why a heartbeat is refused, and what the app does then.
func refusedHeartbeat(err error) *refusal {
	over, isOver := errors.AsType[*callback.OverError](err)
	switch {
	case errors.Is(err, callback.ErrOver):
		return refuse(http.StatusGone, "stop the work", "%v", err)
	case errors.Is(err, callback.ErrSilent):
		return refuse(http.StatusGone, "stop the work", "the run is over: %v", over)
	case isOver:
		return refuse(http.StatusGone, "stop the work, and then finish the run", "the run has to end: %v", over)
	case errors.Is(err, callback.ErrUnsure):
		return refuse(http.StatusServiceUnavailable, "send another heartbeat in a second; "+
			"stop the work when the time of the last heartbeat that got 200 is over", "%v", err)
	}
	return refuse(http.StatusNotFound, "stop the work: the run has ended, or the replica was restarted", "%v", err)
}

func refusedFinish(err error) *refusal {
	const hint = "do not send it again"
	over, isOver := errors.AsType[*callback.OverError](err)
	switch {
	case errors.Is(err, callback.ErrOver):
		return refuse(http.StatusGone, hint, "%v", err)
	case isOver:
		return refuse(http.StatusGone, hint, "the run is over: %v", over)
	}
	return refuse(http.StatusNotFound, hint, "%v", err)
}
