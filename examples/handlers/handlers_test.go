package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/examples/handlers"
	"github.com/solotick/solotick/internal/proof/redistest"
	"github.com/solotick/solotick/internal/proof/rig"
)

const secret = "s3cret"

// goApp is the same small app as node/app.js and python/app.py: one job, which answers with ?code= after ?take= milliseconds,
// and the count of how often its work was done.
func goApp(t *testing.T) string {
	var count atomic.Int64
	mux := http.NewServeMux()
	mux.Handle("POST /jobs/work", handlers.Middleware(secret, &handlers.Memory{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := count.Add(1)
		take, _ := strconv.Atoi(r.FormValue("take"))
		time.Sleep(time.Duration(take) * time.Millisecond)
		if r.FormValue("code") == "throw" {
			panic(http.ErrAbortHandler)
		}
		code, err := strconv.Atoi(r.FormValue("code"))
		if err != nil {
			code = http.StatusOK
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"n":%d}`, n)
	})))
	mux.HandleFunc("GET /count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, count.Load()) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// uses opens files that programs read, so that go test runs again when they change.
func uses(t *testing.T, pattern string) {
	t.Helper()
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
}

// program starts an app in another language, which prints its address.
func program(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	uses(t, filepath.Join(dir, "*.js"))
	uses(t, filepath.Join(dir, "*.py"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not start: %v", command[0], err)
	}
	return strings.TrimSpace(address)
}

// needs skips what cannot run here, and fails in CI, which installs it by .ci/handlers.
func needs(t *testing.T, check ...string) {
	t.Helper()
	cmd := exec.Command(check[0], check[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("not run: %v\n%s", err, out)
		}
		t.Skipf("NOT RUN: .ci/handlers installs what it needs: %v", err)
	}
}

// eachApp runs f with the app of each language.
func eachApp(t *testing.T, f func(t *testing.T, app string)) {
	t.Run("Go", func(t *testing.T) { f(t, goApp(t)) })
	for _, kind := range []string{"express", "fastify"} {
		t.Run(kind, func(t *testing.T) {
			needs(t, "node", "-e", "require('./node/node_modules/"+kind+"')")
			f(t, program(t, "node", "node", "app.js", kind, secret))
		})
	}
	t.Run("Python", func(t *testing.T) {
		python := python3()
		needs(t, python, "-c", "import uvicorn")
		f(t, program(t, "python", python, "app.py", secret))
	})
}

// python3 is the one for which the system's packages are.
func python3() string {
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err != nil {
		return "python3"
	}
	return system
}

// client sends each request once: on a connection that is used again, Go's own would repeat one that has an Idempotency-Key.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// caller calls an app as a replica does.
type caller struct {
	t   *testing.T
	app string
}

// call returns the status of the answer and its body.
func (c *caller) call(query, key string, token int, headers ...string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequest(http.MethodPost, c.app+"/jobs/work?"+query, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + secret, "Solotick-Job": "work", "Idempotency-Key": key,
		"Solotick-Fencing-Token": strconv.Itoa(token)} {
		r.Header.Set(name, value)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "" // the app broke off
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// count is how often the work was done.
func (c *caller) count() int {
	c.t.Helper()
	answer, err := http.Get(c.app + "/count")
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	var n int
	if err := json.NewDecoder(answer.Body).Decode(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *caller) wants(what string, status, want int) {
	c.t.Helper()
	if status != want {
		c.t.Errorf("%s: answered %d, want %d", what, status, want)
	}
}

func TestOnlyTheReplicaIsAdmitted(t *testing.T) {
	eachApp(t, func(t *testing.T, app string) {
		c := &caller{t, app}
		for what, headers := range map[string][]string{"no secret": {"Authorization", ""}, "another": {"Authorization", "Bearer s3creT"},
			"a part": {"Authorization", "Bearer s3c"}, "more": {"Authorization", "Bearer s3cret1"}} {
			status, _ := c.call("", "k", 1, headers...)
			c.wants(what, status, http.StatusForbidden)
		}
		status, _ := c.call("", "", 1, "Idempotency-Key", "")
		c.wants("no key", status, http.StatusBadRequest)
		status, _ = c.call("", "k", 1, "Solotick-Job", "")
		c.wants("no job", status, http.StatusBadRequest)
		if n := c.count(); n != 0 {
			t.Errorf("the work was done %d times", n)
		}
	})
}

// TestAnEmptySecretIsRefused: as that of a variable that is not set.
func TestAnEmptySecretIsRefused(t *testing.T) {
	refused := func() (was bool) {
		defer func() { was = recover() != nil }()
		handlers.Middleware("", &handlers.Memory{}, nil)
		return false
	}
	if !refused() {
		t.Error("Go takes it")
	}
	for name, command := range map[string][]string{
		"express": {"node", "-e", "require('./node/solotick.js').express({ secret: process.env.NO_SECRET })"},
		"fastify": {"node", "-e", "require('./node/solotick.js').fastify({ addHook() {} }, { secret: '' })"},
		"Python":  {python3(), "-c", "import sys; sys.path.append('python'); from solotick import Solotick; Solotick(None, secret='')"},
	} {
		needs(t, command[0], "--version")
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the secret is empty") {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// TestAHundredRepeatsRunAgainAfterAFailureAndNeverAfterASuccess is what a key is for.
func TestAHundredRepeatsRunAgainAfterAFailureAndNeverAfterASuccess(t *testing.T) {
	eachApp(t, func(t *testing.T, app string) {
		c := &caller{t, app}
		for n := range 100 {
			status, _ := c.call("code=500", "k", 7)
			c.wants("a failure", status, 500)
			if got := c.count(); got != n+1 {
				t.Fatalf("repeat %d: the work was done %d times", n, got)
			}
		}
		c.call("code=throw", "k", 7)
		c.call("code=404", "k", 7)
		status, first := c.call("code=201", "k", 7)
		c.wants("at last", status, 201)
		for range 100 {
			status, again := c.call("code=201", "k", 7)
			if status != 201 || again != first {
				t.Fatalf("repeated: %d %s, and %s before", status, again, first)
			}
		}
		if n := c.count(); n != 103 {
			t.Errorf("the work was done %d times, want 103", n)
		}
		if status, other := c.call("", "l", 7); status != 200 || other == first {
			t.Errorf("another tick: %d %s", status, other)
		}
	})
}

func TestWhatIsUnderWayIsDeclinedUntilAGreaterTokenTakesItOver(t *testing.T) {
	eachApp(t, func(t *testing.T, app string) {
		c := &caller{t, app}
		var old, later sync.WaitGroup
		var taken string
		underWay := func(calls int) {
			for c.count() < calls {
				time.Sleep(time.Millisecond)
			}
		}
		old.Go(func() { c.call("take=400", "k", 5) })
		underWay(1)
		status, _ := c.call("", "k", 5)
		c.wants("a second call", status, http.StatusConflict)
		later.Go(func() {
			status, body := c.call("take=900", "k", 6)
			c.wants("a takeover", status, 200)
			taken = body
		})
		underWay(2)
		status, _ = c.call("", "m", 5)
		c.wants("an older run", status, http.StatusPreconditionFailed)
		old.Wait()
		status, _ = c.call("", "k", 6)
		c.wants("when the old run has ended", status, http.StatusConflict)
		later.Wait()
		if status, now := c.call("", "k", 6); status != 200 || now != taken {
			t.Errorf("the answer of the old run counts: %d %s, and %s was answered", status, now, taken)
		}
		if n := c.count(); n != 2 {
			t.Errorf("the work was done %d times, want 2", n)
		}
	})
}

// replica starts a replica of a service that calls an app. It is killed at the end.
func replica(t *testing.T, binary, redis, name, job string) *exec.Cmd {
	t.Helper()
	table := filepath.Join(t.TempDir(), "table.yaml")
	text := fmt.Sprintf("service: handlers\nredis: {url: %q}\nlisten: \"\"\nadmin: \"\"\njobs:\n  - {name: work, %s}\n", redis, job)
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "run", "-c", table, "--replica", name)
	cmd.Env = append(os.Environ(), "SECRET="+secret)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s\n%s", name, log.String())
		}
	})
	return cmd
}

func solotick(t *testing.T) string {
	t.Helper()
	root, err := rig.Root()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "solotick")
	if err := rig.Build(root, rig.Package, binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

// TestARealReplicaIsAnsweredByEachApp: each of its ticks is worked on once.
func TestARealReplicaIsAnsweredByEachApp(t *testing.T) {
	binary := solotick(t)
	eachApp(t, func(t *testing.T, app string) {
		redis := redistest.Start(t)
		replica(t, binary, redis.URL(), "one", fmt.Sprintf(`schedule: "* * * * * *", http: {url: "%s/jobs/work", headers: {Authorization: "Bearer ${SECRET}"}}`, app))
		c := &caller{t, app}
		for deadline := time.Now().Add(30 * time.Second); c.count() < 2; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the app was not called")
			}
		}
		out, err := exec.Command(binary, "history", "--service", "handlers", "--redis", redis.URL(), "-o", "json").Output()
		var runs []struct{ Outcome string }
		if err != nil || json.Unmarshal(out, &runs) != nil || len(runs) == 0 || runs[0].Outcome != "succeeded" {
			t.Errorf("%v, %s", err, out)
		}
	})
}

// TestTheWriteOfARunThatWasTakenOverIsRefused: a replica stands still for longer than its lease. Another one takes its run over. The
// old handler, which knows nothing of that, writes after the new one.
func TestTheWriteOfARunThatWasTakenOverIsRefused(t *testing.T) {
	binary, redis := solotick(t), redistest.Start(t)
	var mu sync.Mutex
	var greatest int64 // of the writes: the fence of the system that the job writes to
	write := func(token int64) bool {
		mu.Lock()
		defer mu.Unlock()
		if token < greatest {
			return false
		}
		greatest = token
		return true
	}
	var calls atomic.Int64
	began, written, refused := make(chan string, 1), make(chan struct{}), make(chan bool, 1)
	work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strconv.ParseInt(r.Header.Get("Solotick-Fencing-Token"), 10, 64)
		if calls.Add(1) == 1 {
			began <- r.Header.Get("Solotick-Replica")
			<-written
			refused <- !write(token)
			return
		}
		if write(token) && r.Header.Get("Solotick-Kind") == "takeover" {
			close(written)
		}
	})
	app := httptest.NewServer(handlers.Middleware(secret, &handlers.Memory{}, work))
	defer app.Close()
	job := fmt.Sprintf(`schedule: "@at %s", guarantee: at-least-once, timeout: 1m, lock: {ttl: 2s}, http: {url: %q, headers: {Authorization: "Bearer ${SECRET}"}}`,
		time.Now().Add(2*time.Second).UTC().Format(time.RFC3339), app.URL)
	replicas := map[string]*exec.Cmd{}
	for _, name := range []string{"one", "two"} {
		replicas[name] = replica(t, binary, redis.URL(), name, job)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	holder := ""
	select {
	case holder = <-began:
	case <-ctx.Done():
		t.Fatal("the job did not begin")
	}
	if err := replicas[holder].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-written: // the takeover has written
	case <-ctx.Done():
		t.Fatal("no replica took the run over")
	}
	if err := replicas[holder].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if !<-refused {
		t.Error("the old run wrote after the new one")
	}
	mu.Lock()
	defer mu.Unlock()
	if greatest == 0 {
		t.Error("nothing was written")
	}
}

// steps plays the SQL of docs/handlers.md in SQLite. Each step is a block's number, its values, and how many rows it wants.
const steps = `
import json, re, sqlite3, sys
blocks = re.findall(r"(?ms)^\x60\x60\x60sql\n(.*?)^\x60\x60\x60$", open(sys.argv[1]).read())
db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("CREATE TABLE balances (account TEXT PRIMARY KEY, amount INT, token BIGINT)")
db.execute("INSERT INTO balances VALUES ('a', 0, 0)")
for n, values, want in json.loads(sys.argv[2]):
    cursor = db.execute(blocks[n], values)
    rows = cursor.fetchall()
    got = len(rows) if "RETURNING" in blocks[n] else max(cursor.rowcount, 0)
    if got != want:
        sys.exit(f"block {n} with {values}: {got} rows, want {want}")
`

func TestTheSQLOfThePageDoesWhatItSays(t *testing.T) {
	needs(t, python3(), "-c", "import sqlite3")
	uses(t, "../../docs/handlers.md")
	const create, begin, end, write = 0, 1, 2, 3
	type values map[string]any
	call := func(token int) values { return values{"key": "k", "token": token} }
	ended := func(token int, state string) values {
		return values{"key": "k", "token": token, "state": state, "answer": "{}"}
	}
	plan, err := json.Marshal([][3]any{
		{create, values{}, 0},
		{begin, call(5), 1},          // a new key
		{begin, call(5), 0},          // under way
		{end, ended(5, "failed"), 1}, //
		{begin, call(5), 1},          // again, after a failure
		{begin, call(6), 1},          // a later run takes over what died
		{end, ended(5, "done"), 0},   // and the old one's end counts for nothing
		{end, ended(6, "done"), 1},   //
		{begin, call(7), 0},          // what is done stays done
		{write, values{"account": "a", "amount": 1, "token": 6}, 1},
		{write, values{"account": "a", "amount": 2, "token": 5}, 0}, // an older run
		{write, values{"account": "a", "amount": 3, "token": 6}, 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python3(), "-c", steps, "../../docs/handlers.md", string(plan)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
