// Package trace sends spans to an OpenTelemetry collector, as OTLP over HTTP in its JSON form. OpenTelemetry's own SDK
// does the same and more; it would make the program larger by two thirds.
//
// Record never waits. A collector that is slow or gone costs no tick: what has no room is dropped, and counted.
package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/solotick/solotick/internal/beat"
)

const (
	mostWaiting = 2048 // spans, as in OpenTelemetry's own batches
	mostAtOnce  = 512  // in one request
	sendEvery   = 5 * time.Second

	attempts     = 5
	firstBackoff = time.Second // twice as long before each further attempt
	mostBackoff  = 15 * time.Second

	// flushTime is how long spans may still be sent at the end of the process.
	flushTime = 2 * time.Second

	maxAnswer = 64 << 10 // bytes that are read of an answer
)

// Options belong to an Exporter.
type Options struct {
	URL      string // of the collector's receiver, with its path
	Header   http.Header
	Client   *http.Client
	Timeout  time.Duration // of one request
	Share    float64       // of all traces that are recorded, from 0 to 1
	Resource []Attribute   // what is true of all spans
	Version  string        // of Solotick
	Log      *slog.Logger
}

// Exporter sends spans. All its methods but Run may be called from any goroutine.
type Exporter struct {
	Options
	dropped atomic.Uint64
	full    chan struct{} // there are enough spans for a request

	mu      sync.Mutex
	waiting []Span
	over    bool // Run has returned
}

// New returns an Exporter that sends nothing until its Run is called.
func New(o Options) *Exporter { return &Exporter{Options: o, full: make(chan struct{}, 1)} }

// Samples reports whether the spans of a run are recorded.
func (e *Exporter) Samples(run string) bool { return Sampled(run, e.Share) }

// Dropped is how many spans no collector has taken.
func (e *Exporter) Dropped() uint64 { return e.dropped.Load() }

// Record has a span sent if its run is sampled, and returns at once.
func (e *Exporter) Record(s Span) {
	if !e.Samples(s.Run) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || len(e.waiting) >= mostWaiting {
		e.dropped.Add(1)
		return
	}
	e.waiting = append(e.waiting, s)
	if len(e.waiting) >= mostAtOnce {
		beat.Kick(e.full)
	}
}

// Run sends spans until ctx ends, and then those that wait for at most two seconds more. It must outlive the runs.
func (e *Exporter) Run(ctx context.Context) {
	wait := time.NewTicker(sendEvery)
	defer wait.Stop()
	for ctx.Err() == nil {
		select {
		case <-wait.C:
		case <-e.full:
		case <-ctx.Done():
			continue
		}
		for ctx.Err() == nil && e.sendSome(ctx) {
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	for last.Err() == nil && e.sendSome(last) {
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.dropped.Add(uint64(len(e.waiting)))
	e.waiting = nil
}

// sendSome sends the oldest spans; false if there are none.
func (e *Exporter) sendSome(ctx context.Context) bool {
	e.mu.Lock()
	n := min(len(e.waiting), mostAtOnce)
	spans := e.waiting[:n:n]
	if e.waiting = e.waiting[n:]; len(e.waiting) == 0 {
		e.waiting = nil // a burst may have made it large
	}
	e.mu.Unlock()
	if n == 0 {
		return false
	}
	rejected, err := e.send(ctx, spans)
	if err != nil {
		rejected = int64(n)
		e.Log.Warn("spans were dropped", "spans", n, "err", err)
	}
	e.dropped.Add(uint64(rejected))
	return true
}

// send makes up to five attempts. It returns how many spans the collector has rejected of those that it took.
func (e *Exporter) send(ctx context.Context, spans []Span) (rejected int64, err error) {
	body, err := encode(e.Resource, e.Version, spans)
	if err != nil {
		return 0, err
	}
	backoff := firstBackoff
	for n := 1; ; n++ {
		rejected, again, err := e.post(ctx, body)
		if err == nil || again < 0 || n == attempts {
			return rejected, err
		}
		if !beat.Sleep(ctx, min(max(backoff, again), mostBackoff)) {
			return 0, err
		}
		backoff *= 2
	}
}

// post makes one attempt. again is how long the collector wants to be left alone; below zero, it wants no other
// attempt.
func (e *Exporter) post(ctx context.Context, body []byte) (rejected int64, again time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.Timeout, fmt.Errorf("no answer within %s", e.Timeout))
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return 0, -1, err
	}
	maps.Copy(q.Header, e.Header)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "solotick/"+e.Version)
	r, err := e.Client.Do(q)
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the URL, which may hold a secret
	}
	if err != nil {
		return 0, 0, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	switch {
	case r.StatusCode/100 == 2:
		var a exportAnswer
		if err == nil {
			_ = json.Unmarshal(text, &a) // other words than OTLP's reject nothing
		}
		return min(a.PartialSuccess.RejectedSpans, mostAtOnce), 0, nil
	case r.StatusCode == http.StatusTooManyRequests, r.StatusCode == http.StatusBadGateway,
		r.StatusCode == http.StatusServiceUnavailable, r.StatusCode == http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(r.Header.Get("Retry-After")) // none, or a date: the own backoff
		again = max(time.Duration(seconds)*time.Second, 0)
	default:
		again = -1
	}
	return 0, again, fmt.Errorf("the collector answered %s", r.Status)
}
