package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/solotick/solotick/config"
)

// ReadyOptions is what the table's ready entry does not hold.
type ReadyOptions struct {
	Version string   // for User-Agent; "" = dev
	Env     []string // environment of a command, as of os.Environ; it is told of no run, since there is none
}

// Ready asks the app whether it is ready. It is safe for concurrent use.
type Ready struct {
	timeout time.Duration
	ask     func(context.Context) error
}

// NewReady returns what asks as the table says. A question that cannot be asked makes every Probe fail.
//
// Each question has a connection of its own. One that is kept would go on answering after the app has closed its
// listener, as it does when it is about to end, while the jobs of this replica find nobody there.
func NewReady(c config.Ready, o ReadyOptions) *Ready {
	r := &Ready{timeout: cmp.Or(c.Timeout, time.Second)}
	switch {
	case c.URL != "":
		r.ask = askURL(c.URL, o)
	case c.TCP != "":
		r.ask = askTCP(c.TCP)
	default:
		r.ask = askCommand(c.Exec, o)
	}
	return r
}

// Probe asks once: nil when the app is ready. The error is one line of at most 256 bytes, without anything of the URL but
// its host, and of what the app says it has nothing but the last line of a command's output. When the answer takes
// longer than the timeout a command is killed with its process group, and Probe returns at most a second later.
func (r *Ready) Probe(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := r.ask(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil:
		return fmt.Errorf("no answer within %s", r.timeout)
	}
	return errors.New(oneLine(err.Error()))
}

// askURL makes a GET. As with Kubernetes' probes, redirects are followed as long as they stay on the same host, and one
// that leads elsewhere is an answer like any other from 200 to 399.
func askURL(raw string, o ReadyOptions) func(context.Context) error {
	first, socket, err := target(raw)
	if err != nil {
		return func(context.Context) error { return err }
	}
	w := newWire(socket, false)
	return func(ctx context.Context) error {
		u := first
		for hops := 0; ; hops++ {
			h := http.Header{"User-Agent": {agent(o.Version)}}
			if first.User != nil && u.Scheme == first.Scheme && u.Host == first.Host {
				h.Set("Authorization", basicAuth(first.User))
			}
			a, err := w.ask(ctx, http.MethodGet, u, h, "")
			if err != nil {
				return err
			}
			next := a.location(u)
			switch {
			case next != nil && hops == maxRedirects:
				return fmt.Errorf("given up after %d redirects", maxRedirects)
			case next != nil && strings.EqualFold(next.Hostname(), first.Hostname()):
				u = next
			case a.code >= 200 && a.code < 400:
				return nil
			default:
				return errors.New(strings.TrimSpace(fmt.Sprintf("it answered %d %s", a.code, http.StatusText(a.code))))
			}
		}
	}
}

func askTCP(address string) func(context.Context) error {
	w := newWire("", false)
	return func(ctx context.Context) error {
		nc, err := w.dialURL(ctx, &url.URL{Scheme: "http", Host: address})
		if err != nil {
			return err
		}
		return nc.Close()
	}
}

// askCommand kills at once what does not answer in time: it has nothing to tidy up, and the next question comes soon.
func askCommand(args []string, o ReadyOptions) func(context.Context) error {
	e := NewExec(config.Exec{Command: args}, ExecOptions{Env: o.Env}).(*command)
	e.untold = true
	e.grace = func(error) time.Duration { return 0 }
	return func(ctx context.Context) error {
		res := e.Execute(ctx, Run{})
		if res.Reason != "" {
			return fmt.Errorf("%w: %s", res.Err, res.Reason)
		}
		return res.Err
	}
}
