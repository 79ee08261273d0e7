package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/redistest"
)

const (
	manifestMemory = 64 << 10 // kB: the limit in examples/kubernetes
	fewFiles       = 256      // descriptors: the least that a shell or a unit commonly allows
	floodOfListen  = 5000     // connections that strangers hold
	floodOfAdmin   = 500
	floodedTicks   = 8
	floodedProbes  = 3 // that are answered amid the whole crowd
)

// flooded is a table whose jobs wait long for a busy machine. A replica without free descriptors fails at once all the
// same.
const flooded = patient + `
service: shop
redis: {url: %q, timeout: 5s}
listen: "127.0.0.1:0"
admin: "127.0.0.1:0"
ready: {url: %q, interval: 250ms, timeout: 10s}
jobs:
  - {name: one, schedule: "@every 1s", http: {url: %[3]q}}
  - {name: two, schedule: "@every 1s", http: {url: %[3]q}}
  - {name: three, schedule: "@every 1s", http: {url: %[3]q}}
`

// crowd holds connections after one request over each. It replaces a connection that the replica closes.
type crowd struct {
	leave chan struct{}
	gone  sync.WaitGroup
	came  atomic.Int32 // connections, those in place of others too
}

func (c *crowd) come(addr string, n int) {
	for i := range n {
		c.gone.Go(func() {
			wait := time.Duration(i) * 2 * time.Second / time.Duration(n) // they come within two seconds
			for {
				select {
				case <-time.After(wait):
				case <-c.leave:
					return
				}
				c.hold(addr)
				wait = 10 * time.Second
			}
		})
	}
}

// hold keeps one connection until the replica closes it or the crowd leaves.
func (c *crowd) hold(addr string) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return
	}
	defer conn.Close()
	c.came.Add(1)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", addr)
		for in := bufio.NewReaderSize(conn, 512); ; {
			if _, err := in.ReadByte(); err != nil {
				return
			}
		}
	}()
	select {
	case <-closed:
	case <-c.leave:
		conn.Close()
		<-closed
	}
}

// fewest returns the smallest number of ticks that ran of any job.
func (a *receipts) fewest() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return min(len(a.got["one"]), len(a.got["two"]), len(a.got["three"]))
}

func TestThousandsOfIdleConnectionsCostNoTick(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	got := &receipts{got: map[string]map[time.Time]int{}}
	jobs := httptest.NewServer(got)
	defer jobs.Close()
	ready := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer ready.Close()

	table := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(table, fmt.Appendf(nil, flooded, s.URL(), ready.URL, jobs.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	// It is the binary as it is shipped: tests and the race detector would take memory of their own.
	shell := fmt.Sprintf("ulimit -n %d && exec %s run -c %s --log-format json", fewFiles, release(t, runtime.GOARCH), table)
	cmd := exec.Command("sh", "-c", shell)
	cmd.Env = bareEnv()
	r := start(t, cmd)
	r.awaitLine("the first tick", func(l line) bool { return l["msg"] == "finished" })
	pid := r.cmd.Process.Pid
	memory, before := statusKB(t, pid, "VmHWM:"), got.fewest()

	c := &crowd{leave: make(chan struct{})}
	health := r.await("serving " + servesHealth).text("addr")
	c.come(health, floodOfListen)
	c.come(r.await("serving "+servesAdmin).text("addr"), floodOfAdmin)
	probe := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}} // as the kubelet probes
	most, healthy, slowest := 0, 0, time.Duration(0)
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	begun := time.Now()
	there := func() bool { return c.came.Load() >= floodOfListen+floodOfAdmin }
	for (got.fewest() < before+floodedTicks || !there() || healthy < floodedProbes) && time.Since(begun) < 2*patience {
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(files))
		asked, whole := time.Now(), there()
		answer, err := probe.Get("http://" + health + "/healthz")
		if err == nil {
			answer.Body.Close()
		}
		// A busy replica may close the probe's connection for a newer one before it has read the request.
		if whole && err == nil && answer.StatusCode == http.StatusOK {
			healthy++
		}
		slowest = max(slowest, time.Since(asked))
		<-every.C
	}
	fired, after := got.fewest()-before, statusKB(t, pid, "VmHWM:")
	close(c.leave)
	c.gone.Wait()
	t.Logf("memory %d kB before and %d kB at most, %d descriptors at most, /healthz took %s at most, %d ticks in %s",
		memory, after, most, slowest, fired, time.Since(begun))

	if fired < floodedTicks || !there() || healthy < floodedProbes {
		t.Errorf("%d ticks were fired amid a crowd of %d connections, want at least %d; %d probes were answered, want %d", fired, c.came.Load(),
			floodedTicks, healthy, floodedProbes)
	}
	for _, job := range []string{"one", "two", "three"} {
		got.once(t, job)
	}
	if after > manifestMemory {
		t.Errorf("the replica took %d kB, the manifest allows %d", after, manifestMemory)
	}
	if most >= fewFiles {
		t.Errorf("the replica had all of its %d descriptors in use", most)
	}
	r.stop()
	for _, said := range r.raw {
		if strings.Contains(said, "too many open files") {
			t.Errorf("it lacked descriptors: %s", said)
		}
	}
}

// statusKB reads a figure of /proc/PID/status.
func statusKB(t *testing.T, pid int, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name)
	var kb int
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatalf("reading %s of /proc/%d/status: %v", name, pid, err)
	}
	return kb
}
