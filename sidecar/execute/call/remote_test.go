package call

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/rig"
	"github.com/solotick/solotick/sidecar/execute"
)

func TestWhatCertainlyNeverBeganIsNotStarted(t *testing.T) {
	refused := "http://" + rig.FreeAddr(t)
	silent := rawApp(t, func(net.Conn, *bufio.Reader) {}) // closes before the handshake
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = discardLog()
	untrusted.StartTLS()
	defer untrusted.Close()
	for name, url := range map[string]string{
		"refused":        refused,
		"localhost":      strings.Replace(refused, "127.0.0.1", "localhost", 1),
		"no TLS":         strings.Replace(silent, "http:", "https:", 1),
		"untrusted cert": untrusted.URL,
	} {
		res := New(config.HTTP{URL: url}, Options{}).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.NotStarted)
		if res.Code != -1 || strings.Contains(res.Err.Error(), "may have started") {
			t.Errorf("%s: %+v", name, res)
		}
	}
	res := call(t, refused)
	if !errors.Is(res.Err, syscall.ECONNREFUSED) {
		t.Errorf("the reason is lost: %v", res.Err)
	}
}

func TestOnlyThisMachineIsCalledUnlessTheJobAllowsMore(t *testing.T) {
	for address, allowed := range map[string]bool{
		"127.0.0.1:80": true, "127.8.9.1:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true,
		"10.0.0.1:80": false, "192.0.2.1:443": false, "[2001:db8::1]:80": false, "[fe80::1%eth0]:80": false,
		"[::ffff:10.0.0.1]:80": false, "0.0.0.0:80": false, "[::]:80": false, "169.254.169.254:80": false, "": false,
	} {
		err := newTransport("", false).control(t.Context(), "tcp4", address, nil)
		if (err == nil) != allowed || err != nil && !errors.Is(err, errNotLoopback) {
			t.Errorf("%s: %v", address, err)
		}
		if err := newTransport("", true).control(t.Context(), "tcp4", address, nil); err != nil {
			t.Errorf("%s with allowRemote: %v", address, err)
		}
	}
}

func TestARemoteAddressIsRefusedBeforeAnyPacket(t *testing.T) {
	// 192.0.2.0/24 is nobody's: with the check gone the dial would hang or find no network, and say something else.
	res := call(t, "http://192.0.2.1:9/")
	wantStatus(t, res, execute.Failed) // never begun, but no other replica would do better
	if !errors.Is(res.Err, errNotLoopback) || strings.Contains(res.Err.Error(), "may have started") {
		t.Errorf("error %v", res.Err)
	}
}

func TestANameIsCheckedByWhatItResolvesTo(t *testing.T) {
	e := New(config.HTTP{URL: "http://app.internal:80/"}, Options{}).(*caller)
	d := net.Dialer{ControlContext: e.transport.control, Resolver: &net.Resolver{PreferGo: true, Dial: fakeDNS(t, "192.0.2.7")}}
	e.transport.dial = d.DialContext
	res := e.Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Failed)
	if !errors.Is(res.Err, errNotLoopback) {
		t.Errorf("error %v", res.Err)
	}
}

func TestHTTPSIsSpokenWithoutHTTP2(t *testing.T) {
	a := &app{}
	a.Server = httptest.NewUnstartedServer(a.keeping(nil))
	a.EnableHTTP2 = true
	var protocols []string
	a.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		protocols = h.SupportedProtos
		return nil, nil
	}}
	a.StartTLS()
	defer a.Close()
	e := New(config.HTTP{URL: a.URL}, Options{}).(*caller)
	e.transport.tls = a.Client().Transport.(*http.Transport).TLSClientConfig
	for range 3 {
		wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	}
	if r := a.last(t); r.ProtoMajor != 1 || len(protocols) != 0 {
		t.Errorf("%s, offered %q", r.Proto, protocols)
	}
}

func redirecting(code int, to *string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/from") {
			w.Header().Set("Location", *to)
			w.WriteHeader(code)
		}
	}
}

func TestARedirectThatKeepsTheMethodIsFollowedWithTheBody(t *testing.T) {
	for _, code := range []int{307, 308} {
		to := "../there?x=1#part"
		a := newApp(t, redirecting(code, &to))
		res := New(config.HTTP{URL: a.URL + "/from/here", Body: "{}"}, Options{}).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.Succeeded)
		if r := a.last(t); a.count() != 2 || r.Method != "POST" || a.bodies[1] != "{}" || r.RequestURI != "/there?x=1" ||
			r.Header.Get("Idempotency-Key") == "" {
			t.Errorf("%d: %d requests, the last %s %s with %q", code, a.count(), r.Method, r.RequestURI, a.bodies)
		}
	}
}

func TestAPostIsNotTurnedIntoAGet(t *testing.T) {
	for _, code := range []int{301, 302, 303} {
		to := "/login"
		a := newApp(t, redirecting(code, &to))
		res := call(t, a.URL+"/from")
		wantStatus(t, res, execute.Failed)
		if a.count() != 1 || res.Code != code || !strings.Contains(res.Err.Error(), "not followed") {
			t.Errorf("%d requests, %+v", a.count(), res)
		}
		res = New(config.HTTP{Method: "GET", URL: a.URL + "/from"}, Options{}).Execute(t.Context(), aRun())
		wantStatus(t, res, execute.Succeeded)
		if a.last(t).URL.Path != "/login" {
			t.Errorf("a GET went to %s", a.last(t).URL)
		}
	}
}

func TestARedirectThatIsASuccessCodeIsNotFollowed(t *testing.T) {
	to := "/there"
	a := newApp(t, redirecting(307, &to))
	e := New(config.HTTP{URL: a.URL + "/from", SuccessCodes: []config.CodeRange{{From: 307, To: 307}}}, Options{})
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if a.count() != 1 {
		t.Errorf("%d requests", a.count())
	}
}

func TestRedirectsComeToAnEnd(t *testing.T) {
	to := "/from"
	a := newApp(t, redirecting(307, &to))
	res := call(t, a.URL+"/from")
	wantStatus(t, res, execute.Failed)
	if a.count() != 1+maxRedirects || !strings.Contains(res.Err.Error(), "5 redirects") {
		t.Errorf("%d requests, %v", a.count(), res.Err)
	}
}

func TestARedirectToNowhereIsTheAnswer(t *testing.T) {
	for _, to := range []string{"", "ftp://127.0.0.1/", "http://", "http://%zz/", "mailto:me"} {
		a := newApp(t, redirecting(307, &to))
		res := call(t, a.URL+"/from")
		wantStatus(t, res, execute.Failed)
		if a.count() != 1 || res.Code != 307 {
			t.Errorf("to %q: %d requests, %+v", to, a.count(), res)
		}
	}
}

func TestARedirectOffThisMachineIsRefused(t *testing.T) {
	to := "http://192.0.2.1:9/"
	a := newApp(t, redirecting(307, &to))
	res := call(t, a.URL+"/from")
	wantStatus(t, res, execute.Failed)
	if !errors.Is(res.Err, errNotLoopback) || !strings.Contains(res.Err.Error(), "192.0.2.1:9") {
		t.Errorf("error %v", res.Err)
	}
}

func TestADeadRedirectMayHaveStarted(t *testing.T) {
	to := "http://" + rig.FreeAddr(t)
	a := newApp(t, redirecting(307, &to))
	res := call(t, a.URL+"/from")
	wantStatus(t, res, execute.Failed)
	if !strings.Contains(res.Err.Error(), "may have started") {
		t.Errorf("error %v", res.Err)
	}
}

func TestTheTablesHeadersDoNotFollowARedirectToAnotherServer(t *testing.T) {
	var back string
	other := newApp(t, redirecting(307, &back))
	to := other.URL + "/from"
	a := newApp(t, redirecting(307, &to))
	back = a.URL + "/back"
	e := New(config.HTTP{
		URL: a.URL + "/from", Body: "b",
		Headers: map[string]string{"Authorization": "s3cret", "X-Api-Key": "s3cret", "Cookie": "s3cret", "Host": "s3cret",
			"Content-Type": "text/csv"},
	}, Options{})
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if a.requests[0].Header.Get("X-Api-Key") != "s3cret" || a.requests[0].Host != "s3cret" {
		t.Errorf("the first request lacks the table's headers: %v", a.requests[0].Header)
	}
	for _, r := range []*http.Request{other.last(t), a.last(t)} { // also not on the way back, which another server chose
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
			if r.Header.Get(name) != "" {
				t.Errorf("%s got %s", r.RequestURI, name)
			}
		}
		if r.Host == "s3cret" || r.Header.Get("Content-Type") != "text/csv" || r.Header.Get("Solotick-Job") == "" ||
			r.Header.Get("Referer") != "" {
			t.Errorf("%s got %s %v", r.RequestURI, r.Host, r.Header)
		}
	}
}

// Out of TLS a server is another one, though its host and port are the same: whoever is on the way reads what it gets.
func TestTheTablesHeadersDoNotFollowARedirectOutOfTLS(t *testing.T) {
	plain := newApp(t, nil)
	secure := httptest.NewTLSServer(http.RedirectHandler("http://app.example/there", http.StatusTemporaryRedirect))
	defer secure.Close()
	e := New(config.HTTP{
		Method: "GET", URL: "https://app.example/from", Headers: map[string]string{"Authorization": "s3cret", "Cookie": "s3cret"},
		Sign: config.Sign{SecretFile: newFiles(t).write("secret", whsec)},
	}, Options{AllowRemote: true}).(*caller)
	e.transport.tls = secure.Client().Transport.(*http.Transport).TLSClientConfig
	e.transport.tls.ServerName = "example.com" // a name of the server's certificate
	dial := e.transport.dial
	e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dial(ctx, network, map[string]string{
			"app.example:443": secure.Listener.Addr().String(), "app.example:80": plain.Listener.Addr().String(),
		}[address])
	}
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	for _, name := range []string{"Authorization", "Cookie", "Webhook-Signature"} {
		if plain.last(t).Header.Get(name) != "" {
			t.Errorf("%s was sent in clear", name)
		}
	}
}

// The table names who gets a body; a redirect does not, beyond that host and out of TLS.
func TestABodyDoesNotFollowARedirectToAnotherHostOrOutOfTLS(t *testing.T) {
	plain := newApp(t, nil)
	to := strings.Replace(plain.URL, "127.0.0.1", "app.example", 1)
	there := newApp(t, redirecting(307, &to))
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusPermanentRedirect))
	defer secure.Close()
	for _, c := range []struct {
		from, body string
		followed   bool
	}{
		{there.URL + "/from", "s3cret", false}, {there.URL + "/from", "", true}, {secure.URL, "s3cret", false}, {secure.URL, "", true},
	} {
		e := New(config.HTTP{URL: c.from, Body: c.body}, Options{AllowRemote: true}).(*caller)
		e.transport.tls = secure.Client().Transport.(*http.Transport).TLSClientConfig
		dial := e.transport.dial
		e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, network, strings.Replace(address, "app.example", "127.0.0.1", 1))
		}
		before := plain.count()
		res := e.Execute(t.Context(), aRun())
		if followed := plain.count() > before; followed != c.followed || c.followed != (res.Status == execute.Succeeded) {
			t.Errorf("from %s with body %q: followed %t, %+v", c.from, c.body, followed, res)
		}
		if !c.followed && !strings.Contains(fmt.Sprint(res.Err), "not followed: it would send the body to another host, or from https to http") {
			t.Errorf("the error is %v", res.Err)
		}
	}
}

func TestTheTablesHeadersFollowARedirectOnTheSameServer(t *testing.T) {
	to := "/there"
	a := newApp(t, redirecting(308, &to))
	e := New(config.HTTP{URL: a.URL + "/from", Headers: map[string]string{"Authorization": "x"}}, Options{})
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if a.last(t).Header.Get("Authorization") != "x" {
		t.Error("it was dropped")
	}
}

func TestASocketsAppMayRedirectToAPort(t *testing.T) {
	a := newApp(t, nil)
	e := New(config.HTTP{URL: "http://unix:/nowhere.sock:/"}, Options{}).(*caller)
	dial := e.transport.dial
	e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if network != "unix" {
			return dial(ctx, network, address)
		}
		ours, theirs := net.Pipe()
		answer := "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + a.URL + "\r\nContent-Length: 0\r\n\r\n"
		go saying(answer)(theirs, bufio.NewReader(theirs))
		return ours, nil
	}
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if a.count() != 1 {
		t.Error("the redirect was not followed")
	}
}

// far is a connection that seems to lead to another machine.
type far struct{ net.Conn }

func (far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

// fromFar lets a transport reach app.example, which is the server there; all other names resolve to this machine.
func fromFar(t *testing.T, w *transport, there *app) {
	d := net.Dialer{ControlContext: w.control, Resolver: &net.Resolver{PreferGo: true, Dial: fakeDNS(t, "127.0.0.1")}}
	w.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "app.example:80" {
			return d.DialContext(ctx, network, address)
		}
		c, err := net.Dial("tcp", there.Listener.Addr().String())
		return far{c}, err
	}
}

func TestAnotherMachineRedirectsNobodyInward(t *testing.T) {
	inside := newApp(t, nil)
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	var to string
	there := newApp(t, redirecting(307, &to))
	out := "http://app.example/from"
	near := newApp(t, redirecting(307, &out))
	for _, to = range []string{"http://127.0.0.1:" + port, "http://localhost:" + port, "http://inward.example:" + port, "http://0.0.0.0:" + port,
		"http://169.254.169.254/latest", "http://100.100.100.200/latest"} {
		for _, first := range []string{out, near.URL + "/from"} { // also after it came from here
			e := New(config.HTTP{Method: "GET", URL: first}, Options{AllowRemote: true}).(*caller)
			fromFar(t, e.transport, there)
			res := e.Execute(t.Context(), aRun())
			wantStatus(t, res, execute.Failed)
			if !errors.Is(res.Err, errInward) {
				t.Errorf("a job, by %s to %s: %v", first, to, res.Err)
			}
			w := newTransport("", true)
			fromFar(t, w, there)
			u, _, _ := target(first)
			if _, _, err := w.post(t.Context(), u, nil, "succeeded", ""); err == nil || !strings.Contains(err.Error(), errInward.Error()) {
				t.Errorf("a ping, by %s to %s: %v", first, to, err)
			}
		}
	}
	if inside.count() != 0 {
		t.Errorf("%d requests came", inside.count())
	}
}

func TestInwardAddresses(t *testing.T) {
	w := newTransport("/run/app.sock", true)
	redirected := (&course{outside: true}).context(t.Context())
	for address, inward := range map[string]bool{
		"127.0.0.1:80": true, "127.8.9.1:80": true, "[::1]:80": true, "[::ffff:127.0.0.1]:80": true, "0.0.0.0:80": true, "[::]:80": true,
		"169.254.169.254:80": true, "[::ffff:169.254.1.1]:80": true, "[fe80::1%eth0]:80": true, "[fd00:ec2::254]:80": true, "168.63.129.16:80": true,
		"/run/app.sock": true, "10.0.0.1:80": false, "192.0.2.1:443": false, "[2001:db8::1]:80": false, "[fd00::1]:80": false,
	} {
		network := "tcp"
		if strings.HasPrefix(address, "/") {
			network = "unix"
		}
		if err := w.control(redirected, network, address, nil); (err != nil) != inward || err != nil && !errors.Is(err, errInward) {
			t.Errorf("%s: %v", address, err)
		}
		if err := w.control(t.Context(), network, address, nil); err != nil {
			t.Errorf("%s, as the table says: %v", address, err)
		}
	}
}

// A GET has no body that would keep it from being redirected out of TLS.
func TestTheTablesHeadersDoNotFollowOutOfTLS(t *testing.T) {
	plain := newApp(t, nil)
	var to string
	secure := httptest.NewTLSServer(redirecting(307, &to))
	defer secure.Close()
	to = plain.URL
	// Host and port are the same, as if one server took both.
	e := New(config.HTTP{Method: "GET", URL: "https://" + plain.Listener.Addr().String() + "/from", Headers: map[string]string{"X-Api-Key": "s3cret"}},
		Options{}).(*caller)
	e.transport.tls = secure.Client().Transport.(*http.Transport).TLSClientConfig
	calls := 0
	e.transport.dial = func(context.Context, string, string) (net.Conn, error) {
		if calls++; calls == 1 {
			return net.Dial("tcp", secure.Listener.Addr().String())
		}
		return net.Dial("tcp", plain.Listener.Addr().String())
	}
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if got := plain.last(t).Header; got.Get("X-Api-Key") != "" {
		t.Errorf("they were sent: %v", got)
	}
}
