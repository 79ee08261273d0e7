package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
)

// retryAfter is how many seconds to wait before a request is made again that only the present state of things refused.
const retryAfter = 1

// answer is what became of a request.
type answer struct {
	status int // 0 = 200
	body   any
}

// refusal is a request that is not done, and why.
type refusal struct {
	status   int
	err      string
	hint     string
	problems config.Problems
}

func (f *refusal) Error() string { return f.err }

// refusalJSON is the body of every answer that is no success, a contract: see docs/api.md.
type refusalJSON struct {
	Error    string        `json:"error"`
	Hint     string        `json:"hint,omitempty"`
	Problems []problemJSON `json:"problems,omitempty"`
}

type problemJSON struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// asJSON makes a handler of what answers or refuses a request.
func asJSON(serve func(*http.Request) (*answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := serve(r)
		if err != nil {
			write(w, refusing(err))
			return
		}
		send(w, max(a.status, http.StatusOK), a.body)
	}
}

// refusing makes a refusal of any error. Those that are not ours come from Redis.
func refusing(err error) *refusal {
	var f *refusal
	var problems config.Problems
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &problems):
		return wrong(problems)
	case errors.Is(err, lock.ErrNoTimer):
		return &refusal{status: http.StatusNotFound, err: "no timer of that id waits", hint: "GET /v1/runs?job=timer:ID tells whether it has fired"}
	case errors.Is(err, lock.ErrTimerFired):
		return &refusal{status: http.StatusConflict, err: err.Error(), hint: "for a day the id is not taken again: use another one"}
	case errors.Is(err, lock.ErrTooMany):
		return &refusal{status: http.StatusInsufficientStorage, err: err.Error()}
	case errors.Is(err, lock.ErrUnknownJob):
		return &refusal{status: http.StatusServiceUnavailable, err: err.Error(), hint: "a replica registers its jobs when it starts: ask again in a moment"}
	case errors.Is(err, lock.ErrPast):
		return &refusal{status: http.StatusUnprocessableEntity, err: err.Error()}
	case errors.Is(err, lock.ErrNoAnswer):
		return &refusal{status: http.StatusServiceUnavailable, err: err.Error(), hint: "it may have been done or not: GET /v1/status shows it"}
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{status: http.StatusServiceUnavailable, err: "no answer from Redis in time"}
	}
	return &refusal{status: http.StatusServiceUnavailable, err: err.Error()}
}

func write(w http.ResponseWriter, f *refusal) {
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	out := refusalJSON{Error: f.err, Hint: f.hint}
	for _, p := range f.problems {
		out.Problems = append(out.Problems, problemJSON{p.Line, p.Column, p.Message, p.Hint})
	}
	send(w, f.status, out)
}

// send writes a document of ours, of which nothing but a lost connection can fail.
func send(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "%s\n", text)
}
