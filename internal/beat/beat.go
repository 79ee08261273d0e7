// Package beat has what a process does once a second done in one moment: to wake it costs more than most of that.
package beat

import "time"

// Near is a wait of about d that ends half way between two seconds, far from most ticks: at most 0.1 s longer, since a
// timer may end a little early by a clock that is being set, and 0.9 s shorter. Less than a second stays as it is.
func Near(now time.Time, d time.Duration) time.Duration {
	if d >= time.Second {
		d += time.Second / 10
		d -= time.Duration(now.Add(d-time.Second/2).UnixNano()) % time.Second
	}
	return d
}
