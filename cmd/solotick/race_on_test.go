//go:build race

package main

// raceMemory is how many times the memory the race detector takes.
const raceMemory = 4
