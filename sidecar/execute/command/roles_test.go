package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
)

// noRaceExit saves the second that a race detector waits for at every end of a process.
const noRaceExit = "GORACE=atexit_sleep_ms=0"

// roles are the commands that the test binary plays. Those that stay hold a connection to the test, their lifeline:
// the test sees its end when the process is gone, and the process ends when the test lets it go.
var roles = map[string]func(){
	"hold": func() { hold(nil) },
	"deaf": func() {
		signal.Ignore(syscall.SIGTERM)
		hold(nil)
	},
	"tidy": func() { // says when SIGTERM came, answers to every word, and ends when told to
		sigs := make(chan os.Signal, 1)
		signal.Notify(sigs, syscall.SIGTERM)
		hold(sigs)
	},
	"escape": func() { // leaves a child behind in a session of its own, with our output open
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "ROLE=hold", "NAME=escaped")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Println("escaped")
	},
	"longline": func() {
		w := bufio.NewWriterSize(os.Stdout, 1<<20)
		chunk := strings.Repeat("x", 1<<20)
		for range 300 { // 300 MiB
			w.WriteString(chunk)
		}
		w.WriteString("\nlast\n")
		w.Flush()
	},
	"sidecar": playSidecar,
}

func hold(sigs <-chan os.Signal) {
	c, err := net.Dial("unix", os.Getenv("LIFELINE"))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(c, os.Getenv("NAME"))
	if sigs != nil {
		<-sigs
		fmt.Fprintln(c, "term")
	}
	if sigs == nil {
		io.Copy(io.Discard, c) // until the test closes its half
		return
	}
	io.Copy(c, c)
	fmt.Fprintln(c, "done")
}

// playedJobs is how many commands playSidecar runs.
const playedJobs = 20

// playSidecar runs commands, to be killed itself. Its threads come and go meanwhile: a goroutine that ends locked takes
// its thread with it, and the kernel would take the commands that this thread has started.
func playSidecar() {
	e := New(config.Exec{Command: []string{os.Args[0]}, Env: map[string]string{"ROLE": "hold", "NAME": "job"}},
		Options{Env: []string{"LIFELINE=" + os.Getenv("LIFELINE"), noRaceExit}})
	for range playedJobs {
		go e.Execute(context.Background(), aRun())
	}
	for more := 200; more > 0; {
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(done)
		}()
		<-done
		if listed() == playedJobs {
			more--
		}
	}
	fmt.Println("threads have ended")
	select {}
}

// lifelines is where played commands report.
type lifelines struct {
	path     string
	listener *net.UnixListener
}

func newLifelines(t *testing.T) *lifelines {
	t.Helper()
	path := filepath.Join(t.TempDir(), "l")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &lifelines{path, l}
}

// patience is how long a test waits for another process before it fails.
const patience = time.Minute

// lifeline is the connection to one played command.
type lifeline struct {
	*net.UnixConn
	r *bufio.Reader
}

// next waits for the next command to report, by its name.
func (l *lifelines) next(t *testing.T, name string) *lifeline {
	t.Helper()
	l.listener.SetDeadline(time.Now().Add(patience))
	c, err := l.listener.AcceptUnix()
	if err != nil {
		t.Fatalf("waiting for %q: %v", name, err)
	}
	t.Cleanup(func() { c.Close() })
	line := &lifeline{c, bufio.NewReader(c)}
	line.expect(t, name)
	return line
}

func (l *lifeline) expect(t *testing.T, want string) {
	t.Helper()
	l.SetReadDeadline(time.Now().Add(patience))
	if got, err := l.r.ReadString('\n'); got != want+"\n" {
		t.Fatalf("the command said %q (%v), want %q", got, err, want)
	}
}

// gone waits for the end of the process.
func (l *lifeline) gone(t *testing.T) {
	t.Helper()
	l.SetReadDeadline(time.Now().Add(patience))
	if b, err := l.r.ReadByte(); err == nil {
		t.Fatalf("the command said %q instead of ending", b)
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatal("the process is still there")
	}
}

// alive fails the test when the process has ended already. It cannot see an end that is about to come, so it is for
// moments at which the process has, if at all, ended long ago.
func (l *lifeline) alive(t *testing.T) {
	t.Helper()
	rc, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	rc.Read(func(fd uintptr) bool {
		_, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return true
	})
	if err != unix.EAGAIN {
		t.Fatalf("the process is gone: %v", err)
	}
}
