// Package tracing shows that what Solotick sends is what OpenTelemetry's collector understands: decoded strictly by the
// protocol's own types, and once more by the collector's decoder.
package tracing

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	protocol "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/solotick/solotick/sidecar/trace"
)

const run = "2f1c9a52-54e1-4a1b-9c3d-6ba7b8109dad"

func TestACollectorUnderstandsWhatIsSent(t *testing.T) {
	bodies := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Api-Key") != "k" {
			t.Errorf("%s %s %v: %v", r.Method, r.URL, r.Header, err)
		}
		bodies <- body
		answer, err := ptraceotlp.NewExportResponse().MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(answer)
	}))
	defer server.Close()

	began := time.Date(2026, 11, 24, 9, 0, 0, 123456789, time.UTC)
	e := trace.New(trace.Options{URL: server.URL + "/v1/traces", Header: http.Header{"Api-Key": {"k"}}, Client: server.Client(), Timeout: time.Minute, Share: 1,
		Resource: []trace.Attribute{{Key: "service.name", Value: "solotick"}}, Version: "0.1.0", Log: slog.New(slog.DiscardHandler)})
	attempt := trace.NewID()
	e.Record(trace.Span{Run: run, ID: attempt, Parent: trace.OfRun(run), Name: "POST", Kind: trace.Client, Start: began, End: began.Add(time.Second),
		Attributes: []trace.Attribute{{Key: "http.response.status_code", Value: int64(500)}, {Key: "flag", Value: true}}, Failed: true, Error: "it answered 500"})
	e.Record(trace.Span{Run: run, ID: trace.OfRun(run), Name: "report", Kind: trace.Internal, Start: began, End: began.Add(2 * time.Second)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that it sends at once
	var wg sync.WaitGroup
	wg.Go(func() { e.Run(ctx) })
	wg.Wait()
	if e.Dropped() != 0 {
		t.Fatalf("%d spans were dropped", e.Dropped())
	}
	body := <-bodies

	if err := (protojson.UnmarshalOptions{}).Unmarshal(body, new(protocol.ExportTraceServiceRequest)); err != nil { // unknown names are errors
		t.Errorf("the protocol's types: %v\n%s", err, body)
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalJSON(body); err != nil {
		t.Fatalf("the collector: %v\n%s", err, body)
	}
	of := request.Traces().ResourceSpans().At(0)
	if name, _ := of.Resource().Attributes().Get("service.name"); name.Str() != "solotick" {
		t.Errorf("the service is %q", name.Str())
	}
	scope := of.ScopeSpans().At(0)
	if scope.Scope().Version() != "0.1.0" || scope.Spans().Len() != 2 {
		t.Fatalf("%d spans of version %s", scope.Spans().Len(), scope.Scope().Version())
	}
	child, parent := scope.Spans().At(0), scope.Spans().At(1)
	if child.TraceID() != parent.TraceID() || child.TraceID().String() != "2f1c9a5254e14a1b9c3d6ba7b8109dad" || child.ParentSpanID() != parent.SpanID() ||
		child.SpanID().String() != hex.EncodeToString(attempt[:]) || !parent.ParentSpanID().IsEmpty() {
		t.Errorf("%s: %s in %s", child.TraceID(), child.SpanID(), child.ParentSpanID())
	}
	if !child.StartTimestamp().AsTime().Equal(began) || child.EndTimestamp().AsTime().Sub(began) != time.Second {
		t.Errorf("it lasted from %s to %s", child.StartTimestamp(), child.EndTimestamp())
	}
	if child.Kind() != ptrace.SpanKindClient || parent.Kind() != ptrace.SpanKindInternal || child.Flags() != 1 {
		t.Errorf("kinds %s and %s, flags %d", child.Kind(), parent.Kind(), child.Flags())
	}
	if child.Status().Code() != ptrace.StatusCodeError || child.Status().Message() != "it answered 500" || parent.Status().Code() != ptrace.StatusCodeUnset {
		t.Errorf("status %s %q, and %s", child.Status().Code(), child.Status().Message(), parent.Status().Code())
	}
	code, _ := child.Attributes().Get("http.response.status_code")
	flag, _ := child.Attributes().Get("flag")
	if code.Int() != 500 || !flag.Bool() {
		t.Errorf("attributes %v", child.Attributes().AsRaw())
	}
}

// TestTheParentThatAJobIsToldIsOfThatForm: version, trace, span and flags, as in the examples of W3C's Trace Context.
func TestTheParentThatAJobIsToldIsOfThatForm(t *testing.T) {
	id := trace.ID{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31}
	if got, want := trace.Parent(run, id), "00-2f1c9a5254e14a1b9c3d6ba7b8109dad-b7ad6b7169203331-01"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
