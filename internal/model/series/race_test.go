//go:build race

package series

// The race detector finds nothing in a search, which is a single goroutine, and makes it ten times slower.
const (
	underRace = true
	bound     = 5_000
)
