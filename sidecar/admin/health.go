// Package admin is what a replica serves over HTTP: metrics and health for the platform, and on an address of its own,
// for this machine alone, the status page and the API.
//
// Health never waits for Redis, so that a probe says how this process is and not how Redis is: taking the pod out of
// service, or restarting it, would not bring Redis back. The API asks Redis, and says so when it does not answer.
package admin

import (
	"bytes"
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
	mux.Handle("GET /metrics", scraped(promhttp.HandlerFor(g, promhttp.HandlerOpts{})))
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

// maxScrapes is how many scrapes are answered at once; one more is refused.
const maxScrapes = 4

// scraped bounds what scrapes take. What is gathered has several times the size of its text. So one scrape at a time gathers,
// and lets go of it before the text is sent: a reader may be slow.
func scraped(text http.Handler) http.Handler {
	places, gathering := make(chan struct{}, maxScrapes), make(chan struct{}, 1)
	gather := func(u *unsent, r *http.Request) {
		gathering <- struct{}{}
		defer func() { <-gathering }()
		text.ServeHTTP(u, r)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			http.Error(w, fmt.Sprintf("%d scrapes are being answered: ask again", maxScrapes), http.StatusServiceUnavailable)
			return
		}
		u := unsent{header: w.Header(), code: http.StatusOK}
		gather(&u, r)
		w.WriteHeader(u.code)
		_, _ = u.WriteTo(w) // or the reader has gone
	})
}

// unsent is an answer that is whole before any of it is sent.
type unsent struct {
	bytes.Buffer
	header http.Header
	code   int
}

func (u *unsent) Header() http.Header  { return u.header }
func (u *unsent) WriteHeader(code int) { u.code = code }

// sayOK answers a probe, and tells whoever looks what is wrong all the same.
func sayOK(w http.ResponseWriter, r Health) {
	fmt.Fprintln(w, "ok")
	if notice := r.Notice(); notice != "" {
		fmt.Fprintln(w, notice)
	}
}
