//go:build !race

package model

const (
	underRace = false
	bound     = 1_000_000 // states; far more than a small world has
)
