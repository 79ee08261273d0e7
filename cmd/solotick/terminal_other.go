//go:build !unix

package main

import "io"

// terminal is the size of the terminal that out is; here it cannot be told.
func terminal(io.Writer) (columns, rows int, ok bool) { return 0, 0, false }
