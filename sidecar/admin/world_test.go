package admin

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

const someTable = `
service: billing
jobs:
  - {name: send-invoices, schedule: "0 9 * * *", timeZone: Europe/Berlin, exec: {command: ["true"]}}
  - {name: reports, schedule: "*/5 * * * *", exec: {command: ["true"]}}
  - {name: new-one, schedule: "0 3 * * *", exec: {command: ["true"]}}
  - {name: warm-cache, schedule: "@hourly", guarantee: every-replica, exec: {command: ["true"]}}
`

// world is an API with everything that it needs. Redis' clock stands still on a morning.
type world struct {
	t     testing.TB
	mini  *miniredis.Miniredis
	store *service.Store
	api   http.Handler
	drain func(context.Context) error
	grant func(job string, tick time.Time) (view.Granted, error) // nil: there is no such job
	table *config.Table
	calls *callback.Runs

	random   bool          // its requests are
	patience time.Duration // of who asks; 0 = without end
	idle     error
	trouble  *view.Trouble
	own      map[string]service.Ledger
	reads    func() // is called when the API asks for the table; nil = nothing is
}

var morning = time.Date(2027, 3, 28, 7, 20, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, mini: miniredis.RunT(t), drain: func(context.Context) error { return nil }}
	w.mini.SetTime(morning.Add(-time.Hour))
	rdb := lock.NewClient(redis.UniversalOptions{Addrs: []string{w.mini.Addr()}}, 10*time.Second)
	t.Cleanup(func() { _ = rdb.Close() })
	var err error
	if w.store, err = service.New(rdb, "billing", lock.Options{Timeout: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if w.table, err = config.Parse("table.yaml", []byte(someTable), func(string) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"send-invoices", "reports", service.TimerJobs} {
		if _, err := w.store.Locks.Register(t.Context(), job, ""); err != nil {
			t.Fatal(err)
		}
	}
	w.mini.SetTime(morning)
	if err := w.store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.calls = callback.New("127.0.0.1:9748")
	w.api = API(Options{Replica: w, Name: "app-1", Store: w.store, Callbacks: w.calls, Log: slog.New(slog.DiscardHandler)})
	return w
}

func (w *world) Table() *config.Table {
	if w.reads != nil {
		w.reads()
	}
	return w.table
}
func (w *world) Drain(ctx context.Context) error { return w.drain(ctx) }
func (w *world) Ask(_ context.Context, job string, tick time.Time, _ callback.Executor) (view.Granted, error) {
	if w.grant == nil {
		return view.Granted{}, &service.Refusal{Kind: service.NoJob}
	}
	return w.grant(job, tick)
}
func (w *world) WhyIdle() error              { return w.idle }
func (w *world) RedisTrouble() *view.Trouble { return w.trouble }
func (w *world) OwnRuns(job string) service.Ledger {
	return w.own[job]
}

// ran plays a run of a job, for the tick at the given minute of the morning.
func (w *world) ran(job string, minute int, e service.Entry) {
	w.t.Helper()
	tick := morning.Add(time.Duration(minute) * time.Minute)
	w.mini.SetTime(tick)
	l, a, err := w.store.Locks.Acquire(w.t.Context(), lock.Claim{Job: job, Tick: tick, Replica: "app-2", TTL: 15 * time.Second})
	if err != nil || l == nil {
		w.t.Fatalf("acquiring %s: %+v, %v", job, a, err)
	}
	e.Job, e.Tick, e.Run, e.Replica, e.Kind = job, tick, l.Run(), "app-2", "schedule"
	e.Attempt, e.Ended = 1, tick
	if _, err := l.Finish(w.t.Context(), 0, e.Ending()); err != nil {
		w.t.Fatal(err)
	}
}

// runs has a run of a job go on.
func (w *world) runs(job, run string) *lock.Lease {
	w.t.Helper()
	l, a, err := w.store.Locks.Acquire(w.t.Context(), lock.Claim{Job: job, Tick: morning, Run: run, Policy: lock.Allow, Replica: "app-2", TTL: 15 * time.Second})
	if err != nil || l == nil {
		w.t.Fatalf("acquiring %s: %+v, %v", job, a, err)
	}
	return l
}

// ask asks the API as curl would. A header without a value is left out.
func (w *world) ask(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost:9748"
	if w.patience > 0 {
		ctx, end := context.WithTimeout(r.Context(), w.patience)
		defer end()
		r = r.WithContext(ctx)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	out := httptest.NewRecorder()
	w.api.ServeHTTP(out, r)
	if err := description(w.t).declares(r, out, w.random); err != nil {
		w.t.Errorf("%s %s %q: %v\n%s", method, target, body, err, out.Body)
	}
	return out
}

// says checks status and body of an answer; the body is compared as JSON.
func (w *world) says(got *httptest.ResponseRecorder, status int, body string) {
	w.t.Helper()
	text, _ := io.ReadAll(got.Body)
	if got.Code != status || !sameJSON(w.t, text, body) {
		w.t.Errorf("answered %d %s\nwant %d %s", got.Code, text, status, body)
	}
}

// refuses checks the status of a refusal and that its error has the words.
func (w *world) refuses(got *httptest.ResponseRecorder, status int, words string) {
	w.t.Helper()
	text := got.Body.String()
	if !strings.Contains(text, words) || got.Code != status || !strings.HasPrefix(text, `{"error":"`) {
		w.t.Errorf("answered %d %s\nwant %d with %q", got.Code, text, status, words)
	}
}

func sameJSON(t testing.TB, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if json.Unmarshal(got, &a) != nil {
		return false
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}
