package sidecar

import (
	"net/url"
	"strconv"
	"time"

	"github.com/solotick/solotick/internal/text"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/trace"
)

// attemptSpan is the span of one attempt, which the job is told of before it begins.
type attemptSpan struct {
	to  *trace.Exporter // nil = there are no spans
	run string
	id  trace.ID
}

func spanOf(to *trace.Exporter, h *held) attemptSpan {
	return attemptSpan{to: to, run: h.run, id: trace.NewID()}
}

// parent is what the job is told; "" = nothing, because no collector gets the span.
func (s attemptSpan) parent() string {
	if s.to == nil || !s.to.Samples(s.run) {
		return ""
	}
	return trace.Parent(s.run, s.id)
}

// record sends the span of an attempt that began then and has just ended. The names of the attributes are
// OpenTelemetry's, where it has any.
func (s attemptSpan) record(w *wake, began time.Time, e *ended) {
	if s.to == nil || e.result.Status == execute.Observed {
		return
	}
	span := trace.Span{Run: s.run, ID: s.id, Parent: trace.OfRun(s.run), Name: "exec", Kind: trace.Internal,
		Start: began, End: time.Now(),
		Attributes: []trace.Attribute{{Key: "solotick.attempt", Value: int64(e.attempt)}}}
	code := "process.exit.code"
	if h := w.spec.HTTP; h != nil {
		span.Name, span.Kind, code = h.Method, trace.Client, "http.response.status_code"
		span.Attributes = append(span.Attributes, trace.Attribute{Key: "http.request.method", Value: h.Method})
		if at, err := url.Parse(h.URL); err == nil && at.Hostname() != "" {
			span.Attributes = append(span.Attributes, trace.Attribute{Key: "server.address", Value: at.Hostname()})
			if port, err := strconv.ParseInt(at.Port(), 10, 64); err == nil {
				span.Attributes = append(span.Attributes, trace.Attribute{Key: "server.port", Value: port})
			}
		}
	}
	if e.result.Code >= 0 {
		span.Attributes = append(span.Attributes, trace.Attribute{Key: code, Value: int64(e.result.Code)})
	}
	fail(&span, w, e)
	s.to.Record(span)
}

// runSpan is the span of a run with all its attempts, which has just ended.
func runSpan(w *wake, h *held, end *ended) trace.Span {
	span := trace.Span{Run: h.run, ID: trace.OfRun(h.run), Name: w.spec.Name, Kind: trace.Internal, Start: end.start,
		End: end.start.Add(end.took), Attributes: []trace.Attribute{
			{Key: "faas.trigger", Value: "timer"},
			{Key: "faas.time", Value: stamp(w.tick)},
			{Key: "solotick.job", Value: w.spec.Name},
			{Key: "solotick.run", Value: h.run},
			{Key: "solotick.kind", Value: w.kind},
			{Key: "solotick.outcome", Value: string(end.outcome)},
			{Key: "solotick.attempts", Value: int64(end.attempt)},
		}}
	if s := w.spec.series.schedule; s != nil {
		span.Attributes = append(span.Attributes, trace.Attribute{Key: "faas.cron", Value: s.String()})
	}
	if h.token != 0 {
		span.Attributes = append(span.Attributes, trace.Attribute{Key: "solotick.fencing_token", Value: h.token})
	}
	fail(&span, w, end)
	return span
}

// fail marks a span whose outcome counts as a failure of the job.
func fail(span *trace.Span, w *wake, e *ended) {
	if !w.spec.countsAsFailed(e.outcome) {
		return
	}
	span.Failed = true
	span.Attributes = append(span.Attributes, trace.Attribute{Key: "error.type", Value: string(e.outcome)})
	if e.result.Err != nil {
		span.Error = truncate(text.OneLine(e.result.Err.Error()), maxDetail)
	}
}
