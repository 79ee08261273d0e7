package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs until it is stopped, with all that it says in a file.
type Process struct {
	Name string
	Log  string // path of the file that holds its output

	cmd  *exec.Cmd
	out  *os.File
	done chan struct{}
	err  error // how it ended, once done is closed
}

// NoPlace is an environment variable for replicas: below this file there are no directories.
const NoPlace = "XDG_RUNTIME_DIR=" + os.DevNull

// Launch starts a program whose output goes to the file log. env is added to this process' environment. A replica
// without a state directory has no other place to come back to, unless env names one: it would leave a directory on the
// machine.
func Launch(name, log string, env []string, argv ...string) (*Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{Name: name, Log: log, out: out, done: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(append(os.Environ(), NoPlace), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	dieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		out.Close()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		forgetFakeClock(env, p.Pid())
		out.Close()
		close(p.done)
	}()
	return p, nil
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal; a process that has ended is no error.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Stop sends SIGTERM and waits for the end, which is an error when it is not an orderly one. After the grace it kills.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("stopping %s: it was still there %s after SIGTERM", p.Name, grace)
	}
	if p.err != nil {
		return fmt.Errorf("stopping %s: %w", p.Name, p.err)
	}
	return nil
}

// Kill ends the process as a crash does (SIGKILL), and waits for its end. Killing twice is harmless.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // gone already is as good
	<-p.done
}

// StopAll stops processes at the same time; the first error counts.
func StopAll(grace time.Duration, all ...*Process) error {
	errs := make(chan error, len(all))
	for _, p := range all {
		go func() { errs <- p.Stop(grace) }()
	}
	var first error
	for range all {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// reserved keeps a port of UDP open for each port of TCP that this process has got from FreePort: the two do not meet,
// and no other process of tests can reserve it, until this one ends.
var reserved sync.Map

// FreePort is a port of the loopback interface that is free, below those that the system gives to outgoing connections
// and to listeners at port 0: one of them could be faster than the program that is to listen there. No process of tests
// gets it again while this one lives, so a program can come back to its port.
func FreePort() (port int, err error) {
	return freePort(func() int { return 20000 + rand.IntN(10000) })
}

func freePort(pick func() int) (port int, err error) {
	for range 100 {
		port = pick()
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var mark net.PacketConn
		if mark, err = net.ListenPacket("udp", addr); err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err != nil {
			_ = mark.Close()
			continue
		}
		reserved.Store(port, mark)
		return port, l.Close()
	}
	return 0, err
}

// FreeAddr is 127.0.0.1 with a free port.
func FreeAddr(t testing.TB) string {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// Until asks every 20 ms whether something is so, and gives up after the limit.
func Until(limit time.Duration, what string, so func() bool) error {
	for end := time.Now().Add(limit); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("waiting for %s: not within %s", what, limit)
		}
	}
	return nil
}
