//go:build race

package model

// The race detector makes a search ten times slower, and finds nothing in one that is a single goroutine: there the
// small worlds are searched only so far.
const (
	underRace = true
	bound     = 5_000
)
