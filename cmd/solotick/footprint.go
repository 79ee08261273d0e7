package main

import (
	"context"
	"time"
)

const (
	// settled is when the start is over: Redis was asked, the jobs are registered, and the first ticks have come.
	settled = 2 * time.Second
	// tidied is how often memory is given back later: what a burst or a scrape took would stay, several times what a
	// sidecar at rest uses. It takes 6 ms.
	tidied = time.Minute
)

// staySmall gives memory back that nothing uses any more, until ctx ends.
func staySmall(ctx context.Context) {
	for wait := settled; ; wait = tidied {
		select {
		case <-time.After(wait):
			shrink()
		case <-ctx.Done():
			return
		}
	}
}
