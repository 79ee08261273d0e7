package admin

import (
	"encoding/json"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/diagnosis"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

// documented is the world of the document's examples.
func documented(t *testing.T) *world {
	w := newWorld(t)
	var err error
	if w.table, err = config.Parse("table.yaml", []byte(`
service: billing
jobs:
  - {name: send-invoices, schedule: "0 9 * * *", timeZone: Europe/Berlin, exec: {command: ["true"]}}
`), nil); err != nil {
		t.Fatal(err)
	}
	w.ran("send-invoices", -20, service.Entry{Outcome: "failed", Failed: true, Took: 812 * time.Millisecond, Detail: "answered 500: no such customer"})
	w.mini.SetTime(morning)
	if err := w.store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Beat(t.Context(), service.Replica{Name: "app-1", Version: "v0.1.0", Table: w.table.Hash, Offset: 1250 * time.Microsecond}); err != nil {
		t.Fatal(err)
	}
	w.api = API(Options{Replica: w, Name: "app-1", Version: "v0.1.0", Redis: "redis:6379", Store: w.store, Callbacks: w.calls, Log: slog.New(slog.DiscardHandler)})
	w.trouble = &view.Trouble{Since: morning.Add(-10 * time.Minute), Diagnosis: diagnosis.Diagnosis{Says: "does not answer", Reason: "dial tcp 10.0.0.7:6379: i/o timeout"}}
	tick := morning.Add(-20 * time.Minute)
	w.own = map[string]service.Ledger{"send-invoices": {Last: &service.Entry{Job: "send-invoices", Tick: tick, Run: "7f5d3b9a-2f60-4b57-8f0f-0d4f3c2b1a02",
		Replica: "app-1", Kind: "schedule", Attempt: 1, Outcome: "succeeded", Ended: tick.Add(2 * time.Second), Took: 1870 * time.Millisecond}}}
	return w
}

// The test makes each request of the document, one after the other, and expects the answer shown there.
func TestTheDocumentedRequestsAreAnsweredAsIsShown(t *testing.T) {
	w := documented(t)
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\n`curl (?:-X ([A-Z]+) )?'?http://127.0.0.1:9748(/[^ '`]+)'?([^`]*)`\n\n```json\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	asked := map[string]bool{}
	for _, s := range shown {
		method, target, options, want := s[1], s[2], s[3], s[4]
		if strings.HasSuffix(target, "/cancel") {
			w.runs("send-invoices", "5e4d3c2b-1a09-4f8e-8d7c-6b5a49382705")
		}
		if method == "" {
			method = "GET"
		}
		_, body, _ := strings.Cut(options, " -d '")
		var headers []string
		if strings.Contains(options, ` -H "Authorization: Bearer $TOKEN"`) {
			headers = []string{"Authorization", "Bearer " + w.token(strings.Split(target, "/")[3])}
		}
		got := w.ask(method, target, strings.TrimSuffix(body, "'"), headers...).Body.String()
		if !reflect.DeepEqual(lasting(t, got), lasting(t, want)) {
			t.Errorf("%s %s is answered\n%s\nand not as is shown:\n%s", method, target, got, want)
		}
		path, _, _ := strings.Cut(target, "?")
		asked[method+" "+regexp.MustCompile(`/(timers|jobs|runs)/[-\w]+`).ReplaceAllString(path, "/$1/{}")] = true
	}
	// Those that a verb answers, too, are shown in cli-json.md; openapi.yaml has all.
	for _, endpoint := range []string{"GET /v1/replica", "POST /v1/jobs/{}/trigger", "PUT /v1/timers/{}",
		"POST /v1/drain", "POST /v1/runs/{}/heartbeat", "POST /v1/runs/{}/finish"} {
		if !asked[endpoint] {
			t.Errorf("the document shows no request for %s", endpoint)
		}
	}
}

// lasting returns an answer without the values that differ from run to run: the time of the request, and random ids.
func lasting(t *testing.T, text string) any {
	t.Helper()
	text = regexp.MustCompile(`2027-03-28T07:20:0\d\.\d{3}Z`).ReplaceAllString(text, "now")
	text = regexp.MustCompile(`"(run|table)": ?"[-0-9a-f]+"`).ReplaceAllString(text, `"$1": ""`)
	text = regexp.MustCompile(`"tookMs": ?\d+`).ReplaceAllString(text, `"tookMs": 0`)
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
