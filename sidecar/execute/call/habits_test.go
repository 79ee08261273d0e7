package call

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

func TestAConnectionIsKeptForLessThanItsServerSays(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"": idleLimit, "timeout=1": 500 * time.Millisecond, "timeout=2, max=100": idleLimit, "max=5, timeout=1": 500 * time.Millisecond,
		"timeout=0": -500 * time.Millisecond, "timeout=x": idleLimit, "timeout=60": idleLimit,
	} {
		if got := idleTime(http.Header{"Keep-Alive": {said}}); got != want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Keep-Alive", "timeout=0") })
	e := New(config.HTTP{URL: a.URL}, Options{}).(*caller)
	e.transport.last = time.Now()
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if kept(e) != nil {
		t.Error("a connection is kept that its server closes at once")
	}
}

func TestARefusedRedirectIsNamedWithItsPath(t *testing.T) {
	for to, want := range map[string]string{
		"/from/?token=s3cret":      "this redirect to /from/ is not followed",
		"https://else.example/in":  "this redirect is not followed",
		"ftp://127.0.0.1/anywhere": "this redirect is not followed",
	} {
		a := newApp(t, redirecting(http.StatusMovedPermanently, &to))
		res := New(config.HTTP{URL: a.URL + "/from"}, Options{}).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.Failed)
		if !strings.HasSuffix(res.Err.Error(), want) {
			t.Errorf("to %s: %v", to, res.Err)
		}
	}
	hops := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		code, to := http.StatusTemporaryRedirect, "/v2/from"
		if r.URL.Path == to {
			code, to = http.StatusMovedPermanently, "login"
		}
		w.Header().Set("Location", to)
		w.WriteHeader(code)
	})
	res := New(config.HTTP{URL: hops.URL + "/from"}, Options{}).Execute(t.Context(), aRun())
	if wantStatus(t, res, execute.Failed); !strings.HasSuffix(res.Err.Error(), "this redirect to /v2/login is not followed") {
		t.Errorf("after another redirect: %v", res.Err)
	}
}

// Such a server sends its settings first, and need not close the connection over a request of HTTP/1.1.
func TestAnAppThatSpeaksHTTP2AloneIsToldAsOne(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "\x00\x00\x12\x04\x00\x00\x00\x00\x00")
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	res := New(config.HTTP{URL: "http://" + l.Addr().String()}, Options{}).Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Failed)
	if !strings.Contains(res.Err.Error(), "speaks HTTP/2 alone") {
		t.Error(res.Err)
	}
}
