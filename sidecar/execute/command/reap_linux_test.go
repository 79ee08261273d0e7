package command

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/internal/testing/needs"
	"github.com/solotick/solotick/sidecar/execute"
)

func TestTheFirstProcessReapsOrphansAndLosesNoExitCode(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"ROLE=firstpid", "PATH=" + os.Getenv("PATH"), noRaceExit}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
		needs.That(t, "a PID namespace", err)
	}
	if err != nil || !strings.HasSuffix(string(out), "all is well\n") {
		t.Fatalf("%v: %s", err, out)
	}
}

func init() { roles["firstpid"] = playFirstPID }

// playFirstPID is PID 1 of its own namespace. It runs commands that leave orphans and commands that fail with a code,
// many at once, while orphans are looked for all the time, and then sees Reap take the last orphan by itself.
func playFirstPID() {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			fmt.Printf(format+"\n", args...)
			os.Exit(1)
		}
	}
	check(os.Getpid() == 1, "PID %d", os.Getpid())
	check(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil, "the mounts cannot be made private")
	check(unix.Mount("proc", "/proc", "proc", 0, "") == nil, "/proc cannot be mounted")

	reaped := make(chan struct{}, 1000)
	log := slog.New(reapedHandler(reaped))
	o := Options{Env: []string{"PATH=" + os.Getenv("PATH")}}
	orphans := func(n int) {
		for range n {
			// The orphan's shell has left group and session, and outlives its parent until that one's pipe is gone.
			res := sh(`exec setsid -f sh -c 'read x; exit 3' </dev/null >/dev/null 2>&1`, o).Execute(context.Background(), aRun())
			check(res.Status == execute.Succeeded, "%+v", res)
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	var looking, running sync.WaitGroup
	looking.Go(func() {
		for ctx.Err() == nil {
			reapOrphans(ctx, log)
		}
	})
	const each = 40
	for range 4 {
		running.Go(func() {
			e := New(config.Exec{Command: []string{"/bin/sh", "-c", "exit 7"}}, o)
			for range each {
				res := e.Execute(context.Background(), aRun())
				check(res.Status == execute.Failed && res.Code == 7, "an exit code was lost: %+v", res)
			}
		})
	}
	orphans(each)
	running.Wait()
	cancel()
	looking.Wait()

	ctx, cancel = context.WithCancel(context.Background())
	looking.Go(func() { Reap(ctx, log) })
	orphans(2)
	for i := range each + 2 {
		select {
		case <-reaped:
		case <-time.After(patience):
			check(false, "only %d of %d orphans were reaped", i, each+2)
		}
	}
	cancel()
	looking.Wait()

	all, err := processes(func(process) bool { return true })
	check(err == nil, "%v", err)
	check(len(all) == 1, "left in the process table: %v", all)
	check(listed() == 0, "%d commands still listed", listed())
	fmt.Println("all is well")
}

// reapedHandler counts what Reap logs.
type reapedHandler chan struct{}

func (reapedHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h reapedHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h reapedHandler) WithGroup(string) slog.Handler          { return h }
func (h reapedHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "orphan reaped" {
		h <- struct{}{}
	}
	return nil
}

func TestReapIsNotForOtherProcesses(t *testing.T) {
	Reap(t.Context(), nil) // returns, or the test would not end
}

func TestTheProcessTableIsReadWhateverNamesItHolds(t *testing.T) {
	for stat, want := range map[string]process{
		"1 (init) S 0 1 1 0 -1":            {1, 0, 1, 1, 'S'},
		"42 (a b) Z) (c) R 7 41 1 0 -1":    {42, 7, 41, 1, 'R'},
		"43 (\n) Z 1 43) Z 1 43 43 0 -1\n": {43, 1, 43, 43, 'Z'},
	} {
		if got, err := parseStat([]byte(stat)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", stat, got, err)
		}
	}
	for _, stat := range []string{"", "1", "1 (x", ") (", "x (y) S 1 1", "1 (y) S", "1 (y) S a b"} {
		if got, err := parseStat([]byte(stat)); err == nil {
			t.Errorf("%q: %+v", stat, got)
		}
	}
	all, err := processes(func(process) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.pid == os.Getpid() && p.parent == os.Getppid() && p.alive() && p.group == unix.Getpgrp() {
			return
		}
	}
	t.Errorf("this process is not in %v", bytes.TrimSpace(fmt.Append(nil, all)))
}
