package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// pinged is a table with a job that succeeds and one that fails.
const pinged = `
service: shop
redis: {url: %q, timeout: 5s}
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

// changing is a table with a job that always fails, and tells so by files.
const changing = `
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: ""
jobs:
  - name: badly
    schedule: "@every 1s"
    exec: {command: ["false"]}
    notify: {change: {urlFile: %[2]q, secretFile: %[3]q, after: 2}}
`

func TestThreeReplicasTellOnceThatAJobFails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	heard := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if id := r.Header.Get("webhook-id"); r.Header.Get("webhook-signature") == "" || !strings.Contains(string(body), `"id":"`+id+`"`) {
			t.Errorf("%v %s", r.Header, body)
		}
		heard <- string(body)
	}))
	defer server.Close()
	url, secret := filepath.Join(t.TempDir(), "url"), filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{url: server.URL + "/canary\n", secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var replicas []*replica
	for n := range 3 {
		replicas = append(replicas, launch(t, fmt.Sprintf(changing, s.URL(), url, secret), nil, "--replica", fmt.Sprint("r", n)))
	}
	var first string
	select {
	case first = <-heard:
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
	if !strings.Contains(first, `"event":"failed"`) || !strings.Contains(first, `"failures":2`) {
		t.Errorf("told %s", first)
	}
	ends := func() int {
		answer, err := s.Ask("XLEN solotick:{shop}:history:badly")
		n, err2 := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(answer, ":")))
		if err != nil || err2 != nil {
			t.Fatalf("%s, %v", answer, err)
		}
		return n
	}
	began := ends()
	eventually(t, "three more failures, which change nothing", func() bool { return ends() >= began+3 })
	for _, r := range replicas {
		r.stop()
		if strings.Contains(strings.Join(r.raw, "\n"), "canary") {
			t.Error("the log shows a message's URL")
		}
	}
	if len(heard) > 0 {
		t.Errorf("told once more: %s", <-heard)
	}
}
