package packaging

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A machine is this one, as a directory: what is changed there is kept in memory, and is gone with the test.
type machine struct {
	root    string // what a process on the machine sees as /
	changes string // what differs from this machine
	env     []string
}

// newMachine mounts a machine. The directories that are named, absolute, are this machine's own: changes there are
// real.
func newMachine(t *testing.T, own ...string) *machine {
	t.Helper()
	if os.Getenv(inside) == "" {
		missing(t, "root's right to mount")
	}
	dir, err := os.MkdirTemp("", "solotick-machine-")
	if err != nil {
		t.Fatal(err)
	}
	// Lazily, with all that is mounted below it. Only then is the directory removed, and not what it holds: a mount
	// that is still there must not be emptied.
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	mount := func(source, target, kind string, flags uintptr, data string) {
		t.Helper()
		if err := os.MkdirAll(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(source, target, kind, flags, data); err != nil {
			t.Fatalf("mounting %s: %v", target, err)
		}
	}
	mount("tmpfs", dir, "tmpfs", 0, "")
	m := &machine{root: filepath.Join(dir, "root"), changes: filepath.Join(dir, "changes"), env: []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
	}}
	for _, d := range []string{m.root, m.changes, filepath.Join(dir, "work")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount("overlay", m.root, "overlay", 0, "lowerdir=/,upperdir="+m.changes+",workdir="+filepath.Join(dir, "work"))
	for _, d := range append([]string{"/dev", "/proc"}, own...) {
		mount(d, m.root+d, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err := os.Mkdir(m.root+"/files", 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

// try runs a program there, in the directory /files.
func (m *machine) try(name string, args ...string) (string, error) {
	return m.tryIn("/files", name, args...)
}

func (m *machine) tryIn(dir, name string, args ...string) (string, error) {
	program := name
	if !strings.Contains(name, "/") {
		program = "/bin/sh" // which looks the name up there, not here
		args = append([]string{"-c", `exec "$0" "$@"`, name}, args...)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = dir, m.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try for what must succeed.
func (m *machine) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := m.try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// give copies files into the directory /files.
func (m *machine) give(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m.write(t, "/files/"+filepath.Base(file), string(content), 0o644)
	}
}

func (m *machine) write(t *testing.T, file, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.root+file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.root+file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(m.root + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (m *machine) has(file string) bool {
	_, err := os.Lstat(m.root + file)
	return err == nil
}

// left are the files and directories that differ from this machine, but for those in the places that are named, and for
// those that hold others.
func (m *machine) left(t *testing.T, but ...string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(m.changes, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file := "/" + strings.TrimPrefix(strings.TrimPrefix(path, m.changes), "/")
		if slices.ContainsFunc(but, func(b string) bool { return strings.HasPrefix(file, b) }) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if _, err := os.Stat(file); err == nil {
				return nil // copied up because a file in it came and went
			}
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
