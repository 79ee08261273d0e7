package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
	"github.com/solotick/solotick/internal/identity"
	"github.com/solotick/solotick/sidecar/trace"
)

// spansTo returns an exporter of spans as OpenTelemetry's variables ask for one, nil if they ask for none. Spans are
// not worth a replica that refuses to start: what is wrong with the variables is logged, and no spans are sent.
func spansTo(service, replica string, log *slog.Logger) *trace.Exporter {
	o, err := spanOptions(os.Getenv)
	switch {
	case err != nil:
		log.Error("no spans are sent", "err", err)
		return nil
	case o == nil:
		return nil
	}
	own := []trace.Attribute{{Key: "service.name", Value: "solotick"}, {Key: "service.namespace", Value: service},
		{Key: "service.instance.id", Value: replica}, {Key: "service.version", Value: buildVersion()}}
	o.Resource = newestOfEach(append(own, o.Resource...))
	o.Version, o.Log = buildVersion(), log
	to, _ := url.Parse(o.URL) // collector has read it
	log.Info("sending spans", "collector", to.Host, "share", o.Share)
	return trace.New(*o)
}

// newestOfEach keeps the last attribute of each name.
func newestOfEach(all []trace.Attribute) []trace.Attribute {
	var out []trace.Attribute
	for _, a := range all {
		if i := slices.IndexFunc(out, func(b trace.Attribute) bool { return b.Key == a.Key }); i >= 0 {
			out[i] = a
		} else {
			out = append(out, a)
		}
	}
	return out
}

// spanOptions reads the variables that OpenTelemetry's specification gives an exporter; nil if they ask for no spans.
// It asks for them by naming a collector, or the exporter otlp.
func spanOptions(env func(string) string) (*trace.Options, error) {
	ofTraces := func(name string) string {
		return cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_"+name), env("OTEL_EXPORTER_OTLP_"+name))
	}
	endpoint, exporter := ofTraces("ENDPOINT"), env("OTEL_TRACES_EXPORTER")
	switch {
	case strings.EqualFold(env("OTEL_SDK_DISABLED"), "true"), exporter == "none", exporter == "" && endpoint == "":
		return nil, nil
	case exporter != "" && exporter != "otlp":
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: there is only otlp", exporter)
	}
	if p := ofTraces("PROTOCOL"); p == "grpc" {
		return nil, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL=grpc: " +
			"Solotick speaks OTLP over HTTP, for which collectors have the port 4318")
	}
	o := &trace.Options{Timeout: 10 * time.Second, Share: 1, Header: http.Header{}}
	var err error
	o.URL, err = collector(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if err != nil {
		return nil, err
	}
	if o.Share, err = share(env("OTEL_TRACES_SAMPLER"), env("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return nil, err
	}
	if ms := ofTraces("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n <= 0 || n > 60_000 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT=%s: it is a number of milliseconds, at most 60000", ms)
		}
		o.Timeout = time.Duration(n) * time.Millisecond
	}
	headers, err := pairs(ofTraces("HEADERS"))
	if err != nil {
		return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: write name=value,name=value") // its values are secrets
	}
	for _, h := range headers {
		o.Header.Set(h.Key, h.Value.(string))
	}
	if o.Resource, err = pairs(env("OTEL_RESOURCE_ATTRIBUTES")); err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if name := env("OTEL_SERVICE_NAME"); name != "" {
		o.Resource = append(o.Resource, trace.Attribute{Key: "service.name", Value: name})
	}
	o.Client, err = collectorClient(ofTraces("CERTIFICATE"), ofTraces("CLIENT_CERTIFICATE"), ofTraces("CLIENT_KEY"))
	return o, err
}

// collector is where spans are sent: the address for traces as it is, or the one for all signals with its path for
// traces.
func collector(ofTraces, ofAll string) (string, error) {
	raw := cmp.Or(ofTraces, strings.TrimSuffix(cmp.Or(ofAll, "http://localhost:4318"), "/")+"/v1/traces")
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: write http://HOST:4318 or https://HOST:4318")
	}
	return raw, nil
}

// share is the part of all runs that a sampler records. A run is the root of its trace, so there is no parent to go by.
func share(sampler, arg string) (float64, error) {
	switch strings.TrimPrefix(sampler, "parentbased_") {
	case "", "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		if arg == "" {
			return 1, nil
		}
		if s, err := strconv.ParseFloat(arg, 64); err == nil && s >= 0 && s <= 1 {
			return s, nil
		}
		return 0, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG=%s: it is a number from 0 to 1", arg)
	}
	return 0, fmt.Errorf("OTEL_TRACES_SAMPLER=%s: there are always_on, always_off and traceidratio, "+
		"and parentbased_ before each", sampler)
}

// pairs reads name=value,name=value. Values are percent-encoded.
func pairs(text string) ([]trace.Attribute, error) {
	var all []trace.Attribute
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, raw, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(raw))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, fmt.Errorf("%q is no name=value", part)
		}
		all = append(all, trace.Attribute{Key: name, Value: value})
	}
	return all, nil
}

// collectorClient is the HTTP client for the collector, with the certificates of the files that are named.
func collectorClient(ca, cert, key string) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 1
	c, err := credentials.NewTLS(config.TLS{CAFile: ca, CertFile: cert, KeyFile: key}, nil).Config(context.Background())
	if err != nil {
		return nil, err
	}
	t.TLSClientConfig = c
	return &http.Client{Transport: t, CheckRedirect: identity.FollowNone}, nil
}
