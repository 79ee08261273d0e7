package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

const (
	defaultKillGrace = 5 * time.Second

	// urgentGrace leaves room within the second by which a lock's trust ends before its lease.
	urgentGrace = 500 * time.Millisecond

	// outputGrace is how long the pipes are read on after the command and its group have gone. Only a process that
	// left the group can still hold them, and it may hold them for ever.
	outputGrace = 3 * time.Second

	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Options are the settings that are not in the table's exec entry.
type Options struct {
	KillGrace time.Duration // from TERM to KILL; 0 = 5 s
	Log       *slog.Logger  // gets the command's output, line by line, with job, run, line and stream; nil = discarded
	Env       []string      // base environment, as of os.Environ; the table overrides it, the run's facts override both
}

// Grace is the time from TERM to KILL, as things stand: the lease of a run may end after its context, whatever ended
// that.
func (o Options) Grace(r execute.Run) time.Duration {
	switch {
	case r.Lasts != nil && !r.Lasts(0):
		return urgentGrace
	case o.KillGrace > 0:
		return o.KillGrace
	}
	return defaultKillGrace
}

// command is the executor of an exec job.
type command struct {
	args  []string
	dir   string
	env   []string // without the facts of the run
	named []string // the variables of env that the table sets, sorted
	path  string   // PATH of env
	grace func(r execute.Run) time.Duration
	log   *slog.Logger
	rate  rate // bounds the log lines of all runs
	noRun bool // a readiness probe: the command is told of no run
}

// New returns the executor of an exec job. The command is looked for in the PATH of its own environment, anew for
// each attempt. Its input is empty.
func New(c config.Exec, o Options) execute.Executor {
	e := &command{args: slices.Clone(c.Command), dir: c.Dir, path: defaultPath, grace: o.Grace,
		log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}
	e.named = slices.Sorted(maps.Keys(c.Env))
	env := slices.Clone(o.Env)
	for _, name := range e.named {
		env = append(env, name+"="+c.Env[name])
	}
	told := map[string]bool{}
	for _, f := range (execute.Run{Token: 1, Parent: "any"}).Facts() {
		told[f.Env] = true // a foreign token or trace must not pass for ours when the run has none
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if told[name] {
			continue
		}
		if name == "PATH" {
			e.path = value
		}
		e.env = append(e.env, kv)
	}
	return e
}

// Execute starts the command and returns when it and its process group are gone.
func (e *command) Execute(ctx context.Context, r execute.Run) execute.Result {
	if ctx.Err() != nil {
		err := fmt.Errorf("starting the command: %w", context.Cause(ctx))
		return execute.Result{Status: execute.Canceled, Err: err, Code: -1}
	}
	path, err := e.find()
	if err != nil {
		return execute.Result{Status: execute.NotStarted, Err: fmt.Errorf("starting the command: %w", err), Code: -1}
	}
	env := slices.Clip(e.env)
	if !e.noRun {
		for _, f := range r.Facts() {
			env = append(env, f.Env+"="+f.Value)
		}
	}
	out := &output{log: e.log.With("job", r.Job, "tick", r.Stamp(), "run", r.ID), rate: &e.rate}
	stdout, stderr := &lines{out: out, stream: "stdout"}, &lines{out: out, stream: "stderr"}
	cmd := &exec.Cmd{
		Path: path, Args: e.args, Env: env, Dir: e.dir,
		Stdout: stdout, Stderr: stderr, WaitDelay: outputGrace,
		SysProcAttr: GroupLeader(),
	}
	if r.Tell != nil {
		r.Tell(e.lines(r))
	}
	if err := r.Wait(ctx); err != nil {
		return execute.Result{Status: execute.Canceled, Err: fmt.Errorf("starting the command: %w", err), Code: -1}
	}

	// The kernel kills the command when the thread that started it ends (Pdeathsig). Locked, that thread is this
	// goroutine's until the command is gone; it would have to wait somewhere anyway.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := start(cmd); err != nil {
		err = fmt.Errorf("starting the command: %w", e.explain(path, err))
		return execute.Result{Status: execute.NotStarted, Err: err, Code: -1}
	}
	r.Begun()
	canceled, left := endGroup(ctx, cmd.Process.Pid, func() time.Duration { return e.grace(r) })
	wait(cmd)
	stdout.close()
	stderr.close()
	out.close(left)

	res := exited(cmd.ProcessState)
	if canceled {
		res.Status = execute.Canceled
		res.Err = fmt.Errorf("the command was stopped: %w", context.Cause(ctx))
	}
	words, reason := out.words()
	res.Output = words
	if res.Status != execute.Succeeded {
		res.Reason = reason
	}
	return res
}

// exited reads the status of a process that was waited for.
func exited(state *os.ProcessState) execute.Result {
	failed := func(code int, format string, args ...any) execute.Result {
		return execute.Result{Status: execute.Failed, Err: fmt.Errorf(format, args...), Code: code}
	}
	if state == nil { // another part of this process waited for it
		return failed(-1, "the command has run, but its exit code is lost")
	}
	switch ws := state.Sys().(syscall.WaitStatus); {
	case ws.Signaled():
		return failed(-1, "the command was killed by %s", unix.SignalName(ws.Signal()))
	case ws.ExitStatus() != 0:
		return failed(ws.ExitStatus(), "the command exited with code %d", ws.ExitStatus())
	}
	return execute.Result{Status: execute.Succeeded}
}

// find returns the file to execute. exec.LookPath would search the PATH of this process, not the command's.
func (e *command) find() (string, error) {
	if len(e.args) == 0 || e.args[0] == "" {
		return "", errors.New("it is empty")
	}
	if e.dir != "" {
		if info, err := os.Stat(e.dir); err != nil {
			return "", fmt.Errorf("its directory: %w", err)
		} else if !info.IsDir() {
			return "", fmt.Errorf("its directory: %q is none", e.dir)
		}
	}
	name := e.args[0]
	if strings.Contains(name, "/") {
		return name, nil // relative to dir, by the kernel
	}
	var denied string
	for _, dir := range filepath.SplitList(e.path) {
		if !filepath.IsAbs(dir) {
			continue // like exec.LookPath: the present directory is not searched
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		denied = file
	}
	if denied != "" {
		return "", fmt.Errorf("%q may not be executed", denied)
	}
	return "", fmt.Errorf("%q is in no directory of PATH (%s)", name, e.path)
}

// explain adds a cause to the kernel's "no such file or directory" if the script is there, but its interpreter is not.
func (e *command) explain(path string, err error) error {
	file := path
	if !filepath.IsAbs(file) {
		file = filepath.Join(e.dir, file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(file); serr == nil {
			return fmt.Errorf("%w: the file is there, but not what runs it, "+
				"the interpreter of its first line or the dynamic loader", err)
		}
	}
	return err
}
