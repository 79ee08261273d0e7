//go:build !unix

package main

import (
	"io"
	"os"
)

// terminal is the size of the terminal that out is; here it cannot be told.
func terminal(io.Writer) (columns, rows int, ok bool) { return 0, 0, false }

// resizes returns a channel that gets nothing; here a resize cannot be told.
func resizes() (resized <-chan os.Signal, stop func()) { return nil, func() {} }
