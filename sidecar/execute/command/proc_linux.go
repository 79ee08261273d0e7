package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
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

// load is a process with its use of the machine.
type load struct {
	process
	start    uint64 // when it began: with the pid it names a process for good
	resident int64  // bytes in memory
}

// parseLoad reads all of /proc/<pid>/stat that it needs. See proc_pid_stat(5) for the numbers of the fields.
func parseLoad(stat []byte) (load, bool) {
	p, rest, ok := parseStat(stat)
	if !ok {
		return load{}, false
	}
	l := load{process: p}
	for field := 6; field <= 24; field++ {
		var text []byte
		text, rest, _ = bytes.Cut(rest, []byte{' '})
		if field != 22 && field != 24 { // starttime, rss
			continue
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 63)
		switch {
		case err != nil:
			return load{}, false
		case field == 22:
			l.start = n
		default:
			l.resident = int64(n) * int64(os.Getpagesize())
		}
	}
	return l, true
}

func loadOf(pid int) (load, error) {
	stat, err := readStat(strconv.Itoa(pid), make([]byte, statSize))
	if err != nil {
		return load{}, err
	}
	l, ok := parseLoad(stat)
	if !ok {
		return load{}, errors.New("reading /proc: a line of another form")
	}
	return l, nil
}

// treeOf returns the members of the group that leader leads, itself included, and all that descend from them as far as
// their parents are there. The leader must not have been waited for.
func treeOf(leader int) ([]load, error) {
	var all []load
	if err := eachStat(func(stat []byte) {
		if l, ok := parseLoad(stat); ok {
			all = append(all, l)
		}
	}); err != nil {
		return nil, err
	}
	in := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range all {
			if !in[p.pid] && (p.group == leader || in[p.parent]) {
				in[p.pid], more = true, true
			}
		}
	}
	if !in[leader] {
		return nil, fmt.Errorf("process %d is not shown in /proc", leader)
	}
	return slices.DeleteFunc(all, func(p load) bool { return !in[p.pid] }), nil
}

// held is the memory that only the end of the process frees. A page that n processes share counts as an nth; files do
// not count, since the kernel can drop them. If the kernel does not tell, or this process may not ask, held is all
// resident memory.
func (l load) held() int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(l.pid) + "/smaps_rollup")
	if err != nil {
		if !l.alive() || errors.Is(err, unix.ESRCH) { // it has just ended
			return 0
		}
		return l.resident
	}
	n, ok := parseRollup(text)
	if !ok {
		return l.resident
	}
	return n
}

// parseRollup adds up the memory in /proc/<pid>/smaps_rollup that the kernel cannot drop, in bytes.
func parseRollup(text []byte) (sum int64, ok bool) {
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch string(name) {
		case "Pss_Anon", "Pss_Shmem", "SwapPss":
		default:
			continue
		}
		number, _, _ := bytes.Cut(bytes.TrimSpace(value), []byte{' '})
		n, err := strconv.ParseInt(string(number), 10, 50)
		if err != nil {
			return 0, false
		}
		sum += n << 10
		ok = ok || string(name) == "Pss_Anon" // which kernels before 5.4 do not tell
	}
	return sum, ok
}
