package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/solotick/solotick/internal/testing/rig"
)

// container is one of a pod, run as the kubelet would have it run, as far as that matters here: in a root of its own
// with nothing in it but the image's program and the volumes, with the environment of the manifest and no other, as its
// user, and beside the others on one loopback interface.
type container struct {
	t       *testing.T
	m       *manifests
	spec    *core.Container
	program string // the entry point of the image
	path    string // the one directory of its PATH
	root    string
	args    []string // of the entry point
	env     []string
	cmd     *exec.Cmd
	log     *output
	ended   chan struct{}
	err     error // how it ended
}

// output is what a container says.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// create makes a container of the image of a Dockerfile, which has its entry point alone in it: this binary.
func create(t *testing.T, m *manifests, spec *core.Container, pod, dockerfile, binary string) *container {
	t.Helper()
	c := &container{t: t, m: m, spec: spec, program: entrypoint(t, dockerfile), path: searchPath(t, dockerfile),
		root: t.TempDir(), log: &output{}, ended: make(chan struct{})}
	for d := c.root; d != filepath.Dir(os.TempDir()) && d != "/"; d = filepath.Dir(d) { // the test's own directories are closed to others
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if d == os.TempDir() {
			break
		}
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	c.write(c.program, string(data), 0o755)
	c.write("/etc/hosts", "127.0.0.1 localhost redis\n", 0o644) // the Service named redis
	for name, text := range m.files(t, spec) {
		if strings.HasPrefix(name, "/etc/solotick/") {
			c.project(filepath.Dir(name), filepath.Base(name), text)
		} else {
			c.write(name, text, 0o644)
		}
	}
	for _, name := range m.scratch(spec) {
		at := filepath.Join(c.root, name)
		if err := errors.Join(os.MkdirAll(at, 0o755), os.Chmod(at, 0o777)); err != nil { // as the kubelet does
			t.Fatal(err)
		}
	}
	environment := m.environment(t, spec, pod)
	c.args = expanded(spec.Args, environment)
	for name, value := range environment {
		c.env = append(c.env, name+"="+value)
	}
	return c
}

// write makes a file that belongs to root, as those in volumes do, and its directories.
func (c *container) write(name, text string, mode fs.FileMode) {
	c.t.Helper()
	file := filepath.Join(c.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
}

// project writes a file of a ConfigMap as the kubelet does, at first and at every change: into a new directory, to
// which ..data is then turned in one step. The file that the container opens is a link through it.
func (c *container) project(dir, name, text string) {
	c.t.Helper()
	turn := "..2026_11_21_" + fmt.Sprint(time.Now().UnixNano())
	c.write(path.Join(dir, turn, name), text, 0o644)
	at := filepath.Join(c.root, dir)
	before, _ := os.Readlink(filepath.Join(at, "..data")) // none, at first
	if err := os.Symlink(turn, filepath.Join(at, "..data_tmp")); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(at, "..data_tmp"), filepath.Join(at, "..data")); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", name), filepath.Join(at, name)); err != nil && !errors.Is(err, fs.ErrExist) {
		c.t.Fatal(err)
	}
	if before != "" {
		if err := os.RemoveAll(filepath.Join(at, before)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// command is a process in the container. A program without a path is looked for on the PATH of the image.
func (c *container) command(program string, args ...string) *exec.Cmd {
	file := program
	if !path.IsAbs(file) {
		file = path.Join(c.path, file)
	}
	user, group := c.m.pod().SecurityContext.RunAsUser, c.m.pod().SecurityContext.RunAsGroup
	if own := c.spec.SecurityContext; own.RunAsUser != nil {
		user, group = own.RunAsUser, own.RunAsGroup
	}
	return &exec.Cmd{Path: file, Args: append([]string{program}, args...), Env: c.env, Dir: "/", SysProcAttr: &syscall.SysProcAttr{
		Chroot: c.root, Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uint32(*user), Gid: uint32(*group)},
	}}
}

// start runs the image's program with the manifest's arguments.
func (c *container) start() {
	c.t.Helper()
	c.cmd = c.command(c.program, c.args...)
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	c.t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // gone already is as good
		<-c.ended
		if c.t.Failed() {
			c.t.Logf("%s:\n%s", c.spec.Name, c.log)
		}
	})
}

// exec is `kubectl exec`, and how preStop runs a command.
func (c *container) exec(command ...string) (string, error) {
	cmd := c.command(command[0], command[1:]...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// terminate is SIGTERM, and the orderly end within what is left of the pod's grace.
func (c *container) terminate(until time.Time) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := rig.Until(time.Until(until), c.spec.Name+" to end", func() bool {
		select {
		case <-c.ended:
			return true
		default:
			return false
		}
	}); err != nil {
		c.t.Fatal(err)
	}
	if c.err != nil {
		c.t.Errorf("%s: %v", c.spec.Name, c.err)
	}
}
