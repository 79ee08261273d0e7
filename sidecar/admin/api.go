package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/admin/view"
)

// Replica is the replica that the API stands beside.
type Replica interface {
	Table() *config.Table
	Jobs() []config.Job // the table's, and after them those made through the API
	// Drain has the replica take no more ticks, and returns when its runs have ended or ctx has.
	Drain(ctx context.Context) error
}

// History is what became of runs.
type History interface {
	History(ctx context.Context, job string, limit int) ([]lock.Entry, error)
	Failures(ctx context.Context, job string, limit int) ([]lock.Entry, error)
}

// Operator does to jobs what is asked for by hand.
type Operator interface {
	Trigger(ctx context.Context, job, id string) (lock.Due, error)
	Pause(ctx context.Context, job, reason string, until time.Time) error
	Resume(ctx context.Context, job string) (bool, error)
}

// Timers are those of the service.
type Timers interface {
	SetTimer(ctx context.Context, id string, at time.Time, source []byte) (created bool, err error)
	DeleteTimer(ctx context.Context, id string) (bool, error)
	WaitingTimers
}

// WaitingTimers are those that wait.
type WaitingTimers interface {
	Timer(ctx context.Context, id string) (source []byte, at time.Time, err error)
	Timers(ctx context.Context, limit int) ([]lock.TimerState, error)
}

// DynamicJobs are the jobs besides the table's.
type DynamicJobs interface {
	SetJob(ctx context.Context, name string, source []byte) (created bool, err error)
	DeleteJob(ctx context.Context, name string) (bool, error)
	DynamicJobs(ctx context.Context) (revision int64, sources map[string][]byte, err error)
}

// Store is the service in Redis; a lock.Store is one.
type Store interface {
	view.Store
	History
	Operator
	Timers
	DynamicJobs
}

// Options of the API. All are required.
type Options struct {
	Replica Replica
	Name    string // the replica's
	Store   Store
	Log     *slog.Logger
}

// api serves the requests, each with one of its methods.
type api struct {
	Options
	crossOrigin http.CrossOriginProtection
}

// API serves the status page and the API: to this machine alone, and of browsers only to its own page. Everything in it
// is bounded but the wait for a drain.
func API(o Options) http.Handler {
	a := &api{Options: o}
	mux := http.NewServeMux()
	for path, methods := range map[string]methods{
		"/{$}":                   {"GET": newPage().ServeHTTP},
		"/v1/status":             {"GET": asJSON(a.status)},
		"/v1/jobs":               {"GET": asJSON(a.jobs)},
		"/v1/jobs/{job}":         {"GET": asJSON(a.job), "PUT": asJSON(a.setJob), "DELETE": asJSON(a.deleteJob)},
		"/v1/jobs/{job}/trigger": {"POST": asJSON(a.trigger)},
		"/v1/jobs/{job}/pause":   {"POST": asJSON(a.pause)},
		"/v1/jobs/{job}/resume":  {"POST": asJSON(a.resume)},
		"/v1/runs":               {"GET": asJSON(a.runs)},
		"/v1/replicas":           {"GET": asJSON(a.replicas)},
		"/v1/timers":             {"GET": asJSON(a.timers)},
		"/v1/timers/{id}":        {"GET": asJSON(a.timer), "PUT": asJSON(a.setTimer), "DELETE": asJSON(a.deleteTimer)},
		"/v1/drain":              {"POST": a.drain},
	} {
		mux.Handle(path, methods)
	}
	mux.Handle("/", asJSON(func(r *http.Request) (*answer, error) {
		return nil, &refusal{status: http.StatusNotFound, err: "there is nothing here", hint: "see docs/api.md; the status page is /"}
	}))
	return a.guard(mux)
}

// APIServer serves API on the table's admin address.
func APIServer(o Options) *http.Server { return server(API(o), o.Log) }

// server is a server whose every part is bounded; the number of its connections is so by Listen.
func server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: attended(h), ConnContext: withGuest,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
