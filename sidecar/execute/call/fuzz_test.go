package call

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// Whatever an app answers, there is a result, it is bounded, and its text is safe to show.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"", "HTTP/1.1 200 OK\r\n\r\nbody", "HTTP/1.1 503 x\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 409 Conflict\r\n\r\n",
		"HTTP/1.1 307 x\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 101 x\r\n\r\n\x1b[31m\xff", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		e := New(config.HTTP{URL: "http://127.0.0.1:1/"}, Options{}).(*caller)
		e.transport.dial = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				go io.Copy(io.Discard, theirs)
				theirs.Write(said)
			}()
			return ours, nil
		}
		res := e.Execute(t.Context(), aRun())
		if !slices.Contains([]execute.Status{execute.Succeeded, execute.Failed, execute.Declined}, res.Status) || (res.Err == nil) != (res.Status == execute.Succeeded) {
			t.Errorf("%+v", res)
		}
		if len(res.Output) > execute.MaxOutput || !utf8.ValidString(res.Output) || res.Output != execute.Printable(res.Output) ||
			res.RetryAfter < 0 || res.RetryAfter > maxRetryAfter {
			t.Errorf("%+v", res)
		}
	})
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"http://127.0.0.1:80/x", "http://unix:/a.sock:/b", "https://[::1]/", "http://unix::", "%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, socket, err := target(raw)
		if err == nil && (u.Hostname() == "" || socket != "" && u.Host != "localhost") {
			t.Errorf("%q gives %v on socket %q", raw, u, socket)
		}
	})
}
