package sidecar

import (
	"time"

	"golang.org/x/sys/unix"
)

// preciseSleep sleeps in the kernel, which is late by tens of microseconds; Go's timers are late by hundreds. A
// signal may end the sleep early: callers look at the clock anyway.
func preciseSleep(d time.Duration) {
	_ = unix.Nanosleep(new(unix.NsecToTimespec(int64(d))), nil)
}
