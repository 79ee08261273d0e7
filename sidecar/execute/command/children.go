package command

import (
	"os/exec"
	"sync"
)

// children are the processes that this package has started and will wait for, so that Reap leaves them alone: whoever
// waits first gets the exit status, and the other one nothing.
var children struct {
	// starting is held shared from before the fork until the child is listed, and alone while orphans are looked for:
	// a child that exits at once must not be taken for an orphan.
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

// wait waits for cmd and takes it off the list. What came of it stands in its ProcessState.
func wait(cmd *exec.Cmd) {
	cmd.Wait()
	// By then the kernel may have given the number to another child of ours.
	children.byPID.CompareAndDelete(cmd.Process.Pid, cmd)
}
