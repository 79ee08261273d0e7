package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/execute/call"
)

const page = "../../../docs/handlers.md"

func shown(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// aSecret is made by the command of the page.
func aSecret(t *testing.T) string {
	t.Helper()
	_, after, ok := strings.Cut(shown(t), "```sh\n# a secret\n")
	command, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatal("the page has no command that makes a secret")
	}
	out, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestTheOfficialLibraryAcceptsTheCallsOfSolotick(t *testing.T) {
	old, next, strange := aSecret(t), aSecret(t), aSecret(t)
	file := filepath.Join(t.TempDir(), "secret")
	run := execute.Run{Service: "billing", Job: "send-invoices", Tick: time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC), ID: "run", Attempt: 1, Replica: "pod-1", Kind: "schedule"}
	sum := sha256.Sum256([]byte("billing/send-invoices/2026-11-24T09:00:00.000Z"))
	id := "tick_" + base64.RawURLEncoding.EncodeToString(sum[:])
	for _, c := range []struct {
		name, inFile, atApp string
		changed             func(*http.Request)
		accepted            bool
	}{
		{"one secret", old, old, nil, true},
		{"both, and the app has the old one", old + "\n" + next + "\n", old, nil, true},
		{"both, and the app has the new one", old + "\n" + next + "\n", next, nil, true},
		{"another secret", old + "\n" + next, strange, nil, false},
		{"another body", old, old, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("another")) }, false},
		{"another tick", old, old, func(r *http.Request) { r.Header.Set("webhook-id", id+"x") }, false},
		{"another time", old, old, func(r *http.Request) { r.Header.Set("webhook-timestamp", "1700000000") }, false},
		{"no signature", old, old, func(r *http.Request) { r.Header.Del("webhook-signature") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := ""
			check, err := signed(c.atApp, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				data, _ := io.ReadAll(r.Body)
				body = string(data)
				if r.Header.Get("webhook-id") != id {
					t.Errorf("the id is %s, and the page says %s", r.Header.Get("webhook-id"), id)
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.changed != nil {
					c.changed(r)
				}
				check.ServeHTTP(w, r)
			}))
			defer app.Close()
			if err := os.WriteFile(file, []byte(c.inFile), 0o600); err != nil {
				t.Fatal(err)
			}
			then := time.Now().Add(-time.Hour) // a file that has just changed is waited for
			if err := os.Chtimes(file, then, then); err != nil {
				t.Fatal(err)
			}
			job := call.New(config.HTTP{URL: app.URL, Body: `{"dry": false}`, Sign: config.Sign{SecretFile: file}}, call.Options{})
			res := job.Execute(t.Context(), run)
			if accepted := res.Status == execute.Succeeded; accepted != c.accepted || accepted != (body == `{"dry": false}`) || !accepted && res.Code != http.StatusForbidden {
				t.Errorf("%s, %d, %v", res.Status, res.Code, res.Err)
			}
		})
	}
}
