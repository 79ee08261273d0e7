package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal: the program's side, and the side of the person before it.
func openTerminal(t *testing.T) (program, person *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return program, person
}

// onTerminal returns what solotick status writes to a terminal of 80 columns, for a service of one job.
func onTerminal(t *testing.T, env ...string) string {
	t.Helper()
	s, err := seed("0123456789ab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	table := filepath.Join(t.TempDir(), "table.yaml")
	text := "service: billing\njobs:\n  - {name: tidy-up, schedule: \"@yearly\", exec: {command: [\"true\"]}}\n"
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program, person := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 80, Row: 24}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("solotick", "status", "-c", table, "--redis", "redis://"+s.mini.Addr())
	cmd.Env = bareEnv(append([]string{"TERM=xterm"}, env...)...)
	cmd.Stdout, cmd.Stderr = program, program
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()           // so that reading ends with the program
	seen, _ := io.ReadAll(person) // with EIO, once the other side is closed
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v after %q", err, seen)
	}
	return string(seen)
}

func TestATerminalGetsItsWidthAndNoColoursIfItWantsNone(t *testing.T) {
	t.Parallel()
	for env, coloured := range map[string]bool{"X=": true, "NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		seen := onTerminal(t, env)
		if strings.Contains(seen, "\x1b[33m0 of 1 failing") != coloured || !coloured && strings.Contains(seen, "\x1b") {
			t.Errorf("%s: %q", env, seen)
		}
		for line := range strings.Lines(seen) {
			if line = strings.TrimRight(line, "\r\n"); utf8.RuneCountInString(line) > 80+len("\x1b[33m\x1b[0m") {
				t.Errorf("%s: too wide: %q", env, line)
			}
		}
	}
}
