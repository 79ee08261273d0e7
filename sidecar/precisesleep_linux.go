package sidecar

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, which is late by tens of microseconds where Go's timers are by hundreds. A signal may end it
// early; whoever calls it looks at the clock anyway.
func preciseSleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
