package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin/view"
)

// operateLimit is how long a request whose answer was lost is asked for again in Redis.
const operateLimit = 5 * time.Second

// operable is the job that the path names.
func (a *api) operable(r *http.Request) (config.Job, error) {
	if _, err := parameters(r); err != nil {
		return config.Job{}, err
	}
	return a.named(r.Context(), r.PathValue("job"))
}

func (a *api) trigger(r *http.Request) (*answer, error) {
	j, err := a.operable(r)
	if err == nil && j.Guarantee == config.EveryReplica {
		err = &refusal{status: http.StatusConflict,
			err: fmt.Sprintf("job %q has guarantee every-replica: each replica runs it by itself, without Redis", j.Name)}
	}
	if err != nil {
		return nil, err
	}
	job := j.Name
	in := struct {
		ID string `json:"id"`
	}{}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if in.ID == "" {
		in.ID = uuid.NewString()
	} else if _, err := uuid.Parse(in.ID); err != nil || len(in.ID) != len(uuid.Nil.String()) {
		return nil, &refusal{status: http.StatusUnprocessableEntity, err: `"id" is not a UUID`, hint: "as " + uuid.NewString()}
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateLimit)
	defer cancel()
	due, err := a.Store.Trigger(ctx, job, in.ID)
	if err != nil {
		return nil, err
	}
	a.Log.Info("triggered by hand", "job", job, "id", in.ID)
	return &answer{http.StatusAccepted, view.NewTriggered(due)}, nil
}

func (a *api) pause(r *http.Request) (*answer, error) {
	j, err := a.operable(r)
	if err != nil {
		return nil, err
	}
	job := j.Name
	in := struct {
		Reason string `json:"reason"`
		Until  string `json:"until"`
		For    string `json:"for"`
	}{}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	in.Reason = lock.OneLine(in.Reason)
	invalid := func(err, hint string) error {
		return &refusal{status: http.StatusUnprocessableEntity, err: err, hint: hint}
	}
	switch n := utf8.RuneCountInString(in.Reason); {
	case n == 0:
		return nil, invalid("a pause needs a reason: others will wonder", `{"reason": "database migration", "for": "2h"}`)
	case n > lock.MaxReason:
		return nil, invalid(fmt.Sprintf("the reason has %d characters, at most %d are kept", n, lock.MaxReason), "")
	case in.Until != "" && in.For != "":
		return nil, invalid(`"until" and "for" both say when the pause ends`, "leave one of them out")
	}
	until, err := a.until(in.Until, in.For)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateLimit)
	defer cancel()
	if err := a.Store.Pause(ctx, job, in.Reason, until); err != nil {
		return nil, err
	}
	a.Log.Info("paused by hand", "job", job, "reason", in.Reason, "until", view.Stamp(until))
	return &answer{body: view.NewPaused(job, in.Reason, until)}, nil
}

// until is when a pause ends; zero when it does not by itself.
func (a *api) until(at, span string) (time.Time, error) {
	switch {
	case at != "":
		return instant("until", at)
	case span == "":
		return time.Time{}, nil
	}
	d, err := length("for", span)
	if err != nil {
		return time.Time{}, err
	}
	now, ok := a.Store.Now()
	if !ok {
		return time.Time{}, errors.New("no answer from Redis yet")
	}
	return view.PauseEnd(now, d), nil
}

func (a *api) resume(r *http.Request) (*answer, error) {
	j, err := a.operable(r)
	if err != nil {
		return nil, err
	}
	job := j.Name
	if err := decode(r, &struct{}{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateLimit)
	defer cancel()
	resumed, err := a.Store.Resume(ctx, job)
	if err != nil {
		return nil, err
	}
	a.Log.Info("resumed by hand", "job", job, "paused", resumed)
	return &answer{body: view.Resumed{Job: job, Resumed: resumed}}, nil
}
