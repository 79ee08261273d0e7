package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// onTerminalOf runs a command as the first one of a terminal, and returns what the terminal shows. A person there types
// one text after the other, each once it shows the text before it: "ready", typed, "ready", typed.
func onTerminalOf(t *testing.T, cmd *exec.Cmd, dialogue ...string) (seen string) {
	t.Helper()
	program, person := openTerminal(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close() // so that reading ends with the command
	some := make([]byte, 1000)
	for n, err := 0, error(nil); err == nil; n, err = person.Read(some) { // EIO once the other side is closed
		seen += string(some[:n])
		if len(dialogue) > 1 && strings.Contains(seen, dialogue[0]) {
			if _, err := fmt.Fprint(person, dialogue[1]); err != nil {
				t.Fatal(err)
			}
			dialogue = dialogue[2:]
		}
	}
	_ = cmd.Wait() // the output tells
	return seen
}

func TestATerminalIsToldWhyACommandIsNotRun(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{answers: map[string][]int{"now": {http.StatusConflict}}, body: `{"error": "two has it", "reason": "fired_elsewhere"}`}
	if seen := onTerminalOf(t, f.command(t, "echo", "run")); seen != "note: two has it\r\n" {
		t.Errorf("%q", seen)
	}
}

// TestACommandReadsFromTheTerminal as does what comes after it in a script, and Ctrl-C is for it alone.
func TestACommandReadsFromTheTerminal(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{}
	claim := f.command(t, "sh", "-c", "read x; echo got $x")
	script := exec.Command("sh", append([]string{"-c", `"$@"; read y; echo then $y`, "sh"}, claim.Args...)...)
	script.Env = claim.Env
	if seen := onTerminalOf(t, script, "", "one\ntwo\n"); !strings.Contains(seen, "got one\r\n") || !strings.Contains(seen, "then two\r\n") {
		t.Errorf("%q", seen)
	}
	f = &fakeReplica{}
	claim = f.command(t, "sh", "-c", "echo ready; read x; echo got $x; read x")
	if seen := onTerminalOf(t, claim, "ready", "\x1aone\n", "got one\r\n", "\x03"); !strings.Contains(seen, "got one\r\n") || claim.ProcessState.ExitCode() != 130 || f.last() != `finish {"detail":"killed by SIGINT","outcome":"failed"}` {
		t.Errorf("%d %q %q", claim.ProcessState.ExitCode(), seen, f.seen)
	}
}

// TestACommandDiesWithItsClaim even if that is killed.
func TestACommandDiesWithItsClaim(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{}
	cmd := f.command(t, "sh", "-c", `echo; read forever`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil { // it ends with the command
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// TestASignalThatIsIgnoredIsNotPassedOn by a claim under nohup.
func TestASignalThatIsIgnoredIsNotPassedOn(t *testing.T) {
	t.Parallel()
	f := &fakeReplica{}
	cmd := f.command(t, "sh", "-c", `kill -HUP $PPID; sleep 1; echo done`)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap '' HUP; exec "$@"`, "sh"}, cmd.Args...)
	if out, err := cmd.CombinedOutput(); string(out) != "done\n" || err != nil {
		t.Errorf("%s%v", out, err)
	}
}
