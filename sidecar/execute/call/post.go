package call

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
)

// mostPostRedirects is less than a job may follow: a server that has moved redirects once, and a second time to https.
const mostPostRedirects = 3

// Post sends a short text, once, to a URL that may lead anywhere. It returns the code of the answer and the time in
// its Retry-After, 0 if it has none. The request belongs to no run, carries only the text, and uses no proxy. The
// error is one line of at most 256 bytes; of the URL it names only the host.
//
// Redirects are followed with method and text. Exceptions are 303, which asks for neither, and a redirect from https to
// http, and one by another machine to this one or to its link. With more headers, of which Content-Type replaces that
// of a text, a redirect is the answer: they are for this receiver alone.
func Post(ctx context.Context, rawURL string, more http.Header,
	body, version string) (code int, again time.Duration, err error) {
	first, socket, err := target(rawURL)
	if err != nil {
		return 0, 0, err
	}
	return newTransport(socket, true).post(ctx, first, more, body, version)
}

func (w *transport) post(ctx context.Context, first *url.URL, more http.Header,
	body, version string) (code int, again time.Duration, err error) {
	c := course{at: first}
	for hops := 0; ; hops++ {
		h := http.Header{"User-Agent": {agent(version)}, "Content-Type": {"text/plain; charset=utf-8"}}
		maps.Copy(h, more)
		if first.User != nil && !c.foreign {
			h.Set("Authorization", basicAuth(first.User))
		}
		a, err := w.ask(c.context(ctx), http.MethodPost, c.at, h, body)
		if err != nil && ctx.Err() != nil {
			return 0, 0, context.Cause(ctx)
		}
		if err != nil {
			return 0, 0, errors.New(execute.OneLine(err.Error()))
		}
		next := a.location(c.at)
		if next == nil || more != nil || a.code == http.StatusSeeOther ||
			c.at.Scheme == "https" && next.Scheme == "http" {
			return a.code, retryAfter(a.header.Get("Retry-After"), time.Now()), nil
		}
		if hops == mostPostRedirects {
			return 0, 0, fmt.Errorf("given up after %d redirects", mostPostRedirects)
		}
		c.follow(a, next)
	}
}
