//go:build !race

package sim

// some seeds are played where nothing else is said.
const some = 400
