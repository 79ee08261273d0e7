package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/solotick/solotick/internal/testing/redistest"
)

func TestTheVariablesOfOpenTelemetryAreRead(t *testing.T) {
	const all, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for what, c := range map[string]struct {
		env  map[string]string
		want string // URL, share, timeout, headers and attributes; "" = no spans; what begins with ! is an error
	}{
		"nothing":             {nil, ""},
		"all signals":         {map[string]string{all: "http://c:4318/"}, "http://c:4318/v1/traces 1 10s map[] []"},
		"traces alone":        {map[string]string{all: "http://c:4318", traces: "https://t/x"}, "https://t/x 1 10s map[] []"},
		"the usual collector": {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces 1 10s map[] []"},
		"no exporter":         {map[string]string{all: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, ""},
		"another exporter":    {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, "!OTEL_TRACES_EXPORTER=zipkin: there is only otlp"},
		"disabled":            {map[string]string{all: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, ""},
		"grpc":                {map[string]string{all: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "!4318"},
		"protobuf":            {map[string]string{all: "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://c:4318/v1/traces 1 10s map[] []"},
		"no URL":              {map[string]string{all: "c:4318"}, "!write http://HOST:4318"},
		"a share": {map[string]string{all: "http://c:4318", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
			"http://c:4318/v1/traces 0.25 10s map[] []"},
		"none of them":    {map[string]string{all: "http://c:4318", "OTEL_TRACES_SAMPLER": "always_off"}, "http://c:4318/v1/traces 0 10s map[] []"},
		"no share":        {map[string]string{all: "http://c:4318", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, "!from 0 to 1"},
		"another sampler": {map[string]string{all: "http://c:4318", "OTEL_TRACES_SAMPLER": "jaeger_remote"}, "!jaeger_remote"},
		"a timeout":       {map[string]string{all: "http://c:4318", "OTEL_EXPORTER_OTLP_TIMEOUT": "2500"}, "http://c:4318/v1/traces 1 2.5s map[] []"},
		"no timeout":      {map[string]string{all: "http://c:4318", "OTEL_EXPORTER_OTLP_TIMEOUT": "2s"}, "!milliseconds"},
		"headers": {map[string]string{all: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%2Cb, x = y"},
			"http://c:4318/v1/traces 1 10s map[Api-Key:[a,b] X:[y]] []"},
		"no headers": {map[string]string{all: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "canary"}, "!HEADERS: write name=value"},
		"attributes": {map[string]string{all: "http://c:4318", "OTEL_RESOURCE_ATTRIBUTES": "team=pay%20roll,service.name=x", "OTEL_SERVICE_NAME": "cron"},
			"http://c:4318/v1/traces 1 10s map[] [{team pay roll} {service.name x} {service.name cron}]"},
		"no certificate": {map[string]string{all: "https://c:4318", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, "!/nowhere"},
	} {
		o, err := spanOptions(func(name string) string { return c.env[name] })
		switch wrong, isError := strings.CutPrefix(c.want, "!"); {
		case isError:
			if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v, want %s", what, err, wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", what, err)
		case c.want == "":
			if o != nil {
				t.Errorf("%s: spans are sent to %s", what, o.URL)
			}
		default:
			if got := fmt.Sprint(o.URL, " ", o.Share, " ", o.Timeout, " ", o.Header, " ", o.Resource); got != c.want {
				t.Errorf("%s: %s, want %s", what, got, c.want)
			}
		}
	}
}

const traced = `
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: ""
jobs:
  - {name: report, schedule: "@every 1s", http: {url: "%s/report"}}
`

// TestTheAppsParentIsASpanThatTheCollectorHas: the spans of the last runs come as the replica ends.
func TestTheAppsParentIsASpanThatTheCollectorHas(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var mu sync.Mutex
	var told []string
	spans := map[string]string{} // trace and span → the resource's attributes
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/report" {
			told = append(told, r.Header.Get("Traceparent"))
			return
		}
		var got struct {
			ResourceSpans []struct {
				Resource   json.RawMessage
				ScopeSpans []struct {
					Spans []struct{ TraceID, SpanID string }
				}
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "canary" {
			t.Errorf("%s %v: %v", r.URL, r.Header, err)
			return
		}
		for _, s := range got.ResourceSpans[0].ScopeSpans[0].Spans {
			spans[s.TraceID+"-"+s.SpanID] = string(got.ResourceSpans[0].Resource)
		}
	}))
	defer server.Close()
	r := launch(t, fmt.Sprintf(traced, s.URL(), server.URL), []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=canary"},
		"--replica", "shop-1")
	eventually(t, "two calls of the app", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) >= 2
	})
	r.stop()
	mu.Lock()
	defer mu.Unlock()
	for _, parent := range told {
		of := spans[strings.TrimSuffix(strings.TrimPrefix(parent, "00-"), "-01")]
		for _, want := range []string{`"service.name","value":{"stringValue":"solotick"}`, `"service.namespace","value":{"stringValue":"shop"}`, `"shop-1"`} {
			if !strings.Contains(of, want) {
				t.Errorf("the parent %s is of %q, want %s in it; there are %d spans", parent, of, want, len(spans))
			}
		}
	}
	if strings.Contains(strings.Join(r.raw, "\n"), "canary") {
		t.Error("the log shows a header's value")
	}
}

// A redirect would take the headers of the collector to another host.
func TestTheCollectorsClientFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent elsewhere: %v", r.Header) }))
	defer elsewhere.Close()
	collector := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer collector.Close()
	c, err := collectorClient("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Post(collector.URL, "application/json", strings.NewReader("{}"))
	if err != nil || r.StatusCode != http.StatusTemporaryRedirect {
		t.Fatal(r, err)
	}
	r.Body.Close()
}
