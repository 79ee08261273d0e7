package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/solotick/solotick/internal/proof/rig"
)

const (
	rssTarget    = 20.0 // MiB
	binaryTarget = 18.0 // MB
	idle         = 60 * time.Second
)

// size measures the released binary, and what a sidecar with a hundred jobs at rest holds of memory and takes of a core.
func (b *bench) size() ([]row, error) {
	file, err := os.Stat(b.ours)
	if err != nil {
		return nil, err
	}
	redis, err := rig.StartRedis(b.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = redis.Stop(grace) }()
	admin, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	sidecar, stop, err := b.solotick(redis, func(listen string) string {
		text := table(100, "0 0 1 1 *", listen, func(job string) string { return "http://127.0.0.1:1/" + job })
		return strings.Replace(text, `admin: ""`, fmt.Sprintf("admin: 127.0.0.1:%d", admin), 1) // as it is by default
	}, 1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stop() }()

	pid := sidecar[0].Pid()
	started, err := cpu(pid)
	if err != nil {
		return nil, err
	}
	if err := b.sleep(time.Now().Add(idle)); err != nil {
		return nil, err
	}
	atRest, err := rss(pid)
	if err != nil {
		return nil, err
	}
	rested, err := cpu(pid)
	if err != nil {
		return nil, err
	}
	if _, err := sidecar[0].Metrics(); err != nil {
		return nil, err
	}
	scraped, err := rss(pid)
	if err != nil {
		return nil, err
	}
	if err := b.sleep(time.Now().Add(idle + 5*time.Second)); err != nil {
		return nil, err
	}
	later, err := rss(pid)
	if err != nil {
		return nil, err
	}
	mb := float64(file.Size()) / 1e6
	return []row{
		{what: "RSS with 100 jobs, after 60 s at rest", ours: fmt.Sprintf("%.1f MiB", atRest), target: fmt.Sprintf("≤ %g", rssTarget),
			missed: atRest > rssTarget},
		{what: "RSS with 100 jobs, after a scrape", ours: fmt.Sprintf("%.1f MiB", scraped)},
		{what: "RSS with 100 jobs, a minute later", ours: fmt.Sprintf("%.1f MiB", later)},
		{what: "CPU at rest, of one core", ours: fmt.Sprintf("%.2f %%", 100*(rested-started).Seconds()/idle.Seconds())},
		{what: "binary", ours: fmt.Sprintf("%.1f MB", mb), target: fmt.Sprintf("≤ %g", binaryTarget), missed: mb > binaryTarget},
	}, nil
}

// rss is a process' resident memory in MiB.
func rss(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(f[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("reading /proc/%d/status: no VmRSS", pid)
}

// cpu is the time that a process has used so far, to 10 ms.
func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("reading /proc/%d/stat: %q", pid, text)
	}
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("reading /proc/%d/stat: %q", pid, text)
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
