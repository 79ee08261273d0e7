package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/service"
)

// guarded is a table with a secret in every place that may hold one. Each secret contains the word canary. Its jobs
// fail in many ways.
const guarded = `
service: shop
redis: {url: %[1]q, timeout: 5s}
listen: "127.0.0.1:0"
admin: "127.0.0.1:0"
%[3]s
defaults: {notify: {url: "http://127.0.0.1:1/canary-ping",
  change: {url: "%[2]s/canary-change?key=canary-query", long: 1ms}}}
jobs:
  - name: answered
    schedule: "@every 1s"
    retry: {limit: 1, backoff: 10ms}
    notify: {url: "%[2]s/canary-failure?key=canary-query"}
    http: {url: "%[2]s/canary-path?key=${SECRET}", headers: {Authorization: "Bearer ${SECRET}", X-Plain: canary-header}, body: "canary-body ${SECRET}"}
  - name: refused
    schedule: "@every 1s"
    http: {url: "http://user:${SECRET}@127.0.0.1:1/?key=${SECRET}", body: "${SECRET}"}
  - name: away
    schedule: "@every 1s"
    http: {url: "%[2]s/redirect?key=${SECRET}"}
  - name: command
    schedule: "@every 1s"
    exec: {command: ["false", "${SECRET}", "--token=canary-argument"], env: {TOKEN: "${SECRET}", OTHER: canary-variable}}
  - name: nowhere
    schedule: "@every 1s"
    exec: {command: ["/nowhere", "${SECRET}"], env: {TOKEN: "${SECRET}"}}
`

// madeByAPI is the definition of a timer as Redis keeps it, after its time or schedule.
const madeByAPI = `{%s, "http": {"url": "%s/?key=canary-made", "headers": {"Authorization": "canary-made"}, "body": "canary-made"}}`

func TestNoSecretIsSeenOnAnyPath(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
			return
		}
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	defer server.Close()
	table := func(more string) string { return fmt.Sprintf(guarded, s.URL(), server.URL, more) }
	env := []string{"SECRET=canary-environment"}
	one := launch(t, table(""), env, "--replica", "one", "--log-level", "debug")
	unready := launch(t, table(`ready: {url: "http://127.0.0.1:1/canary-ready?key=${SECRET}", interval: 100ms}`), env, "--replica", "two", "--log-level", "debug")
	unready.await("the app is not ready: leaving ticks to other replicas")

	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	store, err := service.New(lock.NewClient(redis.UniversalOptions{Addrs: []string{s.Addr()}}, patience), "shop", lock.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, _, err := store.SetSeries(ctx, "made", time.Now(), fmt.Appendf(nil, madeByAPI, `"schedule": "@every 1s"`, server.URL)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SetTimer(ctx, "once", time.Now(), fmt.Appendf(nil, madeByAPI, `"at": "`+time.Now().Format(time.RFC3339)+`"`, server.URL)); err != nil {
		t.Fatal(err)
	}

	for _, job := range []string{"answered", "away", "command", "timer:made", "timer:once"} {
		one.await("finished", "job", job, "outcome", "failed")
	}
	for _, job := range []string{"refused", "nowhere"} {
		one.await("skipped", "job", job)
	}
	broken := table("") + "  - {name: new, shedule: \"${SECRET}\", http: {url: \"ftp://${SECRET}\", body: [canary-list], headers: canary-headers}}\n"
	if err := os.WriteFile(one.cmd.Args[3], []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	one.await("the table is not reloaded: the one before stays in force")

	seen := map[string]string{}
	_, seen["metrics"] = one.get("/metrics")
	admin := one.await("serving the status page and the API").text("addr")
	for _, path := range []string{"/", "/v1/status", "/v1/jobs", "/v1/jobs/answered", "/v1/runs", "/v1/replicas"} {
		seen["GET "+path] = body(t, "http://"+admin+path)
	}
	if !strings.Contains(seen["GET /v1/runs"], "answered") || !strings.Contains(seen["GET /v1/status"], "nowhere") {
		t.Error("the API shows nothing that could hold a secret")
	}
	for _, verb := range []string{"status", "status -o json", "history", "history --failed", "history -o json", "next", "validate"} {
		args := append(strings.Fields(verb), "-c", unready.cmd.Args[3])
		if verb == "validate" {
			args[len(args)-1] = one.cmd.Args[3]
		}
		cmd := exec.Command("solotick", args...)
		cmd.Env = bareEnv(env...)
		out, _ := cmd.CombinedOutput() // validate finds problems
		seen["solotick "+verb] = string(out)
	}
	if !strings.Contains(seen["solotick history"], "command") || !strings.Contains(seen["solotick validate"], "shedule") {
		t.Error("the verbs show nothing that could hold a secret")
	}
	for _, r := range []*replica{one, unready} {
		r.stop()
		seen["log of "+r.await("taking ticks").text("replica")] = strings.Join(r.raw, "\n")
	}
	for key, value := range contents(t, client) {
		if !strings.HasPrefix(key, "solotick:{shop}:timer:") { // which hold the definitions, as SECURITY.md says
			seen["Redis' "+key] = value
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d places were looked at", len(seen))
	}
	for place, text := range seen {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "canary") {
				t.Errorf("%s shows a secret: %s", place, line)
			}
		}
	}
}

func body(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var b strings.Builder
	if err := answer.Write(&b); err != nil { // headers too
		t.Fatal(err)
	}
	return b.String()
}

// contents returns everything that is in Redis, as text by key.
func contents(t *testing.T, client *redis.Client) map[string]string {
	t.Helper()
	ctx := t.Context()
	all := map[string]string{}
	for _, key := range client.Keys(ctx, "*").Val() {
		switch kind := client.Type(ctx, key).Val(); kind {
		case "string":
			all[key] = client.Get(ctx, key).Val()
		case "hash":
			all[key] = fmt.Sprint(client.HGetAll(ctx, key).Val())
		case "zset":
			all[key] = fmt.Sprint(client.ZRange(ctx, key, 0, -1).Val())
		case "stream":
			all[key] = fmt.Sprint(client.XRange(ctx, key, "-", "+").Val())
		case "none": // it has expired since
		default:
			t.Errorf("%s is a %s", key, kind)
		}
	}
	return all
}
