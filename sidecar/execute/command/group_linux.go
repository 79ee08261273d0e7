package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// groupLeader makes a command lead a process group of its own, and die with the thread that started it.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the child has ended, and leaves it a zombie.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// groupRuns reports whether a member of the group is no zombie. When it cannot be known, it is assumed.
func groupRuns(pgid int) bool {
	all, err := processes()
	if err != nil {
		return true
	}
	for _, p := range all {
		if p.group == pgid && p.alive() {
			return true
		}
	}
	return false
}
