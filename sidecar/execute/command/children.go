package command

import (
	"os/exec"
	"sync"
)

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
