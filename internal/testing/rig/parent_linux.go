package rig

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets a program not outlive a measurement that was killed, and so stopped nothing.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
