// Package beat waits. It has what a process does now and then done in one moment: waking it costs more than the work.
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

// Rest is how often a process at rest is woken.
const Rest = 5 * time.Second

// Near is a wait that ends half way between two multiples of d, far from most ticks if these are odd seconds. It is at
// most nine tenths of d shorter than that, and a tenth longer: a clock that is being set may show a little less than
// half of it when the last wait ends. A wait of less than a second stays as it is.
func Near(now time.Time, d time.Duration) time.Duration {
	if wait := d + d/10; d >= time.Second {
		return wait - time.Duration(now.Add(wait-d/2).UnixNano())%d
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
