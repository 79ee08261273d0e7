//go:build !linux

package rds

import "time"

var started = time.Now()

// Boottime is the time since the process began. Without CLOCK_BOOTTIME it takes the greater of the monotonic and the
// wall clock's advance. So time in suspend counts, and a wall clock that is set back does not shorten it.
func Boottime() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
