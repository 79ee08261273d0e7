//go:build !unix

package main

import "io"

// terminal is the width of the terminal that out is; here it cannot be told.
func terminal(io.Writer) (columns int, ok bool) { return 0, false }
