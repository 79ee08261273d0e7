//go:build !linux

package demo

import "syscall"

// dieWithParent has no means here: replicas outlive a demo that is killed with SIGKILL.
func dieWithParent(*syscall.SysProcAttr) {}
