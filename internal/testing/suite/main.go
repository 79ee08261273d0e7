// Suite runs suites of test commands, several at a time, and ends with one summary: how long each package took, which
// tests failed, which were not run because a tool is missing, and what was left behind.
//
//	go run ./internal/testing/suite check
//	go run ./internal/testing/suite product outside
//
// It prints the lines that go test prints. The commands of a lane run one after the other, and the lanes run beside
// each other: what computes beside what waits. suites.go says which command belongs where, and why.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long interrupted tests may take to end.
const patience = 10 * time.Second

func main() {
	var lanes []lane
	for _, name := range os.Args[1:] {
		lanes = append(lanes, suites[name]...)
		if suites[name] == nil {
			fmt.Fprintf(os.Stderr, "error: there is no suite %q\nhint: the suites are %s\n",
				name, slices.Sorted(maps.Keys(suites)))
			os.Exit(2)
		}
	}
	if len(lanes) == 0 {
		fmt.Fprintf(os.Stderr, "error: no suite is named\nhint: the suites are %s\n", slices.Sorted(maps.Keys(suites)))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	own, held, err := directory()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	defer held.Close()
	before, began := leftovers(own), time.Now()
	r := &report{out: os.Stdout}
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() {
			for _, c := range l {
				if ctx.Err() == nil {
					r.ran(c, run(ctx, c, own, r))
				}
			}
		})
	}
	all.Wait()
	for name := range leftovers(own) {
		if !before[name] {
			r.left = append(r.left, name)
		}
	}
	_ = os.RemoveAll(own)
	r.summary(time.Since(began))
	if ctx.Err() != nil || !r.green() {
		os.Exit(1)
	}
}

// run runs one command, and hands the events of its tests to the report. Its temporary directories are made below tmp.
func run(ctx context.Context, c command, tmp string, r *report) error {
	args, err := c.args()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = c.dir
	// Tests make much garbage and keep little: to collect it half as often saves a tenth of the processor's time.
	cmd.Env = append([]string{"GOGC=200"}, append(os.Environ(), append(c.env, "TMPDIR="+tmp)...)...)
	// go does not pass an interrupt on to the tests, so the whole group gets it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		time.AfterFunc(patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	}
	cmd.WaitDelay = 2 * patience
	cmd.Stderr = lines(r.say)
	if c.tests() {
		cmd.Stdout = lines(func(line string) { r.event(c.String(), line) })
	} else {
		cmd.Stdout = lines(r.say)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = cmd.Wait()
	r.spent(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	return err
}

// lines calls f for each line that is written; the last one has to end in a newline.
func lines(f func(line string)) writer { return writer{f: f, rest: new(strings.Builder)} }

type writer struct {
	f    func(string)
	rest *strings.Builder
}

func (w writer) Write(p []byte) (int, error) {
	for text := string(p); ; {
		line, after, ended := strings.Cut(text, "\n")
		w.rest.WriteString(line)
		if !ended {
			return len(p), nil
		}
		w.f(w.rest.String())
		w.rest.Reset()
		text = after
	}
}

// directory makes the directory for the temporary directories of the tests, or empties the one of a suite that was
// killed: one that nobody holds a lock on. Its name is short, since sockets stand below it, and mostly the same: go
// test reads it, and would find no result in its cache under another one. Other users may enter it, as they may the one
// above. The lock is held until held is closed.
func directory() (dir string, held *os.File, err error) {
	for n := 0; ; n++ {
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("st%d", n))
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", nil, err
		}
		held, err := os.Open(dir)
		if err != nil {
			continue // another user's, or removed meanwhile
		}
		if syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && empty(dir) == nil &&
			os.Chmod(dir, 0o777|fs.ModeSticky) == nil {
			return dir, held, nil
		}
		_ = held.Close()
	}
}

// empty removes what is in dir.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// leftovers lists what stands where runs of Solotick and of its tests could leave something: below the temporary
// directory of this suite, and where replicas keep their state if nobody says where.
func leftovers(tmp string) map[string]bool {
	found := map[string]bool{}
	dirs := []string{tmp, "/run/solotick"}
	if own := os.Getenv("XDG_RUNTIME_DIR"); own != "" {
		dirs = append(dirs, filepath.Join(own, "solotick"))
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir) // none where there is no such directory
		for _, e := range entries {
			found[filepath.Join(dir, e.Name())] = true
		}
	}
	return found
}
