package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/credentials"
	"github.com/solotick/solotick/internal/testing/redistest"
)

// proving is a table whose jobs prove themselves by files in a directory. Those after the first end in other ways.
const proving = `
service: shop
redis: {url: %[1]q, timeout: 5s}
listen: "127.0.0.1:0"
admin: "127.0.0.1:0"
x-token: &token {file: "%[3]s/token", prefix: "canary-prefix "}
x-tls: &tls {caFile: "%[3]s/ca", certFile: "%[3]s/crt", keyFile: "%[3]s/key", serverName: app.internal}
x-sign: &sign {secretFile: "%[3]s/secret"}
jobs:
  - {name: good, schedule: "@every 1s", lock: {ttl: 10m}, http: {url: "%[2]s/good", body: canary-body, headers: {Authorization: *token}, tls: *tls, sign: *sign}}
  - name: failing
    schedule: "@every 1s"
    retry: {limit: 1, backoff: 10ms}
    http: {url: "%[2]s/failing", body: canary-body, headers: {Authorization: *token}, tls: *tls, sign: *sign}
  - name: slow
    schedule: "@every 1s"
    timeout: 100ms
    http: {url: "%[2]s/slow", headers: {Authorization: *token}, tls: *tls, sign: *sign}
  - name: stranger
    schedule: "@every 1s"
    http: {url: "%[2]s/", headers: {Authorization: *token}, sign: *sign,
      tls: {caFile: "%[3]s/ca", certFile: "%[3]s/stranger.crt", keyFile: "%[3]s/stranger.key", serverName: app.internal}}
  - name: distrustful
    schedule: "@every 1s"
    http: {url: "%[2]s/", headers: {Authorization: *token}, sign: *sign, tls: {caFile: "%[3]s/ca"}}
  - name: without
    schedule: "@every 1s"
    http: {url: "%[2]s/", headers: {Authorization: {file: "%[3]s/nowhere", prefix: canary-prefix}}, sign: *sign}
  - name: damaged
    schedule: "@every 1s"
    http: {url: "%[2]s/", headers: {Authorization: {file: "%[3]s/damaged"}}, sign: *sign}
  - name: mismatched
    schedule: "@every 1s"
    http: {url: "%[2]s/", tls: {certFile: "%[3]s/crt", keyFile: "%[3]s/stranger.key"}}
  - name: unsigned
    schedule: "@every 1s"
    http: {url: "%[2]s/", sign: {secretFile: "%[3]s/damaged"}}
`

// keysmith writes the files of a table. Every secret among them contains the word canary.
type keysmith struct {
	t   *testing.T
	dir string
}

func (k keysmith) write(name, text string) {
	k.t.Helper()
	file := filepath.Join(k.dir, name)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		k.t.Fatal(err)
	}
}

func (k keysmith) read(path string) string {
	k.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(data)
}

// pair returns a certificate and its key, with a canary beside each.
func (k keysmith) pair(ca *redistest.CA, name string) (cert, key string) {
	k.t.Helper()
	certFile, keyFile := ca.Issue(name)
	return "canary-certificate\n" + k.read(certFile), "canary-key\n" + k.read(keyFile)
}

// aSecret returns a secret of Standard Webhooks, and the word by which it would be found.
func aSecret(name string) (secret, word string) {
	word = base64.StdEncoding.EncodeToString([]byte("canary " + name + strings.Repeat("!", 30-len(name))))
	return "whsec_" + word, word
}

// seen is what the app saw of a good run.
type seen struct{ token, client, signatures string }

// The files of all credentials are replaced while jobs run, each in two steps, as an agent with bad manners does it. No
// secret in them is seen anywhere but in the requests.
func TestReplacedCredentialsBreakNoRunAndAreSeenNowhere(t *testing.T) {
	t.Parallel()
	k := keysmith{t, t.TempDir()}
	old, next := redistest.NewCA(t), redistest.NewCA(t)
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM([]byte(k.read(old.File) + k.read(next.File)))
	one, wordOne := aSecret("one")
	two, wordTwo := aSecret("two")
	var server atomic.Pointer[tls.Certificate]
	serve := func(ca *redistest.CA) {
		cert, key := ca.Issue("app.internal")
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		server.Store(&pair)
	}
	serve(old)
	good := make(chan seen, 1000)
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var valid []string
		for _, secret := range []string{one, two} {
			s, err := credentials.ParseSecrets(secret)
			if err != nil {
				t.Error(err)
			}
			if want := s.Sign(r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), string(body)); slices.Contains(strings.Fields(r.Header.Get("webhook-signature")), want) {
				valid = append(valid, secret)
			}
		}
		token := r.Header.Get("Authorization")
		if len(valid) == 0 || token != "canary-prefix canary-token-one" && token != "canary-prefix canary-token-two" {
			t.Errorf("a call with %q and %d good signatures", token, len(valid))
		}
		switch r.URL.Path {
		case "/good":
			good <- seen{token, r.TLS.PeerCertificates[0].Subject.CommonName, strings.Join(valid, " ")}
		case "/slow":
			<-r.Context().Done()
		default:
			http.Error(w, "no", http.StatusInternalServerError)
		}
	}))
	app.Config.ErrorLog = log.New(io.Discard, "", 0)
	app.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return server.Load(), nil }}
	app.StartTLS()
	defer app.Close()

	cert, key := k.pair(old, "first")
	strange, strangeKey := k.pair(redistest.NewCA(t), "stranger")
	for name, text := range map[string]string{"token": "canary-token-one\n", "secret": one + "\n", "ca": k.read(old.File), "crt": cert, "key": key,
		"stranger.crt": strange, "stranger.key": strangeKey, "damaged": "canary\ncanary\n"} {
		k.write(name, text)
	}
	s := redistest.Start(t)
	r := launch(t, fmt.Sprintf(proving, s.URL(), app.URL, k.dir), nil, "--replica", "one", "--log-level", "debug")
	table := r.cmd.Args[3]

	awaitGood := func(what string, wanted func(seen) bool) {
		t.Helper()
		for limit := time.After(patience); ; {
			select {
			case got := <-good:
				if wanted(got) {
					return
				}
			case <-limit:
				t.Fatalf("no run came with %s", what)
			}
		}
	}
	awaitGood("the first credentials", func(g seen) bool {
		return g == seen{"canary-prefix canary-token-one", "first", one}
	})
	cert, key = k.pair(next, "second")
	both := k.read(old.File) + k.read(next.File)
	for name, text := range map[string]string{"ca": both[:len(both)-100], "secret": one + "\n" + two[:10], "key": key[:len(key)/2], "token": ""} {
		k.write(name, text)
	}
	var damaged []string
	r.awaitLine("four damaged files of the job good", func(l line) bool {
		if l.is("a file is damaged: what it held before stays in use", "job", "good") {
			damaged = append(damaged, l.text("err"))
		}
		return len(damaged) == 4
	})
	for range 3 {
		awaitGood("the first credentials while the second are written", func(g seen) bool {
			return g == seen{"canary-prefix canary-token-one", "first", one}
		})
	}
	if n := r.said("a file is damaged: what it held before stays in use", "job", "good"); n != 4 {
		t.Errorf("damaged files of the job good were told %d times, want each of 4 once: %q", n, damaged)
	}
	for _, f := range [][2]string{{"ca", both}, {"secret", one + "\n" + two + "\n"}, {"crt", cert}, {"key", key}, {"token", "canary-token-two\n"}} {
		k.write(f[0], f[1])
	}
	awaitGood("the second credentials", func(g seen) bool {
		return g == seen{"canary-prefix canary-token-two", "second", one + " " + two}
	})
	serve(next) // whoever has read the token has read the roots
	k.write("secret", two)
	awaitGood("the second secret alone", func(g seen) bool { return g.signatures == two })

	for job, outcome := range map[string]string{"failing": "failed", "slow": "timed_out", "stranger": "failed"} {
		r.await("finished", "job", job, "outcome", outcome)
	}
	for _, job := range []string{"distrustful", "without", "damaged", "mismatched", "unsigned"} {
		r.await("skipped", "job", job)
	}

	places := map[string]string{}
	_, places["metrics"] = r.get("/metrics")
	admin := r.await("serving the status page and the API").text("addr")
	for _, path := range []string{"/", "/v1/status", "/v1/jobs", "/v1/jobs/good", "/v1/jobs/stranger", "/v1/runs", "/v1/replicas", "/v1/replica"} {
		places["GET "+path] = body(t, "http://"+admin+path)
	}
	tick := r.await("finished", "job", "stranger").text("tick")
	for _, verb := range []string{"status", "status -o json", "status damaged", "history", "history --failed -o json", "why stranger " + tick, "why without " + tick,
		"events", "next", "validate", "try good", "try damaged", "try mismatched", "try unsigned"} {
		cmd := exec.Command("solotick", append(strings.Fields(verb), "-c", table)...)
		cmd.Env = bareEnv()
		out, _ := cmd.CombinedOutput() // some of the tries fail
		places["solotick "+verb] = string(out)
	}
	r.stop()
	places["the log"] = strings.Join(r.raw, "\n")
	for place, part := range map[string]string{"the log": filepath.Join(k.dir, "nowhere"), "GET /v1/runs": "certificate", "solotick history": "stranger",
		"solotick try good": "succeeded", "solotick try damaged": filepath.Join(k.dir, "damaged") + ": it holds line breaks",
		"solotick try mismatched": "private key does not match", "solotick try unsigned": "not a secret of Standard Webhooks"} {
		if !strings.Contains(places[place], part) {
			t.Errorf("%s does not say %q:\n%s", place, part, places[place])
		}
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	for key, value := range contents(t, client) {
		places["Redis' "+key] = value
	}
	if len(places) < 30 {
		t.Errorf("only %d places were looked at", len(places))
	}
	for place, text := range places {
		for line := range strings.Lines(text) {
			for _, word := range []string{"canary", wordOne, wordTwo, two[:10], "PRIVATE KEY-"} {
				if strings.Contains(line, word) {
					t.Errorf("%s shows a secret: %s", place, line)
				}
			}
		}
	}
	for _, l := range r.lines {
		if l["job"] == "good" && (l.is("finished") && l["outcome"] != "succeeded" || l.is("skipped", "reason", "start_failed")) {
			t.Errorf("a run did not succeed: %v", l)
		}
	}
}
