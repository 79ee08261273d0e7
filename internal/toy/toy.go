// Package toy has an app that does nothing: Solotick calls its jobs while one tries it out.
package toy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/solotick/solotick/internal/beat"
)

// Call is one call of a job that a toy app received.
type Call struct {
	Job, Replica, Kind string
	Tick               time.Time // zero if it was no replica that called
	Attempt            int
	Code               int // of the answer; 0 = at work, or the caller has gone
}

// App is the service of the demo, and of tables that are tried out. It answers POST /jobs/NAME, and GET /readyz.
type App struct {
	// Answer returns the answer's code, and how long the app works before it. nil means that the caller chooses:
	// ?take=2s makes the work last, ?code=503 sets the code.
	Answer func(Call) (code int, after time.Duration)
	Began  func(*Call) // told of each call before the work; nil = nobody
	Ended  func(*Call) // told of each call after the work, of the same pointer; nil = nobody
	Token  string      // if it is set, a call without `Authorization: Bearer TOKEN` gets 401
}

func (t *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/readyz" {
		fmt.Fprintln(w, "ok")
		return
	}
	name, isJob := strings.CutPrefix(r.URL.Path, "/jobs/")
	if r.Method != http.MethodPost || !isJob || name == "" {
		http.Error(w, "this is a toy app: call POST /jobs/NAME", http.StatusNotFound)
		return
	}
	if t.Token != "" && r.Header.Get("Authorization") != "Bearer "+t.Token {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	h := r.Header
	c := &Call{Job: name, Replica: h.Get("Solotick-Replica"), Kind: h.Get("Solotick-Kind")}
	c.Tick, _ = time.Parse(time.RFC3339Nano, h.Get("Solotick-Tick")) // a person with curl names no tick
	c.Attempt, _ = strconv.Atoi(h.Get("Solotick-Attempt"))
	code, after, err := t.answer(c, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if t.Began != nil {
		t.Began(c)
	}
	if beat.Sleep(r.Context(), after) {
		c.Code = code
	}
	if t.Ended != nil {
		t.Ended(c)
	}
	if c.Code != 0 {
		w.WriteHeader(c.Code)
	}
}

func (t *App) answer(c *Call, r *http.Request) (code int, after time.Duration, err error) {
	if t.Answer != nil {
		code, after = t.Answer(*c)
		return code, after, nil
	}
	code, q := http.StatusOK, r.URL.Query()
	if text := q.Get("take"); text != "" {
		if after, err = time.ParseDuration(text); err != nil {
			return 0, 0, errors.New("take is a duration: ?take=2s")
		}
	}
	if text := q.Get("code"); text != "" {
		if code, err = strconv.Atoi(text); err != nil || code < 200 || code > 599 {
			return 0, 0, errors.New("code is a status from 200 to 599: ?code=503")
		}
	}
	return code, after, nil
}

// usualApp is where the tables of the docs call an app.
const usualApp = "127.0.0.1:8080"

// appGrace is how long calls under way may take when the app is told to end.
const appGrace = 25 * time.Second

// Run serves a toy app at addr until ctx ends, and prints its calls. If addr is "", it listens at the usual address,
// or if another program has that, at any free port.
func Run(ctx context.Context, out io.Writer, addr, token string) error {
	l, err := net.Listen("tcp", cmp.Or(addr, usualApp))
	if addr == "" && errors.Is(err, syscall.EADDRINUSE) {
		fmt.Fprintf(out, "another program uses %s, so the toy app takes another port\n", usualApp)
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("serving the toy app: %w", err)
	}
	fmt.Fprintf(out, "serving the toy app: POST http://%s/jobs/NAME\n", l.Addr())
	lines := log.New(out, "", log.Ltime)
	toy := &App{Token: token, Began: func(c *Call) { lines.Print(c.began()) }, Ended: func(c *Call) {
		switch c.Code {
		case http.StatusOK:
		case 0:
			lines.Printf("%s: the caller has gone", c.Job)
		default:
			lines.Printf("%s: answered %d", c.Job, c.Code)
		}
	}}
	server := &http.Server{Handler: toy, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		bounded, cancel := context.WithTimeout(context.Background(), appGrace)
		defer cancel()
		ended <- server.Shutdown(bounded)
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the toy app: %w", err)
	}
	return <-ended
}

// began says in words that a call has begun.
func (c *Call) began() string {
	if c.Tick.IsZero() {
		return c.Job + ": called, but by no replica"
	}
	began := c.Job + ": called by replica " + c.Replica + " for the tick " + c.Tick.UTC().Format(time.RFC3339)
	if c.Attempt > 1 {
		began += fmt.Sprintf(", attempt %d", c.Attempt)
	}
	return began
}
