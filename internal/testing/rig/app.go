package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Request is one call that the app got.
type Request struct {
	Job     string
	Tick    time.Time // as the caller named it; zero if it did not
	Run     string
	Kind    string
	Attempt int
	Token   int64
	Replica string
	Arrived time.Time
	Ended   time.Time // when the app answered, or the caller went; zero while it is at work
	Left    bool      // the caller went before it was answered
	Failed  bool      // it was answered by an error, as it was to be
	Note    string    // what its URL has as note
	Work    Work      // of a call that the app accepted, and ended by a report

	// Callback and Secret are where and with what the app reports such a call; "" = it is another call.
	Callback, Secret string
}

// App is a server on the loopback interface that writes down what it is asked. POST /<job>?take=<duration> is answered
// after that time, by 200, or earlier when the caller goes. With &fail=<n> the first n attempts are answered by 500.
// With &decline=true it answers 409, which says that it is at this work already. With &async=true it answers 202 at
// once, and reports the end of the work later.
type App struct {
	front *Door
	ctx   context.Context // ends with Close, and all work with it
	close context.CancelFunc

	mu    sync.Mutex
	doors []*Door
	seen  []Request
	asked []Question
	odd   []string // requests and answers that could not be read
}

// StartApp starts one on a free port.
func StartApp() (*App, error) {
	a := &App{}
	a.ctx, a.close = context.WithCancel(context.Background())
	var err error
	if a.front, err = a.Open("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	return a, nil
}

// URL is where a job that takes so long is called.
func (a *App) URL(job string, take time.Duration) string { return a.front.URL(job, take) }

// Close ends all doors and waits for nothing.
func (a *App) Close() {
	a.close()
	a.mu.Lock()
	doors := slices.Clone(a.doors)
	a.mu.Unlock()
	for _, d := range doors {
		d.close()
	}
}

// Seen is a copy of what was asked so far, in order of arrival.
func (a *App) Seen() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

// Count is the number of requests so far.
func (a *App) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.seen)
}

// Odd is what was asked or answered and could not be read, which no replica should send.
func (a *App) Odd() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.odd)
}

// Forget starts anew.
func (a *App) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen, a.asked, a.odd = nil, nil, nil
}

// serve answers a call at one of the doors.
func (a *App) serve(d *Door, w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	req, take, fail, err := read(r)
	req.Arrived = arrived
	var c *client
	if err == nil && r.URL.Query().Get("async") == "true" {
		c, err = d.client(&req, r.Header)
	}
	if err != nil {
		a.noteOdd(err.Error())
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at := a.add(req)
	_, _ = io.Copy(io.Discard, r.Body)

	if c != nil {
		w.WriteHeader(http.StatusAccepted)
		go a.work(c, at, arrived, Plan{Take: take, Fail: fail})
		return
	}
	stayed := wait(r.Context(), take)
	ended := time.Now()
	a.note(at, arrived, func(q *Request) { q.Ended, q.Left, q.Failed = ended, !stayed, stayed && fail })
	switch {
	case fail:
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Query().Get("decline") == "true":
		w.WriteHeader(http.StatusConflict)
	}
}

// add writes a call down.
func (a *App) add(q Request) (at int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, q)
	return len(a.seen) - 1
}

func (a *App) noteOdd(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.odd = append(a.odd, what)
}

// note writes down what becomes of a call, unless it is forgotten.
func (a *App) note(at int, arrived time.Time, what func(*Request)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at < len(a.seen) && a.seen[at].Arrived.Equal(arrived) {
		what(&a.seen[at])
	}
}

// wait is false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// read also tells how long the request takes, and whether its answer is an error.
func read(r *http.Request) (req Request, take time.Duration, fail bool, err error) {
	h := r.Header
	req = Request{Job: strings.TrimPrefix(r.URL.Path, "/"), Run: h.Get("Solotick-Run"), Kind: h.Get("Solotick-Kind"),
		Replica: h.Get("Solotick-Replica"), Note: r.URL.Query().Get("note")}
	if take, err = time.ParseDuration(r.URL.Query().Get("take")); err != nil {
		return req, 0, false, fmt.Errorf("request for %q: take: %w", req.Job, err)
	}
	if v := h.Get("Solotick-Tick"); v != "" {
		if req.Tick, err = time.Parse(time.RFC3339Nano, v); err != nil {
			return req, 0, false, fmt.Errorf("request for %q: tick: %w", req.Job, err)
		}
	}
	if v := h.Get("Solotick-Attempt"); v != "" {
		if req.Attempt, err = strconv.Atoi(v); err != nil {
			return req, 0, false, fmt.Errorf("request for %q: attempt: %w", req.Job, err)
		}
	}
	if v := h.Get("Solotick-Fencing-Token"); v != "" {
		if req.Token, err = strconv.ParseInt(v, 10, 64); err != nil {
			return req, 0, false, fmt.Errorf("request for %q: token: %w", req.Job, err)
		}
	}
	if v := h.Get("Solotick-Job"); v != "" && v != req.Job {
		return req, 0, false, fmt.Errorf("request for %q names job %q", req.Job, v)
	}
	if v := r.URL.Query().Get("fail"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			return req, 0, false, fmt.Errorf("request for %q: fail: %w", req.Job, err)
		}
		fail = req.Attempt <= n
	}
	return req, take, fail, nil
}
