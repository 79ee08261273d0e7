package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/solotick/solotick/internal/testing/redistest"
)

func TestNoSecretIsInTheLogAtAnyLevel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "redis-hunter2")
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	if err := os.WriteFile(file, []byte("redis-hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer header-hunter2" {
			t.Errorf("the app was called with %q", r.Header.Get("Authorization"))
		}
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	defer server.Close()
	table := fmt.Sprintf(`
service: shop
redis: {%%s}
listen: "127.0.0.1:0"
admin: ""
jobs:
  - name: call
    schedule: "@every 1s"
    http: {url: "%s/?key=${QUERY}", headers: {Authorization: "Bearer ${HEADER}"}, body: "${BODY}"}
  - name: refused
    schedule: "@every 1s"
    http: {url: "http://127.0.0.1:1/?key=${QUERY}", headers: {Authorization: "Bearer ${HEADER}"}, body: "${BODY}"}
  - name: command
    schedule: "@every 1s"
    exec: {command: ["false", "${ARGUMENT}"], env: {TOKEN: "${VARIABLE}"}}
  - name: nowhere
    schedule: "@every 1s"
    exec: {command: ["/nowhere", "${ARGUMENT}"], env: {TOKEN: "${VARIABLE}"}}
`, server.URL)
	env := []string{"HEADER=header-hunter2", "BODY=body-hunter2", "QUERY=query-hunter2", "ARGUMENT=argument-hunter2", "VARIABLE=env-hunter2"}

	// Two replicas have the right password, from a file and from a variable, and one has a wrong one. So they log
	// errors of each kind.
	replicas := []*replica{
		launch(t, fmt.Sprintf(table, fmt.Sprintf("url: %q, passwordFile: %q", s.URL(), file)), env, "--log-level", "debug"),
		launch(t, fmt.Sprintf(table, ""), append(env, fmt.Sprintf("SOLOTICK_REDIS_URL=redis://:redis-hunter2@%s/0", s.Addr())), "--log-level", "debug"),
		launch(t, fmt.Sprintf(table, ""), env, "--log-level", "debug", "--redis", fmt.Sprintf("redis://user-hunter2:other-hunter2@%s/0", s.Addr())),
	}
	for _, r := range replicas[:2] {
		for _, job := range []string{"refused", "nowhere"} {
			r.await("skipped", "job", job)
		}
	}
	replicas[2].await("Redis refuses the user or the password")
	for _, job := range []string{"call", "command"} {
		awaitAny(t, replicas[:2], "a failure of "+job, func(l line) bool { return l.is("finished", "job", job, "outcome", "failed") })
	}
	s.Kill()
	for _, r := range replicas {
		r.await("Redis does not answer")
		r.stop()
		for _, l := range r.raw {
			if strings.Contains(l, "hunter2") {
				t.Errorf("a secret is in the log: %s", l)
			}
		}
	}
}
