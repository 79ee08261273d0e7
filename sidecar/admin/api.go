package admin

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// Replica is the replica that serves the API.
type Replica interface {
	Table() *config.Table
	// Drain makes the replica take no more ticks. It returns when its runs or ctx have ended.
	Drain(ctx context.Context) error
	// Ask claims a tick for an app; the zero tick is the one next to now. It returns when the app may run it.
	Ask(ctx context.Context, job string, tick time.Time, on callback.Executor) (view.Granted, error)

	// The replica knows these without Redis.
	WhyIdle() error // why it leaves all ticks to others; nil = it takes them
	RedisTrouble() *view.Trouble
	OwnRuns(job string) service.Ledger
}

// Options of the API. All are required.
type Options struct {
	Replica   Replica
	Name      string // the replica's
	Version   string
	Redis     string // where it is
	Store     *service.Store
	Callbacks *callback.Runs // on which apps report
	Log       *slog.Logger
}

// api serves the requests, each with one of its methods.
type api struct {
	Options
	operator    *service.Operator
	crossOrigin http.CrossOriginProtection
	asking      atomic.Int32  // claims that are being answered
	batches     chan struct{} // one for each batch of timers that is being set or deleted
}

// API serves the status page and the API, only to this machine, and in browsers only to its own page. Everything in it
// is bounded except the wait for a drain.
func API(o Options) http.Handler {
	a := &api{Options: o, batches: make(chan struct{}, mostBatches), operator: &service.Operator{
		Store: o.Store, Table: o.Replica.Table, Limit: operateLimit}}
	mux := http.NewServeMux()
	for path, methods := range a.routes() {
		mux.Handle(path, methods)
	}
	mux.Handle("/", nothing("see docs/api.md; the status page is /"))
	large := inTurn(mux, func(w http.ResponseWriter, text string) {
		write(w, &refusal{status: http.StatusServiceUnavailable, Message: text})
	})
	return a.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead, r.URL.Path == "/", r.URL.Path == "/v1/replica":
			mux.ServeHTTP(w, r) // which does not wait for those who read much
		default:
			large.ServeHTTP(w, r)
		}
	}))
}

// nothing answers on all other paths.
func nothing(hint string) http.HandlerFunc {
	return asJSON(func(*http.Request) (*answer, error) {
		return nil, refuse(http.StatusNotFound, hint, "there is nothing here")
	})
}

// routes are all paths with their methods, as docs/openapi.yaml describes them.
func (a *api) routes() map[string]methods {
	return map[string]methods{
		"/{$}":                        {"GET": page()},
		"/v1/status":                  {"GET": a.shows(func(s view.Status) any { return s })},
		"/v1/jobs":                    {"GET": a.shows(func(s view.Status) any { return s.Jobs })},
		"/v1/jobs/{job}":              {"GET": asJSON(a.job)},
		"/v1/jobs/{job}/ticks/{tick}": {"GET": asJSON(a.tick), "POST": patient(a.claim)},
		"/v1/jobs/{job}/trigger":      {"POST": asJSON(a.trigger)},
		"/v1/jobs/{job}/pause":        {"POST": asJSON(a.pause)},
		"/v1/jobs/{job}/resume":       {"POST": asJSON(a.resume)},
		"/v1/jobs/{job}/rerun":        {"POST": asJSON(a.rerun)},
		"/v1/jobs/{job}/cancel":       {"POST": asJSON(a.cancel)},
		"/v1/events":                  {"GET": asJSON(a.events, "job", "limit")},
		"/v1/runs":                    {"GET": asJSON(a.runs, "job", "limit", "failed", "each")},
		"/v1/replicas":                {"GET": a.shows(func(s view.Status) any { return s.Replicas })},
		"/v1/replica":                 {"GET": asJSON(a.self)},
		"/v1/timers": {"GET": asJSON(a.timers, "group", "limit"), "POST": asJSON(a.setTimers),
			"DELETE": asJSON(a.deleteTimers, "group")},
		"/v1/timers/{id}": {"GET": asJSON(a.timer), "PUT": asJSON(a.setTimer),
			"DELETE": asJSON(a.deleteTimer)},
		"/v1/runs/{run}/heartbeat": {"POST": asJSON(a.heartbeat)},
		"/v1/runs/{run}/finish":    {"POST": asJSON(a.finish)},
		"/v1/drain":                {"POST": patient(a.drained, "timeout")},
	}
}

// APIServer serves API on the table's admin address.
func APIServer(o Options) *http.Server { return server(API(o), o.Log) }

// CallbackServer serves the reports of apps alone, for a replica that has no API. Of the options it needs Name,
// Callbacks and Log.
func CallbackServer(o Options) *http.Server {
	a := &api{Options: o}
	mux := http.NewServeMux()
	mux.Handle("/v1/runs/{run}/heartbeat", methods{"POST": asJSON(a.heartbeat)})
	mux.Handle("/v1/runs/{run}/finish", methods{"POST": asJSON(a.finish)})
	mux.Handle("/", nothing("see docs/api.md#reports-of-long-jobs"))
	return server(a.guard(mux), o.Log)
}

// server makes a server with limits on everything; Listen limits the number of connections.
func server(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ConnState: follow, MaxHeaderBytes: 16 << 10, IdleTimeout: 2 * time.Minute,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
