package trace

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// These types are the JSON form of OTLP's ExportTraceServiceRequest, as far as it is used here: ids in hex, 64-bit
// numbers as text. See https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.
type (
	object   map[string]any
	spanText struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		ParentID   string     `json:"parentSpanId,omitempty"`
		Flags      int        `json:"flags"`
		Name       string     `json:"name"`
		Kind       Kind       `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes"`
		Status     statusText `json:"status"`
	}
	statusText struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value object `json:"value"`
	}
	exportAnswer struct {
		PartialSuccess struct {
			RejectedSpans int64 `json:"rejectedSpans,string"`
		} `json:"partialSuccess"`
	}
)

const (
	scopeName   = "github.com/solotick/solotick"
	flagSampled = 1
	statusError = 2
)

// encode writes spans as a request to the collector.
func encode(of []Attribute, version string, spans []Span) ([]byte, error) {
	texts := make([]spanText, len(spans))
	for i := range spans {
		texts[i] = spans[i].text()
	}
	ours := object{"scope": object{"name": scopeName, "version": version}, "spans": texts}
	return json.Marshal(object{"resourceSpans": []object{
		{"resource": object{"attributes": keyValues(of)}, "scopeSpans": []object{ours}}}})
}

func (s *Span) text() spanText {
	t := spanText{TraceID: traceID(s.Run), SpanID: hex.EncodeToString(s.ID[:]), Flags: flagSampled, Name: s.Name,
		Kind: s.Kind, Start: nanos(s.Start), End: nanos(s.End), Attributes: keyValues(s.Attributes)}
	if s.Parent != (ID{}) {
		t.ParentID = hex.EncodeToString(s.Parent[:])
	}
	if s.Failed {
		t.Status = statusText{s.Error, statusError}
	}
	return t
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func keyValues(all []Attribute) []keyValue {
	out := make([]keyValue, 0, len(all))
	for _, a := range all {
		value := object{}
		switch v := a.Value.(type) {
		case string:
			value["stringValue"] = v
		case int64:
			value["intValue"] = strconv.FormatInt(v, 10)
		case bool:
			value["boolValue"] = v
		}
		out = append(out, keyValue{a.Key, value})
	}
	return out
}
