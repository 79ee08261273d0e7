package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// retryAfter is how many seconds a caller should wait before it repeats a request that only the present state refuses.
const retryAfter = 1

// answer is the answer to a request that was carried out.
type answer struct {
	status int // 0 = 200
	body   any
	header map[string]string
}

// refusal is the answer to a request that was not carried out, with the reason. In JSON it is the body of every answer
// except successes, a contract: see docs/api.md.
type refusal struct {
	status   int
	Message  string        `json:"error"`
	Hint     string        `json:"hint,omitempty"`
	Problems []problemJSON `json:"problems,omitempty"`
	Reason   string        `json:"reason,omitempty"` // as in the metric solotick_skips_total
	By       string        `json:"by,omitempty"`
}

func (f *refusal) Error() string { return f.Message }

func refuse(status int, hint, format string, args ...any) *refusal {
	return &refusal{status: status, Message: fmt.Sprintf(format, args...), Hint: hint}
}

type problemJSON struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// asJSON turns a function that answers or refuses a request into a handler. It refuses all parameters but the known
// ones.
func asJSON(serve func(*http.Request) (*answer, error), known ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var a *answer
		err := parameters(r, known...)
		if err == nil {
			a, err = serve(r)
		}
		if err != nil {
			write(w, refusing(err))
			return
		}
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		send(w, max(a.status, http.StatusOK), a.body)
	}
}

// statuses has the status and the hint for each kind of refusal; without a status it is 503. An error in this table
// replaces the operator's, which would repeat a name from the path.
var statuses = map[service.Kind]refusal{
	service.Invalid:      {status: http.StatusUnprocessableEntity},
	service.NotAdmitted:  {status: http.StatusUnprocessableEntity},
	service.NoReason:     {status: http.StatusUnprocessableEntity, Hint: `{"reason": "migration", "for": "2h"}`},
	service.NoJob:        noJob,
	service.NoTimer:      noTimer,
	service.NoRun:        {status: http.StatusNotFound, Hint: "GET /v1/runs shows how runs ended"},
	service.NoFailure:    {status: http.StatusNotFound, Hint: `{"tick": "2027-03-28T07:00:00Z"} runs that tick again`},
	service.EveryReplica: {status: http.StatusConflict},
	service.OtherWay:     {status: http.StatusConflict},
	service.Future:       {status: http.StatusConflict},
	service.Taken:        {status: http.StatusConflict},
	service.Full:         {status: http.StatusInsufficientStorage},
	service.Unregistered: {Hint: "a replica registers its jobs when it starts: ask again in a moment"},
	service.Unanswered:   {Hint: "it may have been done or not: GET /v1/status shows it"},
}

var (
	noJob   = *refuse(http.StatusNotFound, "GET /v1/jobs shows all jobs", "there is no job of that name")
	noTimer = *refuse(http.StatusNotFound, "GET /v1/runs?job=timer:ID tells whether it has fired",
		"no timer of that id waits")
)

// refusing turns any error into a refusal: one of a handler, of the operator, or of Redis.
func refusing(err error) *refusal {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own
	}
	if n, ok := errors.AsType[*view.NotGranted](err); ok {
		status := map[bool]int{false: http.StatusConflict, true: http.StatusServiceUnavailable}[n.Unknown]
		return &refusal{status: status, Message: n.Error(), Reason: n.Reason, By: n.By}
	}
	r := service.RefusalOf(err)
	f := statuses[r.Kind]
	if r.Kind == service.Unavailable && errors.Is(err, context.DeadlineExceeded) {
		f.Message = "no answer from Redis in time"
	}
	f.status = cmp.Or(f.status, http.StatusServiceUnavailable)
	f.Message, f.Hint = cmp.Or(f.Message, r.Message), cmp.Or(r.Hint, f.Hint)
	for _, p := range r.Problems {
		f.Problems = append(f.Problems, problemJSON{p.Line, p.Column, p.Message, p.Hint})
	}
	return &f
}

func write(w http.ResponseWriter, f *refusal) {
	switch f.status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	send(w, f.status, f)
}

// send writes a document. Only a lost connection, or a definition in Redis that is not JSON, can make it fail.
func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	err := json.NewEncoder(w).Encode(body) // without a copy of what may have megabytes
	if _, bad := errors.AsType[*json.MarshalerError](err); bad {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"error":"the answer cannot be written"}` + "\n"))
	}
}
