package call

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/rig"
)

// wantReady checks an answer: says is a part of why the app is not ready, "" when it is.
func wantReady(t *testing.T, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("not ready: %v", err)
	case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
		t.Errorf("error %v, want %q", err, says)
	case err != nil && (len(err.Error()) > 256 || strings.ContainsAny(err.Error(), "\n\r\x1b")):
		t.Errorf("unsafe for a log line: %q", err)
	}
}

func askedURL(t *testing.T, url string) error {
	t.Helper()
	return NewReady(config.Ready{URL: url, Timeout: patience}, "").Probe(t.Context())
}

func TestAnAppIsReadyWhenItAnswersFrom200To399(t *testing.T) {
	for code, says := range map[int]string{
		200: "", 204: "", 299: "", 302: "", 304: "", 399: "",
		400: "it answered 400 Bad Request", 404: "it answered 404 Not Found", 503: "it answered 503 Service Unavailable", 599: "it answered 599",
	} {
		a := newApp(t, answering(code, ""))
		wantReady(t, askedURL(t, a.URL+"/readyz?x=1"), says)
		if r := a.last(t); r.Method != "GET" || r.RequestURI != "/readyz?x=1" || r.Header.Get("User-Agent") != "solotick/dev" {
			t.Errorf("%s %s %v", r.Method, r.RequestURI, r.Header)
		}
	}
}

func TestAnAppBehindASocketIsAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(500)
		}
	})}
	go s.Serve(l)
	defer s.Close()
	wantReady(t, askedURL(t, "http://unix:"+path+":/readyz"), "")
	wantReady(t, askedURL(t, "http://unix:"+path+":/other"), "it answered 500")
}

// A kept connection would still be answered by an app that takes no new ones any more.
func TestEachQuestionHasAConnectionOfItsOwn(t *testing.T) {
	a := newApp(t, nil)
	r := NewReady(config.Ready{URL: a.URL}, "")
	var ports []string
	for range 3 {
		wantReady(t, r.Probe(t.Context()), "")
		_, port, _ := net.SplitHostPort(a.last(t).RemoteAddr)
		ports = append(ports, port)
	}
	if ports[0] == ports[1] || ports[1] == ports[2] {
		t.Errorf("asked from ports %v", ports)
	}
	a.Close()
	wantReady(t, r.Probe(t.Context()), "connection refused")
}

func TestRedirectsAreFollowedOnTheSameHost(t *testing.T) {
	var to string
	behind := newApp(t, answering(500, ""))
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/from":
			http.Redirect(w, r, to, http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusMovedPermanently)
		case "/bad":
			w.WriteHeader(500)
		}
	})
	for location, says := range map[string]string{
		"/good": "", "/bad": "it answered 500", "/round": "given up after 5 redirects",
		behind.URL: "it answered 500",
		// Elsewhere nobody is asked: the redirect is the answer, and an answer is what makes an app ready.
		"http://192.0.2.1/": "", "http://localhost:1/": "", "ftp://127.0.0.1/": "",
	} {
		to = location
		wantReady(t, askedURL(t, a.URL+"/from"), says)
	}
}

func TestAPasswordGoesToNobodyButTheApp(t *testing.T) {
	behind := newApp(t, nil)
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, behind.URL, http.StatusFound) })
	wantReady(t, askedURL(t, strings.Replace(a.URL, "//", "//me:s3cret@", 1)), "")
	if user, password, _ := a.last(t).BasicAuth(); user != "me" || password != "s3cret" {
		t.Errorf("the app was told %q and %q", user, password)
	}
	if h := behind.last(t).Header; h.Get("Authorization") != "" || h.Get("Referer") != "" {
		t.Errorf("who stands behind it was told %v", h)
	}
}

func TestAQuestionLeavesNoSecretInItsError(t *testing.T) {
	closed := rawApp(t, func(net.Conn, *bufio.Reader) {})
	for url, says := range map[string]string{
		rawApp(t, saying("220 s3cret ESMTP\r\n")):                                    "the answer is not HTTP",
		rawApp(t, saying("HTTP/1.1 500 s3cret\r\n\r\ns3cret")):                       "it answered 500 Internal Server Error",
		rawApp(t, saying("HTTP/1.1 200 OK\r\ns3cret\r\n\r\n")):                       "the answer is not HTTP",
		rawApp(t, saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ns3")):          "the answer broke off",
		rawApp(t, saying("HTTP/1.1 200 OK\r\nX: "+strings.Repeat("s3cret", 20_000))): "header of the answer is longer",
		closed:                         "connection",
		"http://me:s3cret@192.0.2.1":   "not on this machine",
		"http://s3cret.invalid%zz":     "the URL cannot be used",
		"https" + closed[len("http"):]: "TLS handshake with 127.0.0.1",
	} {
		err := NewReady(config.Ready{URL: url + "/?t=s3cret", Timeout: patience}, "").Probe(t.Context())
		wantReady(t, err, says)
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("a secret in %q", err)
		}
	}
}

func TestAnAppThatDoesNotAnswerInTimeIsNotReady(t *testing.T) {
	const timeout = 20 * time.Millisecond
	a := newApp(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slow := newApp(t, func(w http.ResponseWriter, r *http.Request) { // the head alone is no answer
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for _, url := range []string{a.URL, slow.URL} {
		wantReady(t, NewReady(config.Ready{URL: url, Timeout: timeout}, "").Probe(t.Context()), "no answer within 20ms")
	}
}

func TestAnEndlessAnswerIsReadToABound(t *testing.T) {
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 64<<10); r.Context().Err() == nil; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	wantReady(t, askedURL(t, a.URL), "")
}

func TestAnAppIsReadyWhenItAcceptsAConnection(t *testing.T) {
	l, err := net.Listen("tcp", rig.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, address := range []string{"127.0.0.1:" + port, "localhost:" + port} {
		wantReady(t, NewReady(config.Ready{TCP: address}, "").Probe(t.Context()), "")
	}
	l.Close()
	wantReady(t, NewReady(config.Ready{TCP: l.Addr().String()}, "").Probe(t.Context()), "connection refused")
	wantReady(t, NewReady(config.Ready{TCP: "192.0.2.1:80"}, "").Probe(t.Context()), "not on this machine")
}

func TestManyAskAtOnce(t *testing.T) {
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	r := NewReady(config.Ready{URL: a.URL, Timeout: patience}, "")
	errs := make(chan error)
	for range 20 {
		go func() { errs <- r.Probe(t.Context()) }()
	}
	for range 20 {
		wantReady(t, <-errs, "")
	}
}
