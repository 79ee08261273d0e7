package command

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/sidecar/execute"
)

// process is a line of the process table.
type process struct {
	pid, parent, group, session int
	state                       byte
}

func (p process) alive() bool { return p.state != 'Z' && p.state != 'X' }

// processes reads those of the process table in /proc that are wanted. Those that end meanwhile are left out.
func processes(wanted func(process) bool) (all []process, err error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, statSize)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, err := readStat(name, buf); err == nil && wanted(p) {
			all = append(all, p)
		}
	}
	return all, nil
}

// statSize is more than a line of 52 numbers can have.
const statSize = 2048

// readStat does without os.ReadFile, which makes twice as many system calls.
func readStat(pid string, buf []byte) (process, error) {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return process{}, err
	}
	return parseStat(buf[:n])
}

var errStat = errors.New("not a line of the process table")

// parseStat reads the beginning of /proc/<pid>/stat, "pid (name) state parent group session …". The name may hold
// anything, spaces and parentheses included.
func parseStat(stat []byte) (p process, err error) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return p, errStat
	}
	f := strings.SplitN(strings.TrimLeft(string(stat[end+1:]), " "), " ", 5)
	if len(f) < 4 || len(f[0]) != 1 {
		return p, errStat
	}
	var errs [4]error
	p.state = f[0][0]
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	p.parent, errs[1] = strconv.Atoi(f[1])
	p.group, errs[2] = strconv.Atoi(f[2])
	p.session, errs[3] = strconv.Atoi(f[3])
	return p, errors.Join(errs[:]...)
}

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
