package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/solotick/solotick/config"
	"github.com/solotick/solotick/sidecar/execute"
)

// The commands here are shells: the race detector's own memory is over any limit.
const (
	// mebibyte makes a text of that size, block, which a shell keeps in memory of its own.
	mebibyte = `block=$(head -c 1048576 /dev/zero | tr '\0' x); `
	// hog grows slowly enough to be looked at meanwhile.
	hog = mebibyte + `all=; while :; do all=$all$block; done`
	// lot stays after it has grown to 40 MiB.
	lot = mebibyte + `all=; i=0; while [ $i -lt 40 ]; do all=$all$block; i=$((i+1)); done; sleep 1000`
)

func limited(script string, r config.Resources) *command {
	return sh(script, Options{Resources: r, KillGrace: 6 * patience}).(*command)
}

// ran executes, but not for ever: what no limit ends is canceled.
func ran(t *testing.T, e execute.Executor) execute.Result {
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience) // a CPU may be shared with many
	defer cancel()
	return e.Execute(ctx, aRun())
}

// never is for limits that only the kernel sees to.
var never = looks{time.Hour, time.Hour}

// wantOver checks that a command has failed because of the given limit, and returns what it has used.
func wantOver(t *testing.T, res execute.Result, how string, limit string) float64 {
	t.Helper()
	wantStatus(t, res, execute.Failed)
	m := regexp.MustCompile(`^the command (.*)[:,] over its memory limit: ([0-9.]+) (\w+) of (.*)$`).FindStringSubmatch(res.Err.Error())
	if m == nil || m[1] != how || m[4] != limit || !strings.HasSuffix(limit, " "+m[3]) {
		t.Fatalf("error %q, want %q and %q", res.Err, how, limit)
	}
	used, _ := strconv.ParseFloat(m[2], 64)
	if most, _ := strconv.ParseFloat(strings.Fields(limit)[0], 64); used <= most {
		t.Errorf("killed for %v of %v", used, most)
	}
	return used
}

func TestACommandOverItsMemoryIsKilledWhole(t *testing.T) {
	r := config.Resources{Memory: 24 << 20}
	fifo := t.TempDir() + "/fifo"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"itself":              "exec 3>" + fifo + "; trap '' TERM; echo begun; " + hog,
		"a grandchild":        "exec 3>" + fifo + "; echo begun; (sh -c '" + strings.ReplaceAll(hog, "'", `"`) + "') & wait; wait",
		"one that left":       "exec 3>" + fifo + "; echo begun; setsid sh -c '" + strings.ReplaceAll(lot, "'", `"`) + "' & wait; wait",
		"many small together": "exec 3>" + fifo + "; echo begun; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sh -c '" + strings.ReplaceAll(mebibyte, "'", `"`) + "two=$block$block; sleep 1000' & done; wait",
	} {
		results, began := make(chan execute.Result, 1), time.Now()
		go func() { results <- ran(t, limited(script, r)) }()
		witness, err := os.Open(fifo) // its end comes when all who have it open for writing are gone
		if err != nil {
			t.Fatal(err)
		}
		res := <-results
		used := wantOver(t, res, "was killed", "24 MiB")
		if time.Since(began) >= 6*patience {
			t.Errorf("%s: it had a grace", name)
		}
		if used > 1000 || res.Code != -1 || res.Output != "begun" {
			t.Errorf("%s: %+v", name, res)
		}
		witness.SetReadDeadline(time.Now().Add(patience))
		if n, err := witness.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
			t.Errorf("%s: somebody lives on: %v", name, err)
		}
		witness.Close()
	}
}

func TestACommandBelowItsLimitsIsLeftAlone(t *testing.T) {
	r := config.Resources{Memory: 64 << 20}
	for _, script := range []string{
		"echo done",
		"head -c 30000000 /dev/zero | tail -n 1 | wc -c; echo done",
	} {
		res := ran(t, limited(script, r))
		if wantStatus(t, res, execute.Succeeded); !strings.HasSuffix(res.Output, "done") {
			t.Errorf("%s: %+v", script, res)
		}
	}
	res := ran(t, limited("exit 3", r))
	wantStatus(t, res, execute.Failed)
	if res.Code != 3 || res.Err.Error() != "the command exited with code 3" {
		t.Errorf("%+v", res)
	}
	ctx, cancel := contextWithCause(t)
	results := make(chan execute.Result)
	go func() { results <- limited("sleep 1000", r).Execute(ctx, aRun()) }()
	cancel(errLockLost)
	wantCause(t, <-results)
}

// A plain sum of resident memory counts the parent's with each of its children.
func TestMemoryThatIsSharedCountsOnce(t *testing.T) {
	l := newLifelines(t)
	script := `echo $$ > "$LIFELINE.pid"; ` + mebibyte + `all=; for i in 1 2 3 4 5 6 7 8; do all=$all$block$block$block$block$block; done
		for i in 1 2 3 4 5 6 7 8; do (ROLE=hold NAME=child "$self" & wait) & done; wait`
	e := l.played(script, 0).(*command)
	results := make(chan execute.Result)
	go func() { results <- ran(t, e) }()
	var children []*lifeline
	for range 8 {
		children = append(children, l.next(t, "child"))
	}
	tree, err := treeOf(l.pid(t))
	if err != nil {
		t.Fatal(err)
	}
	var shells []load // the test binary's own memory is another matter
	var resident int64
	for _, p := range tree {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid)); string(name) == "sh\n" {
			shells, resident = append(shells, p), resident+p.resident
		}
	}
	held := limits{Resources: config.Resources{Memory: 128 << 20}}
	if err := held.over(shells); err != nil || len(shells) != 9 || resident < 300<<20 {
		t.Errorf("%d shells with %d MiB: %v", len(shells), resident>>20, err)
	}
	held.Memory = 39 << 20
	if err := held.over(shells); err == nil {
		t.Error("their 40 MiB are not seen")
	}
	for _, c := range children {
		c.CloseWrite()
	}
	wantStatus(t, <-results, execute.Succeeded)
}

func TestWhatTheKernelEndsIsBlamedOnItsLimit(t *testing.T) {
	// A text that doubles is refused by the kernel at some 760 MiB, and the shell gives up, in its own way. That is
	// more than this process has, so it can be told from it.
	e := limited(mebibyte+"while :; do block=$block$block; done", config.Resources{Memory: 250 << 20})
	e.limits.look = never
	res := ran(t, e)
	wantStatus(t, res, execute.Failed)
	how, _, _ := strings.Cut(strings.TrimPrefix(res.Err.Error(), "the command "), ",")
	if used := wantOver(t, res, how, "250 MiB"); used > 760 {
		t.Errorf("it had %v MiB", used)
	}
}

func TestTheMemoryOfSolotickIsNotTheCommands(t *testing.T) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	e := limited("exit 3", config.Resources{Memory: int64(own.Maxrss) << 10 / 2})
	e.limits.look = never
	if res := ran(t, e); res.Err == nil || res.Err.Error() != "the command exited with code 3" {
		t.Errorf("%+v", res)
	}
}

func TestTheKernelsLimitsAreAboveTheTables(t *testing.T) {
	r := config.Resources{Memory: 64 << 20}
	want := fmt.Sprintf("Max data size %d %[1]d bytes", 2*64<<20+256<<20)
	// They are set just after the start.
	res := ran(t, limited(`until grep -q "Max data size  *[0-9]" /proc/self/limits; do :; done
		grep "Max data size" /proc/self/limits | tr -s " " | sed "s/ $//"`, r))
	wantStatus(t, res, execute.Succeeded)
	if res.Output != want {
		t.Errorf("got  %q\nwant %q", res.Output, want)
	}
}

// A shell may have forked before its limits were set.
func TestTheKernelsLimitsAreForAllProcesses(t *testing.T) {
	cmd := exec.Command("sh", "-c", "setsid sleep 1000 & wait")
	cmd.SysProcAttr = groupLeader()
	runtime.LockOSThread() // or it would take the command with it
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	var tree []load
	for began := time.Now(); len(tree) < 2; {
		var err error
		if tree, err = treeOf(cmd.Process.Pid); err != nil || time.Since(began) > patience {
			t.Fatalf("%v, %v", tree, err)
		}
	}
	defer killStrays(cmd.Process.Pid, tree)
	l := limits{Resources: config.Resources{Memory: 77 << 20}, look: looks{time.Millisecond, time.Millisecond}}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() { stopped <- l.watch(cmd.Process.Pid, stop) }()
	for _, p := range tree {
		for began, now := time.Now(), (unix.Rlimit{}); now.Cur != 2*77<<20+256<<20; {
			if err := unix.Prlimit(p.pid, unix.RLIMIT_DATA, nil, &now); err != nil || time.Since(began) > patience {
				t.Fatalf("%+v: %+v, %v", p, now, err)
			}
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestALowerLimitOfTheSystemStays(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for _, step := range []struct{ limit, want uint64 }{{70, 70}, {90, 70}, {60, 60}, {100, 60}} {
		if err := lower(cmd.Process.Pid, unix.RLIMIT_CPU, step.limit); err != nil {
			t.Fatal(err)
		}
		var now unix.Rlimit
		if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CPU, nil, &now); err != nil || now.Cur != step.want || now.Max != step.want {
			t.Errorf("%+v: %+v, %v", step, now, err)
		}
	}
}

func TestNicenessIsAddedToSoloticks(t *testing.T) {
	own, err := niceness()
	if err != nil {
		t.Fatal(err)
	}
	for add, want := range map[int]int{3: min(own+3, 19), 19: min(own+19, 19)} {
		res := ran(t, limited(fmt.Sprintf(`until [ "$(nice)" = %d ]; do :; done; sh -c nice`, want), config.Resources{Nice: add}))
		if wantStatus(t, res, execute.Succeeded); res.Output != strconv.Itoa(want) {
			t.Errorf("%d: %q, want %d", add, res.Output, want)
		}
	}
}

func TestWhoMayNotGoFirstIsToldSoOnceAndRuns(t *testing.T) {
	var log records
	e := sh("nice", Options{Resources: config.Resources{Nice: -5}, Log: slog.New(&log)})
	own, _ := niceness()
	done := make(chan struct{})
	go func() { // its thread has no way back, and ends with it
		defer close(done)
		runtime.LockOSThread()
		if err := dropCapability(unix.CAP_SYS_NICE); err != nil {
			t.Error(err)
			return
		}
		if err := unix.Setrlimit(unix.RLIMIT_NICE, &unix.Rlimit{}); err != nil {
			t.Error(err)
		}
		for range 2 {
			if res := ran(t, e); res.Status != execute.Succeeded || res.Output != strconv.Itoa(own) {
				t.Errorf("%+v", res)
			}
		}
	}()
	<-done
	const want = "WARN the command keeps the niceness of Solotick: a lower one needs CAP_SYS_NICE job=send-invoices err=permission denied"
	if n := strings.Count(strings.Join(log.text, "\n"), want); n != 1 {
		t.Errorf("said %d times: %q", n, log.text)
	}
}

// dropCapability takes a capability from the present thread for good.
func dropCapability(n uint) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[n/32].Effective &^= 1 << (n % 32)
	data[n/32].Permitted &^= 1 << (n % 32)
	return unix.Capset(&head, &data[0])
}

func TestLimitsThatCannotBeWatchedEndTheCommand(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait() // so that it is in no process table
	l := limits{Resources: config.Resources{Memory: 1 << 30}, look: looks{time.Millisecond, time.Millisecond}}
	err := l.watch(cmd.Process.Pid, nil)
	if err == nil || !strings.Contains(err.Error(), "cannot be watched: process "+strconv.Itoa(cmd.Process.Pid)+" is not shown") {
		t.Errorf("error %v", err)
	}
}

func TestLimitsAreShownSoThatTheExcessIsSeen(t *testing.T) {
	for want, err := range map[string]error{
		"over its memory limit: 131 MiB of 128 MiB":   overMemory(131<<20, 128<<20),
		"over its memory limit: 128.1 MiB of 128 MiB": overMemory(128<<20+1024, 128<<20),
		"over its memory limit: 95.4 MiB of 95.3 MiB": overMemory(100_001_000, 100_000_000),
	} {
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}

// The number of a process that has ended may be another's by the time it is to be killed.
func TestAStrayIsKilledOnlyIfItIsStillTheSameProcess(t *testing.T) {
	for _, same := range []bool{false, true} {
		cmd := exec.Command("sh", "-c", `trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
		cmd.SysProcAttr = groupLeader()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 10)); err != nil { // it hears TERM from now on
			t.Fatal(err)
		}
		seen, err := loadOf(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if !same {
			seen.start++
		}
		killStrays(1, []load{seen})
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if killed := cmd.ProcessState.ExitCode() != 7; killed != same {
			t.Errorf("the same process: %t, killed: %t (%s)", same, killed, cmd.ProcessState)
		}
	}
}
