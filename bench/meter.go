package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/solotick/solotick/internal/testing/rig"
)

// reading is what replicas and their Redis have used so far.
type reading struct {
	replicas, redis        time.Duration // CPU, of user and system
	switches               float64       // context switches of the replicas
	commands, reads, bytes float64       // of Redis: commands include those of scripts, reads are of sockets
}

// since leaves out the INFO of the earlier reading, which Redis counts after it has answered it.
func (r reading) since(was reading) reading {
	return reading{r.replicas - was.replicas, r.redis - was.redis, r.switches - was.switches,
		r.commands - was.commands - 1, r.reads - was.reads, r.bytes - was.bytes}
}

// read reads the meters of a world.
func (w *world) read() (reading, error) { return readMeters(w.redis, slices.Concat(w.replicas...)...) }

func readMeters(redis *rig.Redis, processes ...*rig.Process) (r reading, err error) {
	for _, p := range processes {
		used, err := cpu(p.Pid())
		if err != nil {
			return r, err
		}
		r.replicas += used
		switched, err := contextSwitches(p.Pid())
		if err != nil {
			return r, err
		}
		r.switches += switched
	}
	if r.redis, err = cpu(redis.Pid()); err != nil {
		return r, err
	}
	stats, err := redis.Info("stats")
	if err != nil {
		return r, err
	}
	sum := func(names ...string) (total float64) {
		for _, name := range names {
			v, convErr := strconv.ParseFloat(stats[name], 64)
			if convErr != nil && err == nil {
				err = fmt.Errorf("reading INFO stats: %s: %w", name, convErr)
			}
			total += v
		}
		return total
	}
	r.commands = sum("total_commands_processed")
	r.reads = sum("total_reads_processed")
	r.bytes = sum("total_net_input_bytes", "total_net_output_bytes")
	return r, err
}

// cpu is the time that the threads of a process have used so far, to the nanosecond.
func cpu(pid int) (time.Duration, error) {
	ns, err := overThreads(pid, "schedstat", func(text string) (float64, error) {
		used, _, _ := strings.Cut(text, " ")
		return strconv.ParseFloat(used, 64)
	})
	return time.Duration(ns), err
}

// contextSwitches is how often the threads of a process have left a core so far, of their own will or not.
func contextSwitches(pid int) (float64, error) {
	return overThreads(pid, "status", func(text string) (total float64, err error) {
		for line := range strings.Lines(text) {
			if name, n, _ := strings.Cut(line, ":"); strings.HasSuffix(name, "voluntary_ctxt_switches") {
				v, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
				if err != nil {
					return 0, err
				}
				total += v
			}
		}
		return total, nil
	})
}

// overThreads adds up a number that Linux keeps of each thread of a process. It forgets that of a thread that has
// ended, which those of Go and node do not.
func overThreads(pid int, file string, number func(text string) (float64, error)) (total float64, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", pid, file))
	if err == nil && len(threads) == 0 {
		err = errors.New("there is none: the process has ended, or this Linux is built without it")
	}
	if err != nil {
		return 0, fmt.Errorf("reading the %s of process %d: %w", file, pid, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has just ended
		}
		if err != nil {
			return 0, err
		}
		v, err := number(string(text))
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", thread, err)
		}
		total += v
	}
	return total, nil
}

// memory is what a process holds of memory in MiB: VmRSS is now, VmHWM was the most.
func memory(pid int, field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field+":" {
			kib, err := strconv.ParseFloat(f[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("reading /proc/%d/status: no %s", pid, field)
}
