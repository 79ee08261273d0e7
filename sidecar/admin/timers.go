package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin/view"
)

// setTimer takes a timer. What it is to send may hold secrets: only who asks for this one timer is shown it again.
func (a *api) setTimer(r *http.Request) (*answer, error) {
	id := r.PathValue("id")
	body, err := document(r)
	if err != nil {
		return nil, err
	}
	now, ok := a.Store.Now()
	if !ok {
		return nil, errors.New("no answer from Redis yet")
	}
	t, err := config.ParseTimer(id, body, now)
	if err != nil {
		return nil, err
	}
	if p := a.Replica.Table().Admits(&t.Job); p != nil {
		return nil, config.Problems{*p}
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateLimit)
	defer cancel()
	created, err := a.Store.SetTimer(ctx, id, t.At, t.Source)
	if err != nil {
		return nil, err
	}
	a.Log.Info("timer set", "timer", id, "at", view.Stamp(t.At), "new", created)
	return &answer{made(created), view.NewTimer(id, t.At)}, nil
}

func (a *api) timer(r *http.Request) (*answer, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	source, at, err := a.Store.Timer(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return &answer{body: view.NewWholeTimer(id, at, source)}, nil
}

func (a *api) timers(r *http.Request) (*answer, error) {
	p, err := parameters(r, "limit")
	if err != nil {
		return nil, err
	}
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
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if !config.IsTimerID(id) {
		return nil, lock.ErrNoTimer
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateLimit)
	defer cancel()
	deleted, err := a.Store.DeleteTimer(ctx, id)
	if err == nil && !deleted {
		err = lock.ErrNoTimer
	}
	if err != nil {
		return nil, err
	}
	a.Log.Info("timer deleted", "timer", id)
	return &answer{body: view.DeletedTimer{ID: id, Deleted: true}}, nil
}

// document reads a body that must be there, and be one JSON document, and no parameters beside it.
func document(r *http.Request) ([]byte, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	body, err := read(r)
	switch {
	case err != nil:
		return nil, err
	case body == nil:
		return nil, &refusal{status: http.StatusBadRequest, err: "the body is missing", hint: "see docs/api.md"}
	case !json.Valid(body):
		return nil, &refusal{status: http.StatusBadRequest, err: "the body is not JSON"}
	}
	return body, nil
}

// made is the status of what was set.
func made(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// wrong is the refusal of a body with problems.
func wrong(problems config.Problems) *refusal {
	f := &refusal{status: http.StatusUnprocessableEntity, err: fmt.Sprintf("the body has %d problems", len(problems)), problems: problems}
	if len(problems) == 1 {
		f.err, f.hint = problems[0].Message, problems[0].Hint
	}
	return f
}
