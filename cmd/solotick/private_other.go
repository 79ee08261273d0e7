//go:build !linux

package main

// private is for Linux, where a process' environment is a file.
func private() {}
