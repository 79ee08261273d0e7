//go:build race

package sim

// some seeds, since the race detector makes each of them eight times as slow.
const some = 120
