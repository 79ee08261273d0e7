package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// asDemo is the variable with which this test binary is the demo.
const asDemo = "AS_THE_DEMO"

// patience is how long a test waits for what must come; the first one may have to compile everything.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asDemo) != "" {
		main()
		return
	}
	var err error
	if tests, err = os.MkdirTemp("", "demo-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(tests)
	os.Exit(code)
}

// tests is a directory for built.
var tests string

// built builds solotick once for all tests.
var built = sync.OnceValues(func() (string, error) {
	program, err := build(context.Background(), tests)
	return program, err
})

func solotick(t *testing.T) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// run is one run of the demo, as its user sees it.
type run struct {
	t       *testing.T
	cmd     *exec.Cmd
	scratch string // where it may put files
	out     *bufio.Reader
	said    strings.Builder
}

func begin(t *testing.T, argv ...string) *run {
	t.Helper()
	d := &run{t: t, scratch: t.TempDir(), cmd: exec.Command(argv[0], argv[1:]...)}
	d.cmd.Env = append(os.Environ(), asDemo+"=1", "TMPDIR="+d.scratch, "XDG_RUNTIME_DIR="+d.scratch)
	return d.begin()
}

func (d *run) begin() *run {
	d.t.Helper()
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	d.cmd.Stderr = d.cmd.Stdout
	d.out = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	limit := time.AfterFunc(2*patience, func() { _ = d.cmd.Process.Kill() })
	d.t.Cleanup(func() {
		limit.Stop()
		_ = d.cmd.Process.Kill() // which is no error when it has ended
		if d.t.Failed() {
			d.t.Logf("the demo said:\n%s", d.said.String())
		}
	})
	return d
}

// await reads until a line matches, and returns what the pattern's brackets hold.
func (d *run) await(pattern string) []string {
	d.t.Helper()
	re := regexp.MustCompile(pattern)
	for {
		line, err := d.out.ReadString('\n')
		d.said.WriteString(line)
		if m := re.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			return m[1:]
		}
		if err != nil {
			d.t.Fatalf("the demo ended without saying %q", pattern)
		}
	}
}

// ends waits for the end and returns the exit code.
func (d *run) ends() int {
	rest, _ := io.ReadAll(d.out)
	d.said.Write(rest)
	_ = d.cmd.Wait()
	return d.cmd.ProcessState.ExitCode()
}

// end waits for the end and wants the exit code.
func (d *run) end(code int) {
	d.t.Helper()
	if got := d.ends(); got != code {
		d.t.Errorf("exit code %d, want %d", got, code)
	}
}

// number returns a number of the summary.
func (d *run) number(what string) int {
	d.t.Helper()
	m := regexp.MustCompile(`(?m)^  ` + what + ` +(\d+) `).FindStringSubmatch(d.said.String())
	if m == nil {
		d.t.Fatalf("the summary does not count %q", what)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// lost returns how many ticks the summary calls lost. On a busy machine a tick of the job that fires every second may
// come too late to be fired before the next one; but that is rare.
func (d *run) lost() int {
	d.t.Helper()
	lost, due := d.number("lost"), d.number("ticks due")
	if lost > max(2, due/5) {
		d.t.Errorf("%d of %d ticks were lost", lost, due)
	}
	return lost
}

// nothingLeft checks that no replica is left and, if files is set, no file either.
func (d *run) nothingLeft(files bool) {
	d.t.Helper()
	limit := time.After(patience)
	for alive := running(d.t, d.scratch); len(alive) > 0; alive = running(d.t, d.scratch) {
		select {
		case <-limit:
			d.t.Fatalf("still there: %q", alive)
		default:
		}
	}
	left, err := filepath.Glob(filepath.Join(d.scratch, "*"))
	if err != nil || files && len(left) > 0 {
		d.t.Errorf("left behind: %v, %v", left, err)
	}
}

// running returns the command lines of live processes that name the directory.
func running(t *testing.T, dir string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no processes: %v", err)
	}
	var found []string
	for _, file := range lines {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// The command as it stands in the README, until it has fired ten ticks. Like the terminal, the test sends Ctrl-C to the
// whole group.
func TestTheDemoOfTheREADMECountsWhatTheAppGot(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^go run ./examples/demo.*$`).FindString(string(text))
	if command == "" {
		t.Fatal("the README has no command of the demo")
	}
	d := &run{t: t, scratch: t.TempDir(), cmd: exec.Command("sh", "-c", "cd ../.. && exec "+command+" --no-kill")}
	d.cmd.Env, d.cmd.SysProcAttr = append(os.Environ(), "TMPDIR="+d.scratch, "XDG_RUNTIME_DIR="+d.scratch), &syscall.SysProcAttr{Setpgid: true}
	d.begin()
	for range 10 {
		d.await(`● fired    `)
	}
	if err := syscall.Kill(-d.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	d.ends() // by the exit code of go run, which is always 1 after Ctrl-C
	if due, once := d.number("ticks due"), d.number("fired once"); due < 1 || once < due-d.number("skipped on purpose")-d.lost() {
		t.Errorf("%d of %d ticks were fired once", once, due)
	}
	if d.number("doubles") != 0 || d.number("replicas killed") != 0 {
		t.Error("the summary has what ought not to be")
	}
	if said := d.said.String(); strings.Contains(said, "\x1b") || !strings.Contains(said, "● fired    ") {
		t.Error("the stream is not what it ought to be")
	}
	d.nothingLeft(true)
}

func TestTheDemoShowsATakeoverAndEndsAtCtrlC(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()       // with a browser in it
	syscall.ForkLock.RLock() // or a process that is forked meanwhile keeps the file open for writing
	err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" >"+bin+"/opened\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	d := begin(t, "env", "PATH="+bin+":"+os.Getenv("PATH"), os.Args[0], "--open", "--solotick", solotick(t))
	page := d.await(`status page  (http://127\.0\.0\.1:\d+/)$`)[0]
	victim := d.await(`(\w+) +✗ killed with SIGKILL while it ran send-report$`)[0]
	m := d.await(`send-report    (\w+) +↻ took over [0-9:]+ from ` + victim + `, runs it again$`)
	if victim == "one" || m[0] == victim {
		t.Errorf("%s was killed, and %s took over", victim, m[0])
	}
	d.await(victim + ` +started again$`)
	if text := fetch(t, page); !strings.Contains(text, "<html") {
		t.Errorf("the status page is %.200s", text)
	}
	if text := fetch(t, page+"v1/status"); !strings.Contains(text, `"send-report"`) {
		t.Errorf("what the status page shows is %.200s", text)
	}
	if opened, err := os.ReadFile(bin + "/opened"); err != nil || string(opened) != page+"\n" {
		t.Errorf("the browser got %q, %v, want %s", opened, err, page)
	}
	if err := rig.Until(patience, "three replicas", func() bool { return len(running(t, d.scratch)) == 3 }); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code := d.ends()
	if lost := d.lost(); lost == 0 && code != 0 || lost > 0 && code != 1 {
		t.Errorf("exit code %d after %d lost ticks", code, lost)
	}
	if d.number("doubles") != 0 || d.number("replicas killed") < 1 || d.number("runs taken over") < 1 {
		t.Error("the summary has what ought not to be")
	}
	d.nothingLeft(true)
}

// A killed demo cannot clean up: the kernel ends its replicas, and the next demo removes its directory.
func TestADemoThatIsKilledLeavesNoReplicaAndTheNextOneTidiesUp(t *testing.T) {
	t.Parallel()
	d := begin(t, os.Args[0], "--solotick", solotick(t))
	d.await(`● fired`)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end(-1)
	d.nothingLeft(false)
	next := &run{t: t, scratch: d.scratch, cmd: exec.Command(os.Args[0], "--for", "1s", "--solotick", solotick(t))}
	next.cmd.Env = d.cmd.Env
	next.begin().end(0)
	next.nothingLeft(true)
}

func TestADemoWhoseReaderGoesEnds(t *testing.T) {
	t.Parallel()
	d := begin(t, "sh", "-c", os.Args[0]+" --no-kill --solotick "+solotick(t)+" | head -n 3")
	d.end(0)
	d.nothingLeft(true)
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	answer, err := (&http.Client{Timeout: patience}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
