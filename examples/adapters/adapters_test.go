package adapters_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/rig"
)

// patience is for what must come, on a busy machine.
const patience = 2 * time.Minute

// asApp makes this binary an app: "cron", or the one for gocron with its fault, or "none".
const asApp = "ADAPTERS_TEST_APP"

var scratch string

func TestMain(m *testing.M) {
	switch fault, is := os.LookupEnv(asApp); {
	case fault == "cron":
		fmt.Fprintln(os.Stderr, cronApp(os.Args[1], os.Args[3], os.Args[4], os.Args[5]))
		os.Exit(1)
	case is:
		fmt.Fprintln(os.Stderr, gocronApp(fault, os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5:]...))
		os.Exit(1)
	}
	var err error
	if scratch, err = os.MkdirTemp("", "solotick-adapters-"); err != nil {
		panic(err)
	}
	_ = flag.Set("test.parallel", "12") // they wait for apps and replicas
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// adapter is a scheduler with its file.
type adapter struct {
	name  string
	dir   string
	needs string
	try   func() error // fails if it is missing
	app   []string
	env   []string
	build func() error // compiles the app; nil = it needs no compiler
	fakes bool         // libfaketime moves the app's clock; else the app does
}

// command runs a command in a directory to its end.
func command(dir string, argv ...string) func() error {
	return func() error {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	}
}

func adapters(t *testing.T) []adapter {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	python := "/usr/bin/python3" // the one for which the system's packages are
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	return []adapter{
		{name: "gocron", dir: "gocron", try: func() error { return nil }, app: []string{self}, env: []string{asApp + "=none"}},
		{name: "node-cron", dir: "node-cron", needs: "node-cron for node",
			try: command("node-cron", "node", "-e", "require('node-cron')"), app: []string{"node", "node-cron/app.mjs"}},
		{name: "APScheduler", dir: "apscheduler", needs: "APScheduler 3 for python3",
			try: command("", python, "-c", "import apscheduler.executors.pool"),
			app: []string{python, "apscheduler/app.py"}, env: []string{"PYTHONDONTWRITEBYTECODE=1"}},
		{name: "Quartz", dir: "quartz", needs: "a JDK with Quartz 2, and libfaketime", try: hasQuartz,
			app: append(slices.Clone(java), "-cp", classes()+":"+jars, "App"), build: compiled, fakes: true},
	}
}

// each runs a test for the adapters that the machine can run.
func each(t *testing.T, all []adapter, test func(*testing.T, adapter)) {
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			needs.That(t, a.needs, a.try())
			if a.build != nil {
				if err := a.build(); err != nil {
					t.Fatal(err)
				}
			}
			files, _ := filepath.Glob(a.dir + "/*.*")
			for _, file := range files { // so that go test runs again when they change
				if _, err := os.ReadFile(file); err != nil {
					t.Fatal(err)
				}
			}
			test(t, a)
		})
	}
}

// app is a process that runs jobs each time the seconds of its clock are such.
type app struct {
	*rig.Process
	name string
}

func (a adapter) start(t *testing.T, dir, name, api, seconds string, take, skew time.Duration, jobs ...string) *app {
	t.Helper()
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	argv := append(slices.Clone(a.app), api, seconds, ms(take), ms(skew))
	// There is no such proxy: an adapter that asks it does nothing.
	env := append(slices.Clone(a.env), "http_proxy=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1",
		"NODE_USE_ENV_PROXY=1", "no_proxy=", "NO_PROXY=")
	if a.fakes {
		env = append(env, rig.FakeClock(skew)...)
	}
	p, err := rig.Launch(name, filepath.Join(dir, name+".log"), env, append(argv, jobs...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, tail(p.Log))
		}
	})
	return &app{p, name}
}

func tail(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-6000):]
}

// line is what an app says of a run.
type line struct {
	app            string
	what           string // "begun", "done", "stopped"
	job, tick, run string
	token          int64
}

// says reads what the app has said so far.
func (a *app) says(t *testing.T) (all []line) {
	t.Helper()
	text, err := os.ReadFile(a.Log)
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(text) {
		l := line{app: a.name}
		if n, _ := fmt.Sscan(string(text), &l.what, &l.job, &l.tick, &l.run, &l.token); n == 5 && text[len(text)-1] == '\n' &&
			slices.Contains([]string{"begun", "done", "stopped"}, l.what) {
			all = append(all, l)
		}
	}
	return all
}

// await waits for what must come.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	if err := rig.Until(patience, what, so); err != nil {
		t.Fatal(err)
	}
}

// api stands for a replica. It grants the first claim of each job that is not refused, and answers as the job's name
// asks for.
type api struct {
	t    *testing.T
	over chan struct{} // ends requests that hang

	mu    sync.Mutex
	asked map[string][]string // by job: the requests, with the answers
}

func newAPI(t *testing.T) (*api, *httptest.Server) {
	a := &api{t: t, asked: map[string][]string{}, over: make(chan struct{})}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(a.over) })
	return a, server
}

const (
	cut    = -1 // the connection
	hangs  = -2
	stalls = -3 // after its status
)

// next is the nth of the answers, or the last one.
func next(n int, answers ...int) int { return answers[min(n, len(answers)-1)] }

// answer returns the status of the nth request of a kind for a job.
func answer(job, what string, n int) int {
	switch _, how, _ := strings.Cut(job, "-"); what + " " + how {
	case "claim elsewhere":
		return http.StatusConflict
	case "claim unsure":
		return http.StatusServiceUnavailable
	case "heartbeat over":
		return http.StatusGone
	case "heartbeat unheard":
		return next(n, cut, http.StatusServiceUnavailable)
	case "heartbeat shaky":
		return next(n, cut, http.StatusServiceUnavailable, http.StatusOK)
	case "heartbeat told":
		return next(n, http.StatusOK, http.StatusNotFound)
	case "heartbeat stalled":
		return next(n, http.StatusOK, stalls)
	case "heartbeat alone":
		return next(n, http.StatusOK, hangs)
	case "finish shaky":
		return next(n, cut, http.StatusInternalServerError, http.StatusOK)
	}
	return http.StatusOK
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if !json.Valid(body) || len(body) > 1000 || err != nil || r.Method != http.MethodPost ||
		r.Header.Get("Content-Type") != "application/json" {
		a.t.Errorf("a request is %s %s with %v and the body %q", r.Method, r.URL, r.Header, body)
	}
	var job, tick, what string
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	switch {
	case len(path) == 4 && path[0] == "jobs" && path[2] == "ticks":
		job, tick, what = path[1], path[3], "claim"
	case len(path) == 3 && path[0] == "runs":
		job, what = path[1], path[2]
		if r.Header.Get("Authorization") != "Bearer token of "+job {
			a.t.Errorf("the token is %q", r.Header.Get("Authorization"))
		}
	default:
		a.t.Errorf("a request goes to %s", r.URL)
	}
	at, err := time.Parse(time.RFC3339, tick)
	if what == "claim" && tick != "now" && (err != nil || !at.Equal(at.Truncate(time.Second))) {
		a.t.Errorf("a claim is for %q", tick)
	}
	a.mu.Lock()
	n := 0
	for _, asked := range a.asked[job] {
		if strings.HasPrefix(asked, what) {
			n++
		}
	}
	status := answer(job, what, n)
	if what == "claim" && n > 0 && status == http.StatusOK {
		status = http.StatusConflict
	}
	said := fmt.Sprintf("%s: %d", what, status)
	if what == "finish" {
		said += " " + string(body)
	}
	a.asked[job] = append(a.asked[job], said)
	a.mu.Unlock()
	heartbeat := map[string]int{"works-unheard": 6000, "endless-told": 9000, "endless-alone": 6000,
		"endless-stalled": 6000}[job]
	switch {
	case status == cut:
		panic(http.ErrAbortHandler)
	case status == hangs:
		<-a.over
	case status == stalls:
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-a.over
	case what == "claim" && status == http.StatusOK:
		fmt.Fprintf(w, `{"job": %q, "tick": "2026-11-29T12:00:00Z", "run": %q, "token": "token of %s", `+
			`"fencingToken": 5, "heartbeatMs": %d}`, job, job, job, cmp.Or(heartbeat, 60_000))
	default:
		w.WriteHeader(status)
		fmt.Fprintln(w, `{"error": "for a reason", "reason": "fired_elsewhere"}`)
	}
}

// ends reports whether a job was asked to finish, and got an answer.
func (a *api) ends(job string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.asked[job], func(s string) bool { return strings.HasPrefix(s, "finish: 200") })
}

// TestAnAdapterKeepsTheRule: claim, heartbeat, and only then work; stop when a heartbeat says so, or none is answered.
func TestAnAdapterKeepsTheRule(t *testing.T) {
	t.Parallel()
	begun := []string{"begun"}
	done, stopped := append(begun, "done"), append(begun, "stopped")
	type end struct {
		outcome, detail string
		says            []string // the app
		asks            []string // without the last finish
	}
	all := map[string]end{
		"works":           {"succeeded", "", done, []string{"claim: 200", "heartbeat: 200"}},
		"works-elsewhere": {"", "", nil, []string{"claim: 409"}},
		"works-unsure":    {"", "", nil, []string{"claim: 503"}},
		"works-over": {"interrupted", "a heartbeat was answered 410", nil,
			[]string{"claim: 200", "heartbeat: 410"}},
		"works-unheard": {"interrupted", "no heartbeat was answered in time", nil,
			[]string{"claim: 200", "heartbeat: -1", "heartbeat: 503"}},
		"works-shaky": {"succeeded", "", done,
			[]string{"claim: 200", "heartbeat: -1", "heartbeat: 503", "heartbeat: 200", "finish: -1", "finish: 500"}},
		"fails": {"failed", "disk full", begun, []string{"claim: 200", "heartbeat: 200"}},
		"endless-told": {"interrupted", "a heartbeat was answered 404", stopped,
			[]string{"claim: 200", "heartbeat: 200", "heartbeat: 404"}},
		"endless-alone": {"interrupted", "no heartbeat was answered in time", stopped,
			[]string{"claim: 200", "heartbeat: 200", "heartbeat: -2"}},
		"endless-stalled": {"interrupted", "no heartbeat was answered in time", stopped,
			[]string{"claim: 200", "heartbeat: 200", "heartbeat: -3"}},
	}
	special := map[string]map[string]end{"Quartz": {
		"breaks":   {"failed", "a listener broke", nil, []string{"claim: 200", "heartbeat: 200"}},
		"restores": {"succeeded", "", done, []string{"claim: 200", "heartbeat: 200"}},
	}}
	each(t, adapters(t), func(t *testing.T, a adapter) {
		jobs := maps.Clone(all)
		maps.Copy(jobs, special[a.name])
		names := slices.Collect(maps.Keys(jobs))
		replica, server := newAPI(t)
		app := a.start(t, t.TempDir(), a.name, server.URL, "*", 200*time.Millisecond, 0, names...)
		t.Cleanup(app.Kill)
		for job, want := range jobs {
			await(t, "the end of "+job, func() bool {
				replica.mu.Lock()
				n := len(replica.asked[job])
				replica.mu.Unlock()
				return want.outcome == "" && n >= 2 || replica.ends(job)
			})
		}
		app.Kill()
		replica.mu.Lock()
		defer replica.mu.Unlock()
		lines := app.says(t)
		for job, want := range jobs {
			var said []string
			for _, l := range lines {
				if l.job == job {
					said = append(said, l.what)
				}
			}
			if !slices.Equal(said, want.says) {
				t.Errorf("%s: it said %q, want %q", job, said, want.says)
			}
			var asks []string // without repeats, and without claims of later ticks
			var report struct{ Outcome, Detail string }
			for i, ask := range replica.asked[job] {
				ask, body, _ := strings.Cut(ask, " {")
				switch {
				case ask == "finish: 200":
					if err := json.Unmarshal([]byte("{"+body), &report); err != nil {
						t.Errorf("%s: it reported %s: %v", job, body, err)
					}
				case i == 0 || !strings.HasPrefix(ask, "claim") && !slices.Contains(asks, ask):
					asks = append(asks, ask)
				}
			}
			if !slices.Equal(asks, want.asks) {
				t.Errorf("%s: it asked %q, want %q", job, asks, want.asks)
			}
			if report.Outcome != want.outcome || !strings.HasPrefix(report.Detail, want.detail) {
				t.Errorf("%s: it reported %+v, want %s, %q", job, report, want.outcome, want.detail)
			}
		}
	})
}
