package admin

import (
	"cmp"
	"context"
	"errors"
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

// author is the part of a body that says who makes the request, and why.
type author struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

func (a *api) as(by author) (*service.Operator, error) {
	by = author{text.OneLine(by.By), text.OneLine(by.Reason)}
	err := service.CheckAuthor(service.Field{Name: `"by"`, Text: by.By},
		service.Field{Name: "the reason", Text: by.Reason})
	return a.operator.As(service.Author{By: cmp.Or(by.By, "api on "+a.Name), Reason: by.Reason}), err
}

// asked reads a request about the job in the path, which find returns or refuses. The body is read into in, whose
// author is by.
func (a *api) asked(r *http.Request, find func(context.Context, string) (config.Job, error), in any,
	by *author) (j config.Job, o *service.Operator, err error) {
	if j, err = find(r.Context(), r.PathValue("job")); err == nil {
		err = decode(r, in)
	}
	if err == nil {
		o, err = a.as(*by)
	}
	return j, o, err
}

func (a *api) trigger(r *http.Request) (*answer, error) {
	in := struct {
		author
		ID string `json:"id"`
	}{}
	j, operator, err := a.asked(r, a.operator.Startable, &in, &in.author)
	if err != nil {
		return nil, err
	}
	due, err := operator.Trigger(r.Context(), j, in.ID)
	if err != nil {
		return nil, err
	}
	a.Log.Info("triggered", "job", j.Name, "id", due.Nonce)
	return &answer{status: http.StatusAccepted, body: view.NewTriggered(due)}, nil
}

func (a *api) rerun(r *http.Request) (*answer, error) {
	in := struct {
		author
		Tick string `json:"tick"`
		ID   string `json:"id"`
	}{}
	j, operator, err := a.asked(r, a.operator.Startable, &in, &in.author)
	if err != nil {
		return nil, err
	}
	given := service.Moment{Field: service.Field{Name: `"tick"`, Text: in.Tick}}
	if in.Tick != "" {
		if given.Time, err = instant("tick", in.Tick); err != nil {
			return nil, err
		}
	}
	due, err := operator.Rerun(r.Context(), j, given, true, in.ID)
	if err != nil {
		return nil, err
	}
	a.Log.Info("rerun", "job", j.Name, "tick", view.Stamp(due.Tick), "id", due.Nonce)
	return &answer{status: http.StatusAccepted, body: view.NewTriggered(due)}, nil
}

func (a *api) pause(r *http.Request) (*answer, error) {
	in := struct {
		author
		Until string `json:"until"`
		For   string `json:"for"`
	}{}
	j, operator, err := a.asked(r, a.operator.Find, &in, &in.author)
	if err != nil {
		return nil, err
	}
	reason := text.OneLine(in.Reason)
	err = service.CheckPause(service.Field{Name: "the reason", Text: reason},
		service.Field{Name: `"until"`, Text: in.Until}, service.Field{Name: `"for"`, Text: in.For})
	if err != nil {
		return nil, err
	}
	until, err := a.until(r.Context(), in.Until, in.For)
	if err != nil {
		return nil, err
	}
	if err := operator.Pause(r.Context(), j.Name, reason, until); err != nil {
		return nil, err
	}
	a.Log.Info("paused", "job", j.Name, "reason", reason, "until", view.Stamp(until))
	return &answer{body: view.NewPaused(j.Name, reason, until)}, nil
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
	var in author
	j, operator, err := a.asked(r, a.operator.Find, &in, &in)
	if err != nil {
		return nil, err
	}
	resumed, err := operator.Resume(r.Context(), j.Name)
	if err != nil {
		return nil, err
	}
	a.Log.Info("resumed", "job", j.Name, "paused", resumed)
	return &answer{body: view.Resumed{Job: j.Name, Resumed: resumed}}, nil
}

func (a *api) cancel(r *http.Request) (*answer, error) {
	in := struct {
		author
		Run     string `json:"run"`
		Waiting bool   `json:"waiting"`
	}{}
	j, operator, err := a.asked(r, a.operator.Cancellable, &in, &in.author)
	if err != nil {
		return nil, err
	}
	runs, waited, err := operator.Cancel(r.Context(), j.Name, text.OneLine(in.Run), in.Waiting)
	if err != nil {
		return nil, err
	}
	made := view.NewCancelled(j.Name, runs, waited)
	a.Log.Info("cancelled", "job", j.Name, "runs", strings.Join(runs, " "), "waiting", strings.Join(made.Waiting, " "))
	return &answer{body: made}, nil
}

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
