//go:build linux

// Command record runs the real demo on a pseudo-terminal, and draws what it showed, and when, as an animated
// picture: docs/demo.svg. It refuses a run that does not show a kill and a takeover, or that ended with a double or a
// loss.
//
//	go run ./docs/record
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	columns = 84
	rows    = 30
)

func main() {
	log.SetFlags(0)
	length := flag.Duration("for", 30*time.Second, "how long the demo runs")
	file := flag.String("o", "docs/demo.svg", "the picture to write")
	flag.Parse()
	if err := record(*file, *length); err != nil {
		log.Fatal("error: ", err)
	}
}

func record(file string, length time.Duration) error {
	dir, err := os.MkdirTemp("", "record-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir, "./cmd/solotick", "./examples/demo")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the demo: %w\n%s", err, out)
	}
	program := filepath.Join(dir, "demo")
	command := "go run ./examples/demo --for " + length.String() // as a reader types it, without the time to compile
	log.Printf("recording %s", command)
	lines, err := watch(program, []string{program, "--for", length.String(),
		"--solotick", filepath.Join(dir, "solotick")})
	if err != nil {
		return err
	}
	shown := make([]string, len(lines))
	for i, l := range lines {
		shown[i] = l.text()
	}
	if err := worthy(shown); err != nil {
		return err
	}
	lines = append([]line{prompt(0, command)}, lines...)
	lines = append(lines, prompt(lines[len(lines)-1].at, ""))
	picture := draw(lines, rows, columns, "the demo of Solotick")
	log.Printf("%s: %d lines, %d bytes", file, len(lines), len(picture))
	return os.WriteFile(file, picture, 0o644)
}

// typing is the time from the first picture to the first line of the program, so that its reader can read the command.
const typing = time.Second

// watch runs a program on a pseudo-terminal and returns its lines.
func watch(program string, command []string) ([]line, error) {
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer person.Close()
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: program, Args: command, Stdin: tty, Stdout: tty, Stderr: tty,
		Env:         []string{"PATH=/usr/bin:/bin", "TERM=xterm-256color"}, // not the recorder's own directories
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true}}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = tty.Close() // so that reading ends with the program
	s := screen{start: time.Now().Add(-typing)}
	buffer := make([]byte, 4096)
	for {
		n, err := person.Read(buffer)
		s.write(time.Now(), string(buffer[:n]))
		if err != nil { // EIO: nobody has the terminal any more
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("running %s: %w", strings.Join(command, " "), err)
	}
	return s.lines, nil
}

// marks are what a run must show to be worth a picture.
var marks = []string{
	`● fired    .* skipped$`,
	`✗ killed with SIGKILL while it ran send-report$`,
	`↻ took over [0-9:]+ from (two|three), runs it again$`,
	`started again$`,
	`^  ticks due +[0-9]{2,} `,
	`^  doubles +0 `,
	`^  lost +0 `,
	`^  runs taken over +[1-9]`,
}

func worthy(lines []string) error {
	for _, mark := range marks {
		if !slices.ContainsFunc(lines, regexp.MustCompile(mark).MatchString) {
			return errors.New("this run does not show " + mark + ": record again")
		}
	}
	return nil
}
