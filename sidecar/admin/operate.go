package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// operateLimit is how long a request to Redis whose answer was lost is repeated.
const operateLimit = 5 * time.Second

// operable returns the name of the job in the path, if find knows it.
func operable(r *http.Request, find func(context.Context, string) (config.Job, error)) (string, error) {
	if _, err := parameters(r); err != nil {
		return "", err
	}
	j, err := find(r.Context(), r.PathValue("job"))
	return j.Name, err
}

// as returns the operator for a request of that author.
func (a *api) as(by, reason string) (*service.Operator, error) {
	by, reason = text.OneLine(by), text.OneLine(reason)
	err := service.CheckAuthor(service.Field{Name: `"by"`, Text: by}, service.Field{Name: "the reason", Text: reason})
	return a.operator.As(service.Author{By: cmp.Or(by, "api on "+a.Name), Reason: reason}), err
}

// maxTrigger bounds the body of a trigger, in bytes: it has room for data of the largest size, and for the other keys.
const maxTrigger = config.MaxData + 16<<10

func (a *api) trigger(r *http.Request) (*answer, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	j, err := a.operator.Claimed(r.Context(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	in := struct {
		ID     string          `json:"id"`
		By     string          `json:"by"`
		Reason string          `json:"reason"`
		Data   json.RawMessage `json:"data"`
	}{}
	if err := decodeUpTo(r, maxTrigger, &in); err != nil {
		return nil, err
	}
	var data []byte
	if in.Data != nil {
		if data, err = service.CheckData(`"data"`, in.Data); err != nil {
			return nil, err
		}
	}
	operator, err := a.as(in.By, in.Reason)
	if err != nil {
		return nil, err
	}
	due, err := operator.Trigger(r.Context(), j, in.ID, data)
	if err != nil {
		return nil, err
	}
	a.Log.Info("triggered", "job", j.Name, "id", due.Nonce)
	return &answer{http.StatusAccepted, view.NewTriggered(due)}, nil
}

func (a *api) rerun(r *http.Request) (*answer, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	j, err := a.operator.Claimed(r.Context(), r.PathValue("job"))
	if err != nil {
		return nil, err
	}
	in := struct {
		Tick   string `json:"tick"`
		ID     string `json:"id"`
		By     string `json:"by"`
		Reason string `json:"reason"`
	}{}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	operator, err := a.as(in.By, in.Reason)
	if err != nil {
		return nil, err
	}
	given := service.Moment{Field: service.Field{Name: `"tick"`, Text: in.Tick}}
	if in.Tick != "" {
		if given.Time, err = instant("tick", in.Tick); err != nil {
			return nil, err
		}
	}
	due, err := operator.Rerun(r.Context(), j, given, in.ID)
	if err != nil {
		return nil, err
	}
	a.Log.Info("rerun", "job", j.Name, "tick", view.Stamp(due.Tick), "id", due.Nonce)
	return &answer{http.StatusAccepted, view.NewTriggered(due)}, nil
}

func (a *api) pause(r *http.Request) (*answer, error) {
	job, err := operable(r, a.operator.Find)
	if err != nil {
		return nil, err
	}
	in := struct {
		By     string `json:"by"`
		Reason string `json:"reason"`
		Until  string `json:"until"`
		For    string `json:"for"`
	}{}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	in.Reason = text.OneLine(in.Reason)
	err = service.CheckPause(service.Field{Name: "the reason", Text: in.Reason},
		service.Field{Name: `"until"`, Text: in.Until}, service.Field{Name: `"for"`, Text: in.For})
	if err != nil {
		return nil, err
	}
	until, err := a.until(r.Context(), in.Until, in.For)
	if err != nil {
		return nil, err
	}
	operator, err := a.as(in.By, in.Reason)
	if err != nil {
		return nil, err
	}
	if err := operator.Pause(r.Context(), job, in.Reason, until); err != nil {
		return nil, err
	}
	a.Log.Info("paused", "job", job, "reason", in.Reason, "until", view.Stamp(until))
	return &answer{body: view.NewPaused(job, in.Reason, until)}, nil
}

// until returns when a pause ends; zero if it lasts until it is resumed.
func (a *api) until(ctx context.Context, at, span string) (time.Time, error) {
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
	return a.operator.PauseEnd(ctx, d)
}

func (a *api) resume(r *http.Request) (*answer, error) {
	job, err := operable(r, a.operator.Find)
	if err != nil {
		return nil, err
	}
	in := struct {
		By     string `json:"by"`
		Reason string `json:"reason"`
	}{}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	operator, err := a.as(in.By, in.Reason)
	if err != nil {
		return nil, err
	}
	resumed, err := operator.Resume(r.Context(), job)
	if err != nil {
		return nil, err
	}
	a.Log.Info("resumed", "job", job, "paused", resumed)
	return &answer{body: view.Resumed{Job: job, Resumed: resumed}}, nil
}

func (a *api) cancel(r *http.Request) (*answer, error) {
	job, err := operable(r, a.operator.Cancellable)
	if err != nil {
		return nil, err
	}
	in := struct {
		Run    string `json:"run"`
		By     string `json:"by"`
		Reason string `json:"reason"`
	}{}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	operator, err := a.as(in.By, in.Reason)
	if err != nil {
		return nil, err
	}
	runs, err := operator.Cancel(r.Context(), job, text.OneLine(in.Run))
	if err != nil {
		return nil, err
	}
	a.Log.Info("cancelled", "job", job, "runs", strings.Join(runs, " "))
	return &answer{body: view.Cancelled{Job: job, Runs: runs}}, nil
}
