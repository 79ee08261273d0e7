// Package admin is the HTTP side of a replica: metrics and health for the platform, and on a second address, for this
// machine alone, the status page and the API.
//
// Health never waits for Redis, so that a probe describes this process and not Redis: a restart of the pod, or taking
// it out of service, would not bring Redis back. The API asks Redis, and says so if it does not answer.
package admin

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health is the replica's side of the health endpoints.
type Health interface {
	Alive() bool    // its clock still runs
	Ready() error   // why it cannot take ticks; nil when it can
	Notice() string // another problem, in a line; "" = none
}

// Server serves /metrics, /healthz and /readyz.
func Server(r Health, g prometheus.Gatherer, log *slog.Logger) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scraped(promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true})))
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

// maxScrapes is how many scrapes are answered at once. The server refuses one more.
const maxScrapes = 4

// scraped bounds the memory of scrapes. The gathered metrics have several times the size of their text. So one scrape
// at a time gathers, and it frees the metrics before it sends the text: a reader may be slow.
func scraped(text http.Handler) http.Handler {
	places, gathering := make(chan struct{}, maxScrapes), make(chan struct{}, 1)
	gather := func(u *buffered, r *http.Request) {
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
		u := buffered{header: w.Header(), code: http.StatusOK}
		gather(&u, r)
		w.WriteHeader(u.code)
		_, _ = u.WriteTo(w) // or the reader has gone
	})
}

// buffered is an answer that is complete before any of it is sent.
type buffered struct {
	bytes.Buffer
	header http.Header
	code   int
}

func (u *buffered) Header() http.Header  { return u.header }
func (u *buffered) WriteHeader(code int) { u.code = code }

// sayOK answers a probe with ok, and below it with the replica's notice.
func sayOK(w http.ResponseWriter, r Health) {
	fmt.Fprintln(w, "ok")
	if notice := r.Notice(); notice != "" {
		fmt.Fprintln(w, notice)
	}
}
