package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

func TestWhatTheRedisClientSaysIsForDebuggingAlone(t *testing.T) {
	for level, want := range map[slog.Level]string{slog.LevelInfo: "", slog.LevelDebug: `level=DEBUG msg="redis client" says="pool: 3 retries"`} {
		var out bytes.Buffer
		redisLog{slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))}.Printf(context.Background(), "pool: %d retries", 3)
		if got := out.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("at %s: %q", level, got)
		}
	}
}
