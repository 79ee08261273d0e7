//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminal returns the width of the terminal behind out; ok is false if out is no terminal.
func terminal(out io.Writer) (columns int, ok bool) {
	if o, ok := out.(*stickyWriter); ok {
		out = o.Writer
	}
	f, isFile := out.(*os.File)
	if !isFile {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
