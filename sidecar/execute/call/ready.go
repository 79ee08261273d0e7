package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// NewReady returns a Ready that asks the app as the table says, by a request or by a mere connection. If the URL
// cannot be used, every Probe fails. An error names only the host of the URL, and nothing of the app's answer.
// version is for User-Agent; "" = dev.
//
// Each question has a connection of its own. An app that is about to end closes its listener first. A kept connection
// would still answer then, while the jobs of this replica could not connect.
func NewReady(c config.Ready, version string) *execute.Ready {
	if c.URL != "" {
		return &execute.Ready{Timeout: c.Timeout, Ask: askURL(c.URL, version)}
	}
	return &execute.Ready{Timeout: c.Timeout, Ask: askTCP(c.TCP)}
}

// askURL makes a GET. As with Kubernetes' probes, it follows redirects as long as they stay on the same host. A
// redirect elsewhere is an answer like any other from 200 to 399.
func askURL(raw string, version string) func(context.Context) error {
	first, socket, err := target(raw)
	if err != nil {
		return func(context.Context) error { return err }
	}
	w := newTransport(socket, false)
	return func(ctx context.Context) error {
		c := course{at: first}
		for hops := 0; ; hops++ {
			h := http.Header{"User-Agent": {agent(version)}}
			if first.User != nil && !c.foreign {
				h.Set("Authorization", basicAuth(first.User))
			}
			a, err := w.ask(c.context(ctx), http.MethodGet, c.at, h, "")
			if err != nil {
				return err
			}
			next := a.location(c.at)
			switch {
			case next != nil && hops == maxRedirects:
				return fmt.Errorf("given up after %d redirects", maxRedirects)
			case next != nil && strings.EqualFold(next.Hostname(), first.Hostname()):
				c.follow(a, next)
			case a.code >= 200 && a.code < 400:
				return nil
			default:
				return errors.New(strings.TrimSpace(fmt.Sprintf("it answered %d %s", a.code, http.StatusText(a.code))))
			}
		}
	}
}

func askTCP(address string) func(context.Context) error {
	w := newTransport("", false)
	return func(ctx context.Context) error {
		nc, err := w.dialURL(ctx, &url.URL{Scheme: "http", Host: address})
		if err != nil {
			return err
		}
		return nc.Close()
	}
}
