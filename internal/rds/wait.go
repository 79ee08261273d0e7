package rds

import (
	"context"
	"fmt"
	"time"

	"github.com/solotick/solotick/internal/beat"
)

// Backoff is the wait between two tries of the same request. It is short at first, since most losses are a single
// packet or a reconnect.
func Backoff(try int) time.Duration {
	return min(50*time.Millisecond<<min(try, 6), 2*time.Second)
}

// ClockCheckEvery is the longest single sleep of a wait for a Boottime: timers stand still in suspend.
const ClockCheckEvery = time.Second

// Outlast waits until a Boottime; false when BeginShutdown cut it short.
func (r *Redis) Outlast(boot time.Duration) bool {
	for d := boot - r.boot(); d > 0; d = boot - r.boot() {
		if !beat.Sleep(r.ending, min(d, ClockCheckEvery)) {
			return false
		}
	}
	return true
}

// GaveUp says that ctx has ended, and repeats the error of the last try.
func GaveUp(ctx context.Context, last error) error {
	if last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (last try: %w)", context.Cause(ctx), last)
}
