package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// longJobs is an app that works on runs after its answer 202. The path says what it does: /succeeds, /fails, /silent
// (it does not report), /stops (it works until it has to end), /answers (with 500, and no 202) and /moved (to the
// server other).
type longJobs struct {
	t     *testing.T
	other string

	mu      sync.Mutex
	tokens  map[string]bool
	begun   chan struct{} // closed by the first heartbeat of /stops
	said    []string      // answers to reports
	working sync.WaitGroup
}

func startLongJobs(t *testing.T) (*longJobs, string) {
	l := &longJobs{t: t, tokens: map[string]bool{}, begun: make(chan struct{})}
	server := httptest.NewServer(l)
	t.Cleanup(func() {
		server.Close()
		l.working.Wait()
	})
	return l, server.URL
}

func (l *longJobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("Solotick-Callback-Token")
	l.mu.Lock()
	l.tokens[token] = true
	l.mu.Unlock()
	switch r.URL.Path {
	case "/answers":
		http.Error(w, "no", http.StatusInternalServerError)
	case "/moved":
		http.Redirect(w, r, l.other, http.StatusTemporaryRedirect)
	default:
		w.WriteHeader(http.StatusAccepted)
		l.working.Go(func() { l.work(r, token) })
	}
}

func (l *longJobs) work(r *http.Request, token string) {
	url := r.Header.Get("Solotick-Callback")
	switch r.URL.Path {
	case "/silent":
		return
	case "/stops":
		l.report(url+"/heartbeat", token, "", 200)
		close(l.begun)
		for l.report(url+"/heartbeat", token, "", 200, 410) == 200 {
			time.Sleep(10 * time.Millisecond) // as an app at work does
		}
		l.report(url+"/finish", token, `{"outcome": "interrupted", "detail": "at row 7"}`, 200)
	case "/succeeds":
		for range 12 { // longer than a heartbeat of 4s
			l.report(url+"/heartbeat", token, "", 200)
			time.Sleep(400 * time.Millisecond) // as an app at work does
		}
		l.report(url+"/finish", token, `{"outcome": "succeeded", "detail": "7 rows"}`, 200)
	case "/fails":
		l.report(url+"/heartbeat", token, "", 200)
		l.report(url+"/heartbeat", token, "[]", 400)
		l.report(url+"x/heartbeat", token, "", 404)
		l.report(url+"/finish", token, `{"outcome": "well"}`, 422)
		l.report(url+"/finish", token, `{"outcome": "failed", "detail": "the disk is full"}`, 200)
		if r.Header.Get("Solotick-Kind") != "manual" { // a try is over with its run
			l.report(url+"/finish", token, `{"outcome": "succeeded"}`, 410, 0) // nor does a replica that ends wait for this
		}
	}
}

// report sends a report, as any app would, and returns the status of the answer, which must be one of those wanted; 0 =
// there was none.
func (l *longJobs) report(url, token, body string, want ...int) int {
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		if !slices.Contains(want, 0) {
			l.t.Error(err)
		}
		return 0
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	_ = answer.Write(&text) // headers, too
	if !slices.Contains(want, answer.StatusCode) {
		l.t.Errorf("%s %s: %s", url, body, text.String())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, text.String())
	return answer.StatusCode
}

func TestATriedJobMayBeEndedByTheReportOfItsApp(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		heartbeat, code int
		end             string
	}{
		"succeeds": {4, 0, `report
  7 rows
succeeded after \d+(\.\d+)?s: the app ended the run as succeeded
$`},
		"fails": {4, exitProblem, `report
  the disk is full
failed after \d+(\.\d)?m?s: the app ended the run as failed
$`},
		"silent": {1, exitProblem, `interrupted after \d+(\.\d+)?s: the app sent no heartbeat within 1s
$`},
		"answers": {4, exitProblem, `answer
  no
failed after \d+(\.\d)?m?s: the app answered 500 Internal Server Error
$`},
	} {
		app, url := startLongJobs(t)
		code, out, errOut := tries(t, fmt.Sprintf("  - {name: x, schedule: \"@hourly\", http: {url: \"%s/%s\", async: {heartbeat: %ds}}}\n", url, path, c.heartbeat), "x")
		app.working.Wait()
		want := `(?s)^POST .*
  Solotick-Callback: http://127\.0\.0\.1:\d+/v1/runs/[-0-9a-f]{36}
  Solotick-Callback-Token: \*\*\*
  Solotick-Heartbeat: ` + fmt.Sprint(c.heartbeat) + `
.*` + c.end
		if code != c.code || errOut != "" || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: exit code %d, %s%s", path, code, out, errOut)
		}
		for token := range app.tokens {
			if token == "" || strings.Contains(out, token) {
				t.Errorf("%s: the token %q is shown", path, token)
			}
		}
	}
}

func TestATriedJobThatMayBeAcceptedIsShownAsJSON(t *testing.T) {
	t.Parallel()
	_, url := startLongJobs(t)
	code, out, errOut := tries(t, "  - {name: x, schedule: \"@hourly\", http: {url: \""+url+"/succeeds\", async: {heartbeat: 4s}}}\n", "x", "-o", "json")
	if code != 0 || errOut != "" || !regexp.MustCompile(`(?s)"outcome": "succeeded",\s+"durationMs": \d{4,},\s+"output": "7 rows"\s+}`).MatchString(out) {
		t.Errorf("exit code %d, %s%s", code, out, errOut)
	}
}

// The app is told to stop, and need not find it out by the silence of a process that has gone.
func TestAnInterruptedTryWaitsForItsAppToStop(t *testing.T) {
	t.Parallel()
	app, url := startLongJobs(t)
	file := filepath.Join(t.TempDir(), "table.yaml")
	table := "service: shop\njobs:\n  - {name: x, schedule: \"@hourly\", http: {url: \"" + url + "/stops\", async: {heartbeat: 6s}}}\n"
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command("solotick", "try", "-c", file, "--replica", "mine", "x")
	cmd.Env, cmd.Stdout, cmd.Stderr = bareEnv(), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-app.begun
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	app.working.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitProblem || !regexp.MustCompile(`report
  at row 7
cancelled after \d+(\.\d)?m?s: the app was told to end the run: .*
$`).MatchString(out.String()) {
		t.Errorf("exit code %d, %s", code, out.String())
	}
}

const canaryTable = `
service: shop
redis: {url: %[1]q, timeout: 5s}
listen: "127.0.0.1:0"
admin: "127.0.0.1:0"
defaults: {notify: {url: "%[2]s/ping", change: {url: "%[2]s/change"}}}
jobs:
  - {name: succeeds, schedule: "@every 2s", http: {url: "%[3]s/succeeds", async: {heartbeat: 5s}}}
  - {name: fails, schedule: "@every 1s", retry: {limit: 1, backoff: 10ms}, http: {url: "%[3]s/fails", async: {heartbeat: 5s}}}
  - {name: silent, schedule: "@every 1s", http: {url: "%[3]s/silent", async: {heartbeat: 1s}}}
  - {name: answers, schedule: "@every 1s", http: {url: "%[3]s/answers", async: {heartbeat: 1s}}}
  - {name: moved, schedule: "@every 1s", http: {url: "%[3]s/moved", successCodes: [200], async: {heartbeat: 1s}}}
`

// The token lets whoever has it end a run. The app alone gets it.
func TestTheTokenOfARunIsSeenByItsAppAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	app, url := startLongJobs(t)
	var mu sync.Mutex
	var received []string // by the other server: redirected calls, and what notify sends
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(&b, "%s %s %v %s", r.Method, r.URL, r.Header, body)
		mu.Lock()
		received = append(received, b.String())
		mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
	}))
	defer other.Close()
	app.other = other.URL + "/moved"
	r := launch(t, fmt.Sprintf(canaryTable, s.URL(), other.URL, url), nil, "--replica", "one", "--log-level", "debug")
	for job, outcome := range map[string]string{"succeeds": "succeeded", "fails": "failed", "silent": "interrupted", "answers": "failed", "moved": "failed"} {
		r.await("finished", "job", job, "outcome", outcome)
	}
	r.await("trying again", "job", "fails")
	for job, heartbeat := range map[string]float64{"succeeds": 5, "fails": 5, "silent": 1} {
		if l := r.await("accepted", "job", job); l.text("run") == "" || l["heartbeatSeconds"] != heartbeat {
			t.Errorf("%v", l)
		}
	}

	places := map[string]string{}
	_, places["metrics"] = r.get("/metrics")
	admin := r.await("serving the status page and the API").text("addr")
	for _, path := range []string{"/", "/v1/status", "/v1/jobs", "/v1/jobs/succeeds", "/v1/jobs/silent", "/v1/runs", "/v1/replicas", "/v1/replica", "/v1/events"} {
		places["GET "+path] = body(t, "http://"+admin+path)
	}
	tick := r.await("finished", "job", "silent").text("tick")
	for _, verb := range []string{"status", "status -o json", "status fails", "history", "history --failed -o json", "why silent " + tick, "next", "validate",
		"try succeeds", "try fails -o json", "try moved", "try silent"} {
		cmd := exec.Command("solotick", append(strings.Fields(verb), "-c", r.cmd.Args[3])...)
		cmd.Env = bareEnv()
		out, _ := cmd.CombinedOutput() // some of the tries fail
		places["solotick "+verb] = string(out)
	}
	r.stop()
	app.working.Wait()
	places["the log"] = strings.Join(r.raw, "\n")
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer client.Close()
	for key, value := range contents(t, client) {
		places["Redis' "+key] = value
	}
	app.mu.Lock()
	defer app.mu.Unlock()
	mu.Lock()
	defer mu.Unlock()
	places["the answers to reports"] = strings.Join(app.said, "\n")
	places["the other server"] = strings.Join(received, "\n")
	for place, part := range map[string]string{"the log": "the disk is full", "GET /v1/runs": "the app sent no heartbeat within 1s", "solotick history": "the disk is full",
		"solotick try succeeds": "7 rows", "solotick try moved": "POST " + other.URL, "the answers to reports": "heartbeatMs", "the other server": "POST /moved"} {
		if !strings.Contains(places[place], part) {
			t.Errorf("%s does not say %q:\n%s", place, part, places[place])
		}
	}
	if len(places) < 30 || len(app.tokens) < 9 || app.tokens[""] {
		t.Errorf("%d places were looked at for %d tokens: %q", len(places), len(app.tokens), slices.Collect(maps.Keys(app.tokens)))
	}
	for place, text := range places {
		for token := range app.tokens {
			if strings.Contains(text, token) {
				t.Errorf("%s shows the token of a run:\n%s", place, text)
			}
		}
	}
	for _, call := range received {
		if strings.Contains(call, "Solotick-Callback") || strings.Contains(call, "Solotick-Heartbeat") {
			t.Errorf("another server was told where to report: %s", call)
		}
	}
}
