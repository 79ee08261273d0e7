package main

import "golang.org/x/sys/unix"

// private hides this process' memory and environment, which may hold Redis' password, from other processes of its user,
// such as the commands of jobs. The kernel then refuses them /proc/PID/environ, /proc/PID/mem and ptrace. It also
// writes no core file, which would hold the same.
func private() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) } // if the kernel refuses, nothing changes
