package rds

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boottime is the time since boot on CLOCK_BOOTTIME, which, unlike Go's monotonic clock, also counts while the machine
// is suspended: a lid closed for an hour must end a lease of fifteen seconds.
func Boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock_gettime(CLOCK_BOOTTIME): " + err.Error()) // in every Linux since 2.6.39
	}
	return time.Duration(ts.Nano())
}
