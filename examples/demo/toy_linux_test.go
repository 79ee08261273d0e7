package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// byHand calls a job of a toy app by hand, and returns the code of the answer; 0 = there was none.
func byHand(t *testing.T, url string, header ...string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := (&http.Client{Timeout: patience}).Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func TestTheToyAppPrintsItsCalls(t *testing.T) {
	t.Parallel()
	d := begin(t, solotick(t), "toy-app", "--listen", "127.0.0.1:0")
	app := d.await(`^serving the toy app: POST (http://127\.0\.0\.1:\d+)/jobs/NAME$`)[0]
	if text := fetch(t, app+"/readyz"); text != "ok\n" {
		t.Errorf("/readyz says %q", text)
	}
	table := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(table, []byte(`
service: toy
redis: {url: "`+redistest.Start(t).URL()+`"}
listen: ""
admin: ""
jobs:
  - {name: hello, schedule: "@every 1s", http: {url: "`+app+`/jobs/hello"}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := begin(t, solotick(t), "run", "-c", table, "--replica", "one")
	d.await(`^\d\d:\d\d:\d\d hello: called by replica one for the tick 20\S+Z$`)
	r.await(`msg=finished .*job=hello .*outcome=succeeded .*code=200`)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	r.end(0)

	for _, c := range []struct {
		path string
		code int
		says string
	}{
		{"/jobs/a", 200, `a: called, but by no replica$`},
		{"/jobs/b?code=503", 503, `b: answered 503$`},
		{"/jobs/c?take=1ms&code=204", 204, `c: answered 204$`},
		{"/jobs/d?take=soon", 400, ""},
		{"/jobs/d?code=100", 400, ""},
		{"/jobs/", 404, ""},
		{"/", 404, ""},
	} {
		if code := byHand(t, app+c.path); code != c.code {
			t.Errorf("%s: answered %d, want %d", c.path, code, c.code)
		}
		if c.says != "" {
			d.await(c.says)
		}
	}

	// It ends the calls under way, and then itself.
	over := make(chan int, 1)
	go func() { over <- byHand(t, app+"/jobs/long?take=700ms") }()
	d.await(`long: called`)
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := <-over; code != http.StatusOK {
		t.Errorf("the call under way was answered %d", code)
	}
	d.end(0)
}

func TestTheToyAppSaysThatItsCallerHasGone(t *testing.T) {
	t.Parallel()
	d := begin(t, solotick(t), "toy-app", "--listen", "127.0.0.1:0", "--token", "secret")
	app := d.await(`POST (\S+)/jobs/NAME$`)[0]
	if code := byHand(t, app+"/jobs/a"); code != http.StatusUnauthorized {
		t.Errorf("without the token: %d", code)
	}
	if code := byHand(t, app+"/jobs/a", "Authorization", "Bearer secret"); code != http.StatusOK {
		t.Errorf("with the token: %d", code)
	}
	d.await(`a: called`)
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(app, "http://"), patience)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "POST /jobs/b?take=1h HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nContent-Length: 0\r\n\r\n")
	d.await(`b: called`)
	c.Close()
	d.await(`b: the caller has gone$`)
	_ = d.cmd.Process.Signal(syscall.SIGINT)
	d.end(0)
}

func TestATakenPortStopsTheToyAppOnlyIfItWasAskedFor(t *testing.T) {
	t.Parallel()
	usual, err := net.Listen("tcp", "127.0.0.1:8080")
	if err == nil {
		defer usual.Close()
	} // otherwise another program has it
	d := begin(t, solotick(t), "toy-app")
	d.await(`^another program uses 127\.0\.0\.1:8080, so the toy app takes another port$`)
	app := d.await(`^serving the toy app: POST (\S+)/jobs/NAME$`)[0]
	if code := byHand(t, app+"/jobs/a"); code != http.StatusOK {
		t.Errorf("it answers %d", code)
	}
	other := begin(t, solotick(t), "toy-app", "--listen", strings.TrimPrefix(app, "http://"))
	other.await(`^error: serving the toy app: .*address already in use$`)
	other.await(`^hint: solotick toy-app --listen 127.0.0.1:0$`)
	other.end(3)
	_ = d.cmd.Process.Signal(syscall.SIGINT)
	d.end(0)
}
