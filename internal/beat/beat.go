// Package beat waits. It has what a process does once a second done in one moment: waking the process costs more than
// the work.
package beat

import (
	"context"
	"time"
)

// Sleep waits for d or the end of ctx; false when ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Near is a wait that ends half way between two seconds, far from most ticks. It is at most 0.9 s shorter than d, and
// 0.1 s longer: a clock that is being set may show a little less than half a second when the last wait ends. A wait of
// less than a second stays as it is.
func Near(now time.Time, d time.Duration) time.Duration {
	if d >= time.Second {
		d += time.Second / 10
		d -= time.Duration(now.Add(d-time.Second/2).UnixNano()) % time.Second
	}
	return d
}

// Kick puts an element into a channel that has room for one. If one is there, its reader is about to be woken anyway.
func Kick(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
