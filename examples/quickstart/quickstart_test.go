//go:build linux

// Package quickstart shows that the first command of the README does what it says.
package quickstart

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what must come; the first `go run` may have to compile everything.
const patience = 2 * time.Minute

// insideVariable marks the process that has a network of its own.
const insideVariable = "QUICKSTART_INSIDE"

// alone runs the test in a network namespace of its own, where nobody sits on the fixed ports of the embedded store and
// of the app. It returns true in there. Where namespaces may not be made, that is the network of this machine.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		if os.Getenv(insideVariable) == "own" {
			bringUpLoopback(t)
		}
		return true
	}
	for _, network := range []string{"own", "shared"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), insideVariable+"="+network)
		if network == "own" {
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if network == "own" && err != nil && !errors.As(err, &exit) {
			continue
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return false
	}
	return false
}

func bringUpLoopback(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatalf("bringing up the loopback interface: %v", err)
	}
}

// terminal is one run of the command, as somebody sees it.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and made anew at every line
}

// open runs a command line of the README.
func open(t *testing.T, command string) *terminal {
	t.Helper()
	c := &terminal{t: t, done: make(chan struct{}), more: make(chan struct{})}
	c.cmd = exec.Command("sh", "-c", "exec "+command)
	c.cmd.Dir = "../.."
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a terminal's foreground job, so that Ctrl-C reaches all of it
	out, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read(out)
	t.Cleanup(func() {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) // which is no error when it has ended
		<-c.done
		if t.Failed() {
			t.Logf("terminal:\n%s", strings.Join(c.lines, "\n"))
		}
	})
	return c
}

func (c *terminal) read(out io.Reader) {
	defer close(c.done)
	for in := bufio.NewScanner(out); in.Scan(); {
		c.mu.Lock()
		c.lines = append(c.lines, in.Text())
		close(c.more)
		c.more = make(chan struct{})
		c.mu.Unlock()
	}
	_ = c.cmd.Wait() // the exit code is asked for by those whom it concerns
}

// await waits for a line after the first `from` ones, and returns how many lines there are up to it.
func (c *terminal) await(from int, pattern string) int {
	c.t.Helper()
	found := make(chan int, 1)
	go func() { found <- c.find(from, pattern) }()
	select {
	case at := <-found:
		if at == 0 {
			c.t.Fatalf("the command ended without saying %q", pattern)
		}
		return at
	case <-time.After(patience):
		c.t.Fatalf("the command did not say %q within %s", pattern, patience)
	}
	return 0
}

// find is await for ever; 0 when the command ended without such a line.
func (c *terminal) find(from int, pattern string) int {
	re := regexp.MustCompile(pattern)
	for ended := false; ; {
		c.mu.Lock()
		more := c.more
		for ; from < len(c.lines); from++ {
			if re.MatchString(c.lines[from]) {
				c.mu.Unlock()
				return from + 1
			}
		}
		c.mu.Unlock()
		if ended {
			return 0
		}
		select {
		case <-more:
		case <-c.done: // all lines are there now: one last look
			ended = true
		}
	}
}

// interrupt is Ctrl-C, and the end that follows.
func (c *terminal) interrupt() {
	c.t.Helper()
	if err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT); err != nil {
		c.t.Fatal(err)
	}
	select {
	case <-c.done:
	case <-time.After(patience):
		c.t.Fatalf("Ctrl-C did not end it within %s", patience)
	}
	// The exit code is that of `go run`, which is 1 after every Ctrl-C.
	c.await(0, `msg=stopped$`)
}

// firstCommand is the first line of the first shell block of the README.
func firstCommand(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```sh\n")
	if !ok {
		t.Fatal("the README has no shell block")
	}
	line, _, _ := strings.Cut(block, "\n")
	return line
}

func TestTheFirstCommandOfTheREADMEFiresEachTickOnceInOneTerminalAndInThree(t *testing.T) {
	if !alone(t) {
		return
	}
	command := firstCommand(t)
	if want := "go run ./cmd/solotick run -c examples/quickstart/table.yaml"; command != want {
		t.Fatalf("the README's first command is %q, want %q", command, want)
	}
	first := open(t, command)
	first.await(0, `msg="serving the embedded store`)
	first.await(0, `msg=finished job=hello .* outcome=succeeded`)
	first.await(0, `msg="hello from \S+" job=hello`)
	first.await(0, `msg=finished job=call-app .* outcome=succeeded .* code=200`)
	first.await(0, `msg="app: \S+ called for the tick `)

	all := []*terminal{first, open(t, command), open(t, command)}
	for _, c := range all[1:] {
		from := c.await(0, `msg="joined the embedded store`)
		c.await(from, `msg=fired job=(hello|call-app)`)
	}

	// Ctrl-C in the first terminal: another one serves the store, and starts the app again.
	first.mu.Lock()
	seen := len(first.lines)
	first.mu.Unlock()
	first.await(seen, `msg=(finished|skipped) job=call-app`) // the next tick is seconds away
	first.interrupt()
	heir := make(chan *terminal, 2)
	for _, c := range all[1:] {
		go func() {
			if c.find(0, `msg="app: listening on `) > 0 {
				heir <- c
			}
		}()
	}
	select {
	case c := <-heir:
		c.await(0, `msg="app: \S+ called for the tick `)
	case <-time.After(patience):
		t.Fatalf("nobody started the app again within %s", patience)
	}
	for _, c := range all[1:] {
		c.interrupt()
	}
	eachTickOnce(t, all)
	if conn, err := net.Dial("tcp", "127.0.0.1:9750"); err == nil {
		conn.Close()
		t.Error("the app has outlived the replicas")
	}
}

// eachTickOnce looks for ticks that were fired in two terminals, or twice in one.
func eachTickOnce(t *testing.T, all []*terminal) {
	t.Helper()
	fired := regexp.MustCompile(`msg=fired job=(\S+) tick=(\S+)`)
	times := map[string]int{}
	for _, c := range all {
		for _, l := range c.lines {
			if m := fired.FindStringSubmatch(l); m != nil {
				times[fmt.Sprintf("%s at %s", m[1], m[2])]++
			}
		}
	}
	if len(times) < 6 {
		t.Errorf("only %d ticks were fired", len(times))
	}
	for tick, n := range times {
		if n != 1 {
			t.Errorf("%s was fired %d times", tick, n)
		}
	}
}
