package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/callback"
	"github.com/solotick/solotick/sidecar/execute"
	"github.com/solotick/solotick/sidecar/service"
	"github.com/solotick/solotick/sidecar/view"
)

const someRun = "5e4d3c2b-1a09-4f8e-8d7c-6b5a49382705"

// reported are the two routes on which apps report, with a body that each takes.
var reported = map[string]string{"heartbeat": "", "finish": `{"outcome": "succeeded"}`}

// open has a run that its app ends by itself.
func (w *world) open(run string, lasts func(time.Duration) bool) *callback.Call {
	c := w.calls.Open(run, 5*time.Second, lasts)
	w.t.Cleanup(c.Close)
	return c
}

// token opens a run, and returns the token of its app.
func (w *world) token(run string) string { return w.open(run, nil).Token() }

// report sends a report of a run as its app would.
func (w *world) report(run, token, route, body string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	return w.ask("POST", "/v1/runs/"+run+"/"+route, body, append([]string{"Authorization", "Bearer " + token}, headers...)...)
}

func TestAnAppReportsWithItsTokenAndNeedsNoRedis(t *testing.T) {
	w := newWorld(t)
	w.mini.SetError("LOADING Redis is loading the dataset in memory")
	for outcome, want := range map[string]callback.Report{"succeeded": {Outcome: callback.Succeeded, Detail: "7 rows"},
		"failed": {Outcome: callback.Failed, Detail: "7 rows"}, "interrupted": {Outcome: callback.Interrupted, Detail: "7 rows"}} {
		c := w.open(someRun, nil)
		for _, body := range []string{"", "{}"} {
			w.says(w.report(someRun, c.Token(), "heartbeat", body), 200, `{"run": "`+someRun+`", "heartbeatMs": 5000}`)
		}
		w.says(w.report(someRun, c.Token(), "finish", `{"outcome": "`+outcome+`", "detail": "7 rows"}`), 200, `{"run": "`+someRun+`", "outcome": "`+outcome+`"}`)
		if got, err := c.Wait(t.Context()); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestAnAppAsksForATick(t *testing.T) {
	w := newWorld(t)
	asked := ""
	answer := func(g view.Granted, err error) {
		w.grant = func(job string, tick time.Time) (view.Granted, error) {
			asked = job + " " + view.Stamp(tick)
			return g, err
		}
	}
	const path = "/v1/jobs/reports/ticks/2027-03-28T09:20:00%2B02:00"
	answer(view.NewGranted(execute.Run{Job: "reports", Tick: morning, ID: someRun, Token: 7, Since: morning.Add(-time.Hour)}, "secret", 5*time.Second), nil)
	for _, body := range []string{"", "{}"} {
		w.says(w.ask("POST", path, body), 200, `{"job": "reports", "tick": "2027-03-28T07:20:00.000Z", "run": "`+someRun+`", "token": "secret",
			"fencingToken": 7, "heartbeatMs": 5000, "since": "2027-03-28T06:20:00.000Z"}`)
	}
	if asked != "reports 2027-03-28T07:20:00.000Z" {
		t.Errorf("asked for %q", asked)
	}
	if w.ask("POST", "/v1/jobs/reports/ticks/now", ""); asked != "reports " {
		t.Errorf("asked for %q", asked)
	}
	w.refuses(w.ask("POST", "/v1/jobs/reports/ticks/noon", ""), 400, "not a time as in RFC 3339")
	answer(view.Granted{}, &view.NotGranted{Reason: "fired_elsewhere", By: "app-2"})
	w.says(w.ask("POST", path, ""), 409, `{"error": "the tick is not for this app: fired elsewhere, by app-2", "reason": "fired_elsewhere", "by": "app-2"}`)
	answer(view.Granted{}, &view.NotGranted{Reason: "redis_error", Unknown: true})
	w.says(w.ask("POST", path, ""), 503, `{"error": "the tick is not for this app: redis error", "reason": "redis_error"}`)
	for kind, status := range map[service.Kind]int{service.NoJob: 404, service.OtherWay: 409, service.Future: 409, service.Invalid: 422} {
		answer(view.Granted{}, &service.Refusal{Kind: kind, Message: "because"})
		w.refuses(w.ask("POST", path, ""), status, map[bool]string{true: "no job of that name", false: "because"}[kind == service.NoJob])
	}
}

// No operator can start the job of an app that asks.
func TestTheJobOfAnAppThatAsksIsStartedByNobodyElse(t *testing.T) {
	w := newWorld(t)
	var err error
	w.table, err = config.Parse("table.yaml", []byte("service: billing\njobs:\n  - {name: reports, schedule: \"*/5 * * * *\", claim: {}}\n"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	w.refuses(w.ask("POST", "/v1/jobs/reports/trigger", ""), 409, "runs it by itself")
	w.refuses(w.ask("POST", "/v1/jobs/reports/rerun", `{"tick": "2027-03-28T07:00:00Z"}`), 409, "runs it by itself")
	w.refuses(w.ask("POST", "/v1/jobs/reports/cancel", ""), 404, "is going on")
	if got := w.ask("POST", "/v1/jobs/reports/pause", `{"reason": "because"}`); got.Code != 200 {
		t.Error(got.Body)
	}
	if got := w.ask("GET", "/v1/jobs/reports", ""); !strings.Contains(got.Body.String(), `"target":"is run by its app, which asks first"`) {
		t.Error(got.Body)
	}
}

func TestOnlyTheTokenOfARunReportsOnIt(t *testing.T) {
	w := newWorld(t)
	one, other := w.open(someRun, nil), w.open("another", nil)
	for route, body := range reported {
		target := "/v1/runs/" + someRun + "/" + route
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer   ", "Basic " + one.Token(), one.Token(), "Token " + one.Token()} {
			got := w.ask("POST", target, body, "Authorization", header)
			w.refuses(got, 401, "the request has no token")
			if got.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%q: it does not say how to prove oneself: %v", header, got.Header())
			}
		}
		for _, header := range []string{"Bearer x", "Bearer " + other.Token(), "Bearer " + one.Token() + "x", "Bearer " + one.Token() + ", " + one.Token(), "Bearer \x00"} {
			w.refuses(w.ask("POST", target, body, "Authorization", header), 404, "no such run, or the token is not the run's")
		}
		for _, run := range []string{"another", "nobody", strings.ToUpper(someRun), someRun + "%20", "%00", strings.Repeat("a", 3000)} {
			w.refuses(w.report(run, one.Token(), route, body), 404, "no such run, or the token is not the run's")
		}
	}
	if one.Beaten() || other.Beaten() {
		t.Error("a report without the token of its run has counted")
	}
	w.says(w.ask("POST", "/v1/runs/"+someRun+"/heartbeat", "", "Authorization", "bearer  "+one.Token()), 200, `{"run": "`+someRun+`", "heartbeatMs": 5000}`)
}

// The words of an answer tell whoever reads the app's log what to do.
func TestARefusedReportSaysWhatTheAppDoesThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := callback.New("127.0.0.1:9748")
		server := CallbackServer(Options{Name: "app-1", Callbacks: calls, Log: slog.New(slog.DiscardHandler)})
		ask := func(c *callback.Call, route string) string {
			r := httptest.NewRequest("POST", "http://127.0.0.1:9748/v1/runs/run/"+route, strings.NewReader(reported[route]))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+c.Token())
			out := httptest.NewRecorder()
			server.Handler.ServeHTTP(out, r)
			return strings.TrimSpace(out.Result().Status + " " + out.Body.String())
		}
		for name, row := range map[string]struct {
			play              func(c *callback.Call)
			heartbeat, finish string
		}{
			"answered otherwise": {func(c *callback.Call) { c.Close() },
				`410 Gone {"error":"the run is over","hint":"stop the work"}`,
				`410 Gone {"error":"the run is over","hint":"do not send it again"}`},
			"finished": {func(c *callback.Call) { _ = calls.Finish("run", c.Token(), callback.Report{Outcome: callback.Failed}) },
				`410 Gone {"error":"the run is over","hint":"stop the work"}`,
				`410 Gone {"error":"the run is over","hint":"do not send it again"}`},
			"silent": {func(c *callback.Call) { _, _ = c.Wait(t.Context()) },
				`410 Gone {"error":"the run is over: the app sent no heartbeat within 5s","hint":"stop the work"}`,
				`410 Gone {"error":"the run is over: the app sent no heartbeat within 5s","hint":"do not send it again"}`},
			"cancelled and stopped": {func(c *callback.Call) {
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(errors.New("cancelled by an operator"))
				_, _ = c.Wait(ctx)
			},
				`410 Gone {"error":"the run has to end: cancelled by an operator","hint":"stop the work, and then finish the run"}`,
				`410 Gone {"error":"the run is over: cancelled by an operator","hint":"do not send it again"}`},
		} {
			c := calls.Open("run", 5*time.Second, nil)
			row.play(c)
			if got := ask(c, "heartbeat"); got != row.heartbeat {
				t.Errorf("%s: a heartbeat is answered\n%s", name, got)
			}
			if got := ask(c, "finish"); got != row.finish {
				t.Errorf("%s: a finish is answered\n%s", name, got)
			}
			c.Close()
		}
	})
}

func TestAHeartbeatIsRefusedWhileTheLeaseIsNotSure(t *testing.T) {
	w := newWorld(t)
	sure := false
	c := w.open(someRun, func(d time.Duration) bool { return sure || d == 0 })
	got := w.report(someRun, c.Token(), "heartbeat", "")
	w.refuses(got, 503, "the lock may end within a heartbeat")
	if got.Header().Get("Retry-After") != "1" || c.Beaten() {
		t.Errorf("Retry-After %q, and it counts: %t", got.Header().Get("Retry-After"), c.Beaten())
	}
	sure = true
	w.says(w.report(someRun, c.Token(), "heartbeat", ""), 200, `{"run": "`+someRun+`", "heartbeatMs": 5000}`)
	sure = false
	w.says(w.report(someRun, c.Token(), "finish", reported["finish"]), 200, `{"run": "`+someRun+`", "outcome": "succeeded"}`)
}

func TestAFinishMayBeRepeatedAndNotChanged(t *testing.T) {
	w := newWorld(t)
	c := w.open(someRun, nil)
	huge := strings.Repeat("ä", callback.MaxDetail) + "end"
	first := `{"outcome": "failed", "detail": "` + huge + `"}`
	for range 2 {
		w.says(w.report(someRun, c.Token(), "finish", first), 200, `{"run": "`+someRun+`", "outcome": "failed"}`)
	}
	w.refuses(w.report(someRun, c.Token(), "finish", `{"outcome": "failed", "detail": "x"}`), 410, "the run is over")
	for _, outcome := range []string{"succeeded", "interrupted"} {
		w.refuses(w.report(someRun, c.Token(), "finish", `{"outcome": "`+outcome+`", "detail": "`+huge+`"}`), 410, "the run is over")
	}
	w.refuses(w.report(someRun, c.Token(), "heartbeat", ""), 410, "the run is over")
	got, err := c.Wait(t.Context())
	if err != nil || got.Outcome != callback.Failed || got.Detail != strings.Repeat("ä", callback.MaxDetail/2) {
		t.Errorf("%s with %d bytes of detail, %v", got.Outcome, len(got.Detail), err)
	}
	c.Close()
	w.says(w.report(someRun, c.Token(), "finish", first), 200, `{"run": "`+someRun+`", "outcome": "failed"}`) // its answer was lost
}

func TestTheBodyOfAReportIsReadStrictly(t *testing.T) {
	w := newWorld(t)
	c := w.open(someRun, nil)
	for _, row := range []struct {
		route, body string
		status      int
		words       string
	}{
		{"finish", ``, 422, `\"outcome\" must be succeeded, failed or interrupted`},
		{"finish", `{}`, 422, `\"outcome\" must be succeeded, failed or interrupted`},
		{"finish", `{"detail": "done"}`, 422, `\"outcome\" must be succeeded, failed or interrupted`},
		{"finish", `{"outcome": "Succeeded"}`, 422, `\"outcome\" must be succeeded, failed or interrupted`},
		{"finish", `{"outcome": "cancelled"}`, 422, `\"outcome\" must be succeeded, failed or interrupted`},
		{"finish", `{"outcome": true}`, 400, `\"outcome\" must be a text, not a bool`},
		{"finish", `{"outcome": "failed", "detail": {}}`, 400, `\"detail\" must be a text`},
		{"finish", `{"outcome": "failed", "error": "x"}`, 400, `unknown key \"error\"`},
		{"finish", `["failed"]`, 400, "must be a JSON object"},
		{"finish", `{"outcome": "failed"`, 400, "not JSON"},
		{"finish", `{"outcome": "failed", "detail": "` + strings.Repeat("x", maxBody) + `"}`, 413, "larger than 64 KiB"},
		{"heartbeat", `{"run": "` + someRun + `"}`, 400, `unknown key \"run\"`},
		{"heartbeat", `5`, 400, "must be a JSON object"},
		{"heartbeat", strings.Repeat(" ", maxBody+1), 413, "larger than 64 KiB"},
	} {
		w.refuses(w.report(someRun, c.Token(), row.route, row.body), row.status, row.words)
	}
	for route := range reported {
		w.refuses(w.report(someRun, c.Token(), route, "outcome=failed", "Content-Type", "application/x-www-form-urlencoded"), 415, "must be JSON")
		w.refuses(w.report(someRun, c.Token(), route+"?outcome=failed", reported[route]), 400, "takes no parameters")
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			got := w.ask(method, "/v1/runs/"+someRun+"/"+route, "", "Authorization", "Bearer "+c.Token())
			if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "POST" {
				t.Errorf("%s %s: %d, allowed is %q", method, route, got.Code, got.Header().Get("Allow"))
			}
		}
	}
	w.refuses(w.ask("POST", "/v1/runs/"+someRun, "", "Authorization", "Bearer "+c.Token()), 404, "nothing here")
	w.refuses(w.report(someRun, c.Token(), "finish/", reported["finish"]), 404, "nothing here")
	if c.Beaten() {
		t.Error("a refused report has counted")
	}
	if got := w.report(someRun, c.Token(), "finish", `{"outcome": "failed", "detail": "`+strings.Repeat("x", maxBody-50)+`"}`); got.Code != 200 {
		t.Errorf("a detail that just fits: %d %s", got.Code, got.Body)
	}
}

// A token that has leaked into a browser is of no use to it, nor to a job.
func TestAReportIsGuardedAsAllRequests(t *testing.T) {
	w := newWorld(t)
	c := w.open(someRun, nil)
	for route, body := range reported {
		w.refuses(w.report(someRun, c.Token(), route, body, "Solotick-Run", someRun), 403, "a job sent this request")
		w.refuses(w.report(someRun, c.Token(), route, body, "Host", "evil.example"), 403, "names another host")
		w.refuses(w.report(someRun, c.Token(), route, body, "Origin", "http://evil.example"), 403, "another origin")
		w.refuses(w.report(someRun, c.Token(), route, body, "Sec-Fetch-Site", "cross-site"), 403, "another origin")
	}
	if c.Beaten() {
		t.Error("a refused report has counted")
	}
}

// `solotick try` serves the reports of its one job, and nothing else.
func TestAServerOfReportsServesNothingElse(t *testing.T) {
	calls := callback.New("127.0.0.1:9748")
	c := calls.Open(someRun, 5*time.Second, nil)
	defer c.Close()
	h := CallbackServer(Options{Name: "app-1", Callbacks: calls, Log: slog.New(slog.DiscardHandler)}).Handler
	wants := func(host, path string, want int) {
		t.Helper()
		r := httptest.NewRequest("POST", "http://"+host+path, strings.NewReader(reported[path[strings.LastIndex(path, "/")+1:]]))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+c.Token())
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		if out.Code != want || !strings.HasPrefix(out.Header().Get("Content-Type"), "application/json") {
			t.Errorf("%s of %s: %d %s, want %d", path, host, out.Code, out.Body, want)
		}
	}
	for path := range (&api{}).routes() {
		path = strings.NewReplacer("{job}", "reports", "{id}", "a", "{tick}", "now", "{run}", someRun, "{$}", "").Replace(path)
		wants("evil.example", path, http.StatusForbidden)
		if !strings.HasPrefix(path, "/v1/runs/") {
			wants("localhost", path, http.StatusNotFound)
		}
	}
	wants("127.0.0.1:9748", "/v1/runs/"+someRun+"/heartbeat", http.StatusOK)
	wants("127.0.0.1:9748", "/v1/runs/"+someRun+"/finish", http.StatusOK)
}

// Questions that wait leave connections for everybody else.
func TestQuestionsThatWaitAreBounded(t *testing.T) {
	w := newWorld(t)
	waits, end := make(chan bool, mostAsking), make(chan bool)
	w.grant = func(string, time.Time) (view.Granted, error) {
		waits <- true
		<-end
		return view.Granted{}, &view.NotGranted{Reason: "overlap"}
	}
	var all sync.WaitGroup
	for range mostAsking {
		all.Go(func() { w.ask("POST", "/v1/jobs/reports/ticks/now", "") })
		<-waits
	}
	w.refuses(w.ask("POST", "/v1/jobs/reports/ticks/now", ""), 503, "ask already")
	close(end)
	all.Wait()
	if got := w.ask("POST", "/v1/jobs/reports/ticks/now", ""); got.Code != 409 {
		t.Errorf("answered %d", got.Code)
	}
}
