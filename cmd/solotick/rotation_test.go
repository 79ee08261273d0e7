package main

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// The long form: go test ./cmd/solotick -run NoTickIsMissedWhileThePassword -count=1 -v -rotations 300 -timeout 1h
var rotations = flag.Int("rotations", 6, "how often Redis gets another password in the test of passwords that change")

// TestNoTickIsMissedWhileThePasswordOfRedisChanges takes the old password away at once, and kills all connections. One
// replica is the only one of its service, so no other makes up for what it misses.
func TestNoTickIsMissedWhileThePasswordOfRedisChanges(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "app", "on", ">canary-0", "~*", "&*", "+@all")
	file := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		if err := os.WriteFile(file+".new", []byte(password+"\n"), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
	}
	write("canary-0")
	change := func(n int) {
		next := fmt.Sprintf("canary-%d", n)
		for _, command := range []string{"ACL SETUSER app >" + next, "", fmt.Sprintf("ACL SETUSER app <canary-%d", n-1), "CLIENT KILL USER app"} {
			if command == "" {
				write(next)
			} else if answer, err := s.Ask(command); err != nil || strings.HasPrefix(answer, "-") {
				t.Errorf("%s: %s, %v", command, answer, err)
			}
		}
	}

	sources := map[string]string{
		"file":    fmt.Sprintf("passwordFile: %q", file),
		"command": fmt.Sprintf("passwordCommand: [cat, %q]", file), // runs again when Redis refuses what it printed before
	}
	app := &receipts{got: map[string]map[time.Time]int{}}
	server := httptest.NewServer(app)
	defer server.Close()
	replicas := map[string]*replica{}
	for source, key := range sources {
		replicas[source] = launch(t, fmt.Sprintf(patient+`
service: %s
redis: {url: %q, timeout: 5s, username: app, %s}
listen: "127.0.0.1:0"
admin: ""
jobs:
  - {name: %[1]s, schedule: "@every 1s", http: {url: %[4]q}}
`, source, s.URL(), key, server.URL), nil, "--log-level", "debug")
	}
	for n := range *rotations {
		began := map[string]time.Time{}
		for source, r := range replicas {
			r.await("finished", "outcome", "succeeded")
			_, began[source] = app.span(source)
		}
		change(n + 1)
		for source := range replicas { // a new password is of use by the next ticks
			eventually(t, "two more ticks by the password of the "+source, func() bool {
				_, newest := app.span(source)
				return newest.Sub(began[source]) >= 2*time.Second
			})
		}
	}
	for source, r := range replicas {
		ticks := app.once(t, source)
		_, text := r.get("/metrics")
		r.stop()
		if !strings.Contains(text, `solotick_missed_total{job="`+source+`"} 0`) {
			t.Errorf("%s: the replica has missed ticks", source)
		}
		if strings.Contains(strings.Join(r.raw, "\n"), "canary") || strings.Contains(text, "canary") {
			t.Errorf("%s: a password is in the log or in the metrics", source)
		}
		t.Logf("%s: %d ticks, %d passwords", source, ticks, *rotations)
	}
}
