package call

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func post(t *testing.T, url string) (int, time.Duration, error) {
	t.Helper()
	return Post(t.Context(), url, nil, "succeeded", "0.1.0")
}

func TestAPostCarriesItsTextAndNothingOfARun(t *testing.T) {
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(429)
	})
	code, again, err := post(t, strings.Replace(a.URL, "//", "//me:s3cret@", 1)+"/check?c=%2f&rid=1")
	if code != 429 || again != 7*time.Second || err != nil {
		t.Errorf("%d, %s, %v", code, again, err)
	}
	r := a.last(t)
	if user, _, _ := r.BasicAuth(); r.Method != "POST" || r.RequestURI != "/check?c=%2f&rid=1" || a.bodies[0] != "succeeded" || user != "me" {
		t.Errorf("%s %s of %q with %q", r.Method, r.RequestURI, user, a.bodies[0])
	}
	want := map[string]string{"User-Agent": "solotick/0.1.0", "Content-Type": "text/plain; charset=utf-8", "Content-Length": "9",
		"Connection": "close", "Authorization": r.Header.Get("Authorization")}
	for name := range r.Header {
		if want[name] != r.Header.Get(name) {
			t.Errorf("%s: %q", name, r.Header.Get(name))
		}
	}
}

func TestAPostFollowsAFewRedirectsWithItsText(t *testing.T) {
	var code int
	var to string
	behind := newApp(t, nil)
	a := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", map[string]string{"/from": to, "/round": "/round"}[r.URL.Path])
		w.WriteHeader(code)
	})
	for code = range map[int]bool{301: true, 302: true, 307: true, 308: true} {
		to = behind.URL + "/moved?x=1"
		before := behind.count()
		if got, _, err := post(t, strings.Replace(a.URL, "//", "//me:s3cret@", 1)+"/from"); got != 200 || err != nil || behind.count() != before+1 {
			t.Errorf("%d: %d, %v", code, got, err)
			continue
		}
		r := behind.last(t)
		if r.Method != "POST" || r.RequestURI != "/moved?x=1" || behind.bodies[before] != "succeeded" ||
			r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("%d: %s %s %v", code, r.Method, r.RequestURI, r.Header)
		}
	}
	before := a.count()
	if _, _, err := post(t, a.URL+"/round"); err == nil || err.Error() != "given up after 3 redirects" || a.count() != before+4 {
		t.Errorf("%v after %d calls", err, a.count()-before)
	}
	code = 303
	if got, _, err := post(t, a.URL+"/from"); got != 303 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

func TestAPostDoesNotFollowOutOfTLS(t *testing.T) {
	plain := newApp(t, nil)
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect))
	defer secure.Close()
	w := newTransport("", true)
	w.tls = secure.Client().Transport.(*http.Transport).TLSClientConfig
	u, _, _ := target(secure.URL)
	if code, _, err := w.post(t.Context(), u, nil, "succeeded", ""); code != 307 || err != nil || plain.count() != 0 {
		t.Errorf("%d, %v", code, err)
	}
}

func TestAPostLeavesNoSecretInItsError(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = discardLog()
	untrusted.StartTLS()
	defer untrusted.Close()
	refused := rawApp(t, func(net.Conn, *bufio.Reader) {})
	for url, says := range map[string]string{
		untrusted.URL:                                "certificate",
		refused:                                      "connection",
		"http://unix:/no/such.sock:":                 "no such file",
		"http://me:s3cret@127.0.0.1:1":               "connection refused",
		"ftp://s3cret":                               "the URL cannot be used",
		"http://127.0.0.1:s3cret":                    "the URL cannot be used: its port is not a number",
		"http://127.0.0.1/%s3cret":                   "the URL cannot be used: two hexadecimal digits must follow each % in it",
		"http://s3cret host":                         "the URL cannot be used: its host has a character that no host has",
		"http://127.0.0.1\x7fs3cret":                 "the URL cannot be used: it is not a URL",
		rawApp(t, saying("s3cret\r\n\r\n")):          "the answer is not HTTP",
		rawApp(t, saying("HTTP/1.1 s3cret\r\n\r\n")): "the answer is not HTTP",
		newApp(t, redirecting(308, &[]string{"http://127.0.0.1:1/s3cret"}[0])).URL + "/from": "connection refused",
	} {
		_, _, err := post(t, url+"/s3cret?s3cret")
		wantReady(t, err, says)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: a secret in %v", url, err)
		}
	}
	ended := errors.New("no answer within 10s")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, _, err := Post(ctx, refused, nil, "", ""); err != ended {
		t.Errorf("error %v", err)
	}
}

// A message's signature is for its receiver alone.
func TestAPostWithHeadersFollowsNoRedirect(t *testing.T) {
	behind := newApp(t, nil)
	a := newApp(t, redirecting(307, &behind.URL))
	code, _, err := Post(t.Context(), a.URL+"/from", http.Header{"Webhook-Signature": {"v1,x"}}, "{}", "")
	if code != 307 || err != nil || behind.count() != 0 {
		t.Errorf("%d, %v, and %d requests behind it", code, err, behind.count())
	}
}
