package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// patience is how long a test waits for an event that must come. Only a failing test takes that long.
const patience = time.Minute

// replica is one `solotick run` as a process, with a JSON log.
type replica struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu    sync.Mutex
	lines []line
	raw   []string
	more  chan struct{} // closed and made anew at every line
}

// line is one line of the log.
type line map[string]any

// is reports whether the line has that message and those attributes.
func (l line) is(msg string, attrs ...string) bool {
	if l["msg"] != msg {
		return false
	}
	for i := 0; i+1 < len(attrs); i += 2 {
		if fmt.Sprint(l[attrs[i]]) != attrs[i+1] {
			return false
		}
	}
	return true
}

func (l line) text(attr string) string {
	s, _ := l[attr].(string)
	return s
}

// bareEnv returns an environment that has nothing of this process's except where programs are, where replicas leave
// files, and what its race detector does.
func bareEnv(env ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + os.Getenv("XDG_RUNTIME_DIR"), "GORACE=" + os.Getenv("GORACE")}, env...)
}

// launch starts a replica with a table. It adds env to a bare environment and args to the command line.
func launch(t *testing.T, table string, env []string, args ...string) *replica {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("solotick", append([]string{"run", "-c", path, "--log-format", "json"}, args...)...)
	cmd.Env = bareEnv(env...)
	return start(t, cmd)
}

// start starts a command line of run.
func start(t *testing.T, cmd *exec.Cmd) *replica {
	t.Helper()
	r := &replica{t: t, cmd: cmd, done: make(chan struct{}), more: make(chan struct{})}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go r.read(stderr)
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // which is no error when it has ended
		<-r.done
		if t.Failed() {
			t.Logf("log of the replica:\n%s", strings.Join(r.raw, "\n"))
		}
	})
	return r
}

func (r *replica) read(stderr io.Reader) {
	defer close(r.done)
	for in := bufio.NewScanner(stderr); in.Scan(); {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			l = line{"msg": in.Text(), "broken": true}
		}
		if l["msg"] == "output" { // tests know a command by what it prints
			l["msg"] = l["line"]
		}
		r.mu.Lock()
		r.lines, r.raw = append(r.lines, l), append(r.raw, in.Text())
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
	}
	_ = r.cmd.Wait() // tests that need the exit code ask for it
}

// await returns the first line of the log, past or future, that has the message and the attributes.
func (r *replica) await(msg string, attrs ...string) line {
	r.t.Helper()
	return r.awaitLine(fmt.Sprintf("%q %v", msg, attrs), func(l line) bool { return l.is(msg, attrs...) })
}

// awaitLine returns the first line of the log, past or future, that is wanted.
func (r *replica) awaitLine(what string, wanted func(line) bool) line {
	r.t.Helper()
	return awaitAny(r.t, []*replica{r}, what, wanted)
}

// awaitAny returns the first line of any replica's log, past or future, that is wanted.
func awaitAny(t *testing.T, replicas []*replica, what string, wanted func(line) bool) line {
	t.Helper()
	found := make(chan line, len(replicas))
	for _, r := range replicas {
		go func() { found <- r.find(wanted) }()
	}
	limit := time.After(patience)
	for range replicas {
		select {
		case l := <-found:
			if l != nil {
				return l
			}
		case <-limit:
			t.Fatalf("%s was not logged within %s", what, patience)
		}
	}
	t.Fatalf("the end came before %s was logged", what)
	return nil
}

// soFar are the lines that have come.
func (r *replica) soFar() []line {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}

// find waits for the first line that is wanted; nil if the replica ended without it.
func (r *replica) find(wanted func(line) bool) line {
	for next, ended := 0, false; ; {
		r.mu.Lock()
		fresh, more := r.lines[next:], r.more
		next = len(r.lines)
		r.mu.Unlock()
		for _, l := range fresh {
			if wanted(l) {
				return l
			}
		}
		if ended {
			return nil
		}
		select {
		case <-more:
		case <-r.done: // all lines are there now: one last look
			ended = true
		}
	}
}

func (r *replica) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// wait waits for the end and returns the exit code, or -1 after a signal.
func (r *replica) wait() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.t.Fatalf("the replica did not end within %s", patience)
	}
	return r.cmd.ProcessState.ExitCode()
}

// stop ends the replica in order.
func (r *replica) stop() {
	r.t.Helper()
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != 0 {
		r.t.Errorf("the replica ended with exit code %d after SIGTERM, want 0", code)
	}
	for i, l := range r.lines {
		if l["broken"] != nil || l["time"] == nil || l["level"] == nil {
			r.t.Errorf("line %d of the JSON log is not an object with time and level: %s", i+1, r.raw[i])
		}
	}
}

// kill ends the replica as a crash of its machine does.
func (r *replica) kill() {
	r.t.Helper()
	r.signal(syscall.SIGKILL)
	r.wait()
}

// get asks the replica's HTTP server.
func (r *replica) get(path string) (code int, body string) {
	r.t.Helper()
	addr := r.await("serving /metrics /healthz /readyz").text("addr")
	answer, err := (&http.Client{Timeout: patience}).Get("http://" + addr + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	if err := rig.Until(patience, what, so); err != nil {
		t.Fatal(err)
	}
}
