//go:build !linux

package command

import (
	"context"
	"log/slog"
)

// Reap has nothing to do here: only in a container is this process the first one.
func Reap(context.Context, *slog.Logger) {}
