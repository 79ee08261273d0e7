package rds

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

var (
	started  = time.Now()
	boottime = carried{read: clockBoottime, clocks: monotonicAndWall}
)

// Boottime is the time since boot on CLOCK_BOOTTIME, which, unlike Go's monotonic clock, also counts while the machine
// is suspended: a lid closed for an hour must end a lease of fifteen seconds.
func Boottime() time.Duration { return boottime.now() }

func clockBoottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("clock_gettime(CLOCK_BOOTTIME): " + err.Error()) // in every Linux since 2.6.39
	}
	return time.Duration(ts.Nano())
}

func monotonicAndWall() (monotonic, wall time.Duration) {
	now := time.Now()
	return now.Sub(started), time.Duration(now.UnixNano())
}

// carried is a clock that takes a system call to read. A fire asks for it twenty times, so the monotonic clock, which
// takes none, carries it on. The wall clock counts time in suspend, too: once the two have advanced by different times,
// the machine was suspended, or its wall clock was set, and the clock is read again; and after a second anyway.
type carried struct {
	read   func() time.Duration
	clocks func() (monotonic, wall time.Duration)
	last   atomic.Pointer[reading]
}

type reading struct{ boot, monotonic, wall time.Duration }

func (c *carried) now() time.Duration {
	monotonic, wall := c.clocks()
	if last := c.last.Load(); last != nil {
		advanced := monotonic - last.monotonic
		if advanced < time.Second && (wall-last.wall-advanced).Abs() < time.Millisecond {
			return last.boot + advanced
		}
	}
	read := &reading{c.read(), monotonic, wall}
	if after, _ := c.clocks(); after-monotonic < time.Millisecond/10 { // else something came between the readings
		c.last.Store(read)
	}
	return read.boot
}
