package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/internal/testing/rig"
	"github.com/solotick/solotick/sidecar/view"
)

// Answers of a fakeReplica that are no status.
const (
	cutOff = 0  // the connection is cut
	hung   = -1 // no answer comes
)

// fakeReplica answers claims and reports. A kind of request is the last part of its path.
type fakeReplica struct {
	t         *testing.T
	heartbeat int
	answers   map[string][]int // to each kind, in turn; the last one is repeated; none = 200
	body      string           // of answers other than 200

	mu    sync.Mutex
	seen  []string // kinds, those of finish with the report
	heard time.Time
}

func (f *fakeReplica) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := path.Base(r.URL.Path)
	said, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	status := http.StatusOK
	if turns := f.answers[kind]; len(turns) > 0 {
		status = turns[0]
		f.answers[kind] = turns[min(1, len(turns)-1):]
	}
	if kind == "heartbeat" && status == http.StatusOK {
		f.heard = time.Now()
	}
	f.seen = append(f.seen, strings.TrimSpace(kind+" "+string(said)))
	f.mu.Unlock()
	want := map[string]string{"now": "/v1/jobs/a%2Fb/ticks/now ", "heartbeat": "/v1/runs/r1/heartbeat Bearer s3", "finish": "/v1/runs/r1/finish Bearer s3"}[kind]
	if got := r.URL.EscapedPath() + " " + r.Header.Get("Authorization"); r.Method != http.MethodPost || got != want {
		f.t.Errorf("%s %s, want %s", r.Method, got, want)
	}
	switch status {
	case cutOff:
		panic(http.ErrAbortHandler)
	case hung:
		<-r.Context().Done()
	case http.StatusOK:
		fmt.Fprintf(w, `{"job":"a/b","tick":"2027-03-28T07:20:00.000Z","run":"r1","token":"s3","fencingToken":7,"heartbeatMs":%d}`, f.heartbeat)
	default:
		w.WriteHeader(status)
		fmt.Fprint(w, f.body)
	}
}

// count returns how many requests of a kind have come.
func (f *fakeReplica) count(kind string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen {
		if strings.HasPrefix(s, kind) {
			n++
		}
	}
	return n
}

// last returns the last request, except heartbeats: one that was on its way may come after the finish.
func (f *fakeReplica) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range slices.Backward(f.seen) {
		if s != "heartbeat" {
			return s
		}
	}
	return ""
}

// command is a process of solotick claim for a shell script, which has not been started.
func (f *fakeReplica) command(t *testing.T, args ...string) *exec.Cmd {
	f.t = t
	if f.heartbeat == 0 {
		f.heartbeat = 60_000
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	cmd := exec.Command("solotick", append([]string{"claim", "a/b", "--admin", server.Listener.Addr().String(), "--"}, args...)...)
	cmd.Env = bareEnv("SOLOTICK_REPLICA=mine")
	return cmd
}

// claims runs solotick claim to its end.
func (f *fakeReplica) claims(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := f.command(t, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run() // the exit code tells
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

func TestACommandThatHasTheTickIsRunAndReported(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		code   int
		report string
	}{
		"exit 0":      {0, `{"detail":"","outcome":"succeeded"}`},
		"exit 3":      {3, `{"detail":"exit code 3","outcome":"failed"}`},
		"kill -9 $$":  {137, `{"detail":"killed by SIGKILL","outcome":"failed"}`},
		"kill -15 $$": {143, `{"detail":"killed by SIGTERM","outcome":"failed"}`},
	} {
		f := &fakeReplica{}
		code, out, errOut := f.claims(t, "sh", "-c", "echo out; echo err >&2; "+script)
		if code != want.code || out != "out\n" || errOut != "err\n" {
			t.Errorf("%s: %d %q %q", script, code, out, errOut)
		}
		if wanted := []string{"now", "heartbeat", "finish " + want.report}; !slices.Equal(f.seen, wanted) {
			t.Errorf("%s: %q", script, f.seen)
		}
	}
}

func TestTheCommandHasTheEnvironmentAndItsRun(t *testing.T) {
	t.Parallel()
	code, out, errOut := (&fakeReplica{}).claims(t, "sh", "-c", "env | grep ^SOLOTICK | sort")
	want := `SOLOTICK_FENCING_TOKEN=7
SOLOTICK_JOB=a/b
SOLOTICK_REPLICA=mine
SOLOTICK_RUN=r1
SOLOTICK_TICK=2027-03-28T07:20:00.000Z
`
	if code != 0 || out != want || errOut != "" {
		t.Errorf("%d %s%s", code, out, errOut)
	}
}

func TestATickOfAnotherIsNoErrorAndNotMailed(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{answers: map[string][]int{"now": {409}}, body: `{"error": "it is fired", "reason": "fired_elsewhere", "by": "two"}`}
	if code, out, errOut := f.claims(t, "echo", "run"); code != 0 || out != "" || errOut != "" || len(f.seen) != 1 {
		t.Errorf("%d %q %q %q", code, out, errOut, f.seen)
	}
}

func TestAClaimThatIsRefusedIsAnError(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{400: exitUsage, 404: exitUsage, 409: exitUsage, 422: exitUsage, 503: exitCannot} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			f := &fakeReplica{answers: map[string][]int{"now": {status}}, body: `{"error": "so it is", "hint": "do that"}`}
			code, out, errOut := f.claims(t, "echo", "run")
			if code != want || out != "" || errOut != "error: asking for a tick of job \"a/b\": so it is\nhint: do that\n" {
				t.Errorf("%d %q %q", code, out, errOut)
			}
			if asked := f.count("now"); (status == 503) != (asked > 1) {
				t.Errorf("asked %d times", asked)
			}
		})
	}
	t.Run("another program", func(t *testing.T) {
		t.Parallel()
		f := &fakeReplica{answers: map[string][]int{"now": {404}}, body: "<html>"}
		if code, _, errOut := f.claims(t, "echo", "run"); code != exitUsage || errOut != "error: asking for a tick of job \"a/b\": 404 Not Found\n" {
			t.Errorf("%d %q", code, errOut)
		}
	})
	t.Run("no replica", func(t *testing.T) {
		t.Parallel()
		addr := rig.FreeAddr(t)
		var out, errOut bytes.Buffer
		code := commandLine([]string{"claim", "x", "--admin", addr, "--", "echo", "run"}, &out, &errOut)
		if code != exitCannot || !strings.HasPrefix(errOut.String(), "error: no replica answers at "+addr+"\nhint: is it running?") {
			t.Errorf("%d %s", code, &errOut)
		}
	})
}

func TestAReplicaThatIsStartingIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{answers: map[string][]int{"now": {503, cutOff, 200}, "heartbeat": {503, cutOff, 200}}}
	code, out, errOut := f.claims(t, "echo", "run")
	if want := strings.Fields("now now now heartbeat heartbeat heartbeat"); code != 0 || out != "run\n" || errOut != "" || !slices.Equal(f.seen[:len(f.seen)-1], want) {
		t.Errorf("%d %q %q %q", code, out, errOut, f.seen)
	}
}

func TestAClaimThatWaitsIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"overlap", "paused"} {
		f := &fakeReplica{answers: map[string][]int{"now": {409, 503, cutOff, 409, 200}}, body: `{"reason": "` + reason + `"}`}
		cmd := f.command(t, "echo", "run")
		cmd.Args = slices.Insert(cmd.Args, 2, "--wait")
		if out, err := cmd.CombinedOutput(); string(out) != "run\n" || err != nil || f.count("now") != 5 {
			t.Errorf("%s: %s%v %q", reason, out, err, f.seen)
		}
	}
	f := &fakeReplica{answers: map[string][]int{"now": {409}}, body: `{"reason": "fired_elsewhere"}`}
	cmd := f.command(t, "echo", "run")
	cmd.Args = slices.Insert(cmd.Args, 2, "--wait")
	if out, err := cmd.CombinedOutput(); len(out) > 0 || err != nil {
		t.Errorf("%s%v", out, err)
	}
}

func TestACommandIsNotBegunWithoutAHeartbeat(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{404: "no run", 410: "no run", hung: "context deadline exceeded", cutOff: ""} { // the last of many may be cut, or meet the end of the time
		f := &fakeReplica{answers: map[string][]int{"heartbeat": {status}}, body: `{"error": "no run"}`}
		if status <= 0 { // nothing ends the questions but their time
			f.heartbeat = 1000
		}
		code, out, errOut := f.claims(t, "echo", "run")
		if code != exitCannot || out != "" || !strings.HasPrefix(errOut, "error: the run was lost before it began: sending a heartbeat: ") || !strings.Contains(errOut, says) || f.count("finish") > 0 {
			t.Errorf("%d: %d %q %q %q", status, code, out, errOut, f.seen)
		}
	}
}

// deaf says when SIGTERM comes, as does its child, and goes on.
const deaf = `trap 'echo TERM' TERM; (trap 'echo child' TERM; while :; do sleep 0.05; done) & while :; do sleep 0.05; done`

// TestALostCommandIsToldAndThenKilled before its time is over, with its whole process group.
func TestALostCommandIsToldAndThenKilled(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]int{"silence": {200, 200, hung}, "cut": {200, 200, cutOff}, "unsure": {200, 503}, "gone": {200, 410}, "unknown": {200, 404}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeReplica{heartbeat: 9000, answers: map[string][]int{"heartbeat": answers}, body: `{"error": "it is so"}`}
			code, out, errOut := f.claims(t, "sh", "-c", deaf) // returns when all have closed its output
			if took := time.Since(f.heard); took > 18*time.Second {
				t.Errorf("the command worked for another %s", took)
			}
			if code != 137 || !strings.Contains(out, "TERM\n") || !strings.Contains(out, "child\n") || !strings.Contains(errOut, "error: the run was lost: sending a heartbeat: ") {
				t.Errorf("%d %q %q", code, out, errOut)
			}
			if f.last() != `finish {"detail":"killed by SIGKILL","outcome":"interrupted"}` {
				t.Errorf("%q", f.seen)
			}
		})
	}
}

// TestACommandEndsBeforeItsTimeDoes whenever a heartbeat was answered: its time counts from when that was sent.
func TestACommandEndsBeforeItsTimeDoes(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(100 * time.Millisecond) // as a busy replica does
		fmt.Fprint(w, "{}")
	}))
	defer slow.Close()
	c := &claimed{Granted: view.Granted{Run: "r1", Token: "s3"}, admin: slow.Listener.Addr().String(), heartbeat: time.Minute, grace: time.Second}
	before := time.Now()
	if err := c.beat(t.Context(), before.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if late := c.end.Load().Sub(c.sent.Add(time.Minute)); late >= 0 || c.sent.After(time.Now().Add(-100*time.Millisecond)) {
		t.Errorf("the end is %s after that of its time, the heartbeat was sent after %s", late, c.sent.Sub(before))
	}
}

func TestALostCommandThatSucceedsAllTheSameIsReportedSo(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{heartbeat: 9000, answers: map[string][]int{"heartbeat": {200, 410}}, body: `{"error": "timeout"}`}
	code, _, errOut := f.claims(t, "sh", "-c", `trap 'exit 0' TERM; while :; do sleep 0.05; done`)
	if code != 0 || !strings.HasSuffix(errOut, "error: the run was lost: sending a heartbeat: timeout\n") || f.last() != `finish {"detail":"","outcome":"succeeded"}` {
		t.Errorf("%d %q %q", code, errOut, f.seen)
	}
}

// signalled starts a script that says when it is ready, and signals solotick then.
func signalled(t *testing.T, f *fakeReplica, s syscall.Signal, script string) (code int, out string) {
	t.Helper()
	cmd := f.command(t, "sh", "-c", script+"; echo ready; while :; do sleep 0.05; done")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	beaten := f.count("heartbeat")
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait() // the exit code tells
	if strings.Contains(script, "echo") && f.count("heartbeat") == beaten {
		t.Errorf("no heartbeat was sent after %s", s)
	}
	return cmd.ProcessState.ExitCode(), string(rest)
}

func TestASignalIsPassedOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal      syscall.Signal
		script      string
		code        int
		out, report string
	}{
		"TERM": {syscall.SIGTERM, ":", 143, "", `{"detail":"killed by SIGTERM","outcome":"interrupted"}`},
		"INT":  {syscall.SIGINT, ":", 130, "", `{"detail":"killed by SIGINT","outcome":"interrupted"}`},
		"HUP":  {syscall.SIGHUP, ":", 129, "", `{"detail":"killed by SIGHUP","outcome":"interrupted"}`},
		"tidy": {syscall.SIGHUP, "trap 'sleep 2; echo tidied; exit 7' HUP", 7, "tidied\n", `{"detail":"exit code 7","outcome":"interrupted"}`},
		"done": {syscall.SIGTERM, "trap 'sleep 2; echo tidied; exit 0' TERM", 0, "tidied\n", `{"detail":"","outcome":"succeeded"}`},
		"deaf": {syscall.SIGTERM, "trap 'echo no' TERM", 137, "no\n", `{"detail":"killed by SIGKILL","outcome":"interrupted"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeReplica{heartbeat: 3000}
			if code, out := signalled(t, f, c.signal, c.script); code != c.code || out != c.out || f.last() != "finish "+c.report {
				t.Errorf("%d %q %q", code, out, f.seen)
			}
		})
	}
}

func TestTheEndIsReportedAgainUntilItIsTaken(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{answers: map[string][]int{"finish": {503, cutOff, 200}}}
	if code, _, errOut := f.claims(t, "true"); code != 0 || errOut != "" || f.count("finish") != 3 {
		t.Errorf("%d %q %q", code, errOut, f.seen)
	}
	f = &fakeReplica{answers: map[string][]int{"finish": {410}}, body: `{"error": "the run is over"}`}
	if code, _, errOut := f.claims(t, "sh", "-c", "exit 4"); code != 4 || errOut != "error: reporting the end of the run: the run is over\n" || f.count("finish") != 1 {
		t.Errorf("%d %q %q", code, errOut, f.seen)
	}
}

func TestACommandThatCannotBeStartedHasFailed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"no-such-command": 127, "/no/such/command": 127, file: 126, "/": 126} {
		f := &fakeReplica{}
		got, out, errOut := f.claims(t, name)
		if got != code || out != "" || !regexp.MustCompile(`^error: .*`+name+`.*\n$`).MatchString(errOut) || !strings.Contains(f.last(), name) || !strings.Contains(f.last(), `"failed"`) {
			t.Errorf("%s: %d %q %q %q", name, got, out, errOut, f.seen)
		}
	}
}

func TestAClaimNeedsACommand(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"claim", "claim x", "claim x --", "claim -- x", "claim x y", "claim x y -- z"} {
		var out, errOut bytes.Buffer
		if code := commandLine(strings.Fields(args), &out, &errOut); code != exitUsage || errOut.String() != "error: claim takes the name of one job, --, and a command\nhint: solotick claim JOB -- COMMAND\n" {
			t.Errorf("%s: %d %s", args, code, &errOut)
		}
	}
}

// TestOneOfTheCrontabsRunsTheCommand: three machines have a replica and the same line each.
func TestOneOfTheCrontabsRunsTheCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	tables := make([]string, 3)
	replicas := make([]*replica, 3)
	for i := range replicas {
		replicas[i] = launch(t, fmt.Sprintf(`
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: "127.0.0.1:0"
jobs:
  - {name: report, schedule: "@every 10s", claim: {heartbeat: 6s}}
  - {name: other, schedule: "@every 10s", exec: {command: ["true"]}}
  - {name: lease, schedule: "@lease", claim: {heartbeat: 6s}}
`, s.URL()), nil, "--replica", fmt.Sprint(i))
		tables[i] = replicas[i].await("serving the status page and the API").text("addr")
	}
	for _, r := range replicas {
		r.await("taking ticks")
	}
	lease := make([]string, 3)
	var holders sync.WaitGroup
	for i, addr := range tables {
		holders.Go(func() {
			cmd := exec.Command("solotick", "claim", "lease", "--wait", "--admin", addr, "--", "sh", "-c", "date +%s.%N; sleep 2; date +%s.%N")
			cmd.Env = bareEnv()
			out, err := cmd.CombinedOutput()
			if lease[i] = string(out); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	tick := time.Now().Add(5 * time.Second).Truncate(10 * time.Second).Add(10 * time.Second).UTC()
	outputs := make([]string, 3)
	var all sync.WaitGroup
	for i, addr := range tables {
		all.Go(func() {
			cmd := exec.Command("solotick", "claim", "report", "--admin", addr, "--tick", tick.Format(time.RFC3339),
				"--", "sh", "-c", "echo $SOLOTICK_TICK $SOLOTICK_FENCING_TOKEN; sleep 8; exit 5")
			cmd.Env = bareEnv()
			out, _ := cmd.CombinedOutput() // the exit code tells
			if outputs[i] = string(out); cmd.ProcessState.ExitCode() != map[bool]int{false: 0, true: 5}[len(out) > 0] {
				t.Errorf("%d: %s", cmd.ProcessState.ExitCode(), out)
			}
		})
	}
	all.Wait()
	if slices.Sort(outputs); outputs[1] != "" || !regexp.MustCompile("^"+view.Stamp(tick)+` \d+\n$`).MatchString(outputs[2]) {
		t.Errorf("%q", outputs)
	}
	awaitAny(t, replicas, "the end", func(l line) bool {
		return l.is("finished", "job", "report", "outcome", "failed", "tick", view.Stamp(tick))
	})
	holders.Wait()
	if slices.Sort(lease); !slices.IsSorted(strings.Fields(strings.Join(lease, ""))) { // one after the other
		t.Errorf("%q", lease)
	}
	for job, says := range map[string]string{"other": `asking for a tick of job "other": `, "none": "there is no job of that name"} {
		var out, errOut bytes.Buffer
		if code := commandLine([]string{"claim", job, "--admin", tables[0], "--", "echo", "run"}, &out, &errOut); code != exitUsage || !strings.Contains(errOut.String(), says) {
			t.Errorf("%s: %d %s", job, code, &errOut)
		}
	}
	var out, errOut bytes.Buffer
	if code := commandLine([]string{"claim", "report", "--admin", tables[0], "--tick", "2027-03-28T07:00:01Z", "--", "echo", "run"}, &out, &errOut); code != exitUsage {
		t.Errorf("no tick: %d %s", code, &errOut)
	}
}
