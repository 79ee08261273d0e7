// Package redistest runs a real redis-server for a test: on a free loopback port, with a data directory of its own, and
// gone when the test is over. It says nothing about Redis' performance, and a port that was free may be taken before
// the server binds it; Start then tries another.
package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/internal/testing/rig"
)

// Server is one redis-server, perhaps over several lives of its process.
type Server struct {
	t     testing.TB
	dir   string
	args  []string
	port  int
	tls   int    // port for TLS, beside the other; 0 without a certificate
	ready string // what it says when it is

	cmd  *exec.Cmd
	logs chan []string // what the process said, once it has ended
}

// Start runs a server until the end of the test. args are added to the command line ("--appendonly", "yes"); they must
// leave the log level alone, which tells when the server is ready. With a certificate among them (CA.Server) it takes
// TLS too, on TLSAddr, and wants to see a certificate of the client, unless args say otherwise. Without redis-server on
// the PATH the test is skipped, or fails where CI=true.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := newServer(t, "Ready to accept connections")
	s.start(slices.Contains(args, certArg), func() []string {
		own := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
			"--save", "", "--appendonly", "no"}
		if s.tls != 0 {
			own = append(own, "--tls-port", strconv.Itoa(s.tls))
		}
		return append(own, args...)
	})
	return s
}

func newServer(t testing.TB, ready string) *Server {
	t.Helper()
	needs.Program(t, "redis-server")
	s := &Server{t: t, dir: t.TempDir(), ready: ready}
	t.Cleanup(s.Kill)
	return s
}

// start tries ports until the server takes them. args are made for each anew.
func (s *Server) start(secure bool, args func() []string) {
	s.t.Helper()
	var err error
	for range 5 {
		s.port, err = rig.FreePort()
		if err == nil && secure {
			s.tls, err = rig.FreePort()
		}
		if err == nil {
			s.args = args()
			if err = s.launch(); err == nil {
				return
			}
		}
	}
	s.t.Fatalf("starting redis-server: %v", err)
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port is the TCP port on the loopback interface.
func (s *Server) Port() int { return s.port }

// TLSAddr is host:port for TLS.
func (s *Server) TLSAddr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.tls)) }

// peerPort is where other servers find it: those that have a certificate speak TLS with each other.
func (s *Server) peerPort() int {
	if s.tls != 0 {
		return s.tls
	}
	return s.port
}

// URL is how a client's configuration names the server's first database.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Pid is that of the present process; 0 when it was killed.
func (s *Server) Pid() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Kill ends the process as a crash does (SIGKILL), and waits for its end. Killing twice is harmless.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the process in order (SIGTERM), and waits for its end.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Restart starts the process again on the same port, with the same directory and options.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.launch(); err != nil {
		s.t.Fatalf("starting redis-server again: %v", err)
	}
}

// Ask sends one command, written in words, on a connection of its own, and returns the first line of its answer, or the
// text of a bulk answer. It waits for ten seconds at most, since the machine may be busy.
func (s *Server) Ask(command string) (string, error) {
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return "", err
	}
	in := bufio.NewReader(c)
	line, err := in.ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	if length, ok := strings.CutPrefix(line, "$"); ok && length != "-1" && err == nil {
		n, err := strconv.Atoi(length)
		if err != nil {
			return "", err
		}
		text := make([]byte, n)
		_, err = io.ReadFull(in, text)
		return string(text), err
	}
	return line, err
}

// must asks what cannot fail.
func (s *Server) must(command string) {
	s.t.Helper()
	if answer, err := s.Ask(command); err != nil || strings.HasPrefix(answer, "-") {
		s.t.Fatalf("%.60s: %s, %v", command, answer, err)
	}
}

// await asks every few milliseconds until the answer is right; a minute is for a machine that is very busy.
func (s *Server) await(command, what string, right func(answer string) bool) {
	s.t.Helper()
	answer, err := "", error(nil)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if answer, err = s.Ask(command); err == nil && right(answer) {
			return
		}
	}
	s.t.Fatalf("waiting for %s: %s, %v", what, answer, err)
}

// Freeze stops the process without ending it (SIGSTOP): it answers nothing, and forgets nothing.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("sending %s to redis-server: %v", sig, err)
	}
}

func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig) // gone already is as good
	<-s.logs
	_ = s.cmd.Wait()
	s.cmd = nil
}

// launch returns when the server says that it accepts connections, or has ended.
func (s *Server) launch() error {
	cmd := exec.Command("redis-server", s.args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ready, logs := make(chan struct{}), make(chan []string, 1)
	go func() {
		var lines []string
		announced := false
		for in := bufio.NewScanner(out); in.Scan(); {
			if lines = append(lines, in.Text()); !announced && strings.Contains(in.Text(), s.ready) {
				announced = true
				close(ready)
			}
		}
		logs <- lines
		close(logs)
	}()
	select {
	case <-ready:
		s.cmd, s.logs = cmd, logs
		return nil
	case lines := <-logs:
		_ = cmd.Wait()
		return fmt.Errorf("it ended at once: %s", strings.Join(lines, "\n"))
	}
}
