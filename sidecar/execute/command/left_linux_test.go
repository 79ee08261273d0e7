package command

import (
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyGroupsOfDeadProcessesAreKilled(t *testing.T) {
	own, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	start := func(run string, attr *syscall.SysProcAttr) *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		cmd.Env, cmd.SysProcAttr = []string{"A=1", "SOLOTICK_RUN=" + run}, attr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // an error means that it has ended
		return cmd
	}
	group := func() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
	left, with := start("dead", group()), start("dead", group())
	living := start("living", group())
	inOurs := start("dead", nil)
	away := start("dead", &syscall.SysProcAttr{Setsid: true})
	joined := group()
	joined.Pgid = left.Process.Pid
	member := start("dead", joined)
	dead := func(run string) bool { return run == "dead" }
	if n := EndLeft(map[int]bool{own + 1<<20: true}, dead); n != 0 {
		t.Errorf("%d groups of other sessions were killed", n)
	}
	if n := EndLeft(map[int]bool{own: true}, dead); n != 2 {
		t.Errorf("%d groups were killed, want 2", n)
	}
	for _, cmd := range []*exec.Cmd{left, with, member} {
		_ = cmd.Wait() // its state tells
		if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != unix.SIGKILL {
			t.Errorf("it ended with %v", cmd.ProcessState)
		}
	}
	for _, cmd := range []*exec.Cmd{living, inOurs, away} {
		if p, err := readStat(strconv.Itoa(cmd.Process.Pid), make([]byte, statSize)); err != nil || !p.alive() {
			t.Errorf("%+v, %v: it was killed", p, err)
		}
	}
}
