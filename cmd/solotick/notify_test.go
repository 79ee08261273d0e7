package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/proof/redistest"
)

// pinged is a table with a job that succeeds and one that fails.
const pinged = `
service: shop
redis: {url: %q, timeout: 2s}
listen: ""
admin: ""
jobs:
  - {name: well, schedule: "@every 1s", exec: {command: ["true"]}, notify: {url: "%[2]s/well"}}
  - {name: badly, schedule: "@every 1s", exec: {command: ["false"]}, notify: {url: "%[2]s/badly?secret=key"}}
`

func TestOthersAreToldHowRunsGo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	heard := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		heard <- fmt.Sprintf("%s %s %s", r.URL.Path, text, r.URL.Query().Get("rid"))
	}))
	defer server.Close()
	r := launch(t, fmt.Sprintf(pinged, s.URL(), server.URL), nil)
	want := []string{"/well/start started", "/well succeeded", "/badly/start started", "/badly/fail failed"}
	runs := map[string]string{} // of the first of each
	for limit := time.After(patience); len(runs) < len(want); {
		select {
		case ping := <-heard:
			for _, w := range want {
				if run, ok := strings.CutPrefix(ping, w+" "); ok && runs[w] == "" {
					runs[w] = run
				}
			}
		case <-limit:
			t.Fatalf("heard only %v", runs)
		}
	}
	for _, job := range []int{0, 2} {
		if start, end := runs[want[job]], runs[want[job+1]]; start == "" || start != end {
			t.Errorf("%s of run %q, %s of %q", want[job], start, want[job+1], end)
		}
	}
	r.stop()
	if strings.Contains(strings.Join(r.raw, "\n"), "key") {
		t.Error("the log shows a ping's URL")
	}
}
