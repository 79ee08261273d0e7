//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// GroupLeader makes a command lead a process group of its own. Here the command outlives a killed parent.
func GroupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit returns when the child has ended, and leaves it a zombie.
func awaitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(kq)
	var watch unix.Kevent_t
	unix.SetKevent(&watch, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	watch.Fflags = unix.NOTE_EXIT
	for {
		// A child that has ended already is no process any more (ESRCH), which is as good.
		if _, err := unix.Kevent(kq, []unix.Kevent_t{watch}, make([]unix.Kevent_t, 1), nil); err != unix.EINTR {
			return
		}
	}
}

// groupRuns returns 0: here the members of a group get no time of their own once the leader has gone.
func groupRuns(int) int { return 0 }
