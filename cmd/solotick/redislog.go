package main

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog receives the lines that the Redis client would write to standard error, and logs them at level debug.
// Whatever matters also comes back as an error, and is logged as one.
type redisLog struct{ log *slog.Logger }

// Printf implements the client's logger.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, v...))
	}
}
