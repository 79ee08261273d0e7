package rig

import (
	"testing"
	"time"

	"github.com/solotick/solotick/internal/testing/needs"
)

func TestAKilledRedisComesBackWithWhatItWroteDown(t *testing.T) {
	needs.Program(t, "redis-server")
	r, err := StartRedis(t.TempDir(), "--appendonly", "yes", "--appendfsync", "always")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Stop(10 * time.Second) })
	if _, err := r.Ask("SET tick 1"); err != nil {
		t.Fatal(err)
	}
	r.Kill()
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Ask("GET tick"); got != "1" || err != nil {
		t.Errorf("after the restart it has %q, %v", got, err)
	}
	info, err := r.Info("stats")
	if err != nil || info["total_commands_processed"] == "" {
		t.Errorf("INFO stats: %q, %v", info, err)
	}
}
