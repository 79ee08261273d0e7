package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/internal/instance"
	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/redistest"
	"github.com/solotick/solotick/lock"
	"github.com/solotick/solotick/sidecar/execute"
)

// endless is a table with two jobs that never end. Their leases outlast the test: a run is taken over only by a replica
// that knows that its process has died, and a busy machine loses none.
func endless(redis string) string {
	return fmt.Sprintf(endlessTable, redis, time.Now().Add(3*time.Second).UTC().Format(time.RFC3339))
}

const endlessTable = `
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: ""
defaults: {lock: {ttl: 10m}, timeout: 1h}
jobs:
  - name: once
    schedule: "@every 1s"
    exec: {command: ["sh", "-c", "echo once; sleep 600"]}
  - name: again
    schedule: "@every 30s" # from that time on: a tick that came due beside the restart could be fired before the repetition
    start: %q
    guarantee: at-least-once
    exec: {command: ["sh", "-c", "echo again $SOLOTICK_ATTEMPT; sleep 600"]}
`

// said is the number of lines of that kind so far.
func (r *replica) said(msg string, attrs ...string) (n int) {
	for _, l := range r.soFar() {
		if l.is(msg, attrs...) {
			n++
		}
	}
	return n
}

// goesOn checks that a replica which is started now goes on with both jobs of endless.
func goesOn(t *testing.T, start func() *replica) {
	t.Helper()
	r := start()
	r.await("once")
	r.await("again 2")
	for _, job := range []string{"once", "again"} {
		l := r.await("finished", "job", job, "outcome", "interrupted", "replica", "one")
		if want := "the process of replica one ended during the run; replica one was restarted in its place"; l.text("err") != want {
			t.Errorf("told as %q", l.text("err"))
		}
	}
	r.kill()
}

func TestAReplicaThatIsKilledAndRestartedInItsPlaceGoesOnBeforeItsLeasesAreOver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	p.write(endless(s.URL()))
	r := p.start()
	r.await("once")
	r.await("again 1")
	r.kill()
	goesOn(t, p.start)
}

func TestWithoutAStateDirectoryThePlaceIsThatOfTheNameBelowTheRuntimeDirectory(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	runtime := t.TempDir()
	table := endless(s.URL())
	start := func() *replica {
		return launch(t, table, []string{"XDG_RUNTIME_DIR=" + runtime}, "--replica", "one")
	}
	r := start()
	r.await("once")
	r.await("again 1")
	r.kill()
	goesOn(t, start)
	if kept, err := filepath.Glob(filepath.Join(runtime, "solotick", "*", "*")); err != nil || len(kept) != 1 || filepath.Base(kept[0]) != "instance" {
		t.Errorf("it keeps %v, %v", kept, err)
	}
}

// takesNothing checks that a replica which looks around for three ticks takes no run over.
func takesNothing(t *testing.T, r *replica) {
	t.Helper()
	for _, tick := range []int{1, 2, 3} {
		r.awaitLine(fmt.Sprint("overlap ", tick), func(l line) bool {
			return l.is("skipped", "job", "once", "reason", "overlap") && r.said("skipped", "job", "once", "reason", "overlap") >= tick
		})
	}
	if n := r.said("finished"); n > 0 {
		t.Errorf("it has ended %d runs", n)
	}
}

func TestASecondProcessInThePlaceOfOneThatLivesTakesNothingOver(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	p.write(endless(s.URL()))
	first := p.start()
	first.await("once")
	first.await("again 1")
	second := p.start()
	l := second.await("restarts in place are not noticed: runs that a crash cuts short are taken over when their leases are over",
		"level", "WARN", "dir", p.state)
	if !strings.HasSuffix(l.text("err"), "another process has it") {
		t.Errorf("told as %v", l)
	}
	second.await("the last good table is not kept: with a broken table, a restart would fail", "level", "ERROR", "err", l.text("err"))
	takesNothing(t, second)
	if n := first.said("finished"); n > 0 {
		t.Errorf("%d runs of the first have ended", n)
	}
}

func TestAfterARebootNothingIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := newPlace(t)
	p.write(endless(s.URL()))
	r := p.start()
	r.await("once")
	r.await("again 1")
	r.kill()
	file := filepath.Join(p.state, "instance")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, processes, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(file, []byte("01234567-89ab-cdef-0123-456789abcdef\n"+processes), 0o600); err != nil {
		t.Fatal(err)
	}
	takesNothing(t, p.start())
}

func TestADirectoryThatCannotBeMadeIsToldOfOnlyIfItWasAskedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		asked string
		env   []string
		level string
	}{
		{"no", []string{"XDG_RUNTIME_DIR=" + file}, "DEBUG"},
		{"yes", []string{"SOLOTICK_STATE_DIR=" + filepath.Join(file, "state")}, "WARN"},
	} {
		r := launch(t, endless(s.URL()), c.env, "--replica", "one-"+c.asked, "--log-level", "debug")
		r.await("restarts in place are not noticed: runs that a crash cuts short are taken over when their leases are over", "level", c.level)
		r.await("taking ticks")
		r.kill()
	}
}

// lives reports whether a process is there, and is no zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func TestWhatACommandOfAKilledReplicaLeftRunningIsKilledByTheNextOne(t *testing.T) {
	t.Parallel()
	needs.Program(t, "setsid")
	s := redistest.Start(t)
	p := newPlace(t)
	p.write(fmt.Sprintf(`
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: ""
jobs:
  - name: tree
    schedule: "@every 1s"
    exec: {command: ["sh", "-c", "setsid sleep 601 & echo daemon $!; sleep 600 & echo child $!; wait"]}
`, s.URL()))
	pidOf := func(r *replica, what string) int {
		word, isIt := "", func(l line) bool { return strings.HasPrefix(l.text("msg"), what+" ") }
		word = strings.TrimPrefix(r.awaitLine(what, isIt).text("msg"), what+" ")
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Kill(pid, syscall.SIGKILL) }) // most have ended
		return pid
	}
	r := p.start()
	daemon, child := pidOf(r, "daemon"), pidOf(r, "child")
	r.kill()
	if !lives(child) {
		t.Fatal("the child ended with the replica: this test shows nothing")
	}
	next := p.start()
	next.await("killed what the commands of a dead process had left running", "groups", "1")
	eventually(t, "the end of the child", func() bool { return !lives(child) })
	if !lives(daemon) {
		t.Error("the daemon, which has a session of its own, was killed")
	}
	pidOf(next, "daemon")
	own := pidOf(next, "child")
	next.kill()
	// Another boot, another machine: nothing is known of what runs here.
	if err := os.Remove(filepath.Join(p.state, "instance")); err != nil {
		t.Fatal(err)
	}
	last := p.start()
	last.await("taking ticks")
	if !lives(own) {
		t.Error("the child of a process of which nothing is known was killed")
	}
}

func TestTwoReplicasOfOneMachineHavePlacesOfTheirOwn(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	places := map[string]bool{}
	for _, replica := range []string{"one", "two"} {
		for _, service := range []string{"shop", "billing"} {
			places[(&app{replica: replica}).defaultInstance(service, replica)] = true
		}
	}
	if len(places) != 4 {
		t.Errorf("two replicas of two services have the places %v", places)
	}
}

// A session may have processes of several replicas, as that of a terminal has.
func TestOnlyCommandsOfDeadProcessesAreKilled(t *testing.T) {
	dir, dead, living := t.TempDir(), uuid.NewString(), uuid.NewString()
	before, err := instance.Hold(dir, lock.Node(dead))
	if err != nil {
		t.Fatal(err)
	}
	_ = before.Close() // as a crash does
	command := func(process string) (pid int, ended <-chan error) {
		c := exec.Command("sleep", "600")
		c.Env = append(os.Environ(), execute.RunVariable+"="+uuid.NewString()[:24]+lock.Node(process))
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		t.Cleanup(func() { _ = c.Process.Kill() })
		return c.Process.Pid, done
	}
	_, ended := command(dead)
	other, _ := command(living)
	nodes, held := (&app{state: stateDir(dir)}).holdInstance("shop", "one", uuid.NewString(), slog.New(slog.DiscardHandler))
	defer held.Close()
	if len(nodes) != 1 || nodes[0] != lock.Node(dead) {
		t.Fatalf("dead are %q", nodes)
	}
	<-ended
	if !lives(other) {
		t.Error("the command of a replica that lives was killed")
	}
}
