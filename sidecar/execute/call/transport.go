package call

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/solotick/solotick/sidecar/execute"
)

const (
	// connectTimeout bounds name look-up, dial and TLS handshake together. It is short, because a replica that cannot
	// connect hands its tick to one that can.
	connectTimeout = 10 * time.Second

	// idleLimit is how long a connection may wait for the next call. It is long enough for a job of every second, and
	// shorter than the keep-alive timeouts of app servers (the shortest in wide use is 2 s). A server that closes a
	// connection at the moment of the next call makes a failure out of a healthy tick.
	idleLimit = 1500 * time.Millisecond

	maxHeader = 64 << 10 // bytes of status line and header, informational answers included

	// maxBody ends the reading of an answer that says enough by its code.
	maxBody = 1 << 20
)

var (
	errNotLoopback = errors.New("the address is not on this machine, and the job does not say allowRemote")
	errInward      = errors.New("another machine redirected the call to this one, or to a link-local or metadata one")
	errAdmin       = errors.New("the address is the replica's own admin address, which jobs may not call")
	errHeaderSize  = fmt.Errorf("the header of the answer is longer than %d KiB", maxHeader>>10)
	errHTTP2       = errors.New("the app speaks HTTP/2 alone, and jobs are called by HTTP/1.1")
	errNoAnswer    = errors.New("the connection was closed before the answer came")
)

// notSentError is a failure from before the first byte of the request was handed to the kernel. The job certainly
// never began.
type notSentError struct{ error }

func (e *notSentError) Unwrap() error { return e.error }

// answer is a whole answer; code is 0 when not even a status line came.
type answer struct {
	code   int
	from   net.Addr // who answered
	header http.Header
	head   head // of the body
	body   execute.Tail
}

// course is where a call is on its way along redirects. It has the rule for all of them: what the table gave to one
// server is for no other, also not on a way back, and a machine other than this one sends nobody inward.
type course struct {
	at      *url.URL
	foreign bool // it is, or was, at another server than at first: the table's headers stay behind
	outside bool // another machine has redirected it, and so it stays: no such call comes back to this one
}

// follow goes where an answer leads.
func (c *course) follow(a answer, next *url.URL) {
	c.foreign = c.foreign || next.Scheme != c.at.Scheme || next.Host != c.at.Host
	tcp, ok := a.from.(*net.TCPAddr)
	c.outside = ok && !tcp.IP.IsLoopback()
	c.at = next
}

// outside marks the context of a call that another machine has redirected.
type outside struct{}

func (c *course) context(ctx context.Context) context.Context {
	if c.outside {
		return context.WithValue(ctx, outside{}, true)
	}
	return ctx
}

// isInward reports whether an address is of this machine, of its link, or of the services with which clouds trust a
// machine.
func isInward(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || slices.Contains(metadata, a.WithZone(""))
}

// metadata are the addresses of such services that are not link-local: of AWS by IPv6, Azure and Alibaba.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("100.100.100.200")}

// location returns where a redirect leads that is the answer to a call of from, nil when it is none or leads nowhere.
func (a answer) location(from *url.URL) *url.URL {
	switch a.code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	location := a.header.Get("Location")
	next, err := from.Parse(location)
	if location == "" || err != nil || next.Scheme != "http" && next.Scheme != "https" || next.Hostname() == "" {
		return nil
	}
	return next
}

// transport carries the calls of one job.
type transport struct {
	*server            // that the job calls
	socket      string // path of the unix socket that plain http://localhost stands for; "" = none
	allowRemote bool
	works       bool           // the app works until its answer ends, in whose body it may report its progress
	admin       netip.AddrPort // of the replica, and not to be called; zero = none
	tls         *tls.Config    // nil = the defaults
	dial        func(ctx context.Context, network, address string) (net.Conn, error)
}

func newTransport(socket string, allowRemote bool) *transport {
	w := &transport{server: &server{}, socket: socket, allowRemote: allowRemote}
	d := &net.Dialer{ControlContext: w.control}
	if !allowRemote {
		d.KeepAlive = -1 // probes find dead networks; a loopback has none, and each probe setting is a system call
	}
	w.dial = d.DialContext
	return w
}

// showing returns a transport for one attempt, with the TLS that the table asks for; nil = for nothing. A foreign
// server does not see the certificate, and has a name of its own.
func (w *transport) showing(c *tls.Config, foreign bool) *transport {
	if c == nil {
		return w
	}
	if foreign {
		c = &tls.Config{MinVersion: c.MinVersion, RootCAs: c.RootCAs}
	}
	attempt := *w
	attempt.tls = c
	return &attempt
}

// config is the TLS of a connection to a host.
func (w *transport) config(host string) *tls.Config {
	c := w.tls.Clone()
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.ServerName == "" {
		c.ServerName = host
	}
	return c
}

// control refuses addresses that are not on this machine. It runs on each resolved address just before the connect,
// so neither a name that resolves elsewhere nor a redirect gets around it.
func (w *transport) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	switch {
	case ctx.Value(outside{}) == true && (err != nil || isInward(ap.Addr())): // a socket is of this machine, too
		return errInward
	case network == "unix":
		return nil
	case err == nil && w.isAdmin(ap):
		return errAdmin
	case w.allowRemote:
		return nil
	}
	if err != nil || !ap.Addr().IsLoopback() {
		return errNotLoopback
	}
	return nil
}

// isAdmin reports whether an address is the replica's own admin address. The unspecified address leads to this machine,
// too, and so does ::1 in any zone.
func (w *transport) isAdmin(ap netip.AddrPort) bool {
	at, own := ap.Addr().Unmap().WithZone(""), w.admin.Addr().Unmap().WithZone("")
	return w.admin.IsValid() && ap.Port() == w.admin.Port() && (at == own || at.IsUnspecified())
}

// beginning is the caller's part in the begin of a call.
type beginning struct {
	await func(context.Context) error // returns when the first byte may be sent, or why it may not
	sent  func()                      // the request, or a part of it, is on its way
}

// call writes the request once and reads the answer. When keep is set the connection may come from the last call and
// be kept for the next one. The connection is there before the moment is waited for. An error that is no unsentError
// leaves open whether the job began.
func (w *transport) call(ctx context.Context, req *http.Request, keep bool, m beginning) (answer, error) {
	req.Close = !keep
	var raw bytes.Buffer
	raw.Grow(768 + int(req.ContentLength)*9/8) // enough for most; else a body of 64 KiB takes three times that
	if err := req.Write(&raw); err != nil {
		return answer{}, &notSentError{err}
	}
	var kept, c *conn
	var err error
	if keep {
		kept = w.take()
	}
	if kept == nil {
		if c, err = w.connect(ctx, req.URL); err != nil {
			return answer{}, &notSentError{err}
		}
	}
	if err := m.await(ctx); err != nil {
		cmp.Or(kept, c).Close()
		return answer{}, &notSentError{err}
	}
	if kept != nil {
		if isIdle(kept.Conn) {
			a, err := w.exchange(ctx, kept, req, raw.Bytes(), m.sent)
			if _, unsent := errors.AsType[*notSentError](err); !unsent {
				if err != nil && a.code == 0 && ctx.Err() == nil {
					w.stopKeeping() // this app and our idleLimit do not go together
				}
				return a, err
			}
		} else {
			kept.Close()
		}
		if c, err = w.connect(ctx, req.URL); err != nil {
			return answer{}, &notSentError{err}
		}
	}
	return w.exchange(ctx, c, req, raw.Bytes(), m.sent)
}

// connect makes a connection that is ready for a request.
func (w *transport) connect(ctx context.Context, u *url.URL) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no connection within %s", connectTimeout))
	defer cancel()
	nc, err := w.dialURL(ctx, u)
	if err == nil && u.Scheme == "https" {
		tc := tls.Client(nc, w.config(u.Hostname()))
		if err = tc.HandshakeContext(ctx); err != nil {
			nc.Close()
			err = fmt.Errorf("TLS handshake with %s: %w", u.Host, err)
		}
		nc = tc
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc}
	c.r = bufio.NewReader(c)
	return c, nil
}

func (w *transport) dialURL(ctx context.Context, u *url.URL) (net.Conn, error) {
	if w.socket != "" && u.Scheme == "http" && u.Host == "localhost" {
		return w.dial(ctx, "unix", w.socket)
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	if !strings.EqualFold(u.Hostname(), "localhost") {
		return w.dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	}
	// An image from scratch has no hosts file with localhost, and no look-up is faster than a constant. An app may
	// listen on either address.
	nc, err := w.dial(ctx, "tcp", "127.0.0.1:"+port)
	if err != nil && ctx.Err() == nil {
		if nc6, err6 := w.dial(ctx, "tcp", "[::1]:"+port); err6 == nil {
			return nc6, nil
		}
	}
	return nc, err
}

// exchange sends one request and reads one answer on c, which it then keeps or closes. It writes the whole request
// before it reads: the bodies of a table are small, and fit in the buffers of a socket. It reads into raw then.
func (w *transport) exchange(ctx context.Context, c *conn, req *http.Request, raw []byte,
	sent func()) (a answer, err error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	clean := false
	defer func() {
		// stop returns false if the context has ended: then the deadline is, or will be, in the past for ever.
		if stop() && clean && !req.Close {
			w.keep(c, idleTime(a.header))
		} else {
			c.Close()
		}
	}()

	c.left = maxHeader
	n, werr := c.Write(raw)
	if werr != nil && n == 0 {
		return a, &notSentError{werr}
	}
	sent()
	// The rest of a request may be refused while the answer (413, say) is there already.
	if begin, _ := c.r.Peek(4); len(begin) == 4 && begin[0] == 0 && begin[3] == 4 { // a frame of HTTP/2, its settings
		return a, errHTTP2
	}
	resp, err := readHeader(c.r, req)
	if err != nil {
		switch {
		case c.left <= 0:
			err = errHeaderSize
		case werr != nil:
			err = werr
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			err = errNoAnswer
		}
		return a, err
	}
	c.left = math.MaxInt64
	a.code, a.from, a.header = resp.StatusCode, c.RemoteAddr(), resp.Header
	most := int64(maxBody)
	if w.works {
		most = math.MaxInt64
	}
	size, err := io.CopyBuffer(io.MultiWriter(&a.head, &a.body), io.LimitReader(resp.Body, most), raw)
	clean = err == nil && werr == nil && size < most && !resp.Close && a.code >= 200 && c.r.Buffered() == 0
	return a, err
}

// readHeader reads up to the end of the first header that is not informational.
func readHeader(r *bufio.Reader, req *http.Request) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(r, req)
		if err != nil || resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

// conn is a connection with a bound on the bytes that may be read from it.
type conn struct {
	net.Conn
	r      *bufio.Reader // reads through the bound
	left   int64
	expiry *time.Timer
}

func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeaderSize
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
