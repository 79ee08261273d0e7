package main

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog takes what the Redis client would write to standard error by itself. It is for debugging alone: what matters
// of it comes back as an error, too, and is logged as that.
type redisLog struct{ log *slog.Logger }

// Printf implements the client's logger.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, v...))
	}
}
