package main

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/solotick/solotick/internal/toy"
)

// app is the toy app beside the three replicas. It records every call; the summary counts these.
type app struct {
	addr   string
	server *http.Server
	jobs   map[string]job

	mu    sync.Mutex
	calls []toy.Call
	at    map[*toy.Call]int // the place in calls of each call at work
	busy  map[string]string // job → replica whose call is at work
}

func serveApp() (*app, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving the toy app: %w", err)
	}
	a := &app{addr: l.Addr().String(), jobs: map[string]job{}, at: map[*toy.Call]int{}, busy: map[string]string{}}
	for _, j := range jobs() {
		a.jobs[j.name] = j
	}
	a.server = &http.Server{Handler: &toy.App{Answer: a.answer, Began: a.began, Ended: a.ended}}
	go func() { _ = a.server.Serve(l) }() // ends with close
	return a, nil
}

func (a *app) close() { _ = a.server.Close() }

func (a *app) answer(c toy.Call) (code int, after time.Duration) {
	if !a.counts(c) {
		return http.StatusBadRequest, 0
	}
	return a.jobs[c.Job].answer(c)
}

// counts reports whether a call is one of a replica. People may call too, with curl.
func (a *app) counts(c toy.Call) bool { return a.jobs[c.Job].name != "" && !c.Tick.IsZero() }

func (a *app) began(c *toy.Call) {
	if !a.counts(*c) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[c] = len(a.calls)
	a.calls = append(a.calls, *c)
	a.busy[c.Job] = c.Replica
}

func (a *app) ended(c *toy.Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at, counted := a.at[c]; counted {
		a.calls[at].Code = c.Code
		delete(a.at, c)
	}
	if a.busy[c.Job] == c.Replica {
		delete(a.busy, c.Job)
	}
}

// receipts returns a copy of all calls so far.
func (a *app) receipts() []toy.Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

// runner returns the replica whose call of a job is at work; "" = none.
func (a *app) runner(job string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy[job]
}
