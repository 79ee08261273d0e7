//go:build unix

package main

import (
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminal returns the size of the terminal behind out; ok is false if out is no terminal.
func terminal(out io.Writer) (columns, rows int, ok bool) {
	if o, ok := out.(*stickyWriter); ok {
		out = o.Writer
	}
	f, isFile := out.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

// resizes returns a channel that gets a signal when the terminal is resized, until stop is called.
func resizes() (resized <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
