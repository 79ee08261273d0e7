package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/rig"
	"github.com/solotick/solotick/sidecar/execute"
)

// app is a server that keeps what it was asked.
type app struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

func newApp(t *testing.T, h http.HandlerFunc) *app {
	a := &app{}
	a.Server = httptest.NewServer(a.keeping(h))
	t.Cleanup(a.Close)
	return a
}

func (a *app) keeping(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.requests, a.bodies = append(a.requests, r), append(a.bodies, string(body))
		a.mu.Unlock()
		if h != nil {
			h(w, r)
		}
	})
}

func (a *app) last(t *testing.T) *http.Request {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.requests) == 0 {
		t.Fatal("no request came")
	}
	return a.requests[len(a.requests)-1]
}

func (a *app) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.requests)
}

func answering(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func TestTheRequestCarriesTheRunAndTheTable(t *testing.T) {
	a := newApp(t, nil)
	e := New(config.HTTP{
		Method: "PUT", URL: a.URL + "/jobs/x?dry=1", Body: "hello",
		Headers: map[string]string{"authorization": "Bearer s3cret", "X-Own": "1", "Host": "app.example"},
	}, Options{Version: "0.1.0"})
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	r := a.last(t)
	if r.Method != "PUT" || r.RequestURI != "/jobs/x?dry=1" || r.Host != "app.example" || a.bodies[0] != "hello" {
		t.Errorf("%s %s of %s with %q", r.Method, r.RequestURI, r.Host, a.bodies[0])
	}
	want := map[string]string{
		"Authorization": "Bearer s3cret", "X-Own": "1", "User-Agent": "solotick/0.1.0",
		"Content-Type": "text/plain; charset=utf-8", "Content-Length": "5",
		"Connection": "close",
	}
	for _, f := range aRun().Facts() {
		want[f.Header] = f.Value
	}
	for name, value := range want {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	if len(r.Header) != len(want) {
		t.Errorf("unexpected headers among %v", r.Header)
	}
}

func TestTheDefaultsOfACall(t *testing.T) {
	a := newApp(t, answering(201, ""))
	wantStatus(t, New(config.HTTP{URL: a.URL}, Options{}).Execute(t.Context(), aRun()), execute.Succeeded)
	r := a.last(t)
	if r.Method != "POST" || r.URL.Path != "/" || r.Header.Get("User-Agent") != "solotick/dev" ||
		r.Header.Get("Content-Type") != "" || r.ContentLength != 0 || r.Header.Get("Accept-Encoding") != "" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
}

func TestOurHeadersWinOverTheTables(t *testing.T) {
	a := newApp(t, nil)
	r := aRun()
	r.Token = 0
	e := New(config.HTTP{URL: a.URL, Body: "{}", Headers: map[string]string{
		"idempotency-key": "x", "SOLOTICK-JOB": "x", "Solotick-Fencing-Token": "999", "traceparent": "x",
		"User-Agent": "x", "Connection": "upgrade", "Upgrade": "websocket", "Transfer-Encoding": "chunked",
		"Content-Length": "77", "Expect": "100-continue", "content-type": "application/cbor",
	}}, Options{})
	wantStatus(t, e.Execute(t.Context(), r), execute.Succeeded)
	h := a.last(t).Header
	if h.Get("Idempotency-Key")[0] != '"' || h.Get("Solotick-Job") != "send-invoices" || h.Get("User-Agent") != "solotick/dev" {
		t.Errorf("overwritten: %v", h)
	}
	for _, name := range []string{"Solotick-Fencing-Token", "Traceparent", "Upgrade", "Expect"} {
		if h.Get(name) != "" {
			t.Errorf("%s got through: %v", name, h)
		}
	}
	if a.bodies[0] != "{}" || h.Get("Content-Type") != "application/cbor" {
		t.Errorf("body %q as %q", a.bodies[0], h.Get("Content-Type"))
	}
}

func TestAJSONBodyIsAnnouncedAsOne(t *testing.T) {
	a := newApp(t, nil)
	New(config.HTTP{URL: a.URL, Body: `{"dry": false}`}, Options{}).Execute(t.Context(), aRun())
	if got := a.last(t).Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

func TestUserinfoOfTheURLBecomesAuthorization(t *testing.T) {
	a := newApp(t, nil)
	url := strings.Replace(a.URL, "http://", "http://me:pass%20word@", 1)
	wantStatus(t, New(config.HTTP{URL: url}, Options{}).Execute(t.Context(), aRun()), execute.Succeeded)
	if user, pass, _ := a.last(t).BasicAuth(); user != "me" || pass != "pass word" {
		t.Errorf("user %q, password %q", user, pass)
	}
}

func TestEachAnswerHasItsResult(t *testing.T) {
	codes := func(from, to int) []config.CodeRange { return []config.CodeRange{{From: from, To: to}} }
	for _, c := range []struct {
		code    int
		success []config.CodeRange
		status  execute.Status
		says    string
	}{
		{200, nil, execute.Succeeded, ""},
		{299, nil, execute.Succeeded, ""},
		{204, codes(200, 200), execute.Failed, "204 No Content"},
		{409, nil, execute.Declined, "409 Conflict: it runs already"},
		{409, codes(409, 409), execute.Succeeded, ""},
		{503, codes(500, 599), execute.Succeeded, ""},
		{425, nil, execute.Failed, "425 Too Early"},
		{429, nil, execute.Failed, "429 Too Many Requests"},
		{503, nil, execute.Failed, "503 Service Unavailable"},
		{500, nil, execute.Failed, "500 Internal Server Error"},
		{404, nil, execute.Failed, "404 Not Found"},
		{302, nil, execute.Failed, "302 Found"},
		{599, nil, execute.Failed, "answered 599"},
	} {
		t.Run(fmt.Sprint(c.code, c.success), func(t *testing.T) {
			body := "words"
			if c.code == 204 {
				body = ""
			}
			a := newApp(t, answering(c.code, body))
			res := New(config.HTTP{URL: a.URL, SuccessCodes: c.success}, Options{}).Execute(t.Context(), aRun())
			wantStatus(t, res, c.status)
			if res.Code != c.code || res.Output != body || res.RetryAfter != 0 {
				t.Errorf("%+v", res)
			}
			if c.says != "" && !strings.Contains(res.Err.Error(), c.says) {
				t.Errorf("error %q does not say %q", res.Err, c.says)
			}
		})
	}
}

func TestRetryAfterIsReadAsSecondsOrDateAndBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-5": 0, "1.5": 0, "soon": 0,
		"86401": 24 * time.Hour, "99999999999999999999999": 24 * time.Hour, "18446744073709551615": 24 * time.Hour,
		"Fri, 02 Jan 2026 03:05:05 GMT":  time.Minute,
		"Fri, 02 Jan 2026 03:00:00 GMT":  0,
		"Sat, 02 Jan 2027 03:00:00 GMT":  24 * time.Hour,
		"Friday, 02-Jan-26 03:04:15 GMT": 10 * time.Second,
	} {
		if got := retryAfter(in, now); got != want {
			t.Errorf("%q gives %s, want %s", in, got, want)
		}
	}
}

func TestRetryAfterIsHandedOnFromEachAnswerThatIsAFailure(t *testing.T) {
	for code, want := range map[int]time.Duration{408: 30 * time.Second, 425: 30 * time.Second,
		429: 30 * time.Second, 500: 30 * time.Second, 599: 30 * time.Second,
		409: 0, 307: 0, 200: 0} {
		a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(code)
		})
		res := New(config.HTTP{URL: a.URL}, Options{}).Execute(t.Context(), aRun())
		if res.RetryAfter != want {
			t.Errorf("%d: %s, want %s", code, res.RetryAfter, want)
		}
		if want > 0 && !strings.Contains(res.Err.Error(), "in 30s") {
			t.Errorf("error %q does not say when", res.Err)
		}
	}
}

func TestAnAppBehindAUnixSocketIsCalled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{}
	a.Server = httptest.NewUnstartedServer(a.keeping(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
		}
	}))
	a.Listener = l
	a.Start()
	defer a.Close()
	for url, want := range map[string]string{
		"http://unix:" + path + ":/jobs/x?at=10:/30": "/jobs/x?at=10:/30",
		"http://unix:" + path + ":/":                 "/",
		"http://unix:" + path:                        "/",
		"http://unix:" + path + ":/old":              "/new",
	} {
		wantStatus(t, New(config.HTTP{URL: url}, Options{}).Execute(t.Context(), aRun()), execute.Succeeded)
		if r := a.last(t); r.RequestURI != want || r.Host != "localhost" {
			t.Errorf("%s asks %s of %s", url, r.RequestURI, r.Host)
		}
	}
	res := New(config.HTTP{URL: "http://unix:" + path + ".not:/"}, Options{}).Execute(t.Context(), aRun())
	wantStatus(t, res, execute.NotStarted)
	if !errors.Is(res.Err, os.ErrNotExist) {
		t.Errorf("error %v", res.Err)
	}
}

func TestLocalhostNeedsNoNameServiceAndFindsEitherAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		a := &app{}
		a.Server = httptest.NewUnstartedServer(a.keeping(nil))
		a.Listener.Close()
		a.Listener = l
		a.Start()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		e := New(config.HTTP{URL: "http://LocalHost:" + port}, Options{}).(*caller)
		dial := e.transport.dial
		e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.Contains(strings.ToLower(address), "localhost") {
				t.Errorf("a name is looked up: %s", address)
			}
			return dial(ctx, network, address)
		}
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
		if got := a.last(t).Host; got != "LocalHost:"+port {
			t.Errorf("Host %q", got)
		}
		a.Close()
	}
}

func TestAURLThatCannotBeUsedFailsWithoutShowingIt(t *testing.T) {
	for _, url := range []string{
		"", "127.0.0.1:80", "ftp://127.0.0.1/s3cret", "http://", "http://unix:", "http://unix::/s3cret",
		"http://me:s3cret@127.0.0.1:80\x7f/", "http:///s3cret",
	} {
		res := New(config.HTTP{URL: url}, Options{}).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.Failed)
		if strings.Contains(res.Err.Error(), "s3cret") {
			t.Errorf("%q: error shows it: %v", url, res.Err)
		}
	}
}

func TestErrorsShowNoSecretOfTheTable(t *testing.T) {
	e := New(config.HTTP{
		URL:     "http://me:s3cret@" + rig.FreeAddr(t) + "/s3cret?token=s3cret",
		Headers: map[string]string{"Authorization": "s3cret"}, Body: "s3cret",
	}, Options{})
	res := e.Execute(t.Context(), aRun())
	wantStatus(t, res, execute.NotStarted)
	if strings.Contains(res.Err.Error(), "s3cret") {
		t.Errorf("error %v", res.Err)
	}
}

func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	proxy := newApp(t, nil)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	// A name that no name service knows: with a proxy it would be the proxy's to resolve.
	e := New(config.HTTP{URL: "http://app.invalid/"}, Options{AllowRemote: true}).(*caller)
	e.transport.dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "app.invalid", IsNotFound: true}
	}
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.NotStarted)
	if proxy.count() != 0 {
		t.Error("the proxy was asked")
	}
}
