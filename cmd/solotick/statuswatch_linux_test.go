package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// watched is a solotick status --watch on a terminal. With its interval of an hour, it draws once, and again at a
// resize.
type watched struct {
	t      *testing.T
	cmd    *exec.Cmd
	person *os.File
	seen   string
}

func watchOnTerminal(t *testing.T, env ...string) *watched {
	t.Helper()
	s, err := seed("0123456789ab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	table := filepath.Join(t.TempDir(), "table.yaml")
	text := "service: billing\njobs:\n"
	for n := range 40 {
		text += fmt.Sprintf("  - {name: job-%d, schedule: \"@yearly\", exec: {command: [\"true\"]}}\n", n)
	}
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program, person := openTerminal(t)
	w := &watched{t: t, person: person, cmd: exec.Command("solotick", "status", "-c", table, "--redis", "redis://"+s.mini.Addr(), "--watch", "--interval", "1h")}
	w.resize(80, 24)
	w.cmd.Env = bareEnv(append([]string{"TERM=xterm"}, env...)...)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = program, program, program
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
	_ = program.Close() // so that reading ends with the program
	return w
}

func (w *watched) resize(columns, rows uint16) {
	w.t.Helper()
	if err := unix.IoctlSetWinsize(int(w.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		w.t.Fatal(err)
	}
}

// until returns what the program writes before the given text.
func (w *watched) until(end string) string {
	w.t.Helper()
	late := time.AfterFunc(patience, func() { _ = w.cmd.Process.Kill() }) // reading from a terminal has no deadline
	defer late.Stop()
	for !strings.Contains(w.seen, end) {
		read := make([]byte, 4096)
		n, err := w.person.Read(read)
		if err != nil {
			w.t.Fatalf("%v after %q", err, w.seen)
		}
		w.seen += string(read[:n])
	}
	got, rest, _ := strings.Cut(w.seen, end)
	w.seen = rest
	return got
}

const drawn = "\x1b[J" // ends each drawing

func TestWatchFollowsTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	w := watchOnTerminal(t)
	for _, rows := range []int{24, 10, 30} {
		w.resize(80, uint16(rows)) // the first is no change
		screen := w.until(drawn)
		if n := strings.Count(screen, "\n") + 1; n != rows || !strings.Contains(screen, "more: ") {
			t.Errorf("%d lines on %d rows: %q", n, rows, screen)
		}
	}
	if _, err := w.person.WriteString("\x03"); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	w.until("\x1b[?7h\x1b[?25h\x1b[?1049l")
	if err := w.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestATerminalThatWantsNoColoursGetsNone(t *testing.T) {
	t.Parallel()
	for env, coloured := range map[string]bool{"X=": true, "NO_COLOR=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		screen := watchOnTerminal(t, env).until(drawn)
		if strings.Contains(screen, "\x1b[33m0 of 40 failing") != coloured || !coloured && strings.Contains(screen, "m0 of") {
			t.Errorf("%s: %q", env, screen)
		}
	}
}
