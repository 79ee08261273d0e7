package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// GroupLeader makes a command lead a process group of its own, and die with the thread that started it.
func GroupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the child has ended, and leaves it a zombie.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// groupRuns returns how many members of the group are no zombies; -1 = it cannot be known.
func groupRuns(pgid int) int {
	members, err := processes(func(p process) bool { return p.group == pgid && p.alive() })
	if err != nil {
		return -1
	}
	return len(members)
}
