//go:build !race

package sim

const (
	underRace = false
	some      = 800 // seeds that are played where nothing else is said
	twice     = 20  // seeds that are played twice
)
