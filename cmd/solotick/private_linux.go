package main

import "golang.org/x/sys/unix"

// private keeps this process' memory and environment, in which Redis' password may be, from other processes of its user:
// the commands of jobs are some. The kernel then refuses them /proc/PID/environ and /proc/PID/mem, and a debugger. It also
// writes no core file, which would hold the same.
func private() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) } // an old kernel's refusal leaves it as it was
