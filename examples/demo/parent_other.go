//go:build !linux

package main

import "syscall"

// dieWithParent does nothing: on this system replicas outlive a demo that is killed with SIGKILL.
func dieWithParent(*syscall.SysProcAttr) {}
