//go:build linux

// Package quickstart shows that the first command of the README does what it says.
package quickstart

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what must come; the first `go run` may have to compile everything.
const patience = 2 * time.Minute

// insideVariable marks the process that has a network of its own, and binaryVariable names its solotick.
const (
	insideVariable = "QUICKSTART_INSIDE"
	binaryVariable = "QUICKSTART_BINARY"
)

// built builds the program once for all tests.
var built = sync.OnceValues(func() (file string, err error) {
	file = filepath.Join(scratch, "solotick")
	if out, err := exec.Command("go", "build", "-o", file, "../../cmd/solotick").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return file, nil
})

// scratch is a directory for built.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "solotick-quickstart-"); err != nil {
		panic(err)
	}
	_ = flag.Set("test.parallel", "4") // the tests wait for terminals
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// sharing is for tests that must share the network of this machine.
var sharing sync.Mutex

// alone runs the test in a network namespace of its own, where nobody sits on the ports of the embedded store. It
// returns true in there. Where namespaces may not be made, that is the network of this machine.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		if os.Getenv(insideVariable) == "own" {
			bringUpLoopback(t)
		}
		return true
	}
	t.Parallel()
	file, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"own", "shared"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), insideVariable+"="+network, binaryVariable+"="+file)
		if network == "own" {
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		} else {
			sharing.Lock()
			defer sharing.Unlock()
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

// open runs a command line of a user, with an environment.
func open(t *testing.T, env []string, command ...string) *terminal {
	t.Helper()
	c := &terminal{t: t, done: make(chan struct{}), more: make(chan struct{})}
	c.cmd = exec.Command(command[0], command[1:]...)
	// Replicas leave files below the last variable.
	c.cmd.Dir, c.cmd.Env = "../..", append(env[:len(env):len(env)], "XDG_RUNTIME_DIR="+t.TempDir())
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

// bare is the environment of one who has the binary and nothing else: no go, no sh, no home.
var bare = []string{"PATH="}

const table = "examples/quickstart/table.yaml"

func TestTheFirstCommandOfTheREADMEFiresEachTickOnceInOneTerminalAndInThree(t *testing.T) {
	if !alone(t) {
		return
	}
	command := firstCommand(t)
	if want := "go run ./cmd/solotick run -c " + table; command != want {
		t.Fatalf("the README's first command is %q, want %q", command, want)
	}
	first := open(t, os.Environ(), strings.Fields(command)...)
	first.await(0, `msg="serving the embedded store`)
	name := first.replica()
	first.await(0, `msg=output job=hello .*line="hello from `+name+`"`)
	first.await(0, `msg=finished job=hello .* outcome=succeeded .* code=0`)

	solotick := os.Getenv(binaryVariable)
	all := []*terminal{first, open(t, bare, solotick, "run", "-c", table), open(t, bare, solotick, "run", "-c", table)}
	share(t, all)

	// Ctrl-C in the first terminal: another one serves the store, and ticks go on.
	first.interrupt()
	heir := make(chan *terminal, 2)
	for _, c := range all[1:] {
		go func() {
			if c.find(0, `msg="serving the embedded store from now on`) > 0 {
				heir <- c
			}
		}()
	}
	select {
	case c := <-heir:
		c.await(c.seen(), `msg=(finished|skipped) job=hello .*(code=0|by=)`)
	case <-time.After(patience):
		t.Fatalf("nobody serves the store within %s", patience)
	}
	for _, c := range all[1:] {
		c.interrupt()
	}
	eachTickOnce(t, all)
}

// A port that another program has is no reason to send a newcomer away. The program here listens and says nothing.
func TestTheQuickstartRunsWhereItsPortsAreTaken(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, port := range []string{"9747", "9748", "9749", "8080"} {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	solotick := os.Getenv(binaryVariable)
	first := open(t, bare, solotick, "run", "-c", table)
	first.await(0, `msg="another program uses 127.0.0.1:9749, so the embedded store takes another port" addr=127.0.0.1:19749$`)
	first.await(0, `msg="serving the embedded store, for trying out on one machine" addr=127.0.0.1:19749$`)
	second := open(t, bare, solotick, "run", "-c", table)
	second.await(0, `msg="joined the embedded store of another process" addr=127.0.0.1:19749$`)
	share(t, []*terminal{first, second})

	// The other verbs find the store, too.
	out, err := exec.Command(solotick, "status", "-c", "../../"+table).CombinedOutput()
	if err != nil || !strings.Contains(string(out), second.replica()) {
		t.Errorf("status: %v\n%s", err, out)
	}
	first.interrupt()
	second.interrupt()
	eachTickOnce(t, []*terminal{first, second})
}

// With a Redis of one's own, the three are three replicas as well.
func TestThreeTerminalsWithARedisAreThreeReplicas(t *testing.T) {
	if !alone(t) {
		return
	}
	redis := miniredis.RunT(t)
	solotick := os.Getenv(binaryVariable)
	var all []*terminal
	names := map[string]bool{}
	for range 3 {
		c := open(t, bare, solotick, "run", "-c", table, "--redis", "redis://"+redis.Addr())
		names[c.replica()] = true
		all = append(all, c)
	}
	if len(names) != 3 {
		t.Errorf("the three replicas have the names %v", names)
	}
	share(t, all)
	for _, c := range all {
		c.interrupt()
	}
	eachTickOnce(t, all)
}

// replica is the name under which a terminal takes ticks.
func (c *terminal) replica() string {
	c.t.Helper()
	at := c.await(0, `msg="taking ticks"`)
	c.mu.Lock()
	defer c.mu.Unlock()
	return regexp.MustCompile(`replica=(\S+)`).FindStringSubmatch(c.lines[at-1])[1]
}

// seen is how many lines there are.
func (c *terminal) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.lines)
}

// share waits until each has fired a tick, and has said of another one who fired it.
func share(t *testing.T, all []*terminal) {
	t.Helper()
	for _, c := range all {
		from := c.await(0, `msg="taking ticks"`)
		c.await(from, `msg=fired job=hello`)
		var others []string
		for _, o := range all {
			if o != c {
				others = append(others, regexp.QuoteMeta(o.replica()))
			}
		}
		c.await(from, `msg=skipped job=hello .*reason=fired_elsewhere by=(`+strings.Join(others, "|")+`)$`)
	}
}

// eachTickOnce looks for ticks that were fired in two terminals, or twice in one.
func eachTickOnce(t *testing.T, all []*terminal) {
	t.Helper()
	fired := regexp.MustCompile(`msg=fired job=(\S+) tick=(\S+)`)
	times := map[string]int{}
	for _, c := range all {
		for _, l := range c.lines {
			if m := fired.FindStringSubmatch(l); m != nil && !strings.Contains(l, " kind=") {
				times[fmt.Sprintf("%s at %s", m[1], m[2])]++
			}
		}
	}
	if len(times) < len(all) {
		t.Errorf("only %d ticks were fired", len(times))
	}
	for tick, n := range times {
		if n != 1 {
			t.Errorf("%s was fired %d times", tick, n)
		}
	}
}
