package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// canary is in all that an endpoint answers and a process is given, and in no error.
const canary = "c4nary"

// endpoint answers each request, and keeps what the last one was.
type endpoint struct {
	*httptest.Server
	asked string // method, path, headers that count, form
	code  int
	body  string
}

func fake(t *testing.T) *endpoint {
	e := &endpoint{code: http.StatusOK}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		e.asked = fmt.Sprintf("%s %s %s%s %s", r.Method, r.URL, r.Header.Get("Metadata-Flavor"), r.Header.Get("Authorization"), r.PostForm.Encode())
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(e.code)
		_, _ = w.Write([]byte(e.body))
	}))
	t.Cleanup(e.Close)
	return e
}

// given returns an environment.
func given(variables map[string]string) Environment {
	return func(name string) string { return variables[name] }
}

// file writes a file with a token, and returns its name.
func tokenFile(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// source gets a token from a fake endpoint.
type source func(ctx context.Context, at string) (string, time.Duration, error)

// sources are the ways to a token that ask an endpoint, with an answer of it and what it must be asked.
func sources(t *testing.T) map[string]struct {
	get         source
	body, asked string
	again       time.Duration
} {
	token := tokenFile(t, canary+"\n")
	cache := AWS{Service: "elasticache", Cluster: "billing", User: "solotick", Region: "eu-central-1"}
	const keys = `{"AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "` + canary + `", "Token": "` + canary + `"}`
	const oauth = `{"access_token": "` + canary + `", "expires_in": 3600}`
	aws := func(variables func(at string) map[string]string) source {
		return func(ctx context.Context, at string) (string, time.Duration, error) {
			return cache.Token(ctx, given(variables(at)))
		}
	}
	return map[string]struct {
		get         source
		body, asked string
		again       time.Duration
	}{
		"google": {func(ctx context.Context, at string) (string, time.Duration, error) {
			return Google(ctx, given(map[string]string{"GCE_METADATA_HOST": strings.TrimPrefix(at, "http://")}))
		}, oauth, "GET /computeMetadata/v1/instance/service-accounts/default/token Google ", 30 * time.Minute},
		"azure": {func(ctx context.Context, at string) (string, time.Duration, error) {
			return Azure(ctx, given(map[string]string{"AZURE_AUTHORITY_HOST": at + "/", "AZURE_TENANT_ID": "tenant", "AZURE_CLIENT_ID": "client",
				"AZURE_FEDERATED_TOKEN_FILE": token}))
		}, oauth, "POST /tenant/oauth2/v2.0/token  client_assertion=" + canary + "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3A" +
			"client-assertion-type%3Ajwt-bearer&client_id=client&grant_type=client_credentials&scope=https%3A%2F%2Fredis.azure.com%2F.default",
			30 * time.Minute},
		"aws by a web identity": {aws(func(at string) map[string]string {
			return map[string]string{"AWS_ENDPOINT_URL_STS": at, "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r"}
		}), "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKIDEXAMPLE</AccessKeyId>\n" +
			"<SecretAccessKey>" + canary + "</SecretAccessKey><SessionToken>" + canary + "</SessionToken></Credentials>",
			"POST /  Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=solotick&Version=2011-06-15&" +
				"WebIdentityToken=" + canary, awsAgain},
		"aws by a container's endpoint": {aws(func(at string) map[string]string {
			return map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": at + "/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token}
		}), keys, "GET /v1/credentials " + canary + " ", awsAgain},
	}
}

func TestTokensComeFromTheEndpointsOfTheClouds(t *testing.T) {
	for name, s := range sources(t) {
		e := fake(t)
		e.body = s.body
		token, again, err := s.get(t.Context(), e.URL)
		if err != nil || e.asked != s.asked || again != s.again {
			t.Errorf("%s: %v, again after %s; asked\n%s, want\n%s", name, err, again, e.asked, s.asked)
		}
		if !strings.HasPrefix(name, "aws") && token != canary {
			t.Errorf("%s: token %q", name, token)
		}
		if strings.HasPrefix(name, "aws") && (!strings.Contains(token, "X-Amz-Security-Token="+canary) || !strings.Contains(token, "AKIDEXAMPLE%2F")) {
			t.Errorf("%s: token %q", name, token)
		}
	}
}

func TestAnEndpointWithoutATokenIsAnErrorThatRepeatsNothing(t *testing.T) {
	for name, s := range sources(t) {
		e := fake(t)
		for _, answer := range []struct {
			code int
			body string
			says string
		}{
			{http.StatusOK, "", ""}, {http.StatusOK, canary, ""}, {http.StatusOK, `{"token": "` + canary + `"}`, ""},
			{http.StatusOK, strings.Repeat(canary, 20_000), ""},
			{http.StatusForbidden, `{"error": "invalid_client", "error_description": "` + canary + `"}`, "code 403: invalid_client"},
			{http.StatusForbidden, "<Error><Code>AccessDenied</Code><Message>" + canary + "</Message>", "code 403: AccessDenied"},
			{http.StatusFound, canary, "code 302"},
		} {
			e.code, e.body = answer.code, answer.body
			token, _, err := s.get(t.Context(), e.URL)
			if token != "" || err == nil || !strings.Contains(err.Error(), answer.says) || strings.Contains(err.Error(), canary) {
				t.Errorf("%s, %d %.60s: %q, %v", name, answer.code, answer.body, token, err)
			}
			if strings.Contains(e.asked, "elsewhere") {
				t.Errorf("%s: a redirect was followed", name)
			}
		}
	}
}

func TestAnEndpointThatHangsIsGivenUp(t *testing.T) {
	hang := make(chan struct{})
	e := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer e.Close()
	defer close(hang)
	for name, s := range sources(t) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if token, _, err := s.get(ctx, e.URL); token != "" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %q, %v", name, token, err)
		}
		cancel()
	}
}

func TestAProcessWithoutAnIdentityIsToldWhichVariableIsMissing(t *testing.T) {
	cache := AWS{Service: "elasticache", Cluster: "billing", User: "solotick"}
	for says, get := range map[string]func() (string, time.Duration, error){
		"AWS_REGION": func() (string, time.Duration, error) { return cache.Token(t.Context(), given(nil)) },
		"AWS_WEB_IDENTITY_TOKEN_FILE": func() (string, time.Duration, error) {
			return cache.Token(t.Context(), given(map[string]string{"AWS_REGION": "eu-central-1"}))
		},
		"AWS_ROLE_ARN": func() (string, time.Duration, error) {
			return cache.Token(t.Context(), given(map[string]string{"AWS_DEFAULT_REGION": "eu-central-1", "AWS_WEB_IDENTITY_TOKEN_FILE": "/t"}))
		},
		"lack a key": func() (string, time.Duration, error) {
			return cache.Token(t.Context(), given(map[string]string{"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": canary}))
		},
		"AZURE_TENANT_ID": func() (string, time.Duration, error) { return Azure(t.Context(), given(nil)) },
		"/no/such/file": func() (string, time.Duration, error) {
			return Azure(t.Context(), given(map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_FEDERATED_TOKEN_FILE": "/no/such/file"}))
		},
	} {
		if token, _, err := get(); token != "" || err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %q, %v", says, token, err)
		}
	}
}

func TestATokenIsGotAgainWhenHalfOfItsLifeIsOver(t *testing.T) {
	for expires, want := range map[string]time.Duration{"3600": 30 * time.Minute, "21": 10500 * time.Millisecond, "20": 10 * time.Second,
		"4": 10 * time.Second, "0": 10 * time.Second, "-60": 10 * time.Second} {
		token, again, err := oauth([]byte(`{"access_token": "`+canary+`", "expires_in": `+expires+`}`), nil)
		if token != canary || again != want || err != nil {
			t.Errorf("expires in %s s: again after %s, %v; want %s", expires, again, err, want)
		}
	}
}

// The addresses of the clouds themselves are asked for at a proxy, which refuses.
func TestWithoutAVariableTheCloudsOwnEndpointIsAsked(t *testing.T) {
	askDirectlyThroughTheProxy(t)
	token := tokenFile(t, canary)
	for want, get := range map[string]source{
		"GET http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token": func(ctx context.Context, _ string) (
			string, time.Duration, error) {
			return Google(ctx, given(nil))
		},
		"CONNECT login.microsoftonline.com:443": func(ctx context.Context, _ string) (string, time.Duration, error) {
			return Azure(ctx, given(map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_FEDERATED_TOKEN_FILE": token}))
		},
	} {
		proxy.seen()
		if _, _, err := get(t.Context(), ""); err == nil || proxy.seen() != want {
			t.Errorf("not asked for %s: %v", want, err)
		}
	}
}

func TestATenantIsOnePartOfThePath(t *testing.T) {
	e := fake(t)
	e.code = http.StatusForbidden
	_, _, err := Azure(t.Context(), given(map[string]string{"AZURE_AUTHORITY_HOST": e.URL, "AZURE_TENANT_ID": "../a?b", "AZURE_CLIENT_ID": "c",
		"AZURE_FEDERATED_TOKEN_FILE": tokenFile(t, canary)}))
	if err == nil || !strings.HasPrefix(e.asked, "POST /..%2Fa%3Fb/oauth2/v2.0/token ") {
		t.Errorf("asked %s, %v", e.asked, err)
	}
}

func TestAnAnswerIsReadUpTo64KiB(t *testing.T) {
	for size, good := range map[int]bool{maxAnswer: true, maxAnswer + 1: false} {
		e := fake(t)
		e.body = fmt.Sprintf(`{"pad": "%s", "access_token": "t"}`, strings.Repeat("x", size-len(`{"pad": "", "access_token": "t"}`)))
		token, _, err := Google(t.Context(), given(map[string]string{"GCE_METADATA_HOST": strings.TrimPrefix(e.URL, "http://")}))
		if (err == nil) != good || (token == "t") != good {
			t.Errorf("an answer of %d bytes: %q, %v", len(e.body), token, err)
		}
	}
}

// Minutes pass between two questions.
func TestNoConnectionToAnEndpointIsKept(t *testing.T) {
	var opened atomic.Int64
	e := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	e.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	e.Start()
	defer e.Close()
	for range 3 {
		if _, err := get(t.Context(), e.URL, "", ""); err != nil {
			t.Error(err)
		}
	}
	if n := opened.Load(); n != 3 {
		t.Errorf("%d connections for three questions", n)
	}
}
