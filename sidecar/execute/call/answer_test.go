package call

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// rawApp answers each connection with play, which gets the parsed request's reader; it returns the URL.
func rawApp(t *testing.T, play func(c net.Conn, r *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			play(c, bufio.NewReader(c))
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// saying reads one request and answers with text.
func saying(text string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			io.Copy(io.Discard, req.Body)
			io.WriteString(c, text)
		}
	}
}

func call(t *testing.T, url string) execute.Result {
	t.Helper()
	return New(config.HTTP{URL: url}, Options{}).Execute(t.Context(), aRun())
}

// A parent that nobody has recorded would leave each trace of the app without its root, and force its sampler.
func TestACallNamesNoParentThatDoesNotExist(t *testing.T) {
	a := newApp(t, nil)
	e := New(config.HTTP{URL: a.URL, Headers: map[string]string{"traceparent": "x"}}, Options{})
	wantStatus(t, e.Execute(t.Context(), aRun()), execute.Succeeded)
	if got := a.last(t).Header["Traceparent"]; got != nil {
		t.Errorf("the app was told the parent %q", got)
	}
}

func TestTheTailOfTheAnswerIsKept(t *testing.T) {
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 20_000 {
			fmt.Fprintf(w, "line %d\n", i)
		}
	})
	res := call(t, a.URL)
	wantStatus(t, res, execute.Succeeded)
	if len(res.Output) > execute.MaxOutput || len(res.Output) < execute.MaxOutput-10 || !strings.HasSuffix(res.Output, "line 19999") {
		t.Errorf("%d bytes, ending in %q", len(res.Output), res.Output[len(res.Output)-20:])
	}
}

func TestAnAnswerIsReadToItsEndHoweverLongItIs(t *testing.T) {
	var done atomic.Bool
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.CopyN(w, endless{}, 40<<20); err != nil { // far more than the buffers of a connection hold
			t.Errorf("the app was left while it answered: %v", err)
		}
		done.Store(true)
	})
	res := call(t, a.URL)
	wantStatus(t, res, execute.Succeeded)
	if !done.Load() || len(res.Output) != execute.MaxOutput {
		t.Errorf("over, while the app was at work (%t), with %d bytes kept", !done.Load(), len(res.Output))
	}
}

func TestAnEndlessAnswerLastsUntilItsTimeout(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	url := rawApp(t, func(c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		io.CopyN(c, endless{}, 40<<20)
		cancel()
		_, err := io.Copy(c, endless{})
		ended <- err
	})
	res := New(config.HTTP{URL: url}, Options{}).Execute(ctx, aRun())
	if err := <-ended; err == nil || res.Status == execute.Succeeded || len(res.Output) != execute.MaxOutput {
		t.Errorf("%s with %d bytes kept; the app met %v", res.Status, len(res.Output), err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestAnEndlessHeaderIsCut(t *testing.T) {
	for _, begin := range []string{"HTTP/1.1 200 OK\r\nX: ", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: "} {
		url := rawApp(t, func(c net.Conn, r *bufio.Reader) {
			http.ReadRequest(r)
			io.WriteString(c, begin)
			io.Copy(c, endless{})
		})
		res := call(t, url)
		wantStatus(t, res, execute.Failed)
		if !strings.Contains(res.Err.Error(), "longer than 64 KiB") {
			t.Errorf("after %q: %v", begin, res.Err)
		}
	}
}

func TestEndlessInformationalAnswersAreCut(t *testing.T) {
	url := rawApp(t, func(c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		for {
			if _, err := io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); err != nil {
				return
			}
		}
	})
	wantStatus(t, call(t, url), execute.Failed)
}

func TestInformationalAnswersAreNotTheAnswer(t *testing.T) {
	url := rawApp(t, saying("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"+
		"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok"))
	res := call(t, url)
	wantStatus(t, res, execute.Succeeded)
	if res.Code != 202 || res.Output != "ok" {
		t.Errorf("%+v", res)
	}
}

func TestAnAnswerThatNeverComesMayHaveStarted(t *testing.T) {
	for name, text := range map[string]string{
		"closed": "", "half a line": "HTTP/1.1 200 O", "half a header": "HTTP/1.1 200 OK\r\nX: y",
	} {
		res := call(t, rawApp(t, saying(text)))
		wantStatus(t, res, execute.Failed)
		const why = "may have started: the connection was closed before the answer came"
		if res.Code != -1 || !strings.Contains(res.Err.Error(), why) {
			t.Errorf("%s: %+v", name, res)
		}
	}
	res := call(t, rawApp(t, saying("SSH-2.0-OpenSSH_9.6\r\n")))
	wantStatus(t, res, execute.Failed)
	if !strings.Contains(res.Err.Error(), "may have started") {
		t.Errorf("%v", res.Err)
	}
}

func TestAnAnswerThatBreaksOffIsNoSuccess(t *testing.T) {
	res := call(t, rawApp(t, saying("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")))
	wantStatus(t, res, execute.Failed)
	if res.Code != 200 || res.Output != "half" || !strings.Contains(res.Err.Error(), "answer 200 to its end") {
		t.Errorf("%+v", res)
	}
}

func TestAnAnswerBeforeTheBodyWasTakenCounts(t *testing.T) {
	url := rawApp(t, func(c net.Conn, r *bufio.Reader) {
		r.ReadString('\n') // the request line only
		io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, r)
	})
	res := New(config.HTTP{URL: url, Body: strings.Repeat("x", 60<<10)}, Options{}).Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Failed)
	if res.Code != 413 || res.Output != "big" {
		t.Errorf("%+v", res)
	}
}

func TestACompressedAnswerIsNotUnpacked(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 10<<20))
	z.Close()
	a := newApp(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	})
	res := call(t, a.URL)
	wantStatus(t, res, execute.Succeeded)
	if strings.Contains(res.Output, "\x00") || a.last(t).Header.Get("Accept-Encoding") != "" {
		t.Errorf("output %q", res.Output)
	}
}

func TestAHeadRequestHasAnAnswerWithoutBody(t *testing.T) {
	a := newApp(t, answering(200, "never sent"))
	res := New(config.HTTP{Method: "HEAD", URL: a.URL}, Options{}).Execute(t.Context(), aRun())
	wantStatus(t, res, execute.Succeeded)
	if res.Output != "" {
		t.Errorf("output %q", res.Output)
	}
}

func TestAnEndedContextCallsNobody(t *testing.T) {
	a := newApp(t, nil)
	ctx, cancel := contextWithCause(t)
	cancel(errLockLost)
	res := New(config.HTTP{URL: a.URL}, Options{}).Execute(ctx, aRun())
	wantCause(t, res)
	if a.count() != 0 {
		t.Error("the app was called")
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{})
	left := make(chan struct{})
	a := newApp(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done() // the connection was closed
		close(left)
	})
	ctx, cancel := contextWithCause(t)
	results := make(chan execute.Result)
	go func() { results <- New(config.HTTP{URL: a.URL}, Options{}).Execute(ctx, aRun()) }()
	<-asked
	cancel(errLockLost)
	res := <-results
	wantCause(t, res)
	if !strings.Contains(res.Err.Error(), "may still be working") {
		t.Errorf("error %v does not say so", res.Err)
	}
	<-left
}

func TestACallThatEndsInTheAnswersBodyKeepsCodeAndTail(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	url := rawApp(t, func(c net.Conn, r *bufio.Reader) {
		http.ReadRequest(r)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nstep 1")
		r.ReadByte() // until the caller has gone
	})
	e := New(config.HTTP{URL: url}, Options{}).(*caller)
	dial := e.transport.dial
	e.transport.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		return &cancelAfter{Conn: c, text: "step 1", cancel: func() { cancel(errLockLost) }}, err
	}
	res := e.Execute(ctx, aRun())
	wantCause(t, res)
	if res.Code != 200 || res.Output != "step 1" {
		t.Errorf("%+v", res)
	}
}

// cancelAfter cancels when text has been read.
type cancelAfter struct {
	net.Conn
	text   string
	cancel func()
}

func (c *cancelAfter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes.Contains(p[:n], []byte(c.text)) {
		c.cancel()
	}
	return n, err
}

func TestASilentAppIsLeftAtTheTimeoutAndNotEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, server := pipeCaller(t)
		go func() {
			c := <-server
			http.ReadRequest(bufio.NewReader(c))
			c.Read(make([]byte, 1)) // until the caller has gone
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		begin := time.Now()
		res := e.Execute(ctx, aRun())
		wantStatus(t, res, execute.Canceled)
		if d := time.Since(begin); d != 10*time.Minute {
			t.Errorf("ended after %s", d)
		}
	})
}

func TestAConnectionThatIsNotMadeInTimeIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(config.HTTP{URL: "http://127.0.0.1:8080"}, Options{}).(*caller)
		e.transport.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		begin := time.Now()
		res := e.Execute(t.Context(), aRun())
		wantStatus(t, res, execute.NotStarted)
		if d := time.Since(begin); d != connectTimeout || !strings.Contains(res.Err.Error(), "no connection within 10s") {
			t.Errorf("after %s: %v", d, res.Err)
		}
	})
}
