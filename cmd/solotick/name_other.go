//go:build !linux

package main

// takeName never reserves a name: without abstract sockets it cannot tell whether another process has it. So every
// process adds its pid to the name.
func takeName(string, string) (free func(), ok bool) { return nil, false }
