package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/solotick/solotick/internal/rds"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// setTimer sets a timer. Its request may hold secrets: the API shows it only in the answer to a GET of this one timer.
func (a *api) setTimer(r *http.Request) (*answer, error) {
	id := r.PathValue("id")
	body, err := document(r, maxBody)
	if err != nil {
		return nil, err
	}
	t, made, err := a.operator.SetTimer(r.Context(), id, body)
	if err != nil {
		return nil, err
	}
	a.Log.Info("timer set", "timer", id, "at", view.Stamp(t.At), "new", made == service.TimerSet)
	status := map[bool]int{true: http.StatusCreated}[made == service.TimerSet]
	return &answer{status: status, body: view.NewTimer(id, t.At)}, nil
}

const (
	maxBatch    = 4 << 20 // bytes of many timers
	mostBatches = 2       // of them, are read and set or deleted at once
)

// batched is the answer to one of many timers.
type batched struct {
	ID     string         `json:"id"`
	Result service.Change `json:"result"` // or "refused"
	At     string         `json:"at,omitempty"`
	Status int            `json:"status,omitempty"`
	*refusal
}

// setTimers sets many timers. Each has an answer of its own, as if it had come alone.
func (a *api) setTimers(r *http.Request) (*answer, error) {
	soon, cancel := context.WithTimeout(r.Context(), turnWait)
	defer cancel()
	if err := a.takeBatch(soon); err != nil {
		return nil, err
	}
	defer func() { <-a.batches }()
	body, err := document(r, maxBatch)
	if err != nil {
		return nil, err
	}
	var sources []json.RawMessage
	if json.Unmarshal(body, &sources) != nil || len(sources) > service.MaxTimerBatch {
		return nil, refuse(http.StatusUnprocessableEntity, "", "not an array of up to %d timers", service.MaxTimerBatch)
	}
	answers, refused := make([]batched, len(sources)), 0
	for i, t := range a.operator.SetTimers(r.Context(), sources) {
		if t.Err == nil {
			answers[i] = batched{ID: t.ID, Result: t.Made, At: view.Stamp(t.Timer.At)}
			continue
		}
		f := refusing(t.Err)
		answers[i] = batched{ID: t.ID, Result: "refused", Status: f.status, refusal: f}
		refused++
	}
	a.Log.Info("timers set", "timers", len(answers)-refused, "refused", refused)
	return &answer{body: answers}, nil
}

// takeBatch waits until one of few batches is over.
func (a *api) takeBatch(ctx context.Context) error {
	if take(ctx, a.batches) {
		return nil
	}
	return refuse(http.StatusServiceUnavailable, "ask again", "%d batches are being set or deleted", mostBatches)
}

func (a *api) timer(r *http.Request) (*answer, error) {
	id := r.PathValue("id")
	source, at, err := a.operator.Timer(r.Context(), id)
	return &answer{body: view.WholeTimer{Timer: view.NewTimer(id, at), Definition: source}}, err
}

func (a *api) timers(r *http.Request) (*answer, error) {
	p := r.URL.Query()
	limit, err := number(p, "limit", someRuns, maxRuns)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), turnWait) // a group may be looked for among a million
	defer cancel()
	waiting, err := a.operator.Timers(ctx, p.Get("group"), limit)
	if err != nil {
		return nil, err
	}
	all, err := a.Store.Standings(r.Context(), []string{service.TimerJobs})
	if err != nil {
		return nil, err
	}
	of := all[service.TimerJobs]
	return &answer{body: view.NewTimers(waiting), header: map[string]string{"Solotick-Timers": rds.Itoa(of.Timers),
		"Solotick-Timers-Lag": fmt.Sprintf("%.3f", of.Late.Seconds())}}, nil
}

// deleteTimers deletes the timers of a group, as many as it can in a while.
func (a *api) deleteTimers(r *http.Request) (*answer, error) {
	group := r.URL.Query().Get("group")
	if group == "" {
		return nil, refuse(http.StatusBadRequest, "DELETE /v1/timers?group=user-4711", "the group is missing")
	}
	ctx, cancel := context.WithTimeout(r.Context(), turnWait)
	defer cancel()
	if err := a.takeBatch(ctx); err != nil {
		return nil, err
	}
	defer func() { <-a.batches }()
	deleted, err := a.operator.DeleteTimers(ctx, group)
	a.Log.Info("timers deleted", "group", group, "timers", deleted)
	return &answer{body: view.DeletedTimers{Group: group, Deleted: deleted}}, err
}

func (a *api) deleteTimer(r *http.Request) (*answer, error) {
	id := r.PathValue("id")
	if err := a.operator.DeleteTimer(r.Context(), id); err != nil {
		return nil, err
	}
	a.Log.Info("timer deleted", "timer", id)
	return &answer{body: view.DeletedTimer{ID: id, Deleted: true}}, nil
}

// document reads a body of at most so many bytes, which must be one JSON document.
func document(r *http.Request, most int64) ([]byte, error) {
	body, err := read(r, most)
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
