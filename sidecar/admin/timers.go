package admin

import (
	"encoding/json"
	"net/http"

	"github.com/solotick/solotick/sidecar/view"
)

// setTimer sets a timer. Its request may hold secrets: the API shows it only in the answer to a GET of this one timer.
func (a *api) setTimer(r *http.Request) (*answer, error) {
	id := r.PathValue("id")
	body, err := document(r)
	if err != nil {
		return nil, err
	}
	t, created, err := a.operator.SetTimer(r.Context(), id, body)
	if err != nil {
		return nil, err
	}
	a.Log.Info("timer set", "timer", id, "at", view.Stamp(t.At), "new", created)
	return &answer{made(created), view.NewTimer(id, t.At)}, nil
}

func (a *api) timer(r *http.Request) (*answer, error) {
	id := r.PathValue("id")
	source, at, err := a.operator.Timer(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return &answer{body: view.WholeTimer{Timer: view.NewTimer(id, at), Definition: source}}, nil
}

func (a *api) timers(r *http.Request) (*answer, error) {
	p := r.URL.Query()
	limit, err := number(p, "limit", someRuns, maxRuns)
	if err != nil {
		return nil, err
	}
	waiting, err := a.Store.Timers(r.Context(), limit)
	if err != nil {
		return nil, err
	}
	return &answer{body: view.NewTimers(waiting)}, nil
}

func (a *api) deleteTimer(r *http.Request) (*answer, error) {
	id := r.PathValue("id")
	if err := a.operator.DeleteTimer(r.Context(), id); err != nil {
		return nil, err
	}
	a.Log.Info("timer deleted", "timer", id)
	return &answer{body: view.DeletedTimer{ID: id, Deleted: true}}, nil
}

// document reads a body, which must be one JSON document, and refuses parameters.
func document(r *http.Request) ([]byte, error) {
	body, err := read(r, maxBody)
	switch {
	case err != nil:
		return nil, err
	case body == nil:
		return nil, refuse(http.StatusBadRequest, "see docs/api.md", "the body is missing")
	case !json.Valid(body):
		return nil, refuse(http.StatusBadRequest, "", "the body is not JSON")
	}
	return body, nil
}

// made returns the status of an answer: 201 if the timer was created, otherwise 200.
func made(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}
