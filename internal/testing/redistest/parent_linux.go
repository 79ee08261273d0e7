package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets the server not outlive a test that was killed, or ran into its time limit, and so cleaned nothing
// up.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
