package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/internal/testing/redistest"
)

// longJob is a table with one job; the parameters are Redis' URL, the grace, and what a shell runs.
const longJob = `
service: shop
redis: {url: %q, timeout: 5s}
listen: ""
admin: ""
shutdownGrace: %s
jobs:
  - name: long
    schedule: "@every 2s"
    exec: {command: ["sh", "-c", %q]}
`

func TestSIGTERMLetsARunningJobFinishAndGivesItsLockBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	over := filepath.Join(t.TempDir(), "over") // ends the run
	r := launch(t, fmt.Sprintf(longJob, s.URL(), "1h", "echo begun; until [ -e "+over+" ]; do sleep 0.1; done; echo done"), nil)
	begun := r.await("begun")
	r.signal(syscall.SIGTERM)
	r.await("taking no more ticks")
	if err := os.WriteFile(over, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.await("done", "run", begun.text("run"))
	r.await("finished", "outcome", "succeeded")
	r.await("stopped")
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}

	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer c.Close()
	if n, err := c.ZCard(ctx, "solotick:{shop}:running").Result(); n != 0 || err != nil {
		t.Errorf("%d runs stand in Redis, %v", n, err)
	}
	// The replica does not wait for the safety delay of a second, so its lock may be left for that long.
	if left, err := c.PTTL(ctx, "solotick:{shop}:lock:long").Result(); left > time.Second || err != nil {
		t.Errorf("the lock goes on for %s, %v", left, err)
	}
}

func TestAJobThatOutlastsTheGraceIsToldToStop(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := launch(t, fmt.Sprintf(longJob, s.URL(), "200ms", "trap 'echo told; exit 0' TERM; echo begun; sleep 60 & wait"), nil)
	r.await("begun")
	r.signal(syscall.SIGTERM)
	r.await("told")
	r.await("finished", "outcome", "shutdown")
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// timeout(1), tini -g and the like signal the process and its group, so that it comes twice.
func TestASIGTERMThatComesTwiceIsOne(t *testing.T) {
	for what, c := range map[string]struct {
		first, second syscall.Signal
		after         time.Duration
		same          bool
	}{
		"SIGTERM twice":            {syscall.SIGTERM, syscall.SIGTERM, 990 * time.Millisecond, true},
		"SIGTERM again, later":     {syscall.SIGTERM, syscall.SIGTERM, 1010 * time.Millisecond, false},
		"Ctrl-C twice":             {syscall.SIGINT, syscall.SIGINT, 0, false},
		"Ctrl-C, and then SIGTERM": {syscall.SIGINT, syscall.SIGTERM, 0, false},
		"SIGTERM, and then Ctrl-C": {syscall.SIGTERM, syscall.SIGINT, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := make(chan os.Signal, 2)
			time.AfterFunc(c.after, func() {
				got <- c.second
				close(got)
			})
			if s, ended := another(got, c.first); ended == c.same || ended && s != c.second {
				t.Errorf("%s: %v, %t", what, s, ended)
			}
		})
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := launch(t, fmt.Sprintf(longJob, s.URL(), "1h", "echo $$; exec sleep 3600"), nil)
	pid := 0
	r.awaitLine("the pid of the command", func(l line) bool {
		var err error
		pid, err = strconv.Atoi(l.text("msg"))
		return err == nil
	})
	r.signal(syscall.SIGINT)
	r.await("stopping; a second signal ends at once", "signal", "interrupt")
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != exitProblem {
		t.Errorf("exit code %d, want %d", code, exitProblem)
	}
	r.await("ending at once", "signal", "terminated")
	awaitEnd(t, pid)
}

// awaitEnd waits for the end of a process that is not a child of this one.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
	if n != 1 || err != nil {
		t.Errorf("process %d has not ended within %s (%v)", pid, patience, err)
	}
}
