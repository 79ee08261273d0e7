// Package identity gets tokens for a Redis from the cloud that this process runs in: AWS, Google or Azure. It uses what
// the cloud gives to a process, an environment, files and an endpoint without a password, and nothing of it is kept.
// A token is a secret: no error repeats one, nor anything else that an endpoint answered, except its code of an error.
package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/file"
)

// Environment are the variables of this process, as of os.Getenv.
type Environment func(name string) string

// need returns variables that the cloud must have set.
func (env Environment) need(names ...string) ([]string, error) {
	values := make([]string, len(names))
	for i, name := range names {
		if values[i] = env(name); values[i] == "" {
			return nil, fmt.Errorf("the variable %s is not set", name)
		}
	}
	return values, nil
}

// maxAnswer bounds an answer, and a file with a token.
const maxAnswer = 64 << 10

// direct and proxied ask endpoints. Those on this machine or its network are never asked through a proxy. Connections
// are not kept: minutes pass between two questions. A redirect would carry a token to another host.
var direct, proxied = asker(nil), asker(http.ProxyFromEnvironment)

func asker(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: proxy, DisableKeepAlives: true},
		CheckRedirect: FollowNone,
	}
}

// FollowNone is the CheckRedirect of clients that send what is for one server alone.
func FollowNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// get asks an endpoint. It sends the header if that has a value.
func get(ctx context.Context, at, header, value string) ([]byte, error) {
	return ask(ctx, direct, http.MethodGet, at, header, value, "")
}

// post sends a form to an endpoint.
func post(ctx context.Context, at string, form url.Values) ([]byte, error) {
	return ask(ctx, proxied, http.MethodPost, at, "Content-Type", "application/x-www-form-urlencoded", form.Encode())
}

func ask(ctx context.Context, client *http.Client, method, at, header, value, text string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(text))
	if err != nil {
		return nil, errors.New("the endpoint in the environment is no URL")
	}
	if value != "" {
		r.Header.Set(header, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", r.URL.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		code := ""
		if m := errorCode.FindSubmatch(body); m != nil {
			code = ": " + string(m[1])
		}
		return nil, fmt.Errorf("%s answers with code %d%s", r.URL.Host, resp.StatusCode, code)
	}
	return body, nil
}

// errorCode finds the code of an error in the answers of the three clouds: "error": "invalid_client",
// <Code>AccessDenied</Code>.
var errorCode = regexp.MustCompile(`(?:"(?:error|code)"\s*:\s*"|<Code>)([A-Za-z_]{1,60})["<]`)

// oauth reads an answer with an access token, unless there is none. The token is got again when half of its life is
// over.
func oauth(body []byte, noAnswer error) (token string, again time.Duration, err error) {
	if noAnswer != nil {
		return "", 0, noAnswer
	}
	var a struct {
		Token   string  `json:"access_token"`
		Expires float64 `json:"expires_in"` // seconds
	}
	if json.Unmarshal(body, &a) != nil || a.Token == "" {
		return "", 0, errors.New("the answer has no access token")
	}
	return a.Token, max(time.Duration(a.Expires/2*float64(time.Second)), 10*time.Second), nil
}

// readToken reads a file with a token.
func readToken(path string) (string, error) {
	data, _, err := file.Read(path, maxAnswer)
	return strings.TrimSpace(string(data)), err
}
