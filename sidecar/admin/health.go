// Package admin is the HTTP side of a replica: metrics and health for the platform, and on a second address, for this
// machine alone, the status page and the API.
//
// Health never waits for Redis, so that a probe describes this process and not Redis: a restart of the pod, or taking
// it out of service, would not bring Redis back. The API asks Redis, and says so if it does not answer.
package admin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

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
	mux.Handle("GET /metrics", inTurn(promhttp.HandlerFor(g, promhttp.HandlerOpts{EnableOpenMetrics: true}),
		func(w http.ResponseWriter, text string) { http.Error(w, text, http.StatusServiceUnavailable) }))
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

const (
	maxLarge  = 4               // large answers at once
	maxHeld   = 1 << 20         // bytes of one that is sent beside others: a longer one is sent before the next is made
	largeWait = 2 * time.Second // how long one more request waits for a place
	turnWait  = 9 * time.Second // how long one that has a place waits for those before it, which may be read slowly
)

// making is held while a large answer of either listener is made.
var making = make(chan struct{}, 1)

// inTurn bounds the memory of large answers. The parts of an answer have several times the size of its text. So one
// request at a time makes its text, and the rest is free before the text is sent: a reader may be slow. A request that
// gets no place in time is refused with text, and one behind twelve that wait at once: a flood would keep heartbeats of
// apps out.
func inTurn(text http.Handler, refuse func(w http.ResponseWriter, text string)) http.Handler {
	line, places, turn := make(chan struct{}, 4*maxLarge), make(chan struct{}, maxLarge), make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		soon, cancel := context.WithTimeout(r.Context(), largeWait)
		defer cancel()
		select {
		case line <- struct{}{}:
			defer func() { <-line }()
		default:
			cancel()
		}
		if !take(soon, places) {
			refuse(w, fmt.Sprintf("%d large answers are being made or read: ask again", maxLarge))
			return
		}
		defer func() { <-places }()
		u := buffered{header: w.Header(), code: http.StatusOK}
		long, stop := context.WithTimeout(r.Context(), turnWait)
		defer stop()
		const later = "another large answer is being made: ask again"
		if !take(long, turn) {
			refuse(w, later) // or the reader has gone
			return
		}
		made := sync.OnceFunc(func() { <-turn })
		defer made()
		if !take(long, making) {
			refuse(w, later)
			return
		}
		func() {
			defer func() { <-making }()
			text.ServeHTTP(&u, r)
		}()
		if u.Len() <= maxHeld {
			made()
		} else { // the next one waits for this reader
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(turnWait / 2)) // a recorder has none
		}
		w.Header().Set("Content-Length", strconv.Itoa(u.Len()))
		w.WriteHeader(u.code)
		_, _ = u.WriteTo(w) // or the reader has gone
	})
}

// take takes one of a number of places, if it can before ctx ends.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
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
