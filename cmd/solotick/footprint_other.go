//go:build !linux

package main

import "runtime/debug"

// shrink gives back the heap that is not in use.
func shrink() { debug.FreeOSMemory() }
