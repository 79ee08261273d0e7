//go:build !linux

package rds

import "time"

var started = time.Now()

// Boottime is the time since the process began. Without CLOCK_BOOTTIME the greater of the monotonic and the wall
// clock's advance is taken, so that time in suspend counts, and a wall clock set back does not.
func Boottime() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
