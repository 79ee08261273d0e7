//go:build race

package sim

// The race detector makes a seed eight times as slow: there a few are played, for what it sees in them.
const (
	underRace = true
	some      = 16
	twice     = 3
)
