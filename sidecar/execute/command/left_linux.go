package command

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/sidecar/execute"
)

// EndLeft kills the process groups that have outlived the process that ran them, and returns how many it killed. The
// kernel killed their leaders with that process. The others carry the variable of their run: dead reports whether a run
// is one of a dead process. Only groups in the given sessions are killed, which are those of the dead processes. So a
// daemon that a command started in a session of its own lives on, as it does when the command ends by itself.
func EndLeft(sessions map[int]bool, dead func(run string) bool) (groups int) {
	own := unix.Getpgrp()
	killed := map[int]bool{}
	all, _ := processes(func(p process) bool { return sessions[p.session] }) // without /proc there are none
	for _, p := range all {
		// To kill, -1 is not a group: it is every process.
		if p.group <= 1 || p.group == own || killed[p.group] || !p.alive() || !carries(p.pid, dead) {
			continue
		}
		// The number of a group is not given away while it has members. This one may have ended since.
		now, err := readStat(strconv.Itoa(p.pid), make([]byte, statSize))
		if err != nil || now.group != p.group || !carries(p.pid, dead) {
			continue
		}
		killed[p.group] = unix.Kill(-p.group, unix.SIGKILL) == nil
		if killed[p.group] {
			groups++
		}
	}
	return groups
}

// carries reports whether a process has a run in its environment that is one of a dead process. False if it may not be
// asked.
func carries(pid int, dead func(run string) bool) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if run, ok := bytes.CutPrefix(variable, []byte(execute.RunVariable+"=")); ok {
			return dead(string(run))
		}
	}
	return false
}
