package command

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// process is a line of the process table.
type process struct {
	pid, parent, group int
	state              byte
}

func (p process) alive() bool { return p.state != 'Z' && p.state != 'X' }

// processes reads the process table from /proc. Those that end meanwhile are left out.
func processes() ([]process, error) {
	var all []process
	err := eachStat(func(stat []byte) {
		if p, _, ok := parseStat(stat); ok {
			all = append(all, p)
		}
	})
	return all, err
}

// eachStat shows visit the line of every process, which is gone with the next one.
func eachStat(visit func(stat []byte)) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	buf := make([]byte, statSize)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if stat, err := readStat(name, buf); err == nil {
			visit(stat)
		}
	}
	return nil
}

// statSize is more than a line of 52 numbers can have.
const statSize = 2048

// readStat does without os.ReadFile, which makes twice as many system calls.
func readStat(pid string, buf []byte) ([]byte, error) {
	fd, err := unix.Open("/proc/"+pid+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// parseStat reads the beginning of /proc/<pid>/stat, "pid (name) state parent group …", and returns the rest. The
// name may hold anything, spaces and parentheses included.
func parseStat(stat []byte) (p process, rest []byte, ok bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return p, nil, false
	}
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	state, rest, _ := bytes.Cut(bytes.TrimLeft(stat[end+1:], " "), []byte{' '})
	parent, rest, _ := bytes.Cut(rest, []byte{' '})
	group, rest, _ := bytes.Cut(rest, []byte{' '})
	p.parent, errs[1] = strconv.Atoi(string(parent))
	p.group, errs[2] = strconv.Atoi(string(group))
	if len(state) != 1 || errors.Join(errs[:]...) != nil {
		return process{}, nil, false
	}
	p.state = state[0]
	return p, rest, true
}
