package demo

import "syscall"

// dieWithParent lets a replica not outlive a demo that was itself killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
