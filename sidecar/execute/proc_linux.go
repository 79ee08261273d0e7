package execute

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// process is a line of the process table.
type process struct {
	pid, parent, group int
	state              byte
}

func (p process) alive() bool { return p.state != 'Z' && p.state != 'X' }

// processes reads the process table from /proc. Those that end meanwhile are left out.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		if p, ok := parseStat(stat); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// parseStat reads the beginning of /proc/<pid>/stat, "pid (name) state parent group …". The name may hold anything,
// spaces and parentheses included.
func parseStat(stat []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return p, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	if err != nil {
		return p, false
	}
	n, err := fmt.Sscanf(string(stat[end+1:]), " %c %d %d", &p.state, &p.parent, &p.group)
	p.pid = pid
	return p, err == nil && n == 3
}
