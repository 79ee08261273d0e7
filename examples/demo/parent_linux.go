package main

import "syscall"

// dieWithParent has the kernel kill a replica when its demo is killed.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
