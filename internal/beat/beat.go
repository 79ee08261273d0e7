// Package beat has what a process does once a second done in one moment: waking the process costs more than the work.
package beat

import "time"

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
