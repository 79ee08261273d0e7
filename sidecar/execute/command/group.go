package command

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Signal is the cause of a context whose end the group is told by that signal, in place of SIGTERM.
type Signal syscall.Signal

// Error is the name of the signal.
func (s Signal) Error() string { return unix.SignalName(syscall.Signal(s)) }

// Run starts a command that is a GroupLeader, and returns when its process group is gone: see endGroup. The error is
// that of the start.
func Run(ctx context.Context, cmd *exec.Cmd, grace func() time.Duration) (canceled bool, err error) {
	runtime.LockOSThread() // see Execute
	defer runtime.UnlockOSThread()
	if err := start(cmd); err != nil {
		return false, err
	}
	canceled, _ = endGroup(ctx, cmd.Process.Pid, grace)
	wait(cmd)
	return canceled, nil
}

// endGroup waits for the process pid, the leader of a process group, and ends the group.
//
// If ctx ends first, the group gets SIGTERM, or the Signal that is the cause, and SIGKILL after the grace, which may
// become shorter meanwhile; endGroup reports true. If the leader ends by itself, the rest of the group gets SIGKILL,
// and left is how many these are.
//
// The leader stays a zombie until the caller waits for it. So its number cannot be given to another process
// meanwhile, and no signal here can hit a stranger.
func endGroup(ctx context.Context, pid int, grace func() time.Duration) (canceled bool, left int) {
	leaderGone := make(chan struct{})
	stopped := make(chan bool)
	go func() { stopped <- terminate(ctx, pid, grace, leaderGone) }()
	awaitExit(pid)
	close(leaderGone)
	if canceled = <-stopped; !canceled {
		left = groupRuns(pid)
	}
	unix.Kill(-pid, unix.SIGKILL)
	return canceled, left
}

// terminate returns false when the leader has ended by itself. It returns true when ctx has ended, and either no
// member of the group runs any more, or the grace is over and all are killed.
func terminate(ctx context.Context, pid int, grace func() time.Duration, leaderGone <-chan struct{}) bool {
	select {
	case <-leaderGone:
		return false
	case <-ctx.Done():
	}
	first := Signal(unix.SIGTERM)
	errors.As(context.Cause(ctx), &first)
	unix.Kill(-pid, syscall.Signal(first))
	unix.Kill(-pid, unix.SIGCONT) // a stopped process would not see the other one

	// A shell dies of SIGTERM at once, while its child is still tidying up. Nothing tells when a group has become
	// empty, so it is asked for, at growing distances. So is the grace.
	const shortest, longest = 5 * time.Millisecond, 200 * time.Millisecond
	told := time.Now()
	for pause := shortest; leaderGone != nil || groupRuns(pid) != 0; pause = min(2*pause, longest) {
		left := grace() - time.Since(told)
		if left <= 0 {
			unix.Kill(-pid, unix.SIGKILL)
			return true
		}
		select {
		case <-time.After(min(pause, left)):
		case <-leaderGone:
			leaderGone, pause = nil, shortest
		}
	}
	return true
}

// children are the processes that this package has started and will wait for. Reap leaves them alone: only the first
// to wait gets the exit status.
var children struct {
	// starting is held shared from before the fork until the child is listed, and alone during the look for orphans.
	// Otherwise a child that exits at once could be taken for an orphan.
	starting sync.RWMutex
	byPID    sync.Map // int → *exec.Cmd
}

// start starts cmd and lists it.
func start(cmd *exec.Cmd) error {
	children.starting.RLock()
	defer children.starting.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	children.byPID.Store(cmd.Process.Pid, cmd)
	return nil
}

// wait waits for cmd and takes it off the list. The exit status is in its ProcessState.
func wait(cmd *exec.Cmd) {
	cmd.Wait()
	// By then the kernel may have given the number to another child of ours.
	children.byPID.CompareAndDelete(cmd.Process.Pid, cmd)
}
