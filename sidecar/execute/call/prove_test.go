package call

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/credentials"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/sidecar/execute"
)

const (
	whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	other = "whsec_c29tZSBvdGhlciBzZWNyZXQgb2YgMjQgYg=="
)

// files are those that a table names, in a directory of the test.
type files struct {
	t   *testing.T
	dir string
}

func newFiles(t *testing.T) files { return files{t, t.TempDir()} }

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

// write replaces a file as if that had been an hour ago, so that nobody waits for it to settle.
func (f files) write(name, text string) string {
	f.t.Helper()
	at := time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(f.path(name), []byte(text), 0o600), os.Chtimes(f.path(name), at, at)); err != nil {
		f.t.Fatal(err)
	}
	return f.path(name)
}

// copy replaces a file by the contents of another.
func (f files) copy(name, from string) string {
	f.t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.write(name, string(data))
}

func TestAHeaderComesFromItsFileInEachAttempt(t *testing.T) {
	f, a := newFiles(t), newApp(t, nil)
	url := strings.Replace(a.URL, "http://", "http://me:pass@", 1)
	e := New(config.HTTP{URL: url, Headers: map[string]string{"X-Plain": "1"}, HeaderFiles: map[string]config.HeaderFile{
		"authorization": {File: f.write("token", "one\n"), Prefix: "Bearer "}, "X-Key": {File: f.write("key", " k e y ")},
	}}, Options{})
	for _, want := range []string{"one", "two"} {
		f.write("token", want+"\n")
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		h := a.last(t).Header
		if got := h.Values("Authorization"); len(got) != 1 || got[0] != "Bearer "+want || h.Get("X-Plain") != "1" || h.Get("X-Key") != "k e y" {
			t.Errorf("%v, want %s", h, want)
		}
	}
}

func TestACallWithoutItsProofIsNeverBegun(t *testing.T) {
	f, a := newFiles(t), newApp(t, nil)
	missing := f.path("missing")
	for name, c := range map[string]config.HTTP{
		"header":      {HeaderFiles: map[string]config.HeaderFile{"X": {File: missing}}},
		"secret":      {Sign: config.Sign{SecretFile: missing}},
		"roots":       {TLS: &config.TLS{CAFile: missing}},
		"certificate": {TLS: &config.TLS{CertFile: missing, KeyFile: missing}},
	} {
		c.URL = a.URL
		r := aRun()
		r.Await = nil
		r.Started = func() { t.Errorf("%s: it has begun", name) }
		res := New(c, Options{}).Execute(t.Context(), r)
		wantStatus(t, res, execute.NotStarted)
		if !errors.Is(res.Err, fs.ErrNotExist) || !strings.Contains(res.Err.Error(), missing) || strings.Contains(res.Err.Error(), "may have") {
			t.Errorf("%s: %v", name, res.Err)
		}
	}
	ctx, cancel := contextWithCause(t)
	cut := f.write("half", "half")
	now := time.Now()
	if err := os.Chtimes(cut, now, now); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { cancel(errLockLost) })
	wantCause(t, New(config.HTTP{URL: a.URL, HeaderFiles: map[string]config.HeaderFile{"X": {File: cut}}}, Options{}).Execute(ctx, aRun()))
	if a.count() != 0 {
		t.Errorf("%d requests came", a.count())
	}
}

func TestASignatureIsOfTheAttemptAndItsIDOfTheTick(t *testing.T) {
	f, a := newFiles(t), newApp(t, nil)
	c := config.HTTP{URL: a.URL, Body: `{"dry": true}`, Sign: config.Sign{SecretFile: f.write("secret", whsec+"\n")}}
	text := New(c, Options{})
	c.IdempotencyKey = config.KeyUUID
	uuid := New(c, Options{})
	ids := map[string]bool{}
	call := func(e execute.Executor, r execute.Run, secrets string) string {
		t.Helper()
		wantStatus(t, e.Execute(t.Context(), r), execute.Succeeded)
		h := a.last(t).Header
		id, at := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
		signed, err := credentials.ParseSecrets(secrets)
		if err != nil || h.Get("Webhook-Signature") != signed.Sign(id, at, c.Body) {
			t.Errorf("%v, %v", h, err)
		}
		if n, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(n, 0)).Abs() > patience {
			t.Errorf("signed at %q", at)
		}
		ids[id] = true
		return id
	}
	r := aRun()
	first := call(text, r, whsec)
	if !strings.HasPrefix(first, "tick_") || strings.ContainsAny(first, ".+/=") || len(first) < 40 {
		t.Errorf("id %q", first)
	}
	f.write("secret", whsec+"\n"+other+"\n")
	r.Attempt, r.ID, r.Token = 3, "another run", 42
	call(text, r, whsec+" "+other)
	call(uuid, r, whsec+" "+other)
	if len(ids) != 1 {
		t.Errorf("one tick has the ids %v", ids)
	}
	next := aRun()
	next.Tick = next.Tick.Add(time.Second)
	call(text, next, whsec+" "+other)
	next.Job = "another"
	call(text, next, whsec+" "+other)
	if len(ids) != 3 {
		t.Errorf("three ticks have the ids %v", ids)
	}
}

// demanding is an app that wants a certificate of the CA, and has one of its own.
func demanding(t *testing.T, ca *redistest.CA, name string) *app {
	t.Helper()
	cert, key := ca.Issue(name)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data)
	a := &app{}
	a.Server = httptest.NewUnstartedServer(a.keeping(nil))
	a.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	a.Config.ErrorLog = discardLog()
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

// Everything is replaced between the calls, one file after the other, as a person or an agent does it.
func TestReplacedFilesBreakNoCall(t *testing.T) {
	f, ca := newFiles(t), redistest.NewCA(t)
	a := demanding(t, ca, "127.0.0.1")
	var log bytes.Buffer
	cert, key := ca.Issue("first")
	e := New(config.HTTP{URL: a.URL, Body: "x",
		HeaderFiles: map[string]config.HeaderFile{"Authorization": {File: f.write("token", "one")}},
		TLS:         &config.TLS{CAFile: f.copy("ca", ca.File), CertFile: f.copy("crt", cert), KeyFile: f.copy("key", key)},
		Sign:        config.Sign{SecretFile: f.write("secret", whsec)},
	}, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}).(*caller)
	shows := func(name, token string) {
		t.Helper()
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		r := a.last(t)
		if got := r.TLS.PeerCertificates[0].Subject.CommonName; got != name || r.Header.Get("Authorization") != token || r.Header.Get("Webhook-Signature") == "" {
			t.Errorf("the app saw %s and %v, want %s and %s", got, r.Header, name, token)
		}
	}
	shows("first", "one")
	cert, key = ca.Issue("second")
	f.copy("crt", cert)
	shows("first", "one")
	f.copy("key", key)
	shows("second", "one")
	f.write("token", "")
	shows("second", "one")
	f.write("token", "two")
	shows("second", "two")
	f.write("secret", whsec[:12])
	shows("second", "two")
	f.write("secret", whsec+"\n"+other)
	shows("second", "two")

	// A new CA comes: first it is trusted beside the old one, then the server's certificate is of it.
	next := redistest.NewCA(t)
	both, err := os.ReadFile(ca.File)
	if err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile(next.File)
	if err != nil {
		t.Fatal(err)
	}
	f.write("ca", string(both)+string(more)[:len(more)/2])
	shows("second", "two")
	f.write("ca", string(both)+string(more))
	shows("second", "two")
	a2 := demanding(t, next, "127.0.0.1")
	e.url.Host = strings.TrimPrefix(a2.URL, "https://")
	a = a2
	cert, key = next.Issue("third")
	f.copy("key", key)
	f.copy("crt", cert)
	f.copy("ca", next.File)
	shows("third", "two")
	if n := strings.Count(log.String(), "\n"); n != 4 || strings.Count(log.String(), "a file is damaged: what it held before stays in use") != 4 {
		t.Errorf("%d lines in the log:\n%s", n, log.String())
	}
	for _, secret := range []string{"one", whsec[:12], "PRIVATE"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %s:\n%s", secret, log.String())
		}
	}
}

func TestARefusedCertificateIsSaid(t *testing.T) {
	f, ca := newFiles(t), redistest.NewCA(t)
	a := demanding(t, ca, "app.internal")
	cert, key := redistest.NewCA(t).Issue("stranger")
	good, goodKey := ca.Issue("friend")
	for name, c := range map[string]struct {
		tls    config.TLS
		status execute.Status
		says   string
	}{
		"good":        {config.TLS{CAFile: ca.File, CertFile: good, KeyFile: goodKey, ServerName: "app.internal"}, execute.Succeeded, ""},
		"other name":  {config.TLS{CAFile: ca.File, CertFile: good, KeyFile: goodKey}, execute.NotStarted, "doesn't contain any IP SANs"},
		"other roots": {config.TLS{CAFile: f.copy("ca", redistest.NewCA(t).File), ServerName: "app.internal"}, execute.NotStarted, "unknown authority"},
		// With TLS 1.3 the client has sent its request before it hears that its certificate is refused.
		"stranger": {config.TLS{CAFile: ca.File, CertFile: cert, KeyFile: key, ServerName: "app.internal"}, execute.Failed, "certificate"},
		"nobody":   {config.TLS{CAFile: ca.File, ServerName: "app.internal"}, execute.Failed, "certificate required"},
	} {
		for _, file := range []string{good, goodKey, cert, key, ca.File} {
			then := time.Now().Add(-time.Hour)
			if err := os.Chtimes(file, then, then); err != nil {
				t.Fatal(err)
			}
		}
		before := a.count()
		res := New(config.HTTP{URL: a.URL, TLS: &c.tls}, Options{}).Execute(t.Context(), aRun())
		wantStatus(t, res, c.status)
		if res.Err != nil && (!strings.Contains(res.Err.Error(), c.says) || a.count() != before) {
			t.Errorf("%s: %v, %d requests", name, res.Err, a.count()-before)
		}
	}
}

// A redirect leads elsewhere: who answers there must not get what is meant for the app.
func TestAForeignServerSeesNoProof(t *testing.T) {
	f, ca := newFiles(t), redistest.NewCA(t)
	elsewhere := &app{}
	elsewhere.Server = httptest.NewUnstartedServer(elsewhere.keeping(nil))
	serve := func(a *app, name string, asks tls.ClientAuthType) {
		cert, key := ca.Issue(name)
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		a.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: asks}
		a.StartTLS()
		t.Cleanup(a.Close)
	}
	serve(elsewhere, "127.0.0.1", tls.RequestClientCert)
	var to string
	a := &app{}
	a.Server = httptest.NewUnstartedServer(a.keeping(redirecting(307, &to)))
	serve(a, "app.internal", tls.RequireAnyClientCert)
	cert, key := ca.Issue("replica")
	e := New(config.HTTP{URL: a.URL + "/from",
		HeaderFiles: map[string]config.HeaderFile{"Authorization": {File: f.write("token", "s3cret")}},
		TLS:         &config.TLS{CAFile: f.copy("ca", ca.File), CertFile: f.copy("crt", cert), KeyFile: f.copy("key", key), ServerName: "app.internal"},
		Sign:        config.Sign{SecretFile: f.write("secret", whsec)},
	}, Options{})
	to = elsewhere.URL + "/to"
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if r := a.last(t); r.Header.Get("Authorization") == "" || r.Header.Get("Webhook-Signature") == "" || len(r.TLS.PeerCertificates) != 1 {
		t.Errorf("the app saw %v", r.Header)
	}
	r := elsewhere.last(t)
	for _, name := range []string{"Authorization", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		if r.Header.Get(name) != "" {
			t.Errorf("elsewhere %s was seen", name)
		}
	}
	if len(r.TLS.PeerCertificates) != 0 || r.Header.Get("Idempotency-Key") == "" {
		t.Errorf("elsewhere %d certificates and %v were seen", len(r.TLS.PeerCertificates), r.Header)
	}
}

func TestWhatProvesACallIsNotTold(t *testing.T) {
	f, a := newFiles(t), newApp(t, nil)
	e := New(config.HTTP{URL: a.URL, HeaderFiles: map[string]config.HeaderFile{"X-Token": {File: f.write("token", "s3cret"), Prefix: "s3cret"}},
		Sign: config.Sign{SecretFile: f.write("secret", whsec)}}, Options{})
	var told string
	r := aRun()
	r.Tell = func(lines []string) { told = strings.Join(lines, "\n") }
	wantStatus(t, e.Execute(t.Context(), r), execute.Succeeded)
	if !strings.Contains(told, "X-Token: ***") || !strings.Contains(told, "Webhook-Signature: ***") || strings.Contains(told, "s3cret") {
		t.Errorf("told:\n%s", told)
	}
}

func TestAnAppBehindAUnixSocketIsShownProofs(t *testing.T) {
	f := newFiles(t)
	l, err := net.Listen("unix", f.path("app.sock"))
	if err != nil {
		t.Fatal(err)
	}
	a := &app{}
	a.Server = httptest.NewUnstartedServer(a.keeping(func(w http.ResponseWriter, r *http.Request) {}))
	a.Listener = l
	a.Start()
	defer a.Close()
	e := New(config.HTTP{URL: "http://unix:" + f.path("app.sock") + ":/x", Sign: config.Sign{SecretFile: f.write("secret", whsec)}}, Options{})
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if a.last(t).Header.Get("Webhook-Signature") == "" {
		t.Error("no signature")
	}
}
