package nemesis

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
)

// dialArg makes this program connect to an address, and say by its exit code whether it could.
const dialArg = "dial"

func TestMain(m *testing.M) {
	program := map[string]func(string) error{dialArg: dial, callArg: call, echoArg: echo}
	if len(os.Args) != 3 || program[os.Args[1]] == nil {
		_ = flag.Set("test.parallel", "8") // the worlds and the hour wait, and compute little
		os.Exit(m.Run())
	}
	if err := program[os.Args[1]](os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func dial(addr string) error {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err == nil {
		err = c.Close()
	}
	return err
}

// listener takes connections on an address until the end of the test, answers whatever it is asked as Redis answers
// PING, and returns its port.
func listener(t *testing.T, host string) int {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for b := make([]byte, 100); ; {
					if _, err := c.Read(b); err != nil {
						return
					}
					_, _ = c.Write([]byte("+PONG\r\n")) // who is gone hears nothing
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// passes checks whether what is started at this end of a path reaches Redis.
func passes(t *testing.T, p path, want bool) {
	t.Helper()
	argv := append(append([]string{}, p.under...), os.Args[0], dialArg, p.redis)
	cmd := exec.Command(argv[0], argv[1:]...)
	if out, err := cmd.CombinedOutput(); (err == nil) != want {
		t.Errorf("connecting to %s: %v %s; want it to succeed: %t", p.redis, err, out, want)
	}
}

func cutsAndMends(t *testing.T, p path) {
	t.Helper()
	passes(t, p, true)
	for range 2 {
		if err := p.cut(); err != nil {
			t.Fatal(err)
		}
		passes(t, p, false)
		if err := p.mend(); err != nil {
			t.Fatal(err)
		}
		passes(t, p, true)
	}
}

func TestAProxyCutsAndMends(t *testing.T) {
	p, end, err := proxied(fmt.Sprintf("127.0.0.1:%d", listener(t, "127.0.0.1")))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	cutsAndMends(t, p)
	c, err := net.Dial("tcp", p.redis)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := p.cut(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading from a connection that was cut: %v", err)
	}
}

func TestANamespaceCutsAndMends(t *testing.T) {
	n, err := newNamespace(t.TempDir())
	needs.That(t, "a network namespace", err)
	defer n.holder.Kill()
	cutsAndMends(t, n.path(listener(t, n.outerAddr)))
}
