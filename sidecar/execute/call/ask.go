package call

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// These replace the parser's errors, which quote the other side's bytes.
var (
	errNotHTTP  = errors.New("the answer is not HTTP")
	errBrokeOff = errors.New("the answer broke off")
)

// ask is one call that runs no job, on a connection of its own. Its error names of the URL nothing but the host, and of
// the answer nothing.
func (w *transport) ask(ctx context.Context, method string, u *url.URL, h http.Header, body string) (answer, error) {
	req := newRequest(method, u, u.Host, h, body)
	a, err := w.call(ctx, req, false, beginning{await: context.Cause, sent: func() {}})
	if err == nil {
		return a, nil
	}
	_, unsent := errors.AsType[*notSentError](err)
	_, network := errors.AsType[*net.OpError](err)
	if unsent || network || errors.Is(err, errHeaderSize) || errors.Is(err, errNoAnswer) {
		return a, err
	}
	if a.code != 0 {
		return a, errBrokeOff
	}
	return a, errNotHTTP
}

// newRequest makes a request; "" is no body.
func newRequest(method string, u *url.URL, host string, h http.Header, body string) *http.Request {
	r := &http.Request{Method: method, URL: u, Host: host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	return r
}
