package identity

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// proxy is the proxy of this process' environment. It passes nothing on, and keeps what it was asked for.
var proxy = &refusing{}

type refusing struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func (p *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	http.Error(w, "", http.StatusForbidden)
}

// seen returns what the proxy was asked for since the last call.
func (p *refusing) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := strings.Join(p.asked, ", ")
	p.asked = nil
	return all
}

// TestMain sets the environment, which net/http reads once in a process. No proxy is asked for a loopback address.
func TestMain(m *testing.M) {
	proxy.Server = httptest.NewServer(proxy)
	for _, name := range []string{"NO_PROXY", "no_proxy", "http_proxy", "https_proxy"} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv("HTTP_PROXY", proxy.URL)
	_ = os.Setenv("HTTPS_PROXY", proxy.URL)
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

func TestOnlyWhatIsOutsideIsAskedThroughAProxy(t *testing.T) {
	e := fake(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(e.URL, "http://"), ":")
	at := "http://0.0.0.0:" + port // the same endpoint, by a name for which a proxy would be asked
	proxy.seen()
	if _, err := get(t.Context(), at+"/token", "Metadata-Flavor", "Google"); err != nil || proxy.seen() != "" {
		t.Errorf("an endpoint of the machine was asked through the proxy: %v", err)
	}
	if _, err := post(t.Context(), at+"/sts", url.Values{}); err == nil || proxy.seen() != "POST "+at+"/sts" {
		t.Errorf("an endpoint outside was not asked through the proxy: %v", err)
	}
}

func TestTheServiceOfTokensIsThatOfTheRegion(t *testing.T) {
	env := map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": tokenFile(t, canary), "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
		"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-west-1"}
	for region, want := range map[string]string{
		"":             "sts.us-west-2.amazonaws.com:443",
		"eu-central-1": "sts.eu-central-1.amazonaws.com:443",
		"cn-north-1":   "sts.cn-north-1.amazonaws.com.cn:443",
	} {
		proxy.seen()
		_, _, err := AWS{Service: "elasticache", Cluster: "billing", Region: region}.Token(t.Context(), given(env))
		if asked := proxy.seen(); err == nil || asked != "CONNECT "+want {
			t.Errorf("in region %q: %q, %v; want %s", region, asked, err, want)
		}
	}
}

func TestTheRegionOfTheTableComesBeforeThatOfTheEnvironment(t *testing.T) {
	env := given(map[string]string{"AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": canary})
	for region, want := range map[string]string{"": "us-west-2", "eu-central-1": "eu-central-1"} {
		token, _, err := AWS{Service: "elasticache", Cluster: "billing", Region: region}.Token(t.Context(), env)
		if err != nil || !strings.Contains(token, "%2F"+want+"%2Felasticache%2F") {
			t.Errorf("region %q: %v, token %s", region, err, token)
		}
	}
}

// askDirectlyThroughTheProxy replaces the client that asks endpoints of this machine: its proxy tells the address.
func askDirectlyThroughTheProxy(t *testing.T) {
	real := direct
	t.Cleanup(func() { direct = real })
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	direct = asker(http.ProxyURL(at))
}

// The endpoint of ECS has an address of its own. It comes before another one, as for the SDKs of AWS.
func TestATaskOfECSAsksItsOwnEndpoint(t *testing.T) {
	askDirectlyThroughTheProxy(t)
	proxy.seen()
	_, _, err := AWS{Service: "elasticache", Cluster: "billing", Region: "eu-central-1"}.Token(t.Context(), given(map[string]string{
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials"}))
	if asked := proxy.seen(); err == nil || asked != "GET http://169.254.170.2/v2/credentials/1" {
		t.Errorf("asked %q, %v", asked, err)
	}
}
