//go:build !linux

package embedded

import "io"

// mark does nothing: without abstract sockets there is no mark that ends with its process.
func mark(string) io.Closer { return io.NopCloser(nil) }

// marked takes every silent program for a stopped store, because two stores would fire each tick twice.
func marked(string) bool { return true }
