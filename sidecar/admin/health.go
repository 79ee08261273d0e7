// Package admin is what a replica serves over HTTP: metrics and health for the platform, and on an address of its own,
// for this machine alone, the status page and the API.
//
// Health never waits for Redis, so that a probe says how this process is and not how Redis is: taking the pod out of
// service, or restarting it, would not bring Redis back. The API asks Redis, and says so when it does not answer.
package admin

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health is what is asked of a replica's health.
type Health interface {
	Alive() bool    // its clock still looks at its timers
	Ready() error   // why it cannot take ticks; nil when it can
	Notice() string // what is wrong besides, in a line; "" = nothing
}

// Server serves /metrics, /healthz and /readyz.
func Server(r Health, g prometheus.Gatherer, log *slog.Logger) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !r.Alive() {
			http.Error(w, "the scheduler's clock has stopped", http.StatusServiceUnavailable)
			return
		}
		sayOK(w, r)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := r.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		sayOK(w, r)
	})
	return server(mux, log)
}

// sayOK answers a probe, and tells whoever looks what is wrong all the same.
func sayOK(w http.ResponseWriter, r Health) {
	fmt.Fprintln(w, "ok")
	if notice := r.Notice(); notice != "" {
		fmt.Fprintln(w, notice)
	}
}
