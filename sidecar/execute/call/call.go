package call

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
)

const (
	maxRedirects  = 5
	maxRetryAfter = 24 * time.Hour // a job must not be put off for ever by one odd answer
)

// Options are the settings that are not in the table's http entry.
type Options struct {
	AllowRemote bool           // call addresses that are not loopback
	Admin       netip.AddrPort // the replica's own admin address, which is not called, nor redirected to; zero = none
	Version     string         // for User-Agent; "" = dev
	Servers     *Servers       // shared by all jobs; nil = the job shares no connections
	Callbacks   *callback.Runs // has the runs that apps end; nil = the replica has no API, and such jobs do not begin
	Log         *slog.Logger   // hears of damaged files, without their contents; nil = discarded
}

// caller is the executor of an http job.
type caller struct {
	method    string
	url       *url.URL
	host      string      // Host header of the table; "" = that of the URL
	agent     []string    // User-Agent
	content   []string    // Content-Type of the body; nil = none
	private   http.Header // the table's other headers, which a redirect to another host does not get
	body      string
	prover    *prover
	succeeds  func(code int) bool
	keyForm   config.KeyForm
	async     *config.Async // nil = the answer ends the run
	callbacks *callback.Runs
	transport *transport
	badURL    error // the URL cannot be used
}

// New returns the executor of an http job, and prepares as much of its calls as possible. If the table's check would
// have refused the URL, every Execute fails.
//
// If the table has no Content-Type header, a body that is JSON is announced as JSON, and any other body as plain text.
//
// Redirects are followed if they keep the method: 307 and 308, for GET and HEAD also 301, 302 and 303. Any other
// redirect is the answer: a POST that becomes a GET of a login page, answered 200, is no success of the job. A
// redirect is the answer, too, if it would take a body to another host, or from https to http: the table has named
// the receiver of the body.
func New(c config.HTTP, o Options) execute.Executor {
	if len(c.SuccessCodes) == 0 {
		c.SuccessCodes = []config.CodeRange{{From: 200, To: 299}}
	}
	e := &caller{
		method:   cmp.Or(c.Method, http.MethodPost),
		agent:    []string{agent(o.Version)},
		private:  http.Header{},
		body:     c.Body,
		prover:   newProver(c, o.Log),
		succeeds: c.Succeeds,
		keyForm:  c.IdempotencyKey,
		async:    c.Async, callbacks: o.Callbacks,
	}
	var socket string
	e.url, socket, e.badURL = target(c.URL)
	if e.badURL != nil {
		return e
	}
	e.transport = newTransport(socket, o.AllowRemote)
	e.transport.works = true
	e.transport.admin = o.Admin
	if o.Servers != nil {
		e.transport.server = o.Servers.get(serverName{e.url.Host, socket, o.AllowRemote})
	}

	if e.body != "" {
		e.content = []string{"text/plain; charset=utf-8"}
		if json.Valid([]byte(e.body)) {
			e.content = []string{"application/json"}
		}
	}
	if u := e.url.User; u != nil {
		e.private.Set("Authorization", basicAuth(u))
	}
	for name, value := range c.Headers {
		reserved, _ := config.CheckHeaderName(name)
		switch name = http.CanonicalHeaderKey(name); {
		case name == "Host":
			e.host = value
		case name == "Content-Type":
			e.content = []string{value} // it belongs to the body, and goes where the body goes
		case reserved == "" && name != "Expect": // which governs the connection
			e.private.Set(name, value)
		}
	}
	return e
}

// agent is the value of User-Agent.
func agent(version string) string { return "solotick/" + cmp.Or(version, "dev") }

func basicAuth(u *url.Userinfo) string {
	password, _ := u.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password))
}

// target splits a URL of the table. For a unix socket, http://unix:/run/app.sock:/path, it returns the path of the
// socket and the URL http://localhost/path. A server behind a socket sees that URL from other clients too.
func target(raw string) (u *url.URL, socket string, err error) {
	if rest, ok := strings.CutPrefix(raw, "http://unix:"); ok {
		rest, path, _ := strings.Cut(rest, ":") // the first colon ends the socket's path, as in nginx
		if rest == "" {
			return nil, "", errors.New("the URL names no unix socket")
		}
		raw, socket = "http://localhost"+path, rest
	}
	u, err = url.Parse(raw)
	if err != nil {
		return nil, "", unparsable(err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, "", errors.New("the URL cannot be used: it must begin with http:// or https:// and a host")
	}
	return u, socket, nil
}

// unparsable says in own words why a URL cannot be parsed: the parser's repeat a part of it, which may hold a secret.
func unparsable(err error) error {
	why := "it is not a URL"
	if _, ok := errors.AsType[url.EscapeError](err); ok {
		why = "two hexadecimal digits must follow each % in it"
	} else if _, ok := errors.AsType[url.InvalidHostError](err); ok {
		why = "its host has a character that no host has"
	} else if strings.Contains(err.Error(), "invalid port") {
		why = "its port is not a number"
	}
	return errors.New("the URL cannot be used: " + why)
}

// Execute calls the app once, and once more for each redirect it asks for. A run that the app ends by itself lasts
// until then.
func (e *caller) Execute(ctx context.Context, r execute.Run) execute.Result {
	if e.badURL != nil {
		return execute.Result{Status: execute.Failed, Err: fmt.Errorf("calling the app: %w", e.badURL), Code: -1}
	}
	if ctx.Err() != nil {
		err := fmt.Errorf("calling the app: %w", context.Cause(ctx))
		return execute.Result{Status: execute.Canceled, Err: err, Code: -1}
	}
	p, err := e.prover.prove(ctx, r, e.body)
	if err != nil {
		return resultOfBroken(ctx, answer{}, err, true)
	}
	if e.async != nil {
		return e.executeAsync(ctx, r, p)
	}
	res, _ := e.send(ctx, r, p)
	return res
}

// send makes the calls of an attempt. foreign tells that the answer is of another server than the table's, to which the
// call was redirected.
func (e *caller) send(ctx context.Context, r execute.Run, p proof) (res execute.Result, foreign bool) {
	c := course{at: e.url}
	m := beginning{await: r.Wait, sent: r.Begun}
	for hops := 0; ; hops++ {
		u, foreign := c.at, c.foreign
		keep := hops == 0 && u.Scheme == "http" && e.transport.callsOften()
		req := e.request(r, u, foreign, p.headers)
		if r.Tell != nil {
			r.Tell(e.lines(r, req))
		}
		a, err := e.transport.showing(p.tls, foreign).call(c.context(ctx), req, keep, m)
		m = beginning{await: context.Cause, sent: func() {}} // a redirected call has begun before
		if err != nil {
			_, unsent := errors.AsType[*notSentError](err)
			if hops > 0 {
				// The server that redirects has got the request, and may have begun: a dead second address proves
				// nothing.
				err, unsent = fmt.Errorf("redirected to %q: %w", u.Host, err), false
			}
			return resultOfBroken(ctx, a, err, unsent), foreign
		}
		res, next := e.resultOf(a, u, time.Now()), e.redirect(a, u)
		switch {
		case next == nil:
			return res, foreign
		case e.body != "" && (u.Scheme == "https" && next.Scheme == "http" || !sameHost(e.url, next)):
			res.Err = fmt.Errorf("%w: it would send the body to another host, or from https to http", res.Err)
			return res, foreign
		case hops == maxRedirects:
			res.Err = fmt.Errorf("calling the app: given up after %d redirects", maxRedirects)
			return res, foreign
		}
		c.follow(a, next)
	}
}

// keySpace is the name space of the keys that are UUIDs. A tick keeps its key for ever, so it never changes.
var keySpace = uuid.MustParse("6f2e7b34-9d0f-4c56-8a43-0d6a1d5c7e21")

// facts are those of the run, with the key in the form that the table wants.
func (e *caller) facts(r execute.Run) []execute.Fact {
	facts := r.Facts()
	if e.keyForm == config.KeyUUID {
		for i := range facts {
			if facts[i].Header == "Idempotency-Key" {
				facts[i].Value = uuid.NewSHA1(keySpace, []byte(strings.Trim(facts[i].Value, `"`))).String()
			}
		}
	}
	return facts
}

func (e *caller) request(r execute.Run, u *url.URL, foreign bool, proof http.Header) *http.Request {
	facts := e.facts(r)
	h := make(http.Header, len(facts)+2+len(e.private)+len(proof))
	h["User-Agent"] = e.agent
	if e.content != nil {
		h["Content-Type"] = e.content
	}
	host := u.Host
	if !foreign {
		maps.Copy(h, e.private)
		maps.Copy(h, proof)
		if e.host != "" {
			host = e.host
		}
	}
	values := make([]string, len(facts)) // of all headers: one array in place of eleven
	for i, f := range facts {
		values[i] = f.Value
		h[f.Header] = values[i : i+1 : i+1]
	}
	return newRequest(e.method, u, host, h, e.body)
}

// redirect returns where the answer sends the call, nil when the answer is the last one.
func (e *caller) redirect(a answer, from *url.URL) *url.URL {
	if e.succeeds(a.code) {
		return nil
	}
	switch a.code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if e.method != http.MethodGet && e.method != http.MethodHead {
			return nil
		}
	}
	return a.location(from)
}

// sameHost reports whether two URLs name the same host. All loopback addresses are this machine.
func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) ||
		config.IsLoopback(a.Hostname()) && config.IsLoopback(b.Hostname())
}

// resultOf turns the whole answer of a URL into a result. It asks the success codes first: a table may call any answer
// a success.
func (e *caller) resultOf(a answer, from *url.URL, now time.Time) execute.Result {
	res := execute.Result{Status: execute.Failed, Code: a.code, Output: a.body.String()}
	said := strings.TrimSpace(fmt.Sprintf("the app answered %d %s", a.code, http.StatusText(a.code)))
	switch {
	case e.succeeds(a.code):
		res.Status = execute.Succeeded
		return res
	case a.code == http.StatusConflict:
		res.Status = execute.Declined
		said += ": it runs already"
	case a.code >= 400:
		if res.RetryAfter = retryAfter(a.header.Get("Retry-After"), now); res.RetryAfter > 0 {
			said += fmt.Sprintf(": to be asked again in %s", res.RetryAfter)
		}
	case a.code >= 300 && a.code < 400 && a.header.Get("Location") != "":
		leads := ""
		if next := a.location(from); next != nil && sameHost(e.url, next) { // mostly it differs by a slash
			leads = " to " + next.EscapedPath()
		}
		said += ": this redirect" + leads + " is not followed"
	}
	res.Err, res.Reason = errors.New(said), a.reason()
	return res
}

// retryAfter reads a Retry-After header, in seconds or as a date. It returns the rest of that time at now, 0 for none.
func retryAfter(s string, now time.Time) time.Duration {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return time.Duration(min(n, uint64(maxRetryAfter/time.Second))) * time.Second
	} else if errors.Is(err, strconv.ErrRange) {
		return maxRetryAfter
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// resultOfBroken turns a call without a whole answer into a result.
func resultOfBroken(ctx context.Context, a answer, err error, unsent bool) execute.Result {
	res := execute.Result{Status: execute.Failed, Code: cmp.Or(a.code, -1), Output: a.body.String(), Reason: a.reason()}
	switch {
	case ctx.Err() != nil:
		res.Status = execute.Canceled
		err = context.Cause(ctx)
	case errors.Is(err, errNotLoopback), errors.Is(err, errAdmin):
		// Never begun, but no other replica would fare better: not a case for a handover.
	case unsent:
		res.Status = execute.NotStarted
	}
	switch {
	case unsent:
		res.Err = fmt.Errorf("calling the app: %w", err)
	case a.code != 0:
		res.Err = fmt.Errorf("reading the app's answer %d to its end: %w", a.code, err)
	case ctx.Err() != nil:
		res.Err = fmt.Errorf("%w; the app may still be working on it", err)
	default:
		res.Err = fmt.Errorf("calling the app: it may have started: %w", err)
	}
	return res
}

// The headers by which the app learns where and how it reports.
const (
	callbackHeader  = "Solotick-Callback"       // URL, to which the app adds /heartbeat or /finish
	tokenHeader     = "Solotick-Callback-Token" // for Authorization: Bearer
	heartbeatHeader = "Solotick-Heartbeat"      // seconds
)

var errNoAPI = errors.New("the app cannot report: this replica was started without an admin address")

// executeAsync calls the app for an attempt of a run that it may end by itself. callbacks.Execute waits for the end.
func (e *caller) executeAsync(ctx context.Context, r execute.Run, p proof) execute.Result {
	if e.callbacks == nil {
		return execute.Result{Status: execute.NotStarted, Err: errNoAPI, Code: -1}
	}
	return e.callbacks.Execute(ctx, r, e.async, func(c *callback.Call) (execute.Result, bool) {
		return e.send(ctx, r, p.with(c))
	})
}

// with adds the headers of a call to a proof: no other server gets them.
func (p proof) with(c *callback.Call) proof {
	h := p.headers.Clone()
	h[callbackHeader] = []string{c.URL()}
	h[tokenHeader] = []string{c.Token()}
	h[heartbeatHeader] = []string{strconv.FormatFloat(c.Heartbeat.Seconds(), 'f', -1, 64)}
	p.headers = h
	return p
}
