//go:build !linux

package main

import "runtime/debug"

// shrink gives back the heap that only the start needed.
func shrink() { debug.FreeOSMemory() }
