package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Reader reads the load. It is not safe for concurrent use.
type Reader struct {
	root string // of the files, "" on a real machine
	last []sample
}

// sample is how much CPU time there was, and how much of it was used, until a moment.
type sample struct {
	at              time.Time
	machine, idle   float64 // ticks of the kernel, of all CPUs together
	container, most float64 // seconds used, and seconds that the limit allows per second; 0 = there is no limit
}

// window is over how long the use of CPUs is measured.
const window = 5 * time.Second

// New returns a Reader.
func New() *Reader { return &Reader{} }

// Read returns the load now. That of the CPUs is since the call five seconds ago, or since the first one: it is 0 then.
func (r *Reader) Read() (Load, error) {
	now, err := r.sample()
	if err != nil {
		return Load{}, fmt.Errorf("reading the load: %w", err)
	}
	r.last = append(r.last, now)
	for len(r.last) > 2 && now.at.Sub(r.last[1].at) >= window {
		r.last = r.last[1:]
	}
	memory, err := r.memory()
	if err != nil {
		return Load{}, fmt.Errorf("reading the load: %w", err)
	}
	return Load{CPU: used(r.last[0], now), Memory: memory}, nil
}

// used is the share of the CPUs that was used between two samples.
func used(from, to sample) float64 {
	var share float64
	if all := to.machine - from.machine; all > 0 {
		share = 1 - (to.idle-from.idle)/all
	}
	if passed := to.at.Sub(from.at).Seconds(); to.most > 0 && passed > 0 {
		share = max(share, (to.container-from.container)/passed/to.most)
	}
	return share
}

func (r *Reader) sample() (sample, error) {
	s := sample{at: time.Now()}
	text, err := os.ReadFile(path.Join(r.root, "/proc/stat"))
	if err != nil {
		return s, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	words := strings.Fields(first)
	if len(words) < 6 || words[0] != "cpu" {
		return s, fmt.Errorf("/proc/stat begins with %q", first)
	}
	for i, w := range words[1:min(len(words), 9)] { // what guests use is in the first two already
		n, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return s, err
		}
		s.machine += n
		if i == 3 || i == 4 { // idle, and idle while a disk works
			s.idle += n
		}
	}
	limit := strings.Fields(r.group("cpu.max"))
	if len(limit) == 2 && limit[0] != "max" {
		quota, period := number(limit[0]), number(limit[1])
		if quota > 0 && period > 0 {
			s.most = quota / period
			s.container = field(r.group("cpu.stat"), "usage_usec") / 1e6
		}
	}
	return s, nil
}

// memory is the share of the memory that is in use. Memory that the kernel could give back at once is not.
func (r *Reader) memory() (float64, error) {
	text, err := os.ReadFile(path.Join(r.root, "/proc/meminfo"))
	if err != nil {
		return 0, err
	}
	all, free := field(string(text), "MemTotal:"), field(string(text), "MemAvailable:")
	if all <= 0 {
		return 0, fmt.Errorf("/proc/meminfo has no MemTotal")
	}
	share := 1 - free/all
	if limit := number(strings.TrimSpace(r.group("memory.max"))); limit > 0 {
		set := number(strings.TrimSpace(r.group("memory.current"))) - field(r.group("memory.stat"), "inactive_file")
		share = max(share, set/limit)
	}
	return share, nil
}

// MemoryLimit is how much memory this process' control group may have, in bytes; 0 if that is not known.
func (r *Reader) MemoryLimit() int64 { return int64(number(strings.TrimSpace(r.group("memory.max")))) }

// group reads a file of this process' control group, version 2; "" if there is none.
func (r *Reader) group(file string) string {
	text, err := os.ReadFile(path.Join(r.root, "/proc/self/cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			text, err := os.ReadFile(path.Join(r.root, "/sys/fs/cgroup", own, file))
			if err != nil {
				return ""
			}
			return string(text)
		}
	}
	return ""
}

// number is 0 for what is none, such as max.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// field returns the number behind a name in a file with a name and a number on each line; 0 if it has none.
func field(text, name string) float64 {
	lines := bufio.NewScanner(bytes.NewReader([]byte(text)))
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) >= 2 && words[0] == name {
			return number(words[1])
		}
	}
	return 0
}
