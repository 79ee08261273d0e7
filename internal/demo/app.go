package demo

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// receipt is one call that the app received. The summary counts these.
type receipt struct {
	job, replica, kind string
	tick               time.Time
	attempt            int
	code               int // of the answer; 0 = at work, or the caller has gone
}

// app is the toy service beside the three replicas. It records every call.
type app struct {
	addr   string
	server *http.Server
	jobs   map[string]job

	mu    sync.Mutex
	calls []receipt
	busy  map[string]string // job → replica whose call is at work
}

func serveApp() (*app, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving the toy app: %w", err)
	}
	a := &app{addr: l.Addr().String(), jobs: map[string]job{}, busy: map[string]string{}}
	for _, j := range jobs() {
		a.jobs[j.name] = j
	}
	a.server = &http.Server{Handler: a}
	go func() { _ = a.server.Serve(l) }() // ends with close
	return a, nil
}

func (a *app) close() { _ = a.server.Close() }

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := r.Header
	tick, err := time.Parse(time.RFC3339Nano, h.Get("Solotick-Tick"))
	attempt, err2 := strconv.Atoi(h.Get("Solotick-Attempt"))
	j, known := a.jobs[strings.TrimPrefix(r.URL.Path, "/")]
	if err != nil || err2 != nil || !known {
		http.Error(w, "no call of a job", http.StatusBadRequest)
		return
	}
	c := receipt{job: j.name, replica: h.Get("Solotick-Replica"), kind: h.Get("Solotick-Kind"), tick: tick, attempt: attempt}
	a.mu.Lock()
	at := len(a.calls)
	a.calls = append(a.calls, c)
	a.busy[j.name] = c.replica
	a.mu.Unlock()

	code, after := j.answer(c)
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
		code = 0
	}
	a.mu.Lock()
	a.calls[at].code = code
	if a.busy[j.name] == c.replica {
		delete(a.busy, j.name)
	}
	a.mu.Unlock()
	if code != 0 {
		w.WriteHeader(code)
	}
}

// receipts returns a copy of all calls so far.
func (a *app) receipts() []receipt {
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
