//go:build !linux

package main

// takeName takes a name for this process alone. Here nobody can tell whether another process has it, so every process has its
// pid with it.
func takeName(string, string) (free func(), ok bool) { return nil, false }
