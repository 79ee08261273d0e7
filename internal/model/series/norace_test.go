//go:build !race

package series

const (
	underRace = false
	bound     = 2_000_000 // states; more than a world has
)
