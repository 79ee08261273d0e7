package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A job's command runs as the replica's user and does not get the URL of Redis. It must not find the URL in /proc
// either.
func TestTheEnvironmentOfAReplicaIsNotReadByOthersOfItsUser(t *testing.T) {
	t.Parallel()
	const secret = "SOLOTICK_REDIS_URL=redis://:s3cret@127.0.0.1:1/0"
	dir, err := os.MkdirTemp("", "solotick-private-") // only root can enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path, err := exec.LookPath("solotick")
	if err != nil {
		t.Fatal(err)
	}
	program, table := filepath.Join(dir, "solotick"), filepath.Join(dir, "table.yaml")
	for _, err := range []error{os.Chmod(dir, 0o755), os.Link(path, program),
		os.WriteFile(table, fmt.Appendf(nil, longJob, "redis://x", "1s", "true"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	asUser := func(env string, args ...string) *exec.Cmd { // root may read everything
		c := exec.Command(args[0], args[1:]...)
		c.Env = bareEnv(env)
		if os.Getuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		return c
	}
	environ := func(pid int) string {
		out, _ := asUser("", "cat", fmt.Sprintf("/proc/%d/environ", pid)).Output()
		return string(out)
	}

	open := asUser(secret, "cat")
	in, inErr := open.StdinPipe()
	out, outErr := open.StdoutPipe()
	if err := errors.Join(inErr, outErr, open.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = open.Wait() }()
	// The kernel shows the environment of a program only when it has begun.
	_, _ = in.Write([]byte("x"))
	_, _ = out.Read(make([]byte, 1))
	if got := environ(open.Process.Pid); !strings.Contains(got, secret) {
		t.Fatalf("an open process' environment is %q: this test would see nothing", got)
	}
	r := start(t, asUser(secret, program, "run", "-c", table, "--log-format", "json"))
	r.awaitLine("any line", func(line) bool { return true })
	if got := environ(r.cmd.Process.Pid); got != "" {
		t.Errorf("the replica's environment can be read: %q", got)
	}
}
