package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/trace"
)

// sent is a span as a collector gets it.
type sent struct {
	TraceID, SpanID, ParentSpanID, Name string
	StartTimeUnixNano, EndTimeUnixNano  string
	Kind                                int
	Attributes                          []struct {
		Key   string
		Value map[string]any
	}
	Status struct {
		Code    int
		Message string
	}
}

func (s *sent) attribute(key string) any {
	for _, a := range s.Attributes {
		if a.Key == key {
			for _, v := range a.Value {
				return v
			}
		}
	}
	return nil
}

// took is a collector without a network.
type took struct {
	mu    sync.Mutex
	spans []sent
}

func (c *took) RoundTrip(r *http.Request) (*http.Response, error) {
	var got struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []sent } }
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.spans = append(c.spans, got.ResourceSpans[0].ScopeSpans[0].Spans...)
	c.mu.Unlock()
	answer := httptest.NewRecorder()
	return answer.Result(), nil
}

// exporter runs until the returned function is called.
func exporter(t *testing.T, to http.RoundTripper, share float64) (*trace.Exporter, func()) {
	e := trace.New(trace.Options{URL: "http://collector/", Client: &http.Client{Transport: to}, Timeout: time.Second, Share: share, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { e.Run(ctx) })
	return e, func() { cancel(); wg.Wait() }
}

var traceparent = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])$`)

// TestEachAttemptIsTheChildOfItsRunAndTheJobIsToldTheTruth: the first attempt fails, and the second succeeds.
func TestEachAttemptIsTheChildOfItsRunAndTheJobIsToldTheTruth(t *testing.T) {
	simulate(t, policy("retry: {limit: 1, backoff: 2s}"), func(w *world) {
		to := &took{}
		spans, end := exporter(w.t, to, 1)
		w.replica(0, func(r *replica) {
			r.spans = spans
			r.work = func(_ context.Context, run execute.Run) execute.Result {
				time.Sleep(time.Second)
				if run.Attempt == 1 {
					return execute.Result{Status: execute.Failed, Code: 3, Err: errors.New("exit code 3")}
				}
				return execute.Result{Status: execute.Succeeded}
			}
		})
		w.at(30 * time.Second)
		end()
		if len(to.spans) != 3 || len(w.starts) != 2 {
			t.Fatalf("%d spans of %d attempts: %+v", len(to.spans), len(w.starts), to.spans)
		}
		run := to.spans[2]
		if run.TraceID != strings.ReplaceAll(w.starts[0].run.ID, "-", "") || run.ParentSpanID != "" || run.Name != "minute" || run.Status.Code != 0 {
			t.Errorf("the run: %+v", run)
		}
		for key, want := range map[string]any{"faas.trigger": "timer", "faas.time": stamp(w.origin()), "faas.cron": "* * * * *", "solotick.outcome": "succeeded",
			"solotick.attempts": "2", "solotick.fencing_token": strconv.FormatInt(w.starts[0].run.Token, 10), "solotick.kind": "schedule"} {
			if got := run.attribute(key); got != want {
				t.Errorf("%s is %v, want %v", key, got, want)
			}
		}
		for i, s := range to.spans[:2] {
			told := traceparent.FindStringSubmatch(w.starts[i].run.Parent)
			if told == nil || told[1] != s.TraceID || told[2] != s.SpanID || told[3] != "1" {
				t.Errorf("attempt %d is told %q, and its span is %s of %s", i+1, w.starts[i].run.Parent, s.SpanID, s.TraceID)
			}
			if s.TraceID != run.TraceID || s.ParentSpanID != run.SpanID || s.StartTimeUnixNano < run.StartTimeUnixNano || s.EndTimeUnixNano > run.EndTimeUnixNano {
				t.Errorf("attempt %d is no part of the run: %+v, %+v", i+1, s, run)
			}
			if want := []int{2, 0}[i]; s.Status.Code != want || s.attribute("process.exit.code") != []any{"3", "0"}[i] {
				t.Errorf("attempt %d: %+v", i+1, s)
			}
		}
		if s := to.spans[0]; s.Status.Message != "exit code 3" || s.attribute("error.type") != "failed" {
			t.Errorf("the failed attempt: %+v", s)
		}
		if at := stamp(w.origin()); !strings.HasPrefix(run.StartTimeUnixNano, strconv.FormatInt(w.origin().Unix(), 10)) {
			t.Errorf("the tick of %s began at %s", at, run.StartTimeUnixNano)
		}
	})
}

// TestACollectorThatIsDownCostsNoTick, and what it has not got is counted.
func TestACollectorThatIsDownCostsNoTick(t *testing.T) {
	long(t)
	simulate(t, "jobs:\n  - {name: often, schedule: '@every 1s', exec: {command: [x]}}", func(w *world) {
		spans, end := exporter(w.t, &collectorThatHangs{}, 1)
		w.replica(0, func(r *replica) { r.spans = spans })
		w.at(10 * time.Minute)
		ticks := len(w.starts)
		for i, s := range w.starts {
			if late := s.at.Sub(s.tick); late > 50*time.Millisecond {
				t.Fatalf("tick %d of %d was %s late", i, ticks, late)
			}
		}
		if ticks < 600 || spans.Dropped() < 500 {
			t.Errorf("%d ticks, %v spans dropped", ticks, spans.Dropped())
		}
		end()
	})
}

type collectorThatHangs struct{}

func (*collectorThatHangs) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

// TestAJobIsToldOfNoSpanThatIsNotSampled, since no collector gets it.
func TestAJobIsToldOfNoSpanThatIsNotSampled(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		to := &took{}
		spans, end := exporter(w.t, to, 0)
		w.replica(time.Second, func(r *replica) { r.spans = spans })
		w.at(30 * time.Second)
		end()
		if len(to.spans) != 0 || w.starts[0].run.Parent != "" {
			t.Errorf("%d spans, and the job was told %q", len(to.spans), w.starts[0].run.Parent)
		}
	})
}

// Of a job that is observed only, nothing is called: its run has a span, and no call has.
func TestAnObservedRunHasNoSpanOfACall(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		to := &took{}
		spans, end := exporter(w.t, to, 1)
		w.replica(time.Second, func(r *replica) { r.spans, r.observes = spans, true })
		w.at(30 * time.Second)
		end()
		if len(to.spans) != 1 || to.spans[0].Name != "minute" {
			t.Errorf("the spans are %+v", to.spans)
		}
	})
}

func TestWithoutACollectorAJobIsToldOfNoSpan(t *testing.T) {
	simulate(t, minutely, func(w *world) {
		w.replica(time.Second)
		w.at(30 * time.Second)
		if told := w.starts[0].run; told.Parent != "" || slices.ContainsFunc(told.Facts(), func(f execute.Fact) bool { return f.Header == "Traceparent" }) {
			t.Errorf("it was told %q", told.Parent)
		}
	})
}

// TestTheSpanOfACallNamesTheServerAndNothingSecret of its address.
func TestTheSpanOfACallNamesTheServerAndNothingSecret(t *testing.T) {
	to := &took{}
	spans, end := exporter(t, to, 1)
	h := &held{run: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"}
	w := &wake{spec: &spec{Job: &config.Job{Name: "a", HTTP: &config.HTTP{Method: "PUT", URL: "http://user:canary@127.0.0.1:8080/jobs/canary?key=canary"}}}}
	spanOf(spans, h).record(w, time.Now(), &ended{outcome: succeeded, attempt: 1, result: execute.Result{Status: execute.Succeeded, Code: 204}})
	end()
	if len(to.spans) != 1 {
		t.Fatalf("%d spans", len(to.spans))
	}
	s := to.spans[0]
	if s.Name != "PUT" || s.Kind != 3 || s.attribute("server.address") != "127.0.0.1" || s.attribute("server.port") != "8080" ||
		s.attribute("http.response.status_code") != "204" || s.attribute("http.request.method") != "PUT" {
		t.Errorf("%+v", s)
	}
	if text, err := json.Marshal(s); err != nil || strings.Contains(string(text), "canary") {
		t.Errorf("%s, %v", text, err)
	}
}
