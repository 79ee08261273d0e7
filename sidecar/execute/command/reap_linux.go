package command

import (
	"context"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// reapEvery is how long an orphan may stay a zombie, which costs nothing but its line in the process table. Asking is
// one system call when there is none.
const reapEvery = time.Second

// Reap waits for orphans until ctx ends if this process is PID 1. Otherwise another process does that, and Reap returns
// at once. Orphans are the processes that commands left behind outside their process groups. Reap does not touch the
// commands themselves. A process that also starts others without this package must not call it.
func Reap(ctx context.Context, log *slog.Logger) {
	if os.Getpid() != 1 {
		return
	}
	every := time.NewTicker(reapEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			reapOrphans(ctx, log)
		}
	}
}

func reapOrphans(ctx context.Context, log *slog.Logger) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return
	}
	// The kernel shows only the first zombie, which may be a command that its Execute is about to wait for. The
	// others are found in the process table.
	children.starting.Lock()
	defer children.starting.Unlock()
	own := os.Getpid()
	all, err := processes(func(p process) bool { return p.parent == own })
	if err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "cannot look for orphans", slog.Any("error", err))
		return
	}
	for _, p := range all {
		if _, listed := children.byPID.Load(p.pid); listed {
			continue
		}
		if pid, err := unix.Wait4(p.pid, nil, unix.WNOHANG, nil); err == nil && pid == p.pid {
			log.LogAttrs(ctx, slog.LevelDebug, "orphan reaped", slog.Int("pid", p.pid))
		}
	}
}
