//go:build !race

package model

const (
	underRace = false
	bound     = 4_000_000 // states; more than a small world has
)
